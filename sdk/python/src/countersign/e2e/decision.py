"""The members of a decision, read and nothing more."""

from dataclasses import dataclass, field

from .canonical import canonical_without, sha256_hex
from .encoding import decode_signature
from .errors import Refusal
from .members import MemberReader
from .strict_json import Json, JsonObject

APPROVE, REJECT = "approve", "reject"
SCOPES = ("once", "timebox", "session")
_MAX_NONCE_CHARS = 512


@dataclass(frozen=True)
class DecisionMembers:
    request_id: str
    artifact_hash: str
    repo_ref: str
    verdict: str
    scope: str
    expires_at: int
    signer: str
    signature: bytes
    hints: JsonObject | None = field(repr=False)
    signable: bytes = field(repr=False)

    @classmethod
    def read(cls, value: Json) -> "DecisionMembers":
        reader = MemberReader("the decision", value)
        if not reader.has("sigAlg"):
            raise Refusal("the decision is in the compact form, which does not name its request")
        reader.constant("artifactHashAlg", "SHA-256")
        reader.constant("sigAlg", "Ed25519")
        reader.text("nonce", 1, _MAX_NONCE_CHARS)
        decision = cls(
            request_id=reader.id("requestId"),
            artifact_hash=reader.hash("artifactHash"),
            repo_ref=reader.text("repoRef"),
            verdict=reader.one_of("decision", (APPROVE, REJECT)),
            scope=reader.one_of("scope", SCOPES),
            expires_at=reader.time("expiresAt"),
            signer=reader.text("signerKeyId"),
            signature=decode_signature(reader.text("signature")),
            hints=reader.optional_object("policyHints"),
            signable=canonical_without(reader.members, "signature").encode(),
        )
        reader.finish()
        return decision

    @property
    def digest(self) -> str:
        """The digest by which an outcome names the decision."""
        return sha256_hex(self.signable + self.signature)

    def other_subject(self, request_id: str, artifact_hash: str, repo_ref: str) -> str | None:
        """The subject of the decision, if it is not the request."""
        if self.request_id != request_id:
            return "request"
        if self.artifact_hash != artifact_hash:
            return "artifact"
        # A device that could not open a request does not know its repository, and may reject it.
        is_unopened = self.verdict == REJECT and self.repo_ref == ""
        return None if self.repo_ref == repo_ref or is_unopened else "repository"
