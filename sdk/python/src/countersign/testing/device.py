"""A signing device for tests. Its keys are made in memory and cannot be loaded from a profile."""

from typing import Final

from ..e2e.artifact import PlainArtifact
from ..e2e.bundle import DeviceBundle
from ..e2e.canonical import canonical
from ..e2e.decision import APPROVE, REJECT
from ..e2e.encoding import RandomSource, encode
from ..e2e.hints import hints_context
from ..e2e.keys import DecryptionKey, SignatureKey
from ..e2e.seal import Ciphertext, Purpose, Recipient, open_ciphertext, seal
from ..e2e.statement import ADD, REVOKE
from ..e2e.strict_json import Json, JsonObject
from ..e2e.times import format_time

VERDICTS: Final = (APPROVE, REJECT)


class FakeDevice:
    """A device of a fake approver, with real keys."""

    def __init__(self, name: str, random: RandomSource) -> None:
        self._random = random
        self._signing = SignatureKey(random(32))
        self._decryption = DecryptionKey(random(32))
        self.bundle = DeviceBundle(self._signing.public, self._decryption.public, name)

    @property
    def id(self) -> str:
        return self.bundle.id

    def is_recipient(self, ciphertext: Json) -> bool:
        sealed = Ciphertext.read(Purpose.ARTIFACT, ciphertext)
        return any(wrapped.recipient == self.id for wrapped in sealed.recipients)

    def open(self, context: JsonObject, ciphertext: Json, enforcer_key: bytes) -> PlainArtifact:
        """Opens a request, as a device of an approver does."""
        sealed = Ciphertext.read(Purpose.ARTIFACT, ciphertext)
        text = open_ciphertext(sealed, self.id, self._decryption, enforcer_key, context)
        artifact = PlainArtifact.parse(text)
        if artifact.context(str(context["enforcerId"])) != context:
            raise AssertionError("the artifact does not agree with what stands beside it")
        return artifact

    def seal_hints(
        self,
        hints: JsonObject,
        request_id: str,
        artifact_hash: str,
        enforcer_id: str,
        enforcer_key: bytes,
    ) -> JsonObject:
        context = hints_context(request_id, artifact_hash, enforcer_id, self.id)
        recipients = [Recipient(enforcer_id, enforcer_key)]
        plaintext = canonical(hints).encode()
        sealed = seal(Purpose.HINTS, self._decryption, recipients, context, plaintext, self._random)
        return {"sealed": sealed.to_json()}

    def decide(
        self,
        artifact: PlainArtifact,
        verdict: str,
        *,
        expires_at: int,
        scope: str = "once",
        hints: JsonObject | None = None,
    ) -> JsonObject:
        """The members of a decision, unsigned."""
        members: JsonObject = {
            "requestId": artifact.request_id,
            "artifactHashAlg": "SHA-256",
            "artifactHash": artifact.hash,
            "repoRef": artifact.repo_ref,
            "decision": verdict,
            "scope": scope,
            "expiresAt": format_time(expires_at),
            "nonce": encode(self._random(16)),
            "sigAlg": "Ed25519",
            "signerKeyId": self.id,
        }
        if hints is not None:
            members["policyHints"] = hints
        return members

    def signed(self, members: JsonObject) -> str:
        """The members with this device's signature, as canonical text."""
        unsigned = {name: value for name, value in members.items() if name != "signature"}
        signature = self._signing.sign(canonical(unsigned).encode())
        return canonical({**unsigned, "signature": encode(signature)})

    def add(self, other: "FakeDevice", tenant: str, approver: str, at: int) -> JsonObject:
        """The statement by which this device adds another one."""
        statement = self._statement(ADD, tenant, approver, at)
        statement["bundle"] = other.bundle.to_text()
        text = canonical(statement).encode()
        return {
            "statement": statement,
            "signature": encode(self._signing.sign(text)),
            "possession": encode(other._signing.sign(text)),
        }

    def revoke(self, device_id: str, tenant: str, approver: str, at: int) -> JsonObject:
        statement = self._statement(REVOKE, tenant, approver, at)
        statement["deviceId"] = device_id
        signature = self._signing.sign(canonical(statement).encode())
        return {"statement": statement, "signature": encode(signature)}

    def _statement(self, kind: str, tenant: str, approver: str, at: int) -> JsonObject:
        return {
            "v": 1,
            "tenantId": tenant,
            "approverId": approver,
            "at": format_time(at),
            "by": self.id,
            "statement": kind,
        }
