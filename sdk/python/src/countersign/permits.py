"""Limits of what one event loop does at the same time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from .durations import Deadline
from .errors import TimedOut

MAX_WAITS = 100
MAX_SUBMISSIONS = 8


@dataclass(frozen=True)
class SetPermits:
    """Of the parts of a set. The waits are those of all requests of the loop."""

    waits: asyncio.Semaphore
    submissions: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAX_SUBMISSIONS)
    )


@asynccontextmanager
async def permit(semaphore: asyncio.Semaphore, deadline: Deadline) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(deadline.left()):
            await semaphore.acquire()
    except TimeoutError:
        raise TimedOut from None
    try:
        yield
    finally:
        semaphore.release()
