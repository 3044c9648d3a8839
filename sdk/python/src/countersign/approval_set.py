"""Asking several people about one call.

Each has an exchange of their own; this enforcer counts their decisions by the rule. The call is
allowed only once the open requests are withdrawn, the counted decisions have passed every check
again, and the outcome is signed.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence

from .approval import Approval
from .durations import wall_now
from .e2e.errors import Refusal
from .e2e.outcome import ALLOWED, CHANGED, INTERRUPTED, MISSING, sign_outcome
from .e2e.rule import ApprovalRule
from .e2e.votes import VoteCount, VoteStage, VoteState
from .errors import AlreadyUsed, Changed, Denied
from .exchange import EnforcerIdentity
from .permits import SetPermits
from .set_count import count_parts, denial_of_count, refuse_shared_devices
from .set_part import SetPart
from .state import UseJournal


class ApprovalSet:
    """The requests to all people. It belongs to one event loop, and is decided once."""

    def __init__(
        self,
        parts: Sequence[SetPart],
        rule: ApprovalRule,
        identity: EnforcerIdentity,
        journal: UseJournal,
    ) -> None:
        self.parts = parts
        self._rule = rule
        self._identity = identity
        self._journal = journal
        # As approvers are told, if nothing else is found out.
        self._cause = INTERRUPTED
        self._outcome: str | None = None
        self._named: set[str] = set()

    async def decision(self, permits: SetPermits, check: Callable[[], None]) -> Approval:
        """Waits until the rule is satisfied. After any error, call `give_up`.

        Telling the approvers takes time, so its end has to be looked at before the call runs.
        """
        state = await self._collect(permits)
        if state.stage is VoteStage.SATISFIED:
            state = await self._settle()
        if state.stage is not VoteStage.SATISFIED:
            denial, self._cause = denial_of_count(state, self._rule.terms, self.parts)
            raise denial
        counted = self._counted()
        for part in counted:
            # Nothing but True: a journal that forgets to return something has not taken it.
            if (await self._journal.take(part.request_id)) is not True:
                raise AlreadyUsed(part.request_id)
        try:
            check()
        except Changed:
            self._cause = CHANGED
            raise
        self._sign(ALLOWED)
        await self._send_outcome()
        return Approval.of_set([it for part in counted if (it := part.approval()) is not None])

    async def give_up(self) -> None:
        """Withdraws all requests that are open, and tells those who have decided."""
        closing = (part.close("the call was denied") for part in self.parts)
        await asyncio.gather(*closing, return_exceptions=True)
        # An outcome that was signed before may have been sent; there is no second one.
        if self._outcome is None:
            is_late = self._cause == MISSING and self._state().stage is VoteStage.SATISFIED
            try:
                self._sign(INTERRUPTED if is_late else self._cause)
            except Denied:
                # They learn only that the decisions arrived.
                self._named.clear()
        await self._send_outcome()

    async def _collect(self, permits: SetPermits) -> VoteState:
        """Asks everyone at the same time. Somebody who cannot be asked holds up nobody else."""
        asking = {asyncio.ensure_future(part.ask(permits)) for part in self.parts}
        try:
            while asking and self._state().stage is VoteStage.OPEN:
                done, asking = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return self._state()

    async def _settle(self) -> VoteState:
        """Withdraws the open requests, counts decisions that had come before, and judges again.

        The device lists are read now: somebody may have lost their device since.
        """
        await _all(part.close("enough people have decided") for part in self.parts)
        state = self._state()
        if state.stage is not VoteStage.SATISFIED:
            return state
        await _all(part.judge_again() for part in self.parts)
        refuse_shared_devices(self.parts)
        return self._state()

    def _count(self) -> VoteCount:
        return count_parts(self._rule.terms, self.parts)

    def _state(self) -> VoteState:
        return self._count().state()

    def _counted(self) -> list[SetPart]:
        """The approvals of the choice that has enough. Others approve something else."""
        approvers = self._count().approvers()
        return [part for part in self.parts if part.seat in approvers and part.is_approved]

    def _sign(self, cause: str) -> None:
        """Signs the outcome about the decided parts, if there are any.

        Of an allowed call, a decision that failed a check is not among them.
        """
        decided = [part for part in self.parts if cause != ALLOWED or part.verified is not None]
        subjects = [it for part in decided if (it := part.subject()) is not None]
        if not subjects:
            return
        try:
            self._outcome = sign_outcome(
                self.parts[0].exchange.request.outcome_key,
                subjects,
                tenant=self._identity.tenant,
                enforcer_id=self._identity.id,
                cause=cause,
                at=wall_now(),
                set_id=self._rule.set_id,
            )
        except Refusal as error:
            raise Denied(str(error), self.parts[0].request_id) from error
        self._named = {subject.request_id for subject in subjects}

    async def _send_outcome(self) -> None:
        """Acknowledges the decided parts. The answer to the agent does not depend on it."""
        sending = (
            part.acknowledge(self._outcome if part.request_id in self._named else None)
            for part in self.parts
        )
        await asyncio.gather(*sending)


async def _all(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Runs all to their ends, and raises the first error."""
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
