"""Attacks on a call that several people must approve."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from people import CALL, THREE, People, approve

from countersign import Changed, Denied, Rejected, TimedOut, TooFewApprovals, Untrusted
from countersign.durations import wall_now
from countersign.e2e.artifact import PlainArtifact
from countersign.e2e.canonical import canonical, hash_without
from countersign.e2e.decision import APPROVE
from countersign.e2e.strict_json import parse_object
from countersign.request import PreparedRequest
from countersign.testing import FakeGateway


def deliver(people: People, name: str, decision: str | None) -> None:
    """Puts a decision on a person's exchange, as the gateway can."""
    exchange = people.gateway.exchanges[people.request(name).request_id]
    exchange.decision, exchange.state = decision, "decided"


def decision_of(people: People, name: str) -> str | None:
    return people.gateway.exchanges[people.request(name).request_id].decision


def test_one_approval_is_not_counted_twice() -> None:
    async def main() -> None:
        people = People("alice", "bob")

        def decide(people: People) -> None:
            people.request("alice").approve()
            deliver(people, "bob", decision_of(people, "alice"))

        with pytest.raises(Untrusted, match="bob: the decision is not trusted"):
            await people.ask(decide)
        assert people.effect("alice") == "untrusted"

    asyncio.run(main())


def test_the_decision_of_one_person_does_not_count_for_another() -> None:
    """Alice's own software signs an approval of the request to Bob."""

    async def main() -> None:
        people = People("alice", "bob")

        def decide(people: People) -> None:
            people.request("alice").approve()
            to_bob = people.request("bob")._artifact
            deliver(people, "bob", people["alice"].sign(to_bob, APPROVE, {}))

        with pytest.raises(Untrusted, match="bob: the decision is not trusted: the device"):
            await people.ask(decide)

    asyncio.run(main())


def lowered(artifact: PlainArtifact) -> PlainArtifact:
    members: Any = parse_object(artifact.text)
    members["extensions"]["countersign.rule"]["asks"][0]["approvals"] = 1
    members["artifactHash"] = hash_without(members, "artifactHash")
    return PlainArtifact.parse(canonical(members))


def test_the_gateway_cannot_lower_the_number() -> None:
    async def main() -> None:
        people = People("alice", "bob")

        def decide(people: People) -> None:
            artifact = lowered(people.request("alice")._artifact)
            deliver(people, "alice", people["alice"].sign(artifact, APPROVE, {}))

        with pytest.raises(Untrusted, match="alice: the decision is not trusted"):
            await people.ask(decide)
        # One approval of the true rule is too few as well.
        with pytest.raises(TimedOut):
            await people.ask(approve("alice"), timeout="1s")

    asyncio.run(main())


def test_a_device_that_was_revoked_since_does_not_count() -> None:
    async def main() -> None:
        people = People("alice", "bob")
        alice = people["alice"]
        laptop = alice.add_device("laptop")

        def decide(people: People) -> None:
            people.request("alice").decide(APPROVE, {}, laptop)
            alice.revoke_device(laptop)
            people.request("bob").approve()

        with pytest.raises(Untrusted, match=r"alice: the decision is not trusted: .* is revoked"):
            await people.ask(decide)
        assert people.effect("bob") == "untrusted"

    asyncio.run(main())


def test_a_pairing_that_has_ended_since_does_not_count() -> None:
    async def main() -> None:
        people = People("alice", "bob")

        def decide(people: People) -> None:
            approve("alice", "bob")(people)
            people.first._paired.remove(people["bob"])

        with pytest.raises(Denied, match="bob: "):
            await people.ask(decide)

    asyncio.run(main())


def test_a_device_counts_on_one_seat() -> None:
    async def main() -> None:
        people = People("alice", "bob")
        people["bob"].device = people["alice"].device
        with pytest.raises(Untrusted, match=r"bob: .* has decided for somebody else"):
            await people.ask(lambda _: [it.approve() for it in requests(people)])
        assert people.effect("alice") == "untrusted"

    asyncio.run(main())


def requests(people: People) -> list[Any]:
    """Everything that was asked. Both people open both parts if they share a device."""
    return [it for approver in people.by_name.values() for it in approver.asked]


def test_a_rejection_that_is_found_at_the_end_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        people = People()
        honest = FakeGateway._withdrawn

        def withdrawn(gateway: FakeGateway, request_id: str) -> Any:
            gateway.up()
            return honest(gateway, request_id)

        monkeypatch.setattr(FakeGateway, "_withdrawn", withdrawn)

        def decide(people: People) -> None:
            people.gateway.withhold(people.request("carol").request_id)
            people.request("carol").reject("never")
            approve("alice", "bob")(people)

        with pytest.raises(Rejected) as denied:
            await people.ask(decide)
        assert denied.value.approver == "carol"
        assert [people.effect(name) for name in THREE] == ["rejected"] * 3

    asyncio.run(main())


def test_a_decision_that_stays_withheld_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.set_part.SETTLE_TIMEOUT", 0.3)

    async def main() -> None:
        people = People()

        def decide(people: People) -> None:
            people.gateway.withhold(people.request("carol").request_id)
            people.request("carol").reject()
            approve("alice", "bob")(people)

        with pytest.raises(Denied):
            await people.ask(decide)
        assert people.effect("alice") == people.effect("bob") == "interrupted"

    asyncio.run(main())


@pytest.mark.parametrize("status", [404, 409, 500])
def test_a_withdrawal_that_fails_denies(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx

    monkeypatch.setattr("countersign.set_part.SETTLE_TIMEOUT", 0.3)
    monkeypatch.setattr(FakeGateway, "_withdrawn", lambda *_: httpx.Response(status))

    async def main() -> None:
        with pytest.raises(Denied):
            await People().ask(approve("alice", "bob"))

    asyncio.run(main())


def test_device_lists_that_cannot_be_read_at_the_end_deny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.set_part.SETTLE_TIMEOUT", 0.3)

    async def main() -> None:
        people = People("alice", "bob")
        honest = people.gateway.answer

        async def answer(request: Any) -> Any:
            response = await honest(request)
            is_decided = people["bob"].asked and people.request("bob").state == "decided"
            if is_decided and request.url.path.endswith("/devices"):
                response.status_code = 503
            return response

        monkeypatch.setattr(people.gateway, "answer", answer)
        with pytest.raises(Denied):
            await people.ask(approve("alice", "bob"))
        assert people.effect("alice") == "interrupted"

    asyncio.run(main())


def test_a_gateway_that_is_lost_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countersign.set_part.SETTLE_TIMEOUT", 0.3)

    async def main() -> None:
        people = People("alice", "bob")

        def decide(people: People) -> None:
            people.request("alice").approve()
            people.gateway.down()

        with pytest.raises(Denied):
            await people.ask(decide, timeout="1s")

    asyncio.run(main())


@pytest.mark.parametrize("lie", ["forge", "replay", "swap_artifact"])
def test_a_lying_gateway_is_denied(lie: str) -> None:
    async def main() -> None:
        people = People("alice", "bob")
        getattr(people.gateway, lie)()

        def decide(people: People) -> None:
            for name in people.by_name:
                request = people.request(name)
                # A forged decision is an approval, whatever was signed.
                request.reject() if lie == "forge" else request.approve()

        with pytest.raises(Untrusted):
            await people.ask(decide)

    asyncio.run(main())


def test_somebody_who_cannot_be_asked_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        import httpx

        people, honest = People(), FakeGateway._submitted

        def submitted(gateway: FakeGateway, envelope: Any) -> Any:
            is_full = len(gateway.exchanges) == 2
            return httpx.Response(429) if is_full else honest(gateway, envelope)

        monkeypatch.setattr(FakeGateway, "_submitted", submitted)
        monkeypatch.setattr("countersign.set_part.SUBMIT_TIMEOUT", 0.3)
        asking = people.client.ask(CALL, approvals=2, timeout="20s")
        people["alice"].when().approve()
        people["bob"].when().approve()
        assert len((await asking).approvals) == 2
        people.gateway.exchanges.clear()
        with pytest.raises(TooFewApprovals, match="carol: nobody could be asked"):
            await people.client.ask(CALL, approvals=3, timeout="20s")

    asyncio.run(main())


def test_one_part_is_no_stored_request() -> None:
    async def main() -> None:
        people = People("alice", "bob")
        approval = await people.ask(approve("alice", "bob"))
        pending = await people.client.submit(CALL, timeout="1h")
        part = replace(pending._request, artifact=PlainArtifact.parse(approval.record().artifact))
        identity = people.client._enforcer.identity
        with pytest.raises(Changed, match="several people"):
            PreparedRequest.parse(
                part.to_json(identity.keys), identity.keys, identity.id, identity.tenant
            )
        with pytest.raises(Changed, match="several people"):
            people.client.pending(part.to_json(identity.keys))

    asyncio.run(main())


def test_a_caller_cannot_give_a_request_a_rule() -> None:
    async def main() -> None:
        people = People("alice")
        people["alice"].when().approve()
        rule = {"v": 1, "asks": [{"approvals": 2, "from": ["alice", "bob"]}]}
        given: Any = {"countersign.rule": rule, "extensions": {"countersign.rule": rule}}
        await people.client.ask(CALL, metadata=given)
        assert people.request("alice").rule is None
        assert "countersign.rule" not in json.loads(people.text("alice"))["extensions"]

    asyncio.run(main())


def test_an_approval_that_expires_at_the_end_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway delays the acknowledgement until the approvals have expired."""

    async def main() -> None:
        people = People("alice", "bob")
        honest = FakeGateway._acknowledged

        def acknowledged(gateway: FakeGateway, envelope: Any) -> Any:
            later = wall_now() + 60_000_000
            for module in ("exchange", "durations"):
                monkeypatch.setattr(f"countersign.{module}.wall_now", lambda: later)
            return honest(gateway, envelope)

        monkeypatch.setattr(FakeGateway, "_acknowledged", acknowledged)
        with pytest.raises(TimedOut):
            await people.ask(approve("alice", "bob"))

    asyncio.run(main())
