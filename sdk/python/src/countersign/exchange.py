"""A request at the gateway: submit it, wait, and judge the answer.

Everything but an accepted approval is a denial with its cause.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from .approval import Approval
from .devices import AskedDevices, DeviceDirectory
from .durations import Deadline, wall_now
from .e2e.accept import VerifiedDecision, accept
from .e2e.decision import DecisionMembers
from .e2e.encoding import RandomSource
from .e2e.errors import DecisionRefused, Refusal
from .e2e.keys import DecryptionKey
from .e2e.outcome import ALLOWED, REJECTED, UNTRUSTED, OutcomeSubject, sign_outcome
from .e2e.strict_json import Json, JsonObject, parse, parse_with_sources
from .e2e.times import format_time
from .errors import Denied, Ended, Expired, NotPaired, Rejected, TimedOut, Unavailable, Untrusted
from .gateway import (
    GatewayAnswer,
    GatewayCall,
    GatewayClient,
    GatewayError,
    UnexpectedAnswer,
    path,
)
from .request import PreparedRequest, Submission, envelope, seal_request
from .state import UseJournal

LOG = logging.getLogger("countersign")
LONG_POLL_TIMEOUT = 25.0
# The answer of a long poll may be late by this, or by less at the end of the request.
ANSWER_GRACE = 5.0
LAST_ANSWER_GRACE = 0.5
# A gateway may answer at once, without a decision.
POLL_INTERVAL = 0.25
ACK_TIMEOUT = 3.0
# Answers to a withdrawal: the request has ended, and nobody has decided.
_ENDED_CODES = ("EXPIRED", "INVALID_STATE")

T = TypeVar("T")


@dataclass(frozen=True)
class EnforcerIdentity:
    id: str
    tenant: str
    keys: DecryptionKey
    random: RandomSource = os.urandom


@dataclass(frozen=True)
class DeliveredDecision:
    """An accepted approval, with what an acknowledgement needs."""

    approval: Approval
    message_id: str
    digest: str


@dataclass(frozen=True)
class DecisionMessage:
    """A decision as the gateway delivered it, before its checks."""

    id: str
    body: Json = field(repr=False)
    # The body, byte for byte.
    text: str = field(repr=False)

    @property
    def digest(self) -> str | None:
        """None if it has not the form of a decision."""
        try:
            return DecisionMembers.read(self.body).digest
        except Refusal:
            return None


class Exchange:
    """One request. It belongs to one event loop."""

    def __init__(
        self,
        request: PreparedRequest,
        identity: EnforcerIdentity,
        directory: DeviceDirectory,
        gateway: GatewayClient,
        deadline: Deadline,
        journal: UseJournal,
    ) -> None:
        self.request = request
        self.deadline = deadline
        self._identity = identity
        self._directory = directory
        self._gateway = gateway
        self._journal = journal
        self._asked = request.asked
        self._recipients: frozenset[str] | None = None

    async def submit(self, submission: Submission, deadline: Deadline | None = None) -> None:
        self._recipients = submission.recipients
        call = GatewayCall("POST", "/v1/artifacts", submission.envelope)
        try:
            answer = await self._gateway.expect(call, (202,), deadline or self.deadline)
            members = answer.members()
        except GatewayError as error:
            raise denial_of(error, self.request.id) from error
        is_accepted = members.get("msgType") == "artifact.accepted"
        if not is_accepted or members.get("requestId") != self.request.id:
            raise Unavailable("the gateway did not accept this request", self.request.id)

    async def wait(self, time_left: float) -> DeliveredDecision | None:
        """Waits for up to `time_left`. None if nobody has decided by then.

        A gateway that is away does not end the wait; the deadline of the request does.
        """
        return await self.poll(time_left, self._judge)

    async def poll(
        self, time_left: float, judge: Callable[[GatewayAnswer], Awaitable[T]]
    ) -> T | None:
        """Waits for an answer that ends the request, and judges it."""
        loop = asyncio.get_running_loop()
        until, away = loop.time() + time_left, None
        while True:
            left = self.deadline.left()
            if left == 0:
                raise TimedOut(self.request.id) if away is None else away
            rest = max(0.0, until - loop.time())
            started = loop.time()
            try:
                answer = await self._poll(min(left, rest, LONG_POLL_TIMEOUT))
                away = None
                if answer is not None:
                    return await judge(answer)
                if loop.time() < until:
                    await self._seal_again()
            except GatewayError as error:
                if not error.is_away:
                    raise denial_of(error, self.request.id) from error
                away = denial_of(error, self.request.id)
            if loop.time() >= until:
                return None
            pause = min(POLL_INTERVAL, self.deadline.left())
            await asyncio.sleep(max(0.0, started + pause - loop.time()))

    async def _poll(self, time_left: float) -> GatewayAnswer | None:
        """One long poll: an answer that ends the request, or none yet."""
        seconds = max(1, int(time_left))
        target = path("v1", "exchanges", self.request.id, "wait")
        call = GatewayCall(
            "GET", f"{target}?timeout={seconds}", attempt_timeout=seconds + ANSWER_GRACE
        )
        grace = Deadline.after(self.deadline.left() + LAST_ANSWER_GRACE)
        deadline = grace.within(seconds + ANSWER_GRACE)
        answer = await self._gateway.expect(call, (200, 204), deadline)
        if answer.exchange_state is not None:
            # Nobody signed it. The gateway could deliver an approval all the same.
            await self._take_for_denial()
            raise ended(answer.exchange_state, self.request.id)
        return answer if answer.status == 200 else None

    async def _seal_again(self) -> None:
        """Encrypts the request again if a device was added, so that it opens there too."""
        if self._recipients is None:
            return
        deadline = self.deadline.within(ACK_TIMEOUT)
        try:
            devices = await self.devices(deadline, again=True)
            if devices.ids <= self._recipients:
                return
            submission = self.sealed(devices)
            target = path("v1", "exchanges", self.request.id, "ciphertext")
            call = GatewayCall("PUT", target, submission.envelope)
            await self._gateway.expect(call, (204,), deadline)
            self._recipients = submission.recipients
        except (GatewayError, Denied):
            # The decision does not depend on it.
            return

    def sealed(self, devices: AskedDevices) -> Submission:
        return seal_request(self.request, devices, self._identity.keys, self._identity.random)

    async def devices(self, deadline: Deadline, *, again: bool) -> AskedDevices:
        return await self._directory.devices_of(self._asked, self._gateway, deadline, again=again)

    def read_decision(self, answer: GatewayAnswer) -> DecisionMessage:
        try:
            message, sources = parse_with_sources(answer.body)
        except Refusal as error:
            raise Untrusted(f"the answer is not strict JSON: {error}", self.request.id) from error
        if not isinstance(message, dict) or message.get("msgType") != "decision.deliver":
            raise UnexpectedAnswer("the gateway's answer is no decision")
        return DecisionMessage(
            str(message.get("msgId")), message.get("body"), sources.get("body", "")
        )

    async def _judge(self, answer: GatewayAnswer) -> DeliveredDecision:
        message = self.read_decision(answer)
        try:
            verified = await self._accept_current(message.body)
        except DecisionRefused as error:
            if await self._take_for_denial() and message.digest is not None:
                await self.acknowledge(message.id, message.digest, UNTRUSTED)
            if error.check in (5, 6):
                raise Expired(self.request.id) from error
            raise Untrusted(str(error), self.request.id) from error
        if not verified.is_approval:
            if await self._take_for_denial():
                await self.acknowledge(message.id, verified.digest, REJECTED)
            raise self.rejected(verified)
        return DeliveredDecision(self.approval(verified, message), message.id, verified.digest)

    def rejected(self, verified: VerifiedDecision) -> Rejected:
        hints = verified.hints
        return Rejected(verified.approver, hints.reason, hints.action_id, self.request.id)

    def approval(self, verified: VerifiedDecision, message: DecisionMessage) -> Approval:
        return Approval.of(
            verified,
            self.request.artifact,
            message.text,
            tenant=self._identity.tenant,
            enforcer_id=self._identity.id,
        )

    async def _take_for_denial(self) -> bool:
        """Makes a denial final before it is signed: no other decision can be used later.

        If it was taken before, there is nothing to sign: the call was denied before, or it ran.
        """
        return (await self._journal.take(self.request.id)) is True

    async def _accept_current(self, decision: Json) -> VerifiedDecision:
        """Judges a decision by a current list of devices."""
        try:
            return self.accept_by(await self.devices(self.deadline, again=False), decision)
        except DecisionRefused as error:
            if not error.is_unknown_device:
                raise
        # The device may have been added since the list was read.
        return self.accept_by(await self.devices(self.deadline, again=True), decision)

    def accept_by(self, devices: AskedDevices, decision: Json) -> VerifiedDecision:
        own, keys = self.request.own, self._identity.keys
        return accept(decision, own, keys, devices.trusts, wall_now())

    async def judge_again(self, delivered: DeliveredDecision) -> None:
        """Before an approval is used, with the devices in force then."""
        decision = parse(delivered.approval.record().decision)
        try:
            verified = await self._accept_current(decision)
        except DecisionRefused as error:
            if error.check in (5, 6):
                raise Expired(self.request.id) from error
            raise Untrusted(str(error), self.request.id) from error
        if not verified.is_approval:
            raise Untrusted("the decision is no approval", self.request.id)

    async def acknowledge(self, message_id: str, digest: str, cause: str = ALLOWED) -> None:
        """Tells the approver, signed, what became of the decision. A failure is ignored."""
        outcome = sign_outcome(
            self.request.outcome_key,
            [self.subject(digest)],
            tenant=self._identity.tenant,
            enforcer_id=self._identity.id,
            cause=cause,
            at=wall_now(),
        )
        await self.send_acknowledgement(message_id, outcome)

    def subject(self, digest: str) -> OutcomeSubject:
        return OutcomeSubject(self.request.id, self.request.artifact.hash, digest)

    async def send_acknowledgement(self, message_id: str, outcome: str | None) -> None:
        body: JsonObject = {
            "msgId": message_id,
            "status": "processed",
            "ackAt": format_time(wall_now()),
        }
        if outcome is not None:
            body["outcome"] = outcome
        await self._try_call(self._call("/v1/acks", "ack.submit", body))

    async def take_back(self, reason: str, deadline: Deadline, *, is_sent: bool) -> bool:
        """Withdraws, and says whether the request was decided before.

        An error means that it may have been decided, or may still be.
        """
        try:
            await self._gateway.expect(self._withdrawal(reason), (200,), deadline)
        except GatewayError as error:
            if error.code == "ALREADY_DECIDED":
                return True
            is_unknown = not is_sent and error.status in (404, 409)
            if error.code not in _ENDED_CODES and not is_unknown:
                raise denial_of(error, self.request.id) from error
        return False

    async def withdraw(self, reason: str) -> None:
        """Takes the request back. It does not matter if it has ended meanwhile."""
        await self._try_call(self._withdrawal(reason))

    def _withdrawal(self, reason: str) -> GatewayCall:
        target = path("v1", "exchanges", self.request.id, "withdraw")
        return self._call(target, "exchange.withdrawn", {"reason": reason})

    def _call(self, target: str, kind: str, body: JsonObject) -> GatewayCall:
        text = envelope(kind, self.request, body, self._identity.random)
        return GatewayCall("POST", target, text)

    async def _try_call(self, call: GatewayCall) -> None:
        try:
            await self._gateway.expect(call, (200, 404, 409), Deadline.after(ACK_TIMEOUT))
        except GatewayError as error:
            LOG.debug("%s for %s failed: %s", call.path, self.request.id, error)


def ended(state: str, request_id: str) -> Denied:
    return TimedOut(request_id) if state == "expired" else Ended(state, request_id)


def denial_of(error: GatewayError, request_id: str | None) -> Denied:
    """The denial of a failed call. None is final: a 404 may come from a wrong path or a proxy."""
    if error.code in ("PAIRING_REVOKED", "NO_APPROVER"):
        return NotPaired("the pairing has ended", request_id)
    if error.code == "EXPIRED":
        return TimedOut(request_id)
    return Unavailable(str(error), request_id)
