"""A decision as a file that anyone can verify offline, as `countersign verify` does.

The signature covers neither the enforcer nor the time of signing. The artifact is in plain.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from ..private_file import replace_private
from .artifact import PlainArtifact
from .bundle import DeviceBundle, read_device_id
from .decision import APPROVE, DecisionMembers
from .errors import Refusal
from .keys import verifies
from .members import MemberReader
from .strict_json import parse


@dataclass(frozen=True)
class DecisionRecord:
    tenant: str
    approver: str
    enforcer: str
    device: DeviceBundle
    artifact: str = field(repr=False)
    decision: str = field(repr=False)
    statements: tuple[str, ...] = field(default=(), repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a record cannot be pickled; use to_json")

    @classmethod
    def parse(cls, text: bytes | str) -> "DecisionRecord":
        reader = MemberReader("the record", parse(text))
        reader.version()
        statements = reader.array("statements")
        texts = tuple(item for item in statements if isinstance(item, str))
        if len(texts) != len(statements):
            raise reader.refusal("statements", "a list of texts")
        record = cls(
            tenant=reader.id("tenantId"),
            approver=reader.id("approverId"),
            enforcer=reader.id("enforcerId"),
            device=DeviceBundle.parse(reader.text("device")),
            artifact=reader.text("artifact"),
            decision=reader.text("decision"),
            statements=texts,
        )
        reader.finish()
        return record

    def to_json(self) -> str:
        members = {
            "v": 1,
            "tenantId": self.tenant,
            "approverId": self.approver,
            "enforcerId": self.enforcer,
            "artifact": self.artifact,
            "decision": self.decision,
            "device": self.device.to_text(),
            "statements": list(self.statements),
        }
        return json.dumps(members, ensure_ascii=False, indent=2) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that its owner alone can read: it has the artifact in plain."""
        replace_private(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "DecisionRecord":
        return cls.parse(Path(path).read_bytes())

    def verify(self) -> bool:
        """Verifies everything but whose device it is. Returns whether it is an approval."""
        artifact = PlainArtifact.parse(self.artifact)
        decision = DecisionMembers.read(parse(self.decision))
        if read_device_id(decision.signer) != self.device.id:
            raise Refusal("another device signed the decision")
        if not verifies(self.device.signing_key, decision.signable, decision.signature):
            raise Refusal("the decision's signature is wrong")
        other = decision.other_subject(artifact.request_id, artifact.hash, artifact.repo_ref)
        if other is not None:
            raise Refusal(f"the decision is about another {other}")
        return decision.verdict == APPROVE
