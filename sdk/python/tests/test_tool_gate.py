"""The part that adapters share: denials before a request is made, and cancelled submissions."""

import asyncio
import logging
from typing import Any

import pytest
from entries import until

from countersign import Denied, Unavailable
from countersign.client import Client
from countersign.pending import Pending
from countersign.pending_calls import PendingCalls
from countersign.testing import FakeApprover
from countersign.tool_gate import ToolGate

SECRET = "a secret detail"


def gate_of(approver: FakeApprover) -> ToolGate:
    return ToolGate(approver.client, "test", "20s")


def denials(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [it for it in caplog.records if it.name == "countersign"]
    assert all(it.levelno == logging.WARNING for it in found)
    return [it.getMessage() for it in found]


class UncopyableValue:
    def __deepcopy__(self, _: object) -> Any:
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("entry", ["ask", "submit", "take", "wait_and_take", "outcome"])
def test_a_denial_before_the_request_is_logged_once(
    entry: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            more = () if entry == "ask" else ("key",)
            call = getattr(gate_of(approver), entry)("pay", {"amount": UncopyableValue()}, *more)
            if entry == "outcome":
                assert isinstance(await call, Denied)
            else:
                with pytest.raises(Denied):
                    await call

    asyncio.run(main())
    (text,) = denials(caplog)
    assert "tool pay, cause failed: an unexpected error (RuntimeError)" in text
    assert SECRET not in caplog.text


def test_a_denial_of_the_engine_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().reject(SECRET)
            with pytest.raises(Denied):
                await gate_of(approver).wait_and_take("pay", {"amount": 7}, "key")

    asyncio.run(main())
    (text,) = denials(caplog)
    assert "cause rejected" in text
    assert SECRET not in caplog.text


def test_a_call_that_is_cancelled_while_it_is_submitted_is_withdrawn() -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            calls = PendingCalls(gate_of(approver), 5)
            answered = approver.gateway.answer

            async def slow(request: Any) -> Any:
                answer = await answered(request)
                if request.method == "POST" and request.url.path.endswith("/artifacts"):
                    await asyncio.sleep(0.3)
                return answer

            approver.gateway.answer = slow  # type: ignore[method-assign]
            running = asyncio.ensure_future(calls.ask("pay", {"amount": 7}))
            await until(lambda: approver.asked)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await until(lambda: approver.asked[0].state == "withdrawn")

    asyncio.run(main())


def test_a_failed_withdrawal_does_not_replace_the_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise Unavailable("the journal is away")

    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            calls = PendingCalls(gate_of(approver), 5)
            running = asyncio.ensure_future(calls.ask("pay", {"amount": 7}))
            await until(lambda: approver.asked)
            await asyncio.sleep(0.1)
            monkeypatch.setattr(Pending, "withdraw", fail)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(main())


def test_a_submission_that_fails_is_a_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Client, "submit", fail)
    with FakeApprover() as approver, pytest.raises(Denied, match="unexpected error"):
        asyncio.run(PendingCalls(gate_of(approver), 5).ask("pay", {"amount": 7}))
