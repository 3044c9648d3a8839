"""Rules that artifacts carry, and the signed states of the teams that rules name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from receipt_formats import (
    Device,
    Head,
    array,
    b64url,
    boolean,
    canonical,
    client_id,
    digest_text,
    ids,
    name_text,
    need,
    obj,
    one_of,
    read_bundle,
    read_head,
    read_json,
    sha256,
    string,
    time,
    to_b64url,
    verifies,
    versioned,
    whole,
)

DUTIES = {
    "none": set[str](),
    "reject": {"reject"},
    "approve": {"approve"},
    "always": {"approve", "reject"},
}


# --- Rules --------------------------------------------------------------------------------------------------------


@dataclass
class Ask:
    approvals: int
    people: set[str]
    heads: list[Head]


@dataclass
class Rule:
    enforcer: str
    set_id: str
    seat: str | None
    rejections: int
    comment: str
    not_by: set[str]
    asks: list[Ask]

    @property
    def heads(self) -> list[Head]:
        return [head for ask in self.asks for head in ask.heads]

    @property
    def people(self) -> set[str]:
        return {person for ask in self.asks for person in ask.people}

    def demands(self, minimum: dict[str, Any], team: str) -> bool:
        """Whether the rule demands no less than a team's minimum, apart from `separate`."""
        asks = [ask for ask in self.asks if any(head.team == team for head in ask.heads)]
        return (
            self.rejections <= minimum["rejections"]
            and DUTIES[self.comment] >= DUTIES[minimum["comment"]]
            and all(ask.approvals >= minimum["approvals"] for ask in asks)
        )


def read_rule(value: Any) -> Rule | None:
    """None is a rule of another version."""
    need(isinstance(value, dict) and "v" in value, "not a rule")
    if value["v"] != 1:
        return None
    obj(versioned(value), "v enforcerId set rejections comment asks", "seat notBy")
    b64url(value["set"], 16)
    seat = client_id(value["seat"]) if "seat" in value else None
    asks = [_ask(item) for item in array(value["asks"], 1, 16)]
    rule = Rule(
        client_id(value["enforcerId"]),
        value["set"],
        seat,
        whole(value["rejections"], 1, 64),
        one_of(value["comment"], *DUTIES),
        set(ids(value["notBy"], 1, 64)) if "notBy" in value else set(),
        asks,
    )
    need(len(rule.people) <= 64, "too many people")
    if seat is None:
        need(len(asks) == asks[0].approvals == rule.rejections == 1 and not rule.heads, "no seat")
    need(seat is None or seat in rule.people or rule.heads, "a seat of nobody who is asked")
    return rule


def _ask(value: Any) -> Ask:
    need(isinstance(value, dict), "not an ask")
    whom = "team" if "team" in value else "from"
    result = Ask(whole(obj(value, f"approvals {whom}", "escalate")["approvals"], 1, 64), set(), [])
    steps, before = array(value["escalate"], 1, 8) if "escalate" in value else [], 0
    for step in steps:
        need(isinstance(step, dict), "not a step")
        obj(step, "after team" if "team" in step else "after from")
        before = whole(step["after"], before + 1, 86_400)
    for item in (value, *steps):
        if "team" in item:
            result.heads.append(read_head(item["team"]))
        else:
            result.people |= set(ids(item["from"], 1, 64))
    return result


# --- States -------------------------------------------------------------------------------------------------------


@dataclass
class StandIn:
    approver: str
    devices: dict[str, Device]
    start: datetime
    end: datetime


@dataclass
class Seat:
    approver: str
    owner: bool
    devices: dict[str, Device]
    stand_in: StandIn | None
    text: bytes
    fixed: bytes  # without the members that its own devices may change


@dataclass
class State:
    team: str
    tenant: str
    seq: int
    prev: str
    digest: str
    changes: int
    minimum: dict[str, Any]
    seats: list[Seat]
    fixed: bytes  # the members that owners alone may change
    signed: bytes
    signatures: dict[str, bytes]

    def seat(self, approver: str) -> Seat | None:
        return next((seat for seat in self.seats if seat.approver == approver), None)


def read_state(text: str) -> State:
    envelope = obj(read_json(text), "signatures statement")
    signatures: dict[str, bytes] = {}
    for item in array(envelope["signatures"], 1, 32):
        obj(item, "by signature")
        b64url(item["by"], 16)
        signatures[item["by"]] = b64url(item["signature"], 64)
    need(len(signatures) == len(envelope["signatures"]), "two signatures by one device")
    body = versioned(envelope["statement"])
    first = body.get("seq") == 0
    only = "random" if first else "teamId prev"
    obj(body, f"v statement tenantId seq at name changes minimum standIns seats {only}")
    one_of(body["statement"], "team.state")
    client_id(body["tenantId"]), time(body["at"]), name_text(body["name"])
    minimum = obj(body["minimum"], "approvals rejections comment separate")
    whole(minimum["approvals"], 1, 32), whole(minimum["rejections"], 1, 32)
    one_of(minimum["comment"], *DUTIES), boolean(minimum["separate"])
    b64url(body["random" if first else "teamId"], 16)
    signed = canonical(body)
    need(len(signed) <= 65_536, "too long")
    seats = [_seat(item) for item in array(body["seats"], 1, 32)]
    stand_ins = [seat.stand_in for seat in seats if seat.stand_in]
    holders: list[Seat | StandIn] = [*seats, *stand_ins]
    need(boolean(body["standIns"]) or not stand_ins, "stand-ins are not permitted")
    ids([holder.approver for holder in holders], 1, 64)
    devices = [device for holder in holders for device in holder.devices]
    need(len(devices) == len(set(devices)) <= 256, "a device twice, or too many")
    need(sum(seat.owner for seat in seats) >= whole(body["changes"], 1, 32), "too few owners")
    team = to_b64url(sha256(b"countersign team v1", signed)[:16]) if first else body["teamId"]
    fixed = canonical([body[name] for name in ("name", "changes", "minimum", "standIns")])
    return State(
        team,
        body["tenantId"],
        whole(body["seq"], 0, 2047),
        "" if first else digest_text(body["prev"]),
        sha256(signed).hex(),
        body["changes"],
        minimum,
        seats,
        fixed,
        signed,
        signatures,
    )


def _devices(value: Any) -> dict[str, Device]:
    bundles = [read_bundle(string(item)) for item in array(value, 1, 32)]
    result = {device.id: device for device in bundles}
    need(len(result) == len(bundles), "a device twice")
    return result


def _seat(value: Any) -> Seat:
    obj(value, "approverId owner devices", "standIn")
    stand_in = None
    if "standIn" in value:
        item = obj(value["standIn"], "approverId devices from until")
        for name in ("from", "until"):
            need(
                re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", string(item[name]), re.ASCII),
                "not in whole seconds",
            )
        stand_in = StandIn(
            client_id(item["approverId"]),
            _devices(item["devices"]),
            time(item["from"]),
            time(item["until"]),
        )
        need(
            timedelta(0) < stand_in.end - stand_in.start <= timedelta(days=30),
            "not a time of a stand-in",
        )
    fixed = canonical([value["approverId"], value["owner"]])
    return Seat(
        client_id(value["approverId"]),
        boolean(value["owner"]),
        _devices(value["devices"]),
        stand_in,
        canonical(value),
        fixed,
    )


def _signing_seats(before: State, state: State) -> list[Seat]:
    """The seats of `before` whose own devices have signed `state`; every signature must be by such a device."""
    result: dict[str, Seat] = {}
    for by, signature in state.signatures.items():
        seat = next((seat for seat in before.seats if by in seat.devices), None)
        need(
            seat and verifies(seat.devices[by].ed25519, signature, state.signed),
            "not signed by a member",
        )
        assert seat
        result[seat.approver] = seat
    return list(result.values())


def _follow(before: State | None, state: State) -> None:
    if before is None:
        need(state.seq == 0, "does not begin at state 0")
        owners = [seat for seat in _signing_seats(state, state) if seat.owner]
        need(len(owners) >= state.changes, "too few owners have signed")
        return
    need(
        (state.team, state.tenant, state.seq) == (before.team, before.tenant, before.seq + 1),
        "not the next state",
    )
    signers = _signing_seats(before, state)
    need(state.prev == before.digest, "after another state")
    if sum(seat.owner for seat in signers) >= before.changes:
        return
    need(
        state.seq < 1024 and any(_only_changes(before, state, seat) for seat in signers),
        "too few owners have signed",
    )


def _only_changes(before: State, state: State, own: Seat) -> bool:
    def others(seats: list[Seat]) -> list[bytes]:
        return [seat.fixed if seat.approver == own.approver else seat.text for seat in seats]

    left = [seat for seat in before.seats if seat.approver != own.approver]
    return before.fixed == state.fixed and (
        others(before.seats) == others(state.seats)
        or (not own.owner and others(left) == others(state.seats))
    )


def read_chain(states: list[State]) -> list[State]:
    """The states of one team, each of which follows the one before. A repeated state changes nothing."""
    chain: list[State] = []
    for state in states:
        if not any(state.digest == known.digest for known in chain):
            _follow(chain[-1] if chain else None, state)
            chain.append(state)
    need(chain, "no states")
    return chain


def same_beginning(chain: list[State], other: list[State]) -> bool:
    return all(a.digest == b.digest for a, b in zip(chain, other, strict=False))
