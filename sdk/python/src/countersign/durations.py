"""Durations as people write them, and deadlines by two clocks."""

import re
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from .e2e.times import SECOND

# Such as "30s", "10m", "24h" or "7d", a timedelta, or seconds.
Duration: TypeAlias = str | timedelta | float

# The gateway keeps no request for longer.
MAX_TIMEOUT = 30 * 24 * 3600.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_TEXT = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)\Z")


def seconds(name: str, value: Duration) -> float:
    if isinstance(value, timedelta):
        found = value.total_seconds()
    elif isinstance(value, str):
        match = _TEXT.match(value)
        if not match:
            raise ValueError(f'{name}: expected a duration such as "30s", "10m" or "24h"')
        found = int(match.group(1)) * _UNITS[match.group(2)]
    else:
        found = float(value)
    if not 0 <= found < float("inf"):
        raise ValueError(f"{name}: expected a duration")
    return found


def timeout_seconds(value: Duration) -> float:
    """How long a request may wait. There is no way to wait for ever."""
    found = seconds("timeout", value)
    if not 0 < found <= MAX_TIMEOUT:
        raise ValueError("timeout: expected more than 0 and at most 30d")
    return found


def wall_now() -> int:
    """Microseconds since 1970, by the clock that people set."""
    return time.time_ns() // 1_000


@dataclass(frozen=True)
class Deadline:
    """An end by both clocks: one stands still while the machine sleeps, the other can be set."""

    monotonic: float
    wall: int

    @classmethod
    def after(cls, time_left: float) -> "Deadline":
        return cls(time.monotonic() + time_left, wall_now() + int(time_left * SECOND))

    @classmethod
    def at(cls, wall: int) -> "Deadline":
        return cls(time.monotonic() + (wall - wall_now()) / SECOND, wall)

    def left(self) -> float:
        by_wall = (self.wall - wall_now()) / SECOND
        return max(0.0, min(by_wall, self.monotonic - time.monotonic()))

    def within(self, time_left: float) -> "Deadline":
        """This deadline, or an earlier one."""
        other = Deadline.after(time_left)
        return Deadline(min(self.monotonic, other.monotonic), min(self.wall, other.wall))
