"""A fake approver: it opens requests, decides by rules, and signs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType

from ..call import to_json, tool_of
from ..client import Client
from ..durations import wall_now
from ..e2e.artifact import PlainArtifact
from ..e2e.decision import APPROVE, REJECT
from ..e2e.keys import DecryptionKey
from ..e2e.rule import ApprovalRule
from ..e2e.strict_json import Json, JsonObject
from ..e2e.times import format_time
from ..profile import ApproverRecord, Profile
from ..secret import SecretText
from ..state import State, UseJournal
from .device import FakeDevice
from .gateway import FakeExchange, FakeGateway
from .memory import MemoryState

_TENANT, _ENFORCER = "test", "test-enforcer"
_NO_RULE = "the test has no rule for this call"


@dataclass
class Rule:
    """The fake approver's answer to matching requests. The last rule that matches counts."""

    tool: str | None
    args: Mapping[str, object] | None
    verdict: str | None = None
    hints: JsonObject = field(default_factory=dict[str, Json])

    def approve(self, reason: str | None = None, *, action: str | None = None) -> None:
        self._decide(APPROVE, reason, action)

    def reject(self, reason: str | None = None, *, action: str | None = None) -> None:
        self._decide(REJECT, reason, action)

    def wait(self) -> None:
        """Leaves the request undecided; `AskedRequest.approve` and `reject` decide it later."""
        self.verdict, self.hints = None, {}

    def _decide(self, verdict: str, reason: str | None, action: str | None) -> None:
        self.verdict = verdict
        self.hints = {} if reason is None else {"reason": reason}
        if action is not None:
            self.hints["actionId"] = action

    def matches(self, asked: "AskedRequest") -> bool:
        if self.tool is not None and self.tool != asked.tool:
            return False
        return self.args is None or to_json(self.args) == asked.args


class AskedRequest:
    """A request as the approver's device has opened it."""

    def __init__(
        self, approver: "FakeApprover", exchange: FakeExchange, artifact: PlainArtifact
    ) -> None:
        self._approver = approver
        self._exchange = exchange
        self._artifact = artifact

    def __repr__(self) -> str:
        return f"AskedRequest({self.request_id!r}, tool={self.tool!r})"

    @property
    def request_id(self) -> str:
        return self._artifact.request_id

    @property
    def type(self) -> str:
        return self._artifact.artifact_type

    @property
    def repository(self) -> str:
        return self._artifact.repository

    @property
    def payload(self) -> JsonObject:
        return self._artifact.payload

    @property
    def tool(self) -> str | None:
        return tool_of(self.payload)

    @property
    def args(self) -> Json:
        return self.payload.get("input")

    @property
    def rule(self) -> ApprovalRule | None:
        """How many of which people are asked, if there are several."""
        rule = self._artifact.rule
        return rule if isinstance(rule, ApprovalRule) else None

    @property
    def state(self) -> str:
        """As the gateway says: `pendingApproval`, `decided`, `delivered` or `withdrawn`."""
        return self._exchange.state

    @property
    def outcomes(self) -> list[JsonObject]:
        """The acknowledgements of the enforcer."""
        return self._exchange.outcomes

    def approve(self, reason: str | None = None, *, action: str | None = None) -> None:
        self._decide(APPROVE, reason, action)

    def reject(self, reason: str | None = None, *, action: str | None = None) -> None:
        self._decide(REJECT, reason, action)

    def _decide(self, verdict: str, reason: str | None, action: str | None) -> None:
        rule = Rule(None, None)
        rule._decide(verdict, reason, action)
        self.decide(verdict, rule.hints)

    def decide(self, verdict: str, hints: JsonObject, device: FakeDevice | None = None) -> None:
        if self._exchange.state == "pendingApproval":
            signed = self._approver.sign(self._artifact, verdict, hints, device)
            self._exchange.decision = signed
            self._exchange.state = "decided"


class FakeApprover:
    """An approver with one device, and a client that is paired with it.

    Requests without a rule are rejected.
    """

    def __init__(
        self,
        name: str = "alice",
        *,
        state: State | None = None,
        journal: UseJournal | None = None,
        _beside: "FakeApprover | None" = None,
    ) -> None:
        self.name = name
        self.asked: list[AskedRequest] = []
        self.device = FakeDevice("phone", os.urandom)
        self._rules: list[Rule] = []
        self._added: list[FakeDevice] = []
        if _beside is None:
            self.gateway = FakeGateway(self._deliver)
            self._keys = DecryptionKey(os.urandom(32))
            self._paired = [self]
            self.state = state or MemoryState()
            self.client = self.new_client(journal)
        else:
            self.gateway, self._keys = _beside.gateway, _beside._keys
            self._paired, self.state = _beside._paired, _beside.state
            self.client = _beside.client
            self._paired.append(self)

    def add_approver(self, name: str) -> "FakeApprover":
        """Another approver who is paired with the same client."""
        return FakeApprover(name, _beside=self)

    def __enter__(self) -> "FakeApprover":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.gateway.down()

    def new_client(self, journal: UseJournal | None = None) -> Client:
        """Another client of the same enforcer, as after a restart."""
        profile = Profile(
            enforcer_id=_ENFORCER,
            tenant=_TENANT,
            urls=("http://localhost:1",),
            ca=None,
            allow_http=False,
            api_key=SecretText("fake"),
            keys=self._keys,
            approvers=(),
        )

        def current() -> Profile:
            return replace(profile, approvers=tuple(it._record() for it in self._paired))

        return Client(current, self.state, journal, _transport=self.gateway.transport)

    def _record(self) -> ApproverRecord:
        return ApproverRecord(self.name, "fake", format_time(0), (self.device.bundle.to_text(),))

    def when(self, *, tool: str | None = None, args: Mapping[str, object] | None = None) -> Rule:
        """A rule for calls of this tool, with these arguments if given."""
        rule = Rule(tool, args)
        self._rules.append(rule)
        return rule

    def add_device(self, name: str) -> FakeDevice:
        """A further device, added by the first one."""
        device = FakeDevice(name, os.urandom)
        self._added.append(device)
        self.gateway.statements.append(self.device.add(device, _TENANT, self.name, wall_now()))
        return device

    def revoke_device(self, device: FakeDevice | None = None) -> None:
        """Revokes a device, or the approver's first one."""
        revoked = (device or self.device).id
        self.gateway.statements.append(self.device.revoke(revoked, _TENANT, self.name, wall_now()))

    def sign(
        self,
        artifact: PlainArtifact,
        verdict: str,
        hints: JsonObject,
        device: FakeDevice | None = None,
    ) -> str:
        by = device or self.device
        sealed = None
        if hints:
            sealed = by.seal_hints(
                hints, artifact.request_id, artifact.hash, _ENFORCER, self._keys.public
            )
        members = by.decide(artifact, verdict, expires_at=artifact.expires_at, hints=sealed)
        return by.signed(members)

    def _deliver(self, exchange: FakeExchange) -> None:
        """Hands a request to everyone who can open it. A single approver must be able to."""
        ciphertext = exchange.body["ciphertext"]
        for approver in self._paired:
            if len(self._paired) == 1 or approver.device.is_recipient(ciphertext):
                approver._requested(exchange)

    def _requested(self, exchange: FakeExchange) -> None:
        body = exchange.body
        context: JsonObject = {
            "v": 1,
            "requestId": exchange.request_id,
            "artifactType": body["artifactType"],
            "artifactHash": body["artifactHash"],
            "expiresAt": body["expiresAt"],
            "enforcerId": _ENFORCER,
        }
        artifact = self.device.open(context, body["ciphertext"], self._keys.public)
        asked = AskedRequest(self, exchange, artifact)
        self.asked.append(asked)
        rule = next((rule for rule in reversed(self._rules) if rule.matches(asked)), None)
        if rule is None:
            asked.reject(_NO_RULE)
        elif rule.verdict is not None:
            asked.decide(rule.verdict, rule.hints)
