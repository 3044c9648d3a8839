"""Request ids that begin with the time, which databases like better."""

from uuid import UUID

from .durations import wall_now
from .e2e.encoding import RandomSource


def uuid7(random: RandomSource) -> str:
    """A version 7 UUID (RFC 9562)."""
    milliseconds = wall_now() // 1_000
    tail = int.from_bytes(random(10), "big")
    number = milliseconds << 80 | tail
    number = number & ~(0xF << 76) | 0x7 << 76
    return str(UUID(int=number & ~(0x3 << 62) | 0x2 << 62))
