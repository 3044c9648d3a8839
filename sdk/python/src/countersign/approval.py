"""An approval that passed every check."""

from dataclasses import dataclass, field

from .e2e.accept import VerifiedDecision
from .e2e.artifact import PlainArtifact
from .e2e.record import DecisionRecord
from .e2e.text import visible


@dataclass(frozen=True)
class Approval:
    """A person's signed yes to one request. It counts for that request and for nothing else."""

    request_id: str
    approver: str
    device_id: str
    # As the person named the device.
    device_name: str
    # The chosen one of the actions that were offered.
    action_id: str | None
    # The person's own words.
    reason: str | None = field(repr=False)
    # For each question of the request, in order, the texts that were chosen or written.
    answers: tuple[tuple[str, ...], ...] | None = field(repr=False)
    # Microseconds since 1970: the earlier end of the decision and of the request.
    expires_at: int
    _record: DecisionRecord = field(repr=False)

    @classmethod
    def of(
        cls,
        verified: VerifiedDecision,
        artifact: PlainArtifact,
        decision: str,
        *,
        tenant: str,
        enforcer_id: str,
    ) -> "Approval":
        if not verified.is_approval:
            raise ValueError("a rejection is no approval")
        record = DecisionRecord(
            tenant=tenant,
            approver=verified.approver,
            enforcer=enforcer_id,
            device=verified.device,
            artifact=artifact.text,
            decision=decision,
        )
        return cls(
            request_id=artifact.request_id,
            approver=verified.approver,
            device_id=verified.device.id,
            device_name=visible(verified.device.name),
            action_id=verified.hints.action_id,
            reason=verified.hints.reason,
            answers=verified.hints.answers,
            expires_at=min(verified.expires_at, artifact.expires_at),
            _record=record,
        )

    def record(self) -> DecisionRecord:
        """The decision as a file that `countersign verify` checks. It has the artifact in plain."""
        return self._record
