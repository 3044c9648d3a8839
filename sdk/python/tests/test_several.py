"""Calls that several people must approve."""

import asyncio
import json
from typing import Any

import pytest
from entries import until
from people import CALL, THREE, People, approve

from countersign import (
    Action,
    AlreadyUsed,
    Changed,
    Denied,
    Rejected,
    TimedOut,
    TooFewApprovals,
    approval_required,
    sync,
)
from countersign.e2e.strict_json import parse_object
from countersign.tool_gate import ToolGate


def test_two_of_three_people_approve() -> None:
    async def main() -> None:
        people = People()
        approval = await people.ask(approve("carol", "alice"))
        assert [it.approver for it in approval.approvals] == ["alice", "carol"]
        assert approval.approver == "alice"
        assert approval.arguments == CALL.args
        assert people.request("bob").state == "withdrawn"
        assert [people.effect(name) for name in THREE] == ["allowed", None, "allowed"]
        for it in approval.approvals:
            assert it.record().artifact == people.text(it.approver)

    asyncio.run(main())


def test_the_parts_differ_in_their_person_and_their_id() -> None:
    async def main() -> None:
        people = People()
        await people.ask(approve("alice", "bob"), rejections=2, comment="reject")
        artifacts = {name: parse_object(people.text(name)) for name in THREE}
        rules = [people.request(name).rule for name in THREE]
        assert [rule.seat for rule in rules if rule] == list(THREE)
        (ask,) = rules[0].terms.asks if rules[0] else ()
        assert (ask.approvals, ask.people) == (2, frozenset(THREE))
        assert len({it["requestId"] for it in artifacts.values()}) == 3
        rest: set[str] = set()
        for artifact in artifacts.values():
            extensions: Any = artifact["extensions"]
            del artifact["requestId"], artifact["artifactHash"]
            del extensions["countersign.rule"]["seat"]
            rest.add(json.dumps(artifact, sort_keys=True))
        assert len(rest) == 1
        # Each part is encrypted to its own person, and routed to them alone.
        for exchange in people.gateway.exchanges.values():
            ciphertext: Any = exchange.body["ciphertext"]
            assert len(ciphertext["recipients"]) == 1
            assert exchange.body["metadata"] == {"routingToken": "fake"}

    asyncio.run(main())


def test_nobody_is_told_before_all_are_decided() -> None:
    async def main() -> None:
        people = People("alice", "bob")
        asking = asyncio.ensure_future(people.client.ask(CALL, approvals=2, timeout="20s"))
        await people.asked()
        people.request("alice").approve()
        await asyncio.sleep(0.1)
        assert people.request("alice").outcomes == []
        people.request("bob").approve()
        assert len((await asking).approvals) == 2
        assert people.effect("alice") == "allowed"

    asyncio.run(main())


def test_one_rejection_denies() -> None:
    async def main() -> None:
        people = People()

        def decide(people: People) -> None:
            people.request("alice").approve()
            people.request("bob").reject("too much")

        with pytest.raises(Rejected) as denied:
            await people.ask(decide)
        assert denied.value.approver == "bob"
        assert "too much" in denied.value.for_model()
        assert [people.effect(name) for name in THREE] == ["rejected", "rejected", None]
        assert people.request("carol").state == "withdrawn"

    asyncio.run(main())


def test_two_rejections_where_two_are_needed() -> None:
    async def main() -> None:
        people = People()

        def decide(people: People) -> None:
            people.request("bob").reject()
            approve("alice", "carol")(people)

        approval = await people.ask(decide, rejections=2)
        assert [it.approver for it in approval.approvals] == ["alice", "carol"]
        assert people.effect("bob") == "allowed"

        def reject(people: People) -> None:
            people.request("bob").reject()
            people.request("carol").reject()

        with pytest.raises(Rejected):
            await people.ask(reject, rejections=2)

    asyncio.run(main())


def test_only_those_who_are_named_are_asked() -> None:
    async def main() -> None:
        people = People()
        await people.ask(approve("alice", "bob"), from_=["bob", "alice"])
        assert people["carol"].asked == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"approvals": 4}, "it needs 4 approvals and lacks 4 (3 people are asked)"),
        ({"approvals": 2, "from_": ["alice", "dave"]}, "dave: not paired with this machine"),
    ],
)
def test_too_few_people_are_told_at_once(options: Any, words: str) -> None:
    async def main() -> None:
        people = People()
        with pytest.raises(TooFewApprovals) as denied:
            await people.client.ask(CALL, timeout="20s", **options)
        assert words in str(denied.value)
        assert "alice" not in denied.value.for_model()
        assert people.gateway.exchanges == {}

    asyncio.run(main())


def test_an_approval_without_the_comment_does_not_count() -> None:
    async def main() -> None:
        people = People("alice", "bob")

        def decide(people: People) -> None:
            people.request("alice").approve("reviewed")
            people.request("bob").approve(" \u200b")

        with pytest.raises(TooFewApprovals, match="bob: approved it without the comment"):
            await people.ask(decide, comment="approve")
        assert people.effect("alice") == "missing"

    asyncio.run(main())


def test_approvals_of_different_choices_are_not_added_up() -> None:
    async def main() -> None:
        people = People()
        actions = [Action.approve("staging", "Staging"), Action.approve("live", "Live")]

        def decide(people: People) -> None:
            people.request("alice").approve(action="staging")
            people.request("bob").approve(action="live")

        asking = asyncio.ensure_future(people.ask(decide, actions=actions))
        await until(lambda: people["bob"].asked and people.request("bob").state == "decided")
        await asyncio.sleep(0.1)
        assert not asking.done()
        people.request("carol").approve(action="live")
        approval = await asking
        assert [it.approver for it in approval.approvals] == ["bob", "carol"]
        assert approval.action_id == "live"

    asyncio.run(main())


def test_without_decisions_it_ends_by_its_time() -> None:
    async def main() -> None:
        people = People("alice", "bob")
        with pytest.raises(TimedOut):
            await people.ask(approve("alice"), timeout="1s")
        assert people.effect("alice") == "missing"
        assert people.request("bob").state == "withdrawn"

    asyncio.run(main())


def test_a_cancelled_call_withdraws_all_requests() -> None:
    async def main() -> None:
        people = People()
        asking = asyncio.ensure_future(people.client.ask(CALL, approvals=2, timeout="20s"))
        await people.asked()
        people.request("alice").approve()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: people.effect("alice") == "interrupted")
        assert [people.request(name).state for name in ("bob", "carol")] == ["withdrawn"] * 2

    asyncio.run(main())


def test_arguments_that_changed_are_denied() -> None:
    async def main() -> None:
        people, paid = People("alice", "bob"), list[list[int]]()

        @approval_required(people.client, timeout="20s", approvals=2)
        async def pay(amounts: list[int]) -> None:
            paid.append(amounts)

        for change in (True, False):
            amounts = [1]
            calling = asyncio.ensure_future(pay(amounts))
            await people.asked()
            if change:
                amounts[0] = 99
            approve("alice", "bob")(people)
            if change:
                with pytest.raises(Changed):
                    await calling
                assert people.effect("alice") == people.effect("bob") == "changed"
            else:
                await calling
        assert paid == [[1]]

    asyncio.run(main())


def test_the_journal_takes_every_approval_before_it_counts() -> None:
    class RefusingJournal:
        taken: list[str]

        def __init__(self) -> None:
            self.taken = []

        async def take(self, request_id: str) -> bool:
            self.taken.append(request_id)
            return len(self.taken) < 2

    async def main() -> None:
        people = People("alice", "bob", journal=RefusingJournal())
        with pytest.raises(AlreadyUsed):
            await people.ask(approve("alice", "bob"))
        assert people.effect("alice") == "interrupted"

    asyncio.run(main())


def test_the_same_without_an_event_loop() -> None:
    async def main() -> None:
        people, paid = People("alice", "bob"), list[int]()
        for approver in people.by_name.values():
            approver.when().approve()
        client = sync.Client(people.client)

        @sync.approval_required(client, timeout="20s", approvals=2)
        def pay(amount: int) -> None:
            paid.append(amount)

        await asyncio.to_thread(pay, 7)
        approval = await asyncio.to_thread(client.ask, CALL, approvals=2, from_=["alice", "bob"])
        assert paid == [7]
        assert len(approval.approvals) == 2

    asyncio.run(main())


def test_adapters_pass_the_options_on() -> None:
    async def main() -> None:
        from countersign.rule_options import several_approvals

        people = People()
        several = several_approvals(approvals=2, from_=["alice", "bob"])
        gate = ToolGate(people.client, "test", "20s", several=several)
        people["alice"].when().approve()
        people["bob"].when().approve()
        assert await gate.ask("pay", {"amount": 7}) == {"amount": 7}
        assert people["carol"].asked == []
        people["bob"].when().reject("no")
        with pytest.raises(Rejected):
            await gate.ask("pay", {"amount": 7})
        # One decision would settle a durable request.
        with pytest.raises(Denied, match="durable"):
            await gate.submit("pay", {"amount": 7}, "key")
        with pytest.raises(TypeError):
            ToolGate(people.client, "test", "20s", several=several, is_durable=True)

    asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"approvals": 0},
        {"approvals": True},
        {"approvals": 57},
        {"approvals": "2"},
        {"from_": ["alice"]},
        {"rejections": 2},
        {"comment": "approve"},
        {"approvals": 2, "from_": "alice"},
        {"approvals": 2, "from_": []},
        {"approvals": 2, "from_": ["alice", "alice"]},
        {"approvals": 2, "rejections": 0},
        {"approvals": 2, "comment": "sometimes"},
        {"approvals": 2, "approver": "alice"},
        {"approvals": 2, "aprovals": 3},
    ],
)
def test_options_that_make_no_sense(options: Any) -> None:
    async def main() -> None:
        people = People()
        with pytest.raises((TypeError, ValueError)):
            await people.client.ask(CALL, **options)
        with pytest.raises((TypeError, ValueError)):
            approval_required(people.client, **options)(main)
        assert people.gateway.exchanges == {}

    asyncio.run(main())
