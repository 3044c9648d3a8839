"""Artifacts in plain: completed and sealed by an enforcer. The hash is recomputed on both sides."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .bundle import read_device_id
from .canonical import canonical, canonical_without, hash_without, parse_canonical, sha256_hex
from .encoding import RandomSource, decode, encode
from .errors import Refusal
from .keys import DecryptionKey, check_signing_key
from .members import MemberReader
from .rule import RULE, ApprovalRule, UnknownRule, read_rule
from .seal import Ciphertext, Purpose, Recipient, seal
from .statement import MAX_DEVICES
from .strict_json import Json, JsonObject, parse_object
from .text import is_id
from .trust import DeviceTrust

ARTIFACT_TYPES = (
    "plan.review",
    "task.review",
    "patch.review",
    "command.review",
    "checkpoint.review",
)
SALT, REPOSITORY = "countersign.salt", "countersign.repository"
DEVICES, OUTCOME = "countersign.devices", "countersign.outcome"
MAX_WORD_CHARS = 1_024
_ARTIFACT = "the artifact"
_UUID_OR_ULID = re.compile(
    r"(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9A-Za-z]{26})\Z"
)


@dataclass(frozen=True)
class PlainArtifact:
    """A complete artifact in canonical form, whose hash is right."""

    request_id: str
    artifact_type: str
    repo_ref: str
    repository: str
    expires_at: int
    # As spelled: the associated data has the text.
    expires_at_text: str
    hash: str
    outcome_key: bytes | None
    # None: one decision settles the request.
    rule: ApprovalRule | UnknownRule | None
    payload: JsonObject = field(repr=False)
    text: str = field(repr=False)

    @classmethod
    def complete(cls, members: JsonObject, random: RandomSource) -> "PlainArtifact":
        """From the members without `artifactHash`. Adds the salt and the hash."""
        given = members.get("extensions")
        extensions = dict(given) if isinstance(given, dict) else {}
        # The hash travels in plain. Without the salt, its reader could try short commands.
        extensions[SALT] = encode(random(16))
        salted: JsonObject = {**members, "extensions": extensions}
        salted["artifactHash"] = hash_without(salted, "artifactHash")
        return cls.parse(canonical(salted))

    @classmethod
    def parse(cls, text: bytes | str) -> "PlainArtifact":
        members = MemberReader(_ARTIFACT, parse_canonical(_ARTIFACT, text)).members
        artifact = cls._read(members)
        if sha256_hex(canonical_without(members, "artifactHash").encode()) != artifact.hash:
            raise Refusal("the artifact is not what its hash says")
        return artifact

    @classmethod
    def _read(cls, members: JsonObject) -> "PlainArtifact":
        reader = MemberReader(_ARTIFACT, members)
        request_id, session_id = reader.id("requestId"), reader.optional_text("sessionId")
        if not _UUID_OR_ULID.match(request_id) or (
            session_id is not None and not _UUID_OR_ULID.match(session_id)
        ):
            raise reader.refusal("requestId", "a UUID or ULID, as sessionId")
        reader.optional_text("baseRevision")
        reader.time("createdAt")
        reader.constant("artifactHashAlg", "SHA-256")
        reader.optional_object("metadata")
        extensions = reader.optional_object("extensions") or {}
        repo_ref = reader.text("repoRef", 0, MAX_WORD_CHARS)
        _check_devices(extensions.get(DEVICES, {}))
        artifact = cls(
            request_id=request_id,
            artifact_type=reader.one_of("artifactType", ARTIFACT_TYPES),
            repo_ref=repo_ref,
            repository=_read_repository(extensions, repo_ref),
            expires_at=reader.time("expiresAt"),
            expires_at_text=reader.text("expiresAt"),
            hash=reader.hash("artifactHash"),
            outcome_key=_read_outcome_key(extensions),
            rule=read_rule(extensions),
            payload=reader.object("payload"),
            text=canonical(members),
        )
        reader.finish()
        return artifact

    def for_part(self, request_id: str, seat: str) -> "PlainArtifact":
        """The artifact of another part of the set. It differs in these two, and in the hash."""
        members = parse_object(self.text)
        extensions = members.get("extensions")
        if not isinstance(self.rule, ApprovalRule) or not isinstance(extensions, dict):
            raise Refusal("the artifact has no rule")
        members["requestId"] = request_id
        members["extensions"] = {**extensions, RULE: self.rule.with_seat(seat).to_json()}
        members["artifactHash"] = hash_without(members, "artifactHash")
        return self.parse(canonical(members))

    def context(self, enforcer_id: str) -> JsonObject:
        """The members that travel beside the ciphertext."""
        return {
            "v": 1,
            "requestId": self.request_id,
            "artifactType": self.artifact_type,
            "artifactHash": self.hash,
            "expiresAt": self.expires_at_text,
            "enforcerId": enforcer_id,
        }


def hide_repository(text: str, random: RandomSource) -> tuple[str, JsonObject]:
    """`repoRef`, and the extension with the text behind it. Decisions repeat `repoRef` in plain."""
    salt = encode(random(16))
    return repository_hash(salt, text), {"salt": salt, "text": text}


def repository_hash(salt: str, text: str) -> str:
    hashed = f"countersign repository v1\n{salt}\n{text}"
    return f"sha256:{sha256_hex(hashed.encode())}"


def _read_repository(extensions: JsonObject, repo_ref: str) -> str:
    """The text behind `repoRef`, or that itself if it hides none."""
    if REPOSITORY not in extensions:
        return repo_ref
    reader = MemberReader("the repository", extensions[REPOSITORY])
    salt, text = reader.text("salt", 22, 22), reader.text("text", 0, MAX_WORD_CHARS)
    reader.finish()
    if repository_hash(salt, text) != repo_ref:
        raise Refusal("repoRef is not the hash of the repository")
    return text


def _check_devices(named: Json) -> None:
    for approver, ids in MemberReader("the named devices", named).members.items():
        texts = [it for it in ids if isinstance(it, str)] if isinstance(ids, list) else []
        is_list = isinstance(ids, list) and len(texts) == len(ids) == len(set(texts))
        if not is_id(approver) or not is_list or len(texts) > MAX_DEVICES:
            raise Refusal("the named devices are not at most 32 ids for each approver")
        for text in texts:
            read_device_id(text)


def _read_outcome_key(extensions: JsonObject) -> bytes | None:
    if OUTCOME not in extensions:
        return None
    reader = MemberReader("the outcome's key", extensions[OUTCOME])
    version = reader.required("v")
    if isinstance(version, bool) or version != 1:
        return None
    key = decode("the outcome's key", reader.text("key"), 32)
    reader.finish()
    return check_signing_key("the outcome's key", key)


def seal_artifact(
    keys: DecryptionKey,
    enforcer_id: str,
    artifact: PlainArtifact,
    approvers: Sequence[DeviceTrust],
    random: RandomSource,
) -> Ciphertext:
    """Encrypts an artifact to every device in force of the approvers that are asked."""
    recipients: dict[str, bytes] = {}
    for device in (device for trust in approvers for device in trust.in_force):
        # One device may act for two of the approvers.
        if recipients.setdefault(device.id, device.encryption_key) != device.encryption_key:
            raise Refusal("two devices have the same id")
    return seal(
        Purpose.ARTIFACT,
        keys,
        [Recipient(name, key) for name, key in recipients.items()],
        artifact.context(enforcer_id),
        artifact.text.encode(),
        random,
    )
