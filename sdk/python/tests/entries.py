"""The ways into the library. Every refusal is tested through each of them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from countersign import Approved, Call, Client, Denied, StillWaiting, approval_required, sync

Entry: TypeAlias = Callable[[Client, int, str, "Effects"], Awaitable[None]]


@dataclass
class Effects:
    """The side effects of the tool `pay`."""

    paid: list[int] = field(default_factory=list[int])


async def wrapped(client: Client, amount: int, timeout: str, effects: Effects) -> None:
    @approval_required(client, timeout=timeout)
    async def pay(amount: int) -> None:
        effects.paid.append(amount)

    await pay(amount)


async def asked(client: Client, amount: int, timeout: str, effects: Effects) -> None:
    await client.ask(Call("pay", {"amount": amount}), timeout=timeout)
    effects.paid.append(amount)


async def threaded(client: Client, amount: int, timeout: str, effects: Effects) -> None:
    @sync.approval_required(sync.Client(client), timeout=timeout)
    def pay(amount: int) -> None:
        effects.paid.append(amount)

    await asyncio.to_thread(pay, amount)


async def durable(client: Client, amount: int, timeout: str, effects: Effects) -> None:
    call = Call("pay", {"amount": amount})
    pending = await client.submit(call, timeout=timeout)
    outcome = await pending.outcome(wait=timeout)
    while isinstance(outcome, StillWaiting):
        outcome = await pending.outcome(wait=timeout)
    if isinstance(outcome, Denied):
        raise outcome
    assert isinstance(outcome, Approved)
    async with outcome.use(call):
        effects.paid.append(amount)


ENTRIES: dict[str, Entry] = {
    "wrapped": wrapped,
    "asked": asked,
    "threaded": threaded,
    "durable": durable,
}


async def until(condition: Callable[[], object], seconds: float = 5) -> None:
    """Waits on a condition, not on a time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
