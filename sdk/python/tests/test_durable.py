"""Requests that outlive a process: bound to the call, and used once."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from entries import until

from countersign import (
    AlreadyUsed,
    Approved,
    Call,
    Changed,
    Content,
    Denied,
    Expired,
    KeyReused,
    Rejected,
    StillWaiting,
    Untrusted,
    exchange,
)
from countersign.durations import Deadline
from countersign.e2e.artifact import PlainArtifact
from countersign.state import DirectoryState
from countersign.testing import FakeApprover

CALL = Call("transfer", {"iban": "DE02", "amount": 500})


async def approved(approver: FakeApprover, text: str) -> Approved:
    outcome = await approver.new_client().pending(text).outcome()
    assert isinstance(outcome, Approved)
    return outcome


def test_submit_exit_and_resume_elsewhere() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            pending = await approver.client.submit(CALL, timeout="24h")
            text = pending.to_json()
            outcome = await approver.new_client().pending(text).outcome(wait="0s")
            assert outcome == StillWaiting(pending.request_id)
            approver.asked[0].approve("fine", action="staging")
            resumed = await approved(approver, text)
            assert resumed.approval.reason == "fine"
            assert resumed.approval.action_id == "staging"
            ran = []
            async with resumed.use(CALL) as approval:
                ran.append(approval.approver)
            assert ran == ["alice"]
            assert approver.asked[0].state == "delivered"

    asyncio.run(main())


def test_an_approval_is_used_once_in_all_processes(tmp_path: Path) -> None:
    async def main() -> None:
        with FakeApprover(state=DirectoryState(tmp_path)) as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            ran = 0

            async def resume() -> None:
                nonlocal ran
                outcome = await approved(approver, pending.to_json())
                async with outcome.use(CALL):
                    ran += 1

            results = await asyncio.gather(*(resume() for _ in range(5)), return_exceptions=True)
            assert ran == 1
            assert sum(isinstance(result, AlreadyUsed) for result in results) == 4
            with pytest.raises(AlreadyUsed):
                await resume()

    asyncio.run(main())


@pytest.mark.parametrize(
    "other",
    [
        Call("transfer", {"iban": "DE02", "amount": 501}),
        Call("transfer", {"iban": "DE02"}),
        Call("transfer", {"iban": "DE02", "amount": 500, "to": "me"}),
        Call("transfer", {"iban": "DE02", "amount": "500"}),
        Call("refund", {"iban": "DE02", "amount": 500}),
        Content("command.review", {"iban": "DE02", "amount": 500}),
        Content("plan.review", {"kind": "tool", "tool": "transfer", "input": dict(CALL.args)}),
    ],
)
def test_another_call_does_not_run(other: Call | Content) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            outcome = await approved(approver, pending.to_json())
            with pytest.raises(Changed):
                async with outcome.use(other):
                    raise AssertionError("it ran")
            # The approval was not used up by the attempt.
            async with outcome.use(CALL):
                pass

    asyncio.run(main())


def edited(approver: FakeApprover, text: str, change: Any) -> str:
    """The stored request with another artifact, whose hash and proof are right."""
    members = json.loads(text)
    artifact = json.loads(members["artifact"])
    artifact.pop("artifactHash")
    change(artifact)
    members["artifact"] = PlainArtifact.complete(artifact, bytes).text
    with pytest.raises(Changed):
        approver.client.pending(json.dumps(members))
    names = ("tenantId", "enforcerId", "outcomeKey", "artifact")
    keys = approver.client._enforcer.identity.keys
    members["proof"] = keys.prove_record("\n".join(members[name] for name in names))
    return json.dumps(members)


def pay_more(artifact: Any) -> None:
    artifact["payload"]["input"]["amount"] = 99_000


def ask_again_later(artifact: Any) -> None:
    artifact["expiresAt"] = "2099-01-01T00:00:00Z"


def obey_another(artifact: Any) -> None:
    artifact["requestId"] = "01a1ed3e-3fe8-721f-adb1-4bd67c8f66b3"


@pytest.mark.parametrize("change", [pay_more, ask_again_later])
def test_a_stored_request_that_was_edited(change: Any) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            text = edited(approver, pending.to_json(), change)
            outcome = await approver.new_client().pending(text).outcome()
            assert isinstance(outcome, Untrusted)

    asyncio.run(main())


def test_a_stored_request_of_another_id() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            text = edited(approver, pending.to_json(), obey_another)
            assert isinstance(await approver.new_client().pending(text).outcome(), Denied)

    asyncio.run(main())


def test_a_stored_request_that_is_damaged() -> None:
    async def main() -> None:
        with FakeApprover() as approver, FakeApprover() as other:
            pending = await approver.client.submit(CALL, timeout="24h")
            members = json.loads(pending.to_json())
            damaged: list[str] = ["", "[]", "null", '{"v":2}', pending.to_json() + "x"]
            damaged.append(json.dumps({**members, "more": 1}))
            damaged.append(json.dumps({**members, "tenantId": "other"}))
            damaged.append(json.dumps({**members, "outcomeKey": "short"}))
            damaged.append(json.dumps({**members, "proof": "short"}))
            damaged.append(json.dumps({**members, "proof": 1}))
            damaged.append(
                json.dumps({**members, "artifact": members["artifact"].replace("500", "501")})
            )
            for text in damaged:
                with pytest.raises(Changed):
                    other.client.pending(text)

    asyncio.run(main())


def test_a_key_makes_a_submission_the_same_request() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            first = await approver.client.submit(CALL, timeout="24h", key="run-1/call-2")
            again = await approver.new_client().submit(CALL, timeout="24h", key="run-1/call-2")
            assert again.request_id == first.request_id
            assert again.to_json() == first.to_json()
            assert len(approver.asked) == 1
            (exchange,) = approver.gateway.exchanges.values()
            assert exchange.submissions == 2
            other = await approver.client.submit(CALL, timeout="24h", key="run-1/call-3")
            assert other.request_id != first.request_id
            changed = Call("transfer", {"iban": "DE02", "amount": 1})
            with pytest.raises(KeyReused):
                await approver.client.submit(changed, timeout="24h", key="run-1/call-2")

    asyncio.run(main())


def test_the_key_is_kept_before_the_request_is_sent() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            await approver.client.submit(CALL, timeout="24h")
            # The devices are read, and then the submission does not arrive.
            approver.gateway.refusals.append((200, {}))
            with pytest.raises(Denied):
                await approver.client.submit(CALL, timeout="2s", key="k")
            approver.gateway.refusals.clear()
            first = await approver.client.submit(CALL, timeout="24h", key="k")
            again = await approver.client.submit(CALL, timeout="24h", key="k")
            assert again.request_id == first.request_id

    asyncio.run(main())


def test_concurrent_submissions_with_one_key_are_one_request(tmp_path: Path) -> None:
    async def main() -> None:
        with FakeApprover(state=DirectoryState(tmp_path)) as approver:
            approver.when().wait()
            clients = [approver.new_client() for _ in range(8)]
            submitted = await asyncio.gather(
                *(client.submit(CALL, timeout="24h", key="k") for client in clients)
            )
            assert len({pending.request_id for pending in submitted}) == 1
            assert len(approver.asked) == 1

    asyncio.run(main())


def test_an_approval_that_comes_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            outcome = await approved(approver, pending.to_json())
            monkeypatch.setattr(Deadline, "left", lambda self: 0.0)
            with pytest.raises(Expired):
                async with outcome.use(CALL):
                    raise AssertionError("it ran")
            assert isinstance(await pending.outcome(), Denied)

    asyncio.run(main())


def test_a_device_that_is_revoked_before_the_use() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            device = approver.add_device("laptop")
            pending = await approver.client.submit(CALL, timeout="24h")
            approver.asked[0].decide("approve", {}, device)
            outcome = await approved(approver, pending.to_json())
            approver.revoke_device(device)
            # Any question reads the list again; what it teaches counts everywhere.
            approver.when(tool="other").reject()
            with pytest.raises(Rejected):
                await approver.client.ask(Call("other", {}))
            with pytest.raises(Untrusted):
                async with outcome.use(CALL):
                    raise AssertionError("it ran")

    asyncio.run(main())


class Forgetful:
    """A journal that does not keep its promise."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def take(self, request_id: str) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize("answer", [None, False, 1, "yes", RuntimeError("away")])
def test_a_journal_that_does_not_say_true(answer: Any) -> None:
    async def main() -> None:
        with FakeApprover(journal=Forgetful(answer)) as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            outcome = await pending.outcome()
            assert isinstance(outcome, Approved)
            with pytest.raises(Denied):
                async with outcome.use(CALL):
                    raise AssertionError("it ran")

    asyncio.run(main())


def test_a_cancelled_wait_does_not_withdraw() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            pending = await approver.client.submit(CALL, timeout="24h")
            waiting = asyncio.ensure_future(pending.outcome(wait="1h"))
            await until(lambda: any(path.endswith("/wait") for _, path in approver.gateway.calls))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert approver.asked[0].state == "pendingApproval"
            await pending.withdraw()
            assert approver.asked[0].state == "withdrawn"

    asyncio.run(main())


def test_a_gateway_that_is_away_is_no_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ANSWER_GRACE", 0.0)

    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="24h")
            approver.gateway.down()
            assert isinstance(await pending.outcome(wait="100ms"), StillWaiting)
            approver.gateway.up()
            assert isinstance(await pending.outcome(), Approved)

    asyncio.run(main())


def test_revocations_survive_a_restart_whatever_the_gateway_lists(tmp_path: Path) -> None:
    async def main() -> None:
        with FakeApprover(state=DirectoryState(tmp_path)) as approver:
            approver.when().reject()
            device = approver.add_device("laptop")
            approver.revoke_device(device)
            with pytest.raises(Rejected):
                await approver.client.ask(CALL)
            # The gateway forgets the revocation.
            approver.gateway.statements.pop()
            approver.when().wait()
            restarted = approver.new_client()
            asking = asyncio.ensure_future(restarted.ask(CALL))
            await until(lambda: len(approver.asked) == 2)
            approver.asked[1].decide("approve", {}, device)
            with pytest.raises(Untrusted, match="revoked"):
                await asking

    asyncio.run(main())


def test_a_changed_call_does_not_use_the_approval_up() -> None:
    taken: list[str] = []

    class CountingJournal:
        async def take(self, request_id: str) -> bool:
            taken.append(request_id)
            return len(taken) == 1

    async def main() -> None:
        with FakeApprover(journal=CountingJournal()) as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="1h")
            outcome = await approved(approver, pending.to_json())
            with pytest.raises(Changed):
                async with outcome.use(Call("transfer", {"iban": "DE02", "amount": 501})):
                    raise AssertionError("it ran")
            assert taken == []
            # Nothing is signed that the unchanged call would contradict.
            assert approver.asked[0].outcomes == []
            async with outcome.use(CALL):
                assert len(approver.asked[0].outcomes) == 1

    asyncio.run(main())
