"""A request that is ready to be sent, or was: its artifact, and who is asked."""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from .call import Action, Call, Content, Subject, comparable, to_json, tool_of
from .devices import AskedDevices
from .durations import Deadline, wall_now
from .e2e.accept import OwnRequest
from .e2e.artifact import (
    DEVICES,
    MAX_WORD_CHARS,
    OUTCOME,
    REPOSITORY,
    PlainArtifact,
    hide_repository,
    seal_artifact,
)
from .e2e.canonical import canonical
from .e2e.encoding import RandomSource, decode, encode
from .e2e.errors import Refusal
from .e2e.keys import DecryptionKey, SignatureKey
from .e2e.outcome import outcome_extension
from .e2e.rule import RULE, ApprovalRule
from .e2e.seal import Ciphertext
from .e2e.strict_json import Json, JsonObject, parse_object
from .e2e.times import format_time
from .errors import Changed, NotAskable
from .rule_options import SeveralApprovals
from .uuid7 import uuid7

# Of the text `ciphertext.data`, at the gateway.
MAX_DATA_CHARS = 2 << 20
_ACTIONS = "org.proto.requestedActions"
_MAX_ACTIONS = 5


@dataclass(frozen=True)
class RequestOptions:
    """The options that go with the subject of a request."""

    repo_ref: str | None = None
    approver: str | None = None
    actions: Sequence[Action] = ()
    metadata: Mapping[str, object] | None = None
    # None: the first decision counts.
    several: SeveralApprovals | None = None

    def __post_init__(self) -> None:
        if self.several is not None and self.approver is not None:
            raise TypeError("approver: with approvals, from_ says who is asked")

    @property
    def repository(self) -> str:
        """The place as it is shown: host and directory, unless the caller named one."""
        place = self.repo_ref
        if place is None:
            place = f"{socket.gethostname()}:{os.getcwd()}"
        return place[:MAX_WORD_CHARS]


@dataclass(frozen=True)
class PreparedRequest:
    """The enforcer's own record of a request."""

    artifact: PlainArtifact
    outcome_key: SignatureKey
    enforcer_id: str
    tenant: str

    @property
    def id(self) -> str:
        return self.artifact.request_id

    @property
    def tool(self) -> str | None:
        return tool_of(self.artifact.payload)

    @property
    def own(self) -> OwnRequest:
        return OwnRequest.of(self.artifact, self.enforcer_id)

    @property
    def asked(self) -> tuple[str, ...]:
        """The approvers, as the artifact names them: decisions sign it.

        It names the devices of everyone in a set, and one part asks one person.
        """
        rule = self.artifact.rule
        if rule is not None:
            seat = rule.seat if isinstance(rule, ApprovalRule) else None
            return () if seat is None else (seat,)
        named = self._extension(DEVICES)
        return tuple(named) if isinstance(named, dict) else ()

    def _extension(self, name: str) -> Json:
        extensions = parse_object(self.artifact.text).get("extensions")
        return extensions.get(name) if isinstance(extensions, dict) else None

    def has_options(self, options: RequestOptions) -> bool:
        """Whether this request asks as a caller wants it.

        Without an approver or a place, the request may ask anyone, and name where it began: a
        process that goes on elsewhere has other defaults.
        """
        if options.approver is not None and set(self.asked) != {options.approver}:
            return False
        if options.repo_ref is not None and self.artifact.repository != options.repository:
            return False
        return canonical(self._extension(_ACTIONS)) == canonical(_offered(options.actions))

    def for_part(self, seat: str, random: RandomSource) -> Self:
        """The request to another person of the set."""
        return replace(self, artifact=self.artifact.for_part(uuid7(random), seat))

    def deadline(self) -> Deadline:
        return Deadline.at(self.artifact.expires_at)

    def is_about(self, subject: Subject) -> bool:
        own, is_call = self.artifact, subject.tool is not None
        return subject.text() == comparable(own.artifact_type, own.payload, is_call=is_call)

    def check(self, asked: Call | Content) -> None:
        """Whether a call is still the one that was approved."""
        if not self.is_about(Subject.of(asked)):
            raise Changed(request_id=self.id)

    def to_json(self, keys: DecryptionKey) -> str:
        """Needs confidentiality. Its proof shows that this enforcer wrote it."""
        members: JsonObject = {
            "v": 1,
            "tenantId": self.tenant,
            "enforcerId": self.enforcer_id,
            "artifact": self.artifact.text,
            "outcomeKey": self.outcome_key.seed_text(),
        }
        return canonical({**members, "proof": keys.prove_record(_proven(members))})

    @classmethod
    def parse(cls, text: str, keys: DecryptionKey, enforcer_id: str, tenant: str) -> Self:
        try:
            members = parse_object(text)
            texts = [members.get(name) for name in (*_PROVEN, "proof")]
            has_texts = all(isinstance(text, str) for text in texts)
            if members.get("v") != 1 or len(members) != len(texts) + 1 or not has_texts:
                raise Refusal("another version, or other members")
            if (members["enforcerId"], members["tenantId"]) != (enforcer_id, tenant):
                raise Changed("the stored request is another enforcer's")
            # An artifact, even with its outcome's key, does not suffice: with a gateway's help it
            # could be one that another enforcer had approved.
            if not keys.proves_record(_proven(members), str(members["proof"])):
                raise Changed("the stored request is not as this enforcer has stored it")
            artifact = PlainArtifact.parse(str(members["artifact"]))
            # One approval would be taken for those of all.
            if artifact.rule is not None:
                raise Changed("the stored request is one part of a request to several people")
            seed = decode("the outcome's key", str(members["outcomeKey"]), 32)
        except Refusal as error:
            raise Changed(f"the stored request is damaged: {error}") from error
        return cls(artifact, SignatureKey(seed), enforcer_id, tenant)


_PROVEN = ("tenantId", "enforcerId", "outcomeKey", "artifact")


def _proven(members: JsonObject) -> str:
    return "\n".join(str(members[name]) for name in _PROVEN)


@dataclass(frozen=True)
class Submission:
    """The text to send, the same for each attempt."""

    envelope: str = field(repr=False)
    # The devices that it was encrypted to.
    recipients: frozenset[str]


def prepare(
    subject: Subject,
    options: RequestOptions,
    devices: AskedDevices,
    deadline: Deadline,
    *,
    enforcer_id: str,
    tenant: str,
    random: RandomSource,
    rule: ApprovalRule | None = None,
) -> PreparedRequest:
    outcome_key = SignatureKey.generate(random)
    repo_ref, repository = hide_repository(options.repository, random)
    named: JsonObject = {
        trust.approver: [device.id for device in trust.in_force] for trust in devices.trusts
    }
    extensions: JsonObject = {
        REPOSITORY: repository,
        DEVICES: named,
        OUTCOME: outcome_extension(outcome_key),
    }
    if rule is not None:
        extensions[RULE] = rule.to_json()
    offered = _offered(options.actions)
    if offered is not None:
        extensions[_ACTIONS] = offered
    members: JsonObject = {
        "requestId": uuid7(random),
        "artifactType": subject.artifact_type,
        "repoRef": repo_ref,
        "createdAt": format_time(wall_now()),
        "expiresAt": format_time(deadline.wall),
        "payload": subject.payload,
        "artifactHashAlg": "SHA-256",
        "extensions": extensions,
    }
    if options.metadata:
        members["metadata"] = to_json(options.metadata, "/metadata")
    try:
        artifact = PlainArtifact.complete(members, random)
    except Refusal as error:
        raise NotAskable(str(error)) from error
    return PreparedRequest(artifact, outcome_key, enforcer_id, tenant)


def _offered(actions: Sequence[Action]) -> Json:
    return {"version": 1, "actions": _actions(actions)} if actions else None


def _actions(actions: Sequence[Action]) -> list[Json]:
    ids = {action.id.lower() for action in actions}
    is_complete = all(action.id and action.caption for action in actions)
    is_known = all(action.decision in ("approve", "reject") for action in actions)
    if len(actions) > _MAX_ACTIONS or len(ids) != len(actions) or not is_complete or not is_known:
        raise NotAskable("actions are not at most five, each with its own id and a caption")
    return [
        {"id": action.id, "caption": action.caption, "decision": action.decision}
        for action in actions
    ]


def seal_request(
    request: PreparedRequest, devices: AskedDevices, keys: DecryptionKey, random: RandomSource
) -> Submission:
    """The submission of a request, encrypted to every device in force."""
    artifact = request.artifact
    ciphertext = seal_artifact(keys, request.enforcer_id, artifact, devices.trusts, random)
    body: JsonObject = {
        "artifactType": artifact.artifact_type,
        "artifactHash": artifact.hash,
        "ciphertext": _checked(ciphertext),
        "expiresAt": artifact.expires_at_text,
    }
    # Without a token the gateway asks every paired approver. Those not pinned here read nothing.
    if len(devices.records) == 1:
        body["metadata"] = {"routingToken": devices.records[0].routing_token}
    text = envelope("artifact.submit", request, body, random)
    return Submission(text, devices.ids)


def _checked(ciphertext: Ciphertext) -> JsonObject:
    if len(encode(ciphertext.data)) > MAX_DATA_CHARS:
        raise NotAskable("it is larger than about 1.5 MiB")
    return ciphertext.to_json()


def envelope(kind: str, request: PreparedRequest, body: JsonObject, random: RandomSource) -> str:
    return json.dumps(
        {
            "msgId": uuid7(random),
            "msgType": kind,
            "requestId": request.id,
            "createdAt": format_time(wall_now()),
            "sender": {"enforcerId": request.enforcer_id},
            "body": body,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )
