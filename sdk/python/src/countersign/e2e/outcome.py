"""The enforcer's signed statement about a decision: a DSSE envelope around an in-toto statement.

The key is made for one request and named in its artifact, so the approver need not believe the
gateway.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from .canonical import canonical
from .encoding import encode
from .errors import Refusal
from .keys import SignatureKey
from .strict_json import JsonObject
from .times import format_time

_PAYLOAD_TYPE = "application/vnd.in-toto+json"
# A gateway takes no longer outcome.
_MAX_ENVELOPE_CHARS = 16 << 10

ALLOWED = ""
REJECTED, UNTRUSTED, CHANGED = "rejected", "untrusted", "changed"
# Only about sets: too few approvals; the caller or the process has given up.
MISSING, INTERRUPTED = "missing", "interrupted"


@dataclass(frozen=True)
class OutcomeSubject:
    """A decided request, and the digest of its decision."""

    request_id: str
    artifact_hash: str
    decision_digest: str


def outcome_extension(key: SignatureKey) -> JsonObject:
    return {"v": 1, "key": encode(key.public)}


def sign_outcome(
    key: SignatureKey,
    subjects: Sequence[OutcomeSubject],
    *,
    tenant: str,
    enforcer_id: str,
    cause: str,
    at: int,
    set_id: str | None = None,
) -> str:
    """The envelope. `cause` says why a call was denied; an allowed one has none.

    Without a set there is one subject, of a set one for each decided part.
    """
    predicate: JsonObject = {
        "v": 1,
        "tenantId": tenant,
        "enforcerId": enforcer_id,
        "outcome": "denied" if cause else "allowed",
        "cause": cause,
        "decisions": [subject.decision_digest for subject in subjects],
        "at": format_time(at),
    }
    if set_id is not None:
        predicate["set"] = set_id
    statement = canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "predicateType": "urn:countersign:outcome:v1",
            "subject": [
                {"name": subject.request_id, "digest": {"sha256": subject.artifact_hash}}
                for subject in subjects
            ],
            "predicate": predicate,
        }
    ).encode()
    head = f"DSSEv1 {len(_PAYLOAD_TYPE)} {_PAYLOAD_TYPE} {len(statement)} ".encode()
    signature = key.sign(head + statement)
    envelope = canonical(
        {
            "payload": base64.b64encode(statement).decode(),
            "payloadType": _PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode()}],
        }
    )
    if len(envelope) > _MAX_ENVELOPE_CHARS:
        raise Refusal(f"the outcome has more than {_MAX_ENVELOPE_CHARS} characters")
    return envelope
