"""An approval that passed every check."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from .call import tool_of
from .e2e.accept import VerifiedDecision
from .e2e.artifact import PlainArtifact
from .e2e.record import DecisionRecord
from .e2e.strict_json import JsonObject
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
    _set: tuple["Approval", ...] = field(default=(), repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an approval cannot be pickled: it has arguments and reasons in plain")

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

    @classmethod
    def of_set(cls, counted: Sequence["Approval"]) -> "Approval":
        """The first of the approvals that count together, with all of them."""
        end = min(approval.expires_at for approval in counted)
        return replace(counted[0], expires_at=end, _set=tuple(counted))

    @property
    def approvals(self) -> tuple["Approval", ...]:
        """Those of all people who were needed; this one alone if one was."""
        return self._set or (self,)

    @property
    def arguments(self) -> JsonObject:
        """The arguments of the call, or the content, from the text that was signed.

        A new copy each time: it does not change with the objects that the call was made of.
        """
        payload = PlainArtifact.parse(self._record.artifact).payload
        found = payload.get("input") if tool_of(payload) is not None else None
        return found if isinstance(found, dict) else payload

    def record(self) -> DecisionRecord:
        """The decision as a file that `countersign verify` checks. It has the artifact in plain."""
        return self._record
