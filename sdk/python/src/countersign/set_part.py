"""One part of a set: the exchange that asks one person.

Its decision is judged against the devices of that person alone, and acknowledged only when the
whole set is decided.
"""

import asyncio
from dataclasses import dataclass

from .approval import Approval
from .devices import AskedDevices
from .durations import Deadline
from .e2e.accept import VerifiedDecision
from .e2e.errors import DecisionRefused
from .e2e.outcome import OutcomeSubject
from .errors import Denied, NotPaired, TimedOut
from .exchange import DecisionMessage, Exchange, denial_of
from .gateway import GatewayAnswer, GatewayError
from .permits import SetPermits, permit
from .request import Submission

# Of sending one request, for instance to a full inbox. Then the person drops out.
SUBMIT_TIMEOUT = 30.0
# After the last approval that is needed, of withdrawals with late decisions, and of device lists.
SETTLE_TIMEOUT = 5.0


@dataclass(frozen=True)
class PartDecision:
    """A decision, and the result of its checks."""

    message: DecisionMessage
    judged: VerifiedDecision | DecisionRefused


class SetPart:
    def __init__(self, seat: str, exchange: Exchange, submission: Submission) -> None:
        self.seat = seat
        self.exchange = exchange
        self.decision: PartDecision | None = None
        # Why there is no decision.
        self.loss: Denied | None = None
        self._submission = submission
        # Whether the gateway has said that it has the request.
        self._is_sent = False

    @property
    def request_id(self) -> str:
        return self.exchange.request.id

    @property
    def verified(self) -> VerifiedDecision | None:
        """The decision, if it passed every check."""
        judged = None if self.decision is None else self.decision.judged
        return judged if isinstance(judged, VerifiedDecision) else None

    @property
    def is_approved(self) -> bool:
        return self.verified is not None and self.verified.is_approval

    @property
    def refusal(self) -> DecisionRefused | None:
        judged = None if self.decision is None else self.decision.judged
        return judged if isinstance(judged, DecisionRefused) else None

    async def ask(self, permits: SetPermits) -> None:
        """Sends the request, and waits for the decision. Without one, there is a loss."""
        try:
            until = self.exchange.deadline
            async with permit(permits.submissions, until):
                await self.exchange.submit(self._submission, until.within(SUBMIT_TIMEOUT))
                self._is_sent = True
            async with permit(permits.waits, until):
                await self._take_decision()
        except GatewayError as error:
            self.loss = denial_of(error, self.request_id)
        except Denied as denied:
            self.loss = denied

    async def _take_decision(self) -> None:
        while self.decision is None:
            self.decision = await self.exchange.poll(self.exchange.deadline.left(), self._judge)

    async def _judge(self, answer: GatewayAnswer) -> PartDecision:
        message = self.exchange.read_decision(answer)
        judged = await self._judged(message, again=False)
        if isinstance(judged, DecisionRefused) and judged.is_unknown_device:
            # The device may have been added since the list was read.
            judged = await self._judged(message, again=True)
        return PartDecision(message, judged)

    async def _judged(
        self, message: DecisionMessage, *, again: bool
    ) -> VerifiedDecision | DecisionRefused:
        deadline = self.exchange.deadline
        return self._judged_by(await self.exchange.devices(deadline, again=again), message)

    def _judged_by(
        self, devices: AskedDevices, message: DecisionMessage
    ) -> VerifiedDecision | DecisionRefused:
        try:
            return self.exchange.accept_by(devices, message.body)
        except DecisionRefused as refused:
            return refused

    async def close(self, reason: str) -> None:
        """Takes the request back, if it is not decided. A decision that came before is taken over.

        An error means that there may be one that is not known here.
        """
        if self.decision is not None:
            return
        deadline = Deadline.after(SETTLE_TIMEOUT)
        if await self.exchange.take_back(reason, deadline, is_sent=self._is_sent):
            try:
                async with asyncio.timeout(deadline.left()):
                    await self._take_decision()
            except TimeoutError:
                raise TimedOut(self.request_id) from None

    async def judge_again(self) -> None:
        """Judges an approval by a list of devices that is read now. A rejection stays.

        An error means that there is no such list.
        """
        if self.decision is None or not self.is_approved:
            return
        message = self.decision.message
        try:
            devices = await self.exchange.devices(Deadline.after(SETTLE_TIMEOUT), again=True)
        except GatewayError as error:
            raise denial_of(error, self.request_id) from error
        except NotPaired:
            # Nobody speaks for this seat any more.
            devices = AskedDevices((), ())
        self.decision = PartDecision(message, self._judged_by(devices, message))

    def refuse(self, refused: DecisionRefused) -> None:
        """Lets a decision not count that has passed the checks of its own seat."""
        if self.decision is not None:
            self.decision = PartDecision(self.decision.message, refused)

    def approval(self) -> Approval | None:
        if self.decision is None or self.verified is None or not self.verified.is_approval:
            return None
        return self.exchange.approval(self.verified, self.decision.message)

    def subject(self) -> OutcomeSubject | None:
        """The part as an outcome names it, if it has a decision that has the form of one."""
        digest = None if self.decision is None else self.decision.message.digest
        return None if digest is None else self.exchange.subject(digest)

    async def acknowledge(self, outcome: str | None) -> None:
        if self.decision is not None:
            await self.exchange.send_acknowledgement(self.decision.message.id, outcome)
