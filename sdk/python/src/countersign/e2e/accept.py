"""The seven checks of an enforcer before it acts on a decision. One that is not accepted denies."""

from collections.abc import Sequence
from dataclasses import dataclass

from .artifact import PlainArtifact
from .bundle import DeviceBundle, read_device_id
from .decision import APPROVE, DecisionMembers
from .errors import DecisionRefused, Refusal, UnknownDevice
from .hints import Hints, hints_context, open_hints
from .keys import DecryptionKey, verifies
from .strict_json import Json
from .trust import DeviceTrust


@dataclass(frozen=True)
class OwnRequest:
    """The enforcer's own record of its request."""

    request_id: str
    artifact_hash: str
    repo_ref: str
    expires_at: int
    enforcer_id: str

    @classmethod
    def of(cls, artifact: PlainArtifact, enforcer_id: str) -> "OwnRequest":
        return cls(
            artifact.request_id,
            artifact.hash,
            artifact.repo_ref,
            artifact.expires_at,
            enforcer_id,
        )


@dataclass(frozen=True)
class VerifiedDecision:
    """A decision that passed every check. Only `is_approval` allows anything."""

    is_approval: bool
    approver: str
    device: DeviceBundle
    scope: str
    expires_at: int
    # Empty if those of a rejection could not be read: a rejection stands without them.
    hints: Hints
    digest: str


def accept(
    decision: Json,
    request: OwnRequest,
    keys: DecryptionKey,
    asked: Sequence[DeviceTrust],
    now: int,
) -> VerifiedDecision:
    """Judges the body of a decision about `request`, at `now` by the enforcer's own clock."""
    try:
        claimed = DecisionMembers.read(decision)
    except Refusal as error:
        raise DecisionRefused(1, str(error)) from error
    trust, signer = _find_signer(claimed.signer, asked)
    if not verifies(signer.signing_key, claimed.signable, claimed.signature):
        raise DecisionRefused(3, "the decision's signature is wrong")
    other = claimed.other_subject(request.request_id, request.artifact_hash, request.repo_ref)
    if other is not None:
        raise DecisionRefused(4, f"the decision is about another {other}")
    if claimed.expires_at <= now:
        raise DecisionRefused(5, "the decision has expired")
    if request.expires_at <= now:
        raise DecisionRefused(6, "the request has expired")
    is_approval = claimed.verdict == APPROVE
    hints = Hints()
    try:
        if claimed.hints is not None:
            context = hints_context(
                request.request_id, request.artifact_hash, request.enforcer_id, signer.id
            )
            hints = open_hints(
                claimed.hints, context, request.enforcer_id, keys, signer.encryption_key
            )
    except Refusal as error:
        if is_approval:
            raise DecisionRefused(7, f"the additions cannot be read: {error}") from error
    return VerifiedDecision(
        is_approval=is_approval,
        approver=trust.approver,
        device=signer,
        scope=claimed.scope,
        expires_at=claimed.expires_at,
        hints=hints,
        digest=claimed.digest,
    )


def _find_signer(text: str, asked: Sequence[DeviceTrust]) -> tuple[DeviceTrust, DeviceBundle]:
    """The device in force, and the approver among those asked that it belongs to."""
    try:
        device_id = read_device_id(text)
    except Refusal as error:
        raise DecisionRefused(2, str(error)) from error
    refusal: Refusal = UnknownDevice(f"the device {device_id} is not known")
    for trust in asked:
        try:
            return trust, trust.device(device_id)
        except UnknownDevice:
            continue
        except Refusal as error:
            refusal = error
    is_unknown = isinstance(refusal, UnknownDevice)
    raise DecisionRefused(2, str(refusal), is_unknown_device=is_unknown) from refusal
