"""Verifies a receipt offline. Written from docs/encryption.md alone and without the library, to show that the document suffices."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from receipt_formats import (
    Decision,
    Device,
    Follower,
    Hints,
    Malformed,
    Outcome,
    Statement,
    array,
    b64url,
    canonical,
    check_log_proof,
    client_id,
    digest_text,
    entry_of,
    ids,
    need,
    obj,
    one_of,
    open_hints,
    read_bundle,
    read_decision,
    read_hints,
    read_json,
    read_outcome,
    read_statement,
    sha256,
    string,
    time,
    usable_ed25519,
    verifies,
    versioned,
    whole,
)
from receipt_teams import (
    DUTIES,
    Ask,
    Rule,
    Seat,
    StandIn,
    State,
    read_chain,
    read_rule,
    read_state,
    same_beginning,
)

PROVEN, ABSENT, FAILED = "proven", "absent", "failed"


class MalformedReceipt(Exception):
    """The file is not a receipt of version 2."""


@dataclass
class Anchors:
    """Everything that the verifier trusts from elsewhere."""

    tenant: str  # of the bundles in `devices`, and of the log
    devices: dict[str, list[str]] = field(default_factory=dict)  # bundles, by approver
    teams: set[str] = field(default_factory=set)  # ids
    log_keys: list[bytes] = field(default_factory=list)
    revoked: dict[str, set[str]] = field(default_factory=dict)  # ids of devices, by approver
    device_ids: dict[str, set[str]] = field(
        default_factory=dict
    )  # by approver; the bundles are in the file
    chains: list[list[str]] = field(
        default_factory=list
    )  # states of teams that the verifier knows, from the first


# --- The file -----------------------------------------------------------------------------------------------------


@dataclass
class Part:
    request: str
    seat: str | None
    approver: str
    decision_text: str
    device: Device
    hints_key: bytes | None
    decision: Decision | None = None  # None if it cannot be read


@dataclass
class Receipt:
    tenant: str
    enforcer: str
    artifact: str | None
    parts: list[Part]
    devices: list[str]
    teams: list[str] | None
    outcome: str | None
    log: list[str] | None


def read_receipt(text: bytes) -> Receipt:
    value = read_json(text)
    need(isinstance(value, dict) and whole(value.get("v"), 2, 2), "not version 2")
    obj(value, "v tenantId enforcerId parts devices", "artifact teams outcome log")
    parts = [_read_part(item) for item in array(value["parts"], 1, 64)]
    ids([part.request for part in parts], 1, 64)
    texts = {
        name: [string(item) for item in array(value[name], 0, 2048)]
        for name in ("devices", "teams", "log")
        if name in value
    }
    need("log" not in texts or len(texts["log"]) == len(parts), "one proof for each part")
    artifact, outcome = (
        string(value[name]) if name in value else None for name in ("artifact", "outcome")
    )
    return Receipt(
        client_id(value["tenantId"]),
        client_id(value["enforcerId"]),
        artifact,
        parts,
        texts["devices"],
        texts.get("teams"),
        outcome,
        texts.get("log"),
    )


def _read_part(value: Any) -> Part:
    obj(value, "requestId approverId decision device", "seat hintsKey")
    part = Part(
        client_id(value["requestId"]),
        client_id(value["seat"]) if "seat" in value else None,
        client_id(value["approverId"]),
        string(value["decision"]),
        read_bundle(string(value["device"])),
        b64url(value["hintsKey"], 32) if "hintsKey" in value else None,
    )
    with contextlib.suppress(Malformed):
        part.decision = read_decision(part.decision_text)
    return part


# --- The artifact -------------------------------------------------------------------------------------------------

_TYPES = ("plan.review", "task.review", "patch.review", "command.review", "checkpoint.review")
_UUID_OR_ULID = r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Za-z]{26}"
_RULE, _OUTCOME, _REPOSITORY = "countersign.rule", "countersign.outcome", "countersign.repository"


@dataclass
class Artifact:
    body: dict[str, Any]
    raw_rule: Any
    rule: Rule | None  # None also if its version is not known
    outcome_key: bytes | None

    @property
    def seat(self) -> str | None:
        return self.raw_rule.get("seat") if self.raw_rule else None

    def part(self, request: str, seat: str | None) -> Artifact:
        """The artifact of another part of the set (Rules, Parts)."""
        rule = {name: value for name, value in self.raw_rule.items() if name != "seat"}
        if seat is not None:
            rule["seat"] = seat
        body = {
            **self.body,
            "requestId": request,
            "extensions": {**self.body["extensions"], _RULE: rule},
        }
        return check_artifact({**body, "artifactHash": _hash(body)})


def _hash(body: dict[str, Any]) -> str:
    return sha256(
        canonical({name: value for name, value in body.items() if name != "artifactHash"})
    ).hex()


def check_artifact(body: Any) -> Artifact:
    obj(
        body,
        "requestId artifactType repoRef createdAt expiresAt payload artifactHashAlg artifactHash",
        "sessionId baseRevision metadata extensions",
    )
    for name in ("requestId", "sessionId"):
        need(
            name not in body or re.fullmatch(_UUID_OR_ULID, string(body[name])),
            "neither UUID nor ULID",
        )
    one_of(body["artifactType"], *_TYPES), one_of(body["artifactHashAlg"], "SHA-256")
    string(body["repoRef"], 0, 1024), string(body.get("baseRevision", ""))
    time(body["createdAt"]), time(body["expiresAt"])
    extensions = body.get("extensions", {})
    for item in (body["payload"], body.get("metadata", {}), extensions):
        need(isinstance(item, dict), "not an object")
    need(all("." in name for name in extensions), "the name of an extension has no dot")
    need(digest_text(body["artifactHash"]) == _hash(body), "another hash")
    if _REPOSITORY in extensions:
        repository = obj(extensions[_REPOSITORY], "salt text")
        b64url(repository["salt"], 16)
        lines = "\n".join(
            ("countersign repository v1", repository["salt"], string(repository["text"], 0, 1024))
        )
        need(body["repoRef"] == "sha256:" + sha256(lines.encode()).hex(), "another repository")
    return Artifact(
        body,
        extensions.get(_RULE),
        read_rule(extensions[_RULE]) if _RULE in extensions else None,
        _outcome_key(extensions[_OUTCOME]) if _OUTCOME in extensions else None,
    )


def _outcome_key(value: Any) -> bytes | None:
    need(isinstance(value, dict) and "v" in value, "not the key of an outcome")
    if value["v"] != 1:
        return None
    key = b64url(obj(versioned(value), "key v")["key"], 32)
    need(usable_ed25519(key), "weak key")
    return key


# --- The facts ----------------------------------------------------------------------------------------------------


class _Pass:
    """One evaluation of all facts, with the time of the outcome, or without one."""

    def __init__(
        self, receipt: Receipt, anchors: Anchors, outcome: Outcome | None, at: datetime | None
    ) -> None:
        self.receipt, self.anchors, self.outcome_read, self.at = receipt, anchors, outcome, at
        self.statements = _readable_statements(receipt)
        self.artifact, artifact = self._artifact()
        self.rule = self.artifact.rule if self.artifact else None
        self.chains: dict[str, list[State]] = {}
        self.known = [read_chain([read_state(text) for text in chain]) for chain in anchors.chains]
        self.teams = self._teams() if self.rule and self.rule.heads else None
        parts = list(enumerate(receipt.parts))
        self.artifacts = [self._artifact_of(place, part) for place, part in parts]
        self.decision = [
            self._decision(part, artifact)
            for part, artifact in zip(receipt.parts, self.artifacts, strict=False)
        ]
        self.device = [self._device(part) for part in receipt.parts]
        self.opened: list[Hints] = [Hints() for _ in parts]
        self.hints = [self._hints(place, part) for place, part in parts]
        self.vouched = self.artifact is not None and any(
            part.decision
            and part.decision.approves
            and self.decision[place] == self.device[place] == PROVEN
            for place, part in parts
        )
        self.facts = [("artifact", artifact)] + ([("teams", self.teams)] if self.teams else [])
        for place, _ in parts:
            self.facts += [
                (f"decision {place}", self.decision[place]),
                (f"device {place}", self.device[place]),
                (f"hints {place}", self.hints[place]),
            ]
        self.outcome = self._outcome()
        subjects = (
            self.outcome_read.subjects if self.outcome_read and self.outcome == PROVEN else []
        )
        self.complete = len(subjects) == len(parts)
        self.facts += [
            ("enforcer", self._enforcer()),
            ("outcome", self.outcome),
            ("complete", PROVEN if self.complete else ABSENT),
            ("count", self._count()),
        ]
        self.facts += [
            (f"current {place}", state) for place, part in parts if (state := self._current(part))
        ]
        self.facts += [("asked", self._asked())]

    def _artifact(self) -> tuple[Artifact | None, str]:
        if self.receipt.artifact is None:
            return None, ABSENT
        try:
            body = read_json(self.receipt.artifact)
            need(canonical(body) == self.receipt.artifact.encode(), "not canonical")
            return check_artifact(body), PROVEN
        except Malformed:
            return None, FAILED

    def _artifact_of(self, place: int, part: Part) -> Artifact | None:
        """The artifact that a part is about. None if there is none, or if none has this request and seat."""
        whole_one = self.artifact
        if whole_one is None:
            return None
        if place == 0 or whole_one.raw_rule is None:
            return (
                whole_one
                if (part.request, part.seat) == (whole_one.body["requestId"], whole_one.seat)
                else None
            )
        try:
            return whole_one.part(part.request, part.seat)
        except Malformed:
            return None

    def _decision(self, part: Part, artifact: Artifact | None) -> str:
        decision = part.decision
        if decision is None or decision.body["signerKeyId"] != part.device.id:
            return FAILED
        if not verifies(part.device.ed25519, decision.signature, decision.signed):
            return FAILED
        if decision.body["requestId"] != part.request:
            return FAILED
        if part.seat not in (None, part.approver) and not self.teams:
            return FAILED
        if self.artifact is None:
            return PROVEN
        about = artifact is not None and (
            decision.body["artifactHash"] == artifact.body["artifactHash"]
            and (
                decision.body["repoRef"] == artifact.body["repoRef"]
                or (not decision.approves and decision.body["repoRef"] == "")
            )
        )
        return PROVEN if about else FAILED

    # Teams

    def _teams(self) -> str:
        assert self.rule
        heads = {head.team: head for head in self.rule.heads}
        by_team: dict[str, list[State]] = {team: [] for team in heads}
        failed = len(set(self.rule.heads)) != len(heads)
        for text in self.receipt.teams or []:
            try:
                state = read_state(text)
                by_team.setdefault(state.team, []).append(state)
            except Malformed:
                failed = True
        trusted = self.anchors.teams | {chain[0].team for chain in self.known}
        if any(team not in trusted or not by_team[team] for team in heads):
            return ABSENT
        for team, head in heads.items():
            try:
                chain = self.chains[team] = read_chain(by_team[team])
            except Malformed:
                return FAILED
            named = chain[head.seq : head.seq + 1]
            if (
                not named
                or named[0].digest != head.digest
                or not self.rule.demands(named[0].minimum, team)
            ):
                return FAILED
            if any(state.tenant != self.receipt.tenant for state in chain):
                return FAILED
            if not all(
                same_beginning(chain, known) for known in self.known if known[0].team == team
            ):
                return FAILED
        return FAILED if failed else PROVEN

    def _teams_of(self, seat: str | None) -> list[tuple[int, list[State]]]:
        """The teams by which the rule names a seat: the number of the state in the rule, and the chain."""
        if seat is None or self.rule is None or self.teams != PROVEN:
            return []
        heads = {head.team: head for head in self.rule.heads}
        return [
            (head.seq, self.chains[team])
            for team, head in heads.items()
            if self.chains[team][head.seq].seat(seat)
        ]

    def _people(self, ask: Ask) -> set[str]:
        seats = (self.chains[head.team][head.seq].seats for head in ask.heads)
        return ask.people | {seat.approver for of_team in seats for seat in of_team}

    # Devices

    def _device(self, part: Part) -> str:
        if self.artifact is None and part.seat not in (None, part.approver):
            return ABSENT
        if self.teams is None:
            return self._from_anchors(part)
        if self.teams != PROVEN:
            return ABSENT
        assert self.rule
        teams, named = self._teams_of(part.seat), part.seat in self.rule.people
        stands_in = part.approver != part.seat
        if (not teams and not named) or (
            stands_in and (named or part.approver in self._everyone())
        ):
            return FAILED
        if teams and part.approver in self.rule.not_by:
            return FAILED
        states = [self._on_seat(part, seq, chain) for seq, chain in teams]
        if named:
            states.append(self._from_anchors(part))
        return next((state for state in (FAILED, ABSENT) if state in states), PROVEN)

    def _everyone(self) -> set[str]:
        assert self.rule
        return {person for ask in self.rule.asks for person in self._people(ask)}

    def _on_seat(self, part: Part, seq: int, chain: list[State]) -> str:
        if not any(_holder(state, part) for state in chain[seq:]):
            return FAILED
        if part.approver != part.seat and self.at is None:
            return ABSENT
        holder = _holder(chain[-1], part)
        if isinstance(holder, Seat) or (
            holder and self.at and holder.start <= self.at < holder.end
        ):
            return PROVEN
        # Somebody who has left could have rejected before; an approval might be later than that.
        return PROVEN if part.decision and not part.decision.approves else ABSENT

    def _from_anchors(self, part: Part) -> str:
        followers = self._followers(part.approver)
        if not followers:
            return ABSENT
        if any(part.device.id in follower.revoked for follower in followers):
            return FAILED
        return (
            PROVEN
            if any(follower.devices.get(part.device.id) == part.device for follower in followers)
            else FAILED
        )

    def _followers(self, approver: str) -> list[Follower]:
        # An anchor counts for its own approver only: otherwise one person's devices could count as two people.
        statements = [
            item
            for item in self.statements
            if (item.tenant, item.approver) == (self.receipt.tenant, approver)
        ]
        result = []
        if approver in self.anchors.devices and self.anchors.tenant == self.receipt.tenant:
            bundles = [read_bundle(text) for text in self.anchors.devices[approver]]
            result.append(
                Follower(
                    {device.id: device for device in bundles},
                    set(self.anchors.revoked.get(approver, ())),
                )
            )
        shown = [part.device for part in self.receipt.parts if part.approver == approver]
        shown += [
            item.device for item in self.statements if item.approver == approver and item.device
        ]
        for device_id in self.anchors.device_ids.get(approver, ()):
            result.append(
                Follower({device.id: device for device in shown if device.id == device_id})
            )
        return [follower.follow_all(statements) for follower in result]

    def _current(self, part: Part) -> str | None:
        longer = [
            known
            for _, chain in self._teams_of(part.seat)
            for known in self.known
            if known[0].team == chain[0].team and len(known) > len(chain)
        ]
        if not longer:
            return None
        return PROVEN if all(_holder(known[-1], part) for known in longer) else ABSENT

    # Hints, and the facts about the enforcer

    def _hints(self, place: int, part: Part) -> str:
        decision = part.decision
        if decision is None or self.decision[place] != PROVEN:
            return ABSENT
        hints = decision.body.get("policyHints", {})
        try:
            if "sealed" in hints:
                sealed = obj(hints, "sealed")["sealed"]
                if part.hints_key is None:
                    return ABSENT
                hints = open_hints(
                    sealed,
                    part.hints_key,
                    {
                        "artifactHash": decision.body["artifactHash"],
                        "deviceId": part.device.id,
                        "enforcerId": self.receipt.enforcer,
                        "requestId": part.request,
                        "v": 1,
                    },
                )
            self.opened[place] = read_hints(hints)
        except Malformed:
            return ABSENT if not decision.approves and part.hints_key is None else FAILED
        return PROVEN

    def _enforcer(self) -> str:
        if not self.vouched or self.rule is None:
            return ABSENT
        return PROVEN if self.rule.enforcer == self.receipt.enforcer else FAILED

    def _outcome(self) -> str:
        if self.receipt.outcome is None or not self.vouched:
            return ABSENT
        outcome, artifact = self.outcome_read, self.artifact
        if outcome is None or artifact is None or artifact.outcome_key is None:
            return FAILED
        if not verifies(artifact.outcome_key, outcome.signature, outcome.signed):
            return FAILED
        if (outcome.tenant, outcome.enforcer) != (self.receipt.tenant, self.receipt.enforcer):
            return FAILED
        if (self.rule is not None or artifact.raw_rule is None) and outcome.set != (
            self.rule and self.rule.set_id
        ):
            return FAILED
        for part, about, decision in zip(
            self.receipt.parts, self.artifacts, self.decision, strict=False
        ):
            if about is None or part.decision is None or decision != PROVEN:
                return FAILED
            subject = (about.body["requestId"], about.body["artifactHash"])
            if subject not in outcome.subjects:
                return FAILED
            place = outcome.subjects.index(subject)
            if part.decision.digest not in (
                outcome.decisions[place : place + 1] if outcome.set else outcome.decisions
            ):
                return FAILED
        return PROVEN

    def _asked(self) -> str:
        if self.receipt.log is None or not self.anchors.log_keys:
            return ABSENT
        try:
            for part, proof in zip(self.receipt.parts, self.receipt.log, strict=False):
                need(part.decision, "no decision")
                assert part.decision
                entry = entry_of(part.request, part.decision.digest)
                check_log_proof(proof, entry, self.receipt.tenant, self.anchors.log_keys)
        except Malformed:
            return FAILED
        return PROVEN

    # The count

    def _count(self) -> str:
        if self.artifact is None or self.teams not in (None, PROVEN):
            return ABSENT
        if self.artifact.raw_rule is not None and self.rule is None:
            return FAILED
        outcome = self.outcome_read if self.outcome == PROVEN else None
        approved, rejected = self._tally()
        if outcome is None:
            proven = approved or rejected
        elif outcome.allowed:
            proven = approved and self.complete
        else:
            proven = {"rejected": rejected, "missing": not approved}.get(outcome.cause, True)
        if proven:
            return PROVEN
        unknown = ABSENT in self.decision + self.device + self.hints or (
            outcome is not None and not self.complete
        )
        return ABSENT if unknown else FAILED

    def _tally(self) -> tuple[bool, bool]:
        """Whether the decisions approve the call, and whether they reject it."""
        rule = self.rule or Rule(
            "",
            "",
            None,
            1,
            "none",
            set(),
            [Ask(1, {part.approver for part in self.receipt.parts}, [])],
        )
        asks = [(ask.approvals, self._people(ask)) for ask in rule.asks]
        everyone = {person for _, people in asks for person in people}
        chosen: dict[str, bytes] = {}  # the choice of each whose approval counts
        spoiled: set[str] = set()  # those who cannot approve any more
        rejecting: set[str] = set()
        claimed: set[str] = (
            set()
        )  # rejections whose device is not proven stand against an approval, too
        devices: set[str] = set()
        persons: set[str] = set()
        for place, part in enumerate(self.receipt.parts):
            voter = part.seat if self.teams and part.seat else part.approver
            if self.decision[place] != PROVEN or voter not in everyone:
                continue
            assert part.decision
            if not part.decision.approves:
                claimed.add(voter)
                # On a seat of a team the first decision that counts stands.
                if self.device[place] == PROVEN and not (self.teams and voter in chosen):
                    rejecting.add(voter)
                continue
            if (
                self.device[place] != PROVEN
                or (self.rule and self.hints[place] != PROVEN)
                or part.device.id in devices
            ):
                continue
            devices.add(part.device.id)
            hints = self.opened[place]
            if voter in spoiled or voter in chosen or not self._names_states(part, hints):
                continue
            if voter in rule.not_by or ("approve" in DUTIES[rule.comment] and not hints.commented):
                spoiled.add(voter)
            elif not self.teams or part.approver not in persons:
                chosen[voter] = hints.choice
                persons.add(part.approver)
        standing = {voter: choice for voter, choice in chosen.items() if voter not in claimed}
        approved = len(claimed) < rule.rejections and any(
            all(
                sum(standing.get(person) == choice for person in people) >= number
                for number, people in asks
            )
            for choice in set(standing.values())
        )
        return approved, len(rejecting) >= rule.rejections

    def _names_states(self, part: Part, hints: Hints) -> bool:
        """Whether an approval names states that its seat is counted by, none of which demands more than the rule."""
        teams = self._teams_of(part.seat)
        if not teams:
            return True
        assert self.rule
        for head in hints.heads:
            if head.team in self.chains:
                named = self.chains[head.team][head.seq : head.seq + 1]
                if (
                    not named
                    or named[0].digest != head.digest
                    or not self.rule.demands(named[0].minimum, head.team)
                ):
                    return False
        return all(
            any(head.team == chain[0].team and head.seq >= seq for head in hints.heads)
            for seq, chain in teams
        )


def _holder(state: State, part: Part) -> Seat | StandIn | None:
    """The seat, or the stand-in on it, that has the part's device in this state."""
    seat = state.seat(part.seat or "")
    holder = seat if seat is None or part.approver == part.seat else seat.stand_in
    if (
        holder
        and holder.approver == part.approver
        and holder.devices.get(part.device.id) == part.device
    ):
        return holder
    return None


def _readable_statements(receipt: Receipt) -> list[Statement]:
    result = []
    for text in receipt.devices:
        with contextlib.suppress(Malformed):
            result.append(read_statement(text))
    return result


def verify(text: bytes, anchors: Anchors) -> list[str]:
    """The facts that are not proven, such as "device 1: absent"."""
    try:
        receipt = read_receipt(text)
    except Malformed as error:
        raise MalformedReceipt(str(error)) from error
    try:
        outcome = read_outcome(receipt.outcome) if receipt.outcome is not None else None
    except Malformed:
        outcome = None
    result = _Pass(receipt, anchors, outcome, outcome.at if outcome else None)
    if result.outcome != PROVEN and outcome:
        # Nothing proves the time, so no stand-in can rely on it.
        result = _Pass(receipt, anchors, outcome, None)
    return [f"{name}: {state}" for name, state in result.facts if state != PROVEN]
