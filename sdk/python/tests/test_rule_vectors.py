"""The known answers of tests/vectors about rules, counting, and outcomes of sets."""

import base64
import json
from typing import Any

import pytest
from make_vectors import load

from countersign.e2e.artifact import PlainArtifact
from countersign.e2e.errors import Refusal
from countersign.e2e.keys import SignatureKey
from countersign.e2e.outcome import OutcomeSubject, sign_outcome
from countersign.e2e.rule import RULE, ApprovalRule, UnknownRule, read_rule
from countersign.e2e.text import has_visible
from countersign.e2e.times import parse_time
from countersign.e2e.votes import ApproverVote, VoteChoice, VoteCount

VECTORS = load("rule.json")
OUTCOMES = load("outcome.json")["set"]


def named(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


def known(rule: Any) -> ApprovalRule:
    read = read_rule({RULE: rule})
    assert isinstance(read, ApprovalRule)
    return read


@named(VECTORS["accepted"])
def test_rules_are_read_and_written(case: dict[str, Any]) -> None:
    assert known(case["rule"]).to_json() == case["rule"]


@named(VECTORS["unknown"])
def test_rules_of_other_versions_are_not_known(case: dict[str, Any]) -> None:
    assert read_rule({RULE: case["rule"]}) == UnknownRule()


@named(VECTORS["refused"])
def test_other_rules_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        read_rule({RULE: case["rule"]})


def test_the_artifact_of_another_part() -> None:
    case = VECTORS["part"]
    artifact = PlainArtifact.parse(case["artifact"])
    assert artifact.for_part(case["requestId"], case["seat"]).text == case["result"]


@pytest.mark.parametrize("case", VECTORS["approvals"])
def test_comments_that_nobody_can_see(case: dict[str, Any]) -> None:
    if case["refusal"] == "comment":
        assert not has_visible(case["comment"] or "")
    elif case["comment"] is not None:
        assert has_visible(case["comment"])


@named(VECTORS["counts"])
def test_counts(case: dict[str, Any]) -> None:
    count = VoteCount(known(case["rule"]).terms)
    for vote in case["votes"]:
        person, choice = vote["approverId"], VoteChoice(vote["actionId"])
        if vote["vote"] == "dropOut":
            count.drop_out(person)
        else:
            is_approval = vote["vote"] == "approve"
            count.count(ApproverVote(person, is_approval, choice, vote["comment"]))
    state = count.state()
    assert state.stage.value == case["state"]
    if case["state"] == "satisfied":
        assert state.choice == VoteChoice(case["actionId"])
    assert bool(count.approvers()) == (case["state"] == "satisfied")


def test_answers_that_differ_are_not_added_up() -> None:
    count = VoteCount(known(VECTORS["counts"][0]["rule"]).terms)
    for person, answer in (("alice", "red"), ("bob", "blue"), ("carol", "red")):
        assert count.approvers() == frozenset()
        count.count(ApproverVote(person, True, VoteChoice(None, ((answer,),)), True))
    assert count.approvers() == {"alice", "carol"}


@pytest.mark.parametrize("case", OUTCOMES["accepted"], ids=lambda case: case["outcome"])
def test_outcomes_of_sets_have_the_published_form(case: dict[str, Any]) -> None:
    published = json.loads(case["envelope"])
    statement = json.loads(base64.b64decode(published["payload"]))
    predicate = statement["predicate"]
    subjects = [
        OutcomeSubject(subject["name"], subject["digest"]["sha256"], digest)
        for subject, digest in zip(statement["subject"], predicate["decisions"], strict=True)
    ]
    envelope = json.loads(
        sign_outcome(
            SignatureKey(bytes(32)),
            subjects,
            tenant=OUTCOMES["tenantId"],
            enforcer_id=OUTCOMES["enforcerId"],
            cause=predicate["cause"],
            at=parse_time(predicate["at"]),
            set_id=predicate["set"],
        )
    )
    assert envelope["payload"] == published["payload"]
    assert envelope.keys() == published.keys()


def test_an_outcome_that_no_gateway_takes_is_refused() -> None:
    def sign(parts: int) -> str:
        subject = OutcomeSubject("01J2V8V3K6B2Z9X6G1V7Y2QK80", "0" * 64, "0" * 64)
        members: Any = {"tenant": "acme", "enforcer_id": "build-bot", "cause": "", "at": 0}
        return sign_outcome(SignatureKey(bytes(32)), [subject] * parts, set_id="s" * 22, **members)

    assert len(sign(56)) <= 16 << 10
    with pytest.raises(Refusal):
        sign(64)
