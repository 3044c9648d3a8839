"""Durable requests: submit now, exit, and resume in another process, hours later."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .approval import Approval
from .call import Call, Content
from .durations import Duration, seconds
from .errors import Denied

if TYPE_CHECKING:
    from .engine import Enforcer
    from .exchange import DeliveredDecision
    from .request import PreparedRequest


@dataclass(frozen=True)
class StillWaiting:
    """Nobody has decided yet, as far as the gateway says."""

    request_id: str


@dataclass(frozen=True)
class Approved:
    """An approval that has not been used yet."""

    approval: Approval
    _enforcer: Enforcer = field(repr=False)
    _request: PreparedRequest = field(repr=False)
    _delivered: DeliveredDecision = field(repr=False)

    @property
    def request_id(self) -> str:
        return self.approval.request_id

    @asynccontextmanager
    async def use(self, asked: Call | Content) -> AsyncGenerator[Approval]:
        """Goes around the execution of exactly the call that was approved.

        Before the body runs, the call is compared, the decision judged again, and the approval
        taken in the journal. A process that dies afterwards has used it. Run with `arguments` of
        what this yields: other tasks cannot change them.
        """
        await self._enforcer.take(self._request, self._delivered, asked)
        yield self.approval


Outcome: TypeAlias = Approved | Denied | StillWaiting


class Pending:
    """A submitted request. Cancelling a wait for it does not withdraw it."""

    def __init__(self, enforcer: Enforcer, request: PreparedRequest) -> None:
        self._enforcer = enforcer
        self._request = request

    def __repr__(self) -> str:
        return f"Pending({self.request_id!r})"

    @property
    def request_id(self) -> str:
        return self._request.id

    def to_json(self) -> str:
        """The request for another process. It has the arguments in plain: protect it as them."""
        return self._request.to_json(self._enforcer.identity.keys)

    async def outcome(self, *, wait: Duration = "0s") -> Outcome:
        """Waits for up to `wait`, and at least for one look at the gateway, about a second."""
        time_left = seconds("wait", wait)
        try:
            delivered = await self._enforcer.outcome(self._request, time_left)
        except Denied as denied:
            return denied
        if delivered is None:
            return StillWaiting(self.request_id)
        return Approved(delivered.approval, self._enforcer, self._request, delivered)

    async def withdraw(self, reason: str = "no longer needed") -> None:
        """Takes the request back. An approval that comes all the same cannot be used."""
        await self._enforcer.withdraw(self._request, reason)
