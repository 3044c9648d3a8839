"""Arguments, wrappers, many calls at once, deadlines, and the face without an event loop."""

import asyncio
import dataclasses
import enum
import inspect
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from entries import until

from countersign import (
    Action,
    Call,
    Changed,
    Denied,
    NotAskable,
    Rejected,
    StillWaiting,
    TimedOut,
    approval_required,
    durations,
    sync,
)
from countersign.call import Subject, to_json
from countersign.durations import Deadline, timeout_seconds
from countersign.e2e.canonical import canonical
from countersign.e2e.record import DecisionRecord
from countersign.state import DirectoryState
from countersign.testing import FakeApprover


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 1


@dataclasses.dataclass
class Money:
    amount: Decimal
    currency: str


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, [None, True]), [1, [None, True]]),
        (Decimal("1.50"), "1.50"),
        (date(2026, 2, 21), "2026-02-21"),
        (datetime(2026, 2, 21, 12, tzinfo=UTC), "2026-02-21T12:00:00+00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/srv"), "/srv"),
        (Colour.RED, "red"),
        (Level.HIGH, "Level.HIGH"),
        (Money(Decimal("1"), "EUR"), {"Money": {"amount": "1", "currency": "EUR"}}),
        (1.5, 1.5),
    ],
)
def test_arguments_become_json(value: object, expected: object) -> None:
    assert to_json(value) == expected


class Text(str):
    """Could print itself as something else."""

    __slots__ = ()


def test_other_arguments_are_refused() -> None:
    deep: Any = []
    for _ in range(70):
        deep = [deep]
    unfit: list[Any] = [
        b"x",
        {1},
        object(),
        Text("x"),
        float("inf"),
        -(2**53),
        deep,
        {"a": {None: 1}},
        len,
    ]
    for value in unfit:
        with pytest.raises(NotAskable):
            to_json(value)


def test_the_person_sees_every_argument_by_name() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()

            @approval_required(approver.client, show=["amount"], name="bank.transfer", repo_ref="r")
            async def transfer(iban: str, amount: int = 5, *more: int, **rest: str) -> str:
                """Sends money."""
                return f"{iban} {amount} {more} {rest}"

            assert transfer.__name__ == "transfer"
            assert list(inspect.signature(transfer).parameters) == [
                "iban",
                "amount",
                "more",
                "rest",
            ]
            assert await transfer("DE02", 6, 7, note="x") == "DE02 6 (7,) {'note': 'x'}"
            assert await transfer("DE02") == "DE02 5 () {}"
            first, second = approver.asked
            assert first.args == {"iban": "DE02", "amount": 6, "more": [7], "rest": {"note": "x"}}
            assert first.payload["order"] == ["amount", "iban", "more", "rest"]
            assert second.args == {"iban": "DE02", "amount": 5, "more": [], "rest": {}}
            assert (first.tool, first.repository) == ("bank.transfer", "r")
            with pytest.raises(TypeError):
                await transfer()  # type: ignore[call-arg]
            assert len(approver.asked) == 2

    asyncio.run(main())


def test_a_condition_lets_a_call_pass_only_by_false() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            ran: list[int] = []

            def gated(condition: Callable[..., object]) -> Callable[[int], Any]:
                @approval_required(approver.client, ask_if=condition)
                async def pay(amount: int) -> None:
                    ran.append(amount)

                return pay

            await gated(lambda amount: amount > 10)(1)
            assert ran == [1]
            for answer in (True, None, 0, ""):
                with pytest.raises(Rejected):
                    await gated(lambda amount, answer=answer: answer)(2)
            with pytest.raises(Denied, match="the condition failed"):
                await gated(lambda amount: 1 / 0)(3)
            assert ran == [1]

    asyncio.run(main())


def test_only_functions_that_fit_are_wrapped() -> None:
    with FakeApprover() as approver:
        client: Any = approver.client

        async def generator() -> Any:
            yield 1

        unfit: list[Any] = [lambda: 1, generator, len]
        for function in unfit:
            with pytest.raises(TypeError):
                approval_required(client)(function)
        plain = sync.Client(client)

        async def coroutine() -> None: ...

        for other in (coroutine, generator):
            with pytest.raises(TypeError):
                sync.approval_required(plain)(other)
        with pytest.raises(TypeError, match="show"):
            approval_required(client, show=["amuont"])(coroutine)
        for timeout in ("none", "0s", "31d", "-1s", -1, float("inf"), "10", ""):
            with pytest.raises(ValueError, match="timeout"):
                approval_required(client, timeout=timeout)(coroutine)
    assert timeout_seconds("10m") == timeout_seconds(timedelta(minutes=10)) == 600
    assert timeout_seconds("30d") == durations.MAX_TIMEOUT


def test_actions_and_content() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve(action="staging")
            actions = [Action.approve("staging", "To staging"), Action.reject("no", "Not today")]
            payload = {"argv": ["terraform", "apply"], "directory": "/srv"}
            approval = await approver.client.ask(
                type="command.review", payload=payload, actions=actions, metadata={"run": 7}
            )
            assert approval.action_id == "staging"
            (asked,) = approver.asked
            assert (asked.payload, asked.tool) == (payload, None)
            artifact = json.loads(asked._artifact.text)
            assert artifact["metadata"] == {"run": 7}
            offered = artifact["extensions"]["org.proto.requestedActions"]
            assert [action["id"] for action in offered["actions"]] == ["staging", "no"]
            same = [Action.approve("a", "A"), Action.approve("A", "B")]
            with pytest.raises(NotAskable):
                await approver.client.ask(Call("pay", {}), actions=same)
            with pytest.raises(NotAskable):
                await approver.client.ask(type="other.review", payload={})
            with pytest.raises(TypeError):
                await approver.client.ask(Call("pay", {}), type="plan.review", payload={})

    asyncio.run(main())


def test_a_record_is_verified_offline(tmp_path: Path) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            approval = await approver.client.ask(Call("pay", {"amount": 7}))
            file = tmp_path / "decision.json"
            approval.record().save(file)
            assert file.stat().st_mode & 0o777 == 0o600
            assert DecisionRecord.load(file).verify()
            forged = json.loads(file.read_text())
            forged["artifact"] = forged["artifact"].replace('"amount":7', '"amount":8')
            with pytest.raises(Exception, match="the artifact"):
                DecisionRecord.parse(json.dumps(forged)).verify()

    asyncio.run(main())


def test_a_hundred_questions_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        with FakeApprover(state=DirectoryState(tmp_path)) as approver:
            for amount in range(100):
                rule = approver.when(tool="pay", args={"amount": amount})
                rule.approve() if amount % 2 else rule.reject("even")
            ran: list[int] = []

            @approval_required(approver.client, timeout="1m")
            async def pay(amount: int) -> int:
                ran.append(amount)
                return amount

            results = await asyncio.gather(*map(pay, range(100)), return_exceptions=True)
            assert sorted(ran) == list(range(1, 100, 2))
            assert results[1::2] == list(range(1, 100, 2))
            assert all(isinstance(result, Rejected) for result in results[::2])
            assert len(approver.asked) == 100

    asyncio.run(main())


def test_the_hundred_and_first_waits_within_its_deadline() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when(tool="slow").wait()
            approver.when(tool="fast").approve()
            slow = [
                asyncio.ensure_future(approver.client.ask(Call("slow", {}))) for _ in range(100)
            ]
            await until(lambda: len(approver.asked) == 100, 20)
            with pytest.raises(TimedOut):
                await approver.client.ask(Call("fast", {}), timeout="200ms")
            assert len(approver.asked) == 100
            queued = asyncio.ensure_future(approver.client.ask(Call("fast", {})))
            await asyncio.sleep(0.05)
            approver.asked[0].approve()
            assert (await queued).approver == "alice"
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            assert sum(asked.state == "withdrawn" for asked in approver.asked) == 99

    asyncio.run(main())


def test_either_clock_ends_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Deadline.after(60)
    assert 59 < deadline.left() <= 60
    with monkeypatch.context() as changed:
        changed.setattr(time, "time_ns", lambda: (deadline.wall + 1) * 1_000)
        assert deadline.left() == 0
    with monkeypatch.context() as changed:
        changed.setattr(time, "monotonic", lambda: deadline.monotonic + 1)
        assert deadline.left() == 0


def test_a_client_serves_several_event_loops_one_after_the_other() -> None:
    with FakeApprover() as approver:
        approver.when().approve()
        for _ in range(3):
            assert asyncio.run(approver.client.ask(Call("pay", {}))).approver == "alice"


def test_the_face_without_an_event_loop() -> None:
    with FakeApprover() as approver:
        approver.when(tool="pay").approve("fine")
        client = sync.Client(approver.client)
        call = Call("pay", {"amount": 7})
        assert client.ask(call).reason == "fine"
        pending = client.submit(call, timeout="1h", key="k")
        outcome = client.pending(pending.to_json()).outcome()
        assert isinstance(outcome, sync.Approved)
        with outcome.use(call) as approval:
            assert approval.request_id == outcome.request_id == pending.request_id
        with pytest.raises(Denied), outcome.use(call):
            raise AssertionError("it ran twice")
        with pytest.raises(Changed), outcome.use(Call("pay", {"amount": 8})):
            raise AssertionError("it ran")
        approver.when(tool="pay").wait()
        pending = client.submit(call, timeout="1h")
        assert isinstance(pending.outcome(), StillWaiting)
        pending.withdraw()
        assert approver.asked[-1].state == "withdrawn"
        client.close()


def test_an_interrupt_withdraws() -> None:
    with FakeApprover() as approver:
        approver.when().wait()
        client = sync.Client(approver.client)

        def interrupt() -> None:
            while not approver.asked:
                time.sleep(0.01)
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)

        # A process in the background may have been started with the signal ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=interrupt).start()
        try:
            with pytest.raises(KeyboardInterrupt):
                client.ask(Call("pay", {}), timeout="20s")
        finally:
            signal.signal(signal.SIGINT, before)
        assert approver.asked[0].state == "withdrawn"


def test_arguments_that_change_while_a_person_thinks() -> None:
    async def main() -> None:
        paid: list[list[int]] = []
        with FakeApprover() as approver:
            approver.when().wait()

            @approval_required(approver.client, timeout="20s")
            async def pay(amounts: list[int]) -> None:
                paid.append(amounts)

            amounts = [1]
            running = asyncio.ensure_future(pay(amounts))
            await until(lambda: approver.asked)
            amounts[0] = 99
            approver.asked[0].approve()
            with pytest.raises(Changed):
                await running
            assert paid == []

    asyncio.run(main())


def test_comparison_is_by_canonical_text() -> None:
    call = Call("pay", {"b": 1.0, "a": (1, 2)})
    assert Subject.of(call).text() == Subject.of(Call("pay", {"a": [1, 2], "b": 1})).text()
    assert canonical(Subject.of(call).payload["input"]) == '{"a":[1,2],"b":1}'
