"""The enforcer's signed statement about a decision: a DSSE envelope around an in-toto statement.

The key is made for one request and named in its artifact, so the approver need not believe the
gateway.
"""

import base64

from .canonical import canonical
from .encoding import encode
from .keys import SignatureKey
from .strict_json import JsonObject
from .times import format_time

_PAYLOAD_TYPE = "application/vnd.in-toto+json"

ALLOWED = ""
REJECTED, UNTRUSTED, CHANGED = "rejected", "untrusted", "changed"


def outcome_extension(key: SignatureKey) -> JsonObject:
    return {"v": 1, "key": encode(key.public)}


def sign_outcome(
    key: SignatureKey,
    *,
    request_id: str,
    artifact_hash: str,
    tenant: str,
    enforcer_id: str,
    cause: str,
    decision_digest: str,
    at: int,
) -> str:
    """The envelope. `cause` says why a call was denied; an allowed one has none."""
    statement = canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "predicateType": "urn:countersign:outcome:v1",
            "subject": [{"name": request_id, "digest": {"sha256": artifact_hash}}],
            "predicate": {
                "v": 1,
                "tenantId": tenant,
                "enforcerId": enforcer_id,
                "outcome": "denied" if cause else "allowed",
                "cause": cause,
                "decisions": [decision_digest],
                "at": format_time(at),
            },
        }
    ).encode()
    head = f"DSSEv1 {len(_PAYLOAD_TYPE)} {_PAYLOAD_TYPE} {len(statement)} ".encode()
    signature = key.sign(head + statement)
    return canonical(
        {
            "payload": base64.b64encode(statement).decode(),
            "payloadType": _PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode()}],
        }
    )
