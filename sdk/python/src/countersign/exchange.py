"""A request at the gateway: submit it, wait, and judge the answer.

Everything but an accepted approval is a denial with its cause.
"""

import asyncio
import logging
import os
from dataclasses import dataclass

from .approval import Approval
from .devices import AskedDevices, DeviceDirectory
from .durations import Deadline, wall_now
from .e2e.accept import VerifiedDecision, accept
from .e2e.decision import DecisionMembers
from .e2e.encoding import RandomSource
from .e2e.errors import DecisionRefused, Refusal
from .e2e.keys import DecryptionKey
from .e2e.outcome import ALLOWED, REJECTED, UNTRUSTED, sign_outcome
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

    async def submit(self, submission: Submission) -> None:
        self._recipients = submission.recipients
        call = GatewayCall("POST", "/v1/artifacts", submission.envelope)
        try:
            answer = await self._gateway.expect(call, (202,), self.deadline)
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
                    return await self._judge(answer)
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
            devices = await self._devices(deadline, again=True)
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

    async def _devices(self, deadline: Deadline, *, again: bool) -> AskedDevices:
        return await self._directory.devices_of(self._asked, self._gateway, deadline, again=again)

    async def _judge(self, answer: GatewayAnswer) -> DeliveredDecision:
        try:
            message, sources = parse_with_sources(answer.body)
        except Refusal as error:
            raise Untrusted(f"the answer is not strict JSON: {error}", self.request.id) from error
        if not isinstance(message, dict) or message.get("msgType") != "decision.deliver":
            raise UnexpectedAnswer("the gateway's answer is no decision")
        decision, message_id = message.get("body"), str(message.get("msgId"))
        try:
            verified = await self._accept_current(decision)
        except DecisionRefused as error:
            if await self._take_for_denial():
                await self._acknowledge_refused(decision, message_id)
            if error.check in (5, 6):
                raise Expired(self.request.id) from error
            raise Untrusted(str(error), self.request.id) from error
        hints = verified.hints
        if not verified.is_approval:
            if await self._take_for_denial():
                await self.acknowledge(message_id, verified.digest, REJECTED)
            raise Rejected(verified.approver, hints.reason, hints.action_id, self.request.id)
        approval = Approval.of(
            verified,
            self.request.artifact,
            sources["body"],
            tenant=self._identity.tenant,
            enforcer_id=self._identity.id,
        )
        return DeliveredDecision(approval, message_id, verified.digest)

    async def _take_for_denial(self) -> bool:
        """Makes a denial final before it is signed: no other decision can be used later.

        If it was taken before, there is nothing to sign: the call was denied before, or it ran.
        """
        return (await self._journal.take(self.request.id)) is True

    async def _accept_current(self, decision: Json) -> VerifiedDecision:
        """Judges a decision by a current list of devices."""
        own, keys = self.request.own, self._identity.keys
        try:
            devices = await self._devices(self.deadline, again=False)
            return accept(decision, own, keys, devices.trusts, wall_now())
        except DecisionRefused as error:
            if not error.is_unknown_device:
                raise
        # The device may have been added since the list was read.
        devices = await self._devices(self.deadline, again=True)
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

    async def _acknowledge_refused(self, decision: Json, message_id: str) -> None:
        try:
            digest = DecisionMembers.read(decision).digest
        except Refusal:
            return
        await self.acknowledge(message_id, digest, UNTRUSTED)

    async def acknowledge(self, message_id: str, digest: str, cause: str = ALLOWED) -> None:
        """Tells the approver, signed, what became of the decision. A failure is ignored."""
        outcome = sign_outcome(
            self.request.outcome_key,
            request_id=self.request.id,
            artifact_hash=self.request.artifact.hash,
            tenant=self._identity.tenant,
            enforcer_id=self._identity.id,
            cause=cause,
            decision_digest=digest,
            at=wall_now(),
        )
        body: JsonObject = {
            "msgId": message_id,
            "status": "processed",
            "ackAt": format_time(wall_now()),
            "outcome": outcome,
        }
        await self._best_effort("/v1/acks", "ack.submit", body)

    async def withdraw(self, reason: str) -> None:
        """Takes the request back. It does not matter if it has ended meanwhile."""
        target = path("v1", "exchanges", self.request.id, "withdraw")
        await self._best_effort(target, "exchange.withdrawn", {"reason": reason})

    async def _best_effort(self, target: str, kind: str, body: JsonObject) -> None:
        text = envelope(kind, self.request, body, self._identity.random)
        call = GatewayCall("POST", target, text)
        try:
            await self._gateway.expect(call, (200, 404, 409), Deadline.after(ACK_TIMEOUT))
        except GatewayError as error:
            LOG.debug("%s of %s failed: %s", kind, self.request.id, error)


def ended(state: str, request_id: str) -> Denied:
    return TimedOut(request_id) if state == "expired" else Ended(state, request_id)


def denial_of(error: GatewayError, request_id: str | None) -> Denied:
    """The denial of a failed call. None is final: a 404 may come from a wrong path or a proxy."""
    if error.code in ("PAIRING_REVOKED", "NO_APPROVER"):
        return NotPaired("the pairing has ended", request_id)
    if error.code == "EXPIRED":
        return TimedOut(request_id)
    return Unavailable(str(error), request_id)
