"""Against a real gateway, with the program as the approver. `make test-sdk` builds the program."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from real_gateway import RealGateway, running

from countersign import (
    Action,
    AlreadyUsed,
    Approved,
    Call,
    Changed,
    Client,
    NotPaired,
    Rejected,
    StillWaiting,
    TimedOut,
    approval_required,
)

pytestmark = pytest.mark.gateway
README = Path(__file__).resolve().parents[1] / "README.md"
CALL = Call("transfer", {"iban": "DE02", "amount": 500})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[RealGateway]:
    with running(tmp_path_factory.mktemp("gateway")) as started:
        yield started


@pytest.fixture
def client(gateway: RealGateway, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("COUNTERSIGN_PROFILES", gateway.profiles)
    monkeypatch.delenv("COUNTERSIGN_PROFILE", raising=False)
    return Client.from_profile()


def test_an_approved_call_runs_and_its_record_is_verified(
    gateway: RealGateway, client: Client, tmp_path: Path
) -> None:
    async def main() -> None:
        async with client:
            actions = [Action.approve("now", "Now"), Action.reject("no", "No")]
            asking = asyncio.ensure_future(client.ask(CALL, timeout="1m", actions=actions))
            told = await gateway.decide("approve", "--reason", "fine é")
            approval = await asking
            assert approval.reason == "fine é"
            # The approver's device has verified the signed outcome.
            assert "allowed" in str(told["outcome"])
            record = tmp_path / "decision.json"
            approval.record().save(record)
            verified = gateway.approver("verify", str(record))
            assert "approved by" in verified.stdout
            record.write_text(record.read_text().replace("500", "501"))
            assert gateway.approver("verify", str(record), check=False).returncode != 0

    asyncio.run(main())


def test_a_rejected_call_does_not_run(gateway: RealGateway, client: Client) -> None:
    ran: list[int] = []

    @approval_required(client, timeout="1m")
    async def transfer(amount: int) -> None:
        ran.append(amount)

    async def main() -> None:
        async with client:
            calling = asyncio.ensure_future(transfer(500))
            told = await gateway.decide("reject", "--reason", "not on Friday")
            with pytest.raises(Rejected) as denied:
                await calling
            assert denied.value.reason == "not on Friday"
            assert "rejected" in str(told["outcome"])

    asyncio.run(main())
    assert ran == []


def test_a_request_outlives_its_process(gateway: RealGateway, client: Client) -> None:
    script = (
        "import asyncio; from countersign import Call, Client\n"
        "async def main():\n"
        "    async with Client.from_profile() as client:\n"
        f"        pending = await client.submit(Call({CALL.name!r}, {CALL.args!r}), timeout='1h', key='k')\n"
        "        print(pending.to_json())\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", script]
    texts = [subprocess.check_output(command, env=gateway.environment, text=True) for _ in range(2)]
    assert texts[0] == texts[1]

    async def main() -> None:
        async with client:
            pending = client.pending(texts[0])
            assert isinstance(await pending.outcome(), StillWaiting)
            deciding = asyncio.ensure_future(gateway.decide("approve", "--wait", "1s"))
            outcome = await pending.outcome(wait="30s")
            await deciding
            assert isinstance(outcome, Approved)
            with pytest.raises(Changed):
                async with outcome.use(Call("transfer", {"iban": "DE02", "amount": 501})):
                    raise AssertionError("it ran")
            async with outcome.use(CALL):
                pass
        async with Client.from_profile() as other:
            again = await other.pending(texts[0]).outcome()
            assert isinstance(again, Approved)
            with pytest.raises(AlreadyUsed):
                async with again.use(CALL):
                    raise AssertionError("it ran twice")

    asyncio.run(main())


def test_a_cancelled_call_leaves_the_inbox(gateway: RealGateway, client: Client) -> None:
    async def main() -> None:
        async with client:
            asking = asyncio.ensure_future(client.ask(CALL, timeout="1m"))
            await gateway.asked()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert gateway.inbox() == []

    asyncio.run(main())


def test_nobody_decides(gateway: RealGateway, client: Client) -> None:
    async def main() -> None:
        async with client:
            with pytest.raises(TimedOut):
                await client.ask(CALL, timeout="2s")

    asyncio.run(main())


def test_a_hundred_questions_at_once_are_withdrawn(gateway: RealGateway, client: Client) -> None:
    async def main() -> None:
        async with client:
            calls = (Call("transfer", {"amount": amount}) for amount in range(100))
            asking = [asyncio.ensure_future(client.ask(call, timeout="2m")) for call in calls]
            async with asyncio.timeout(60):
                while len(await asyncio.to_thread(gateway.inbox)) < 100:  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            assert gateway.inbox() == []

    asyncio.run(main())


def test_the_example_of_the_readme(gateway: RealGateway, tmp_path: Path) -> None:
    (example,) = re.findall(r"<!-- transfer.py -->\n```python\n(.*?)```", README.read_text(), re.S)
    file = tmp_path / "transfer.py"
    file.write_text(example)
    for verdict, expected in (("approve", "sent 500 to DE02"), ("reject", "Nothing was executed")):
        with subprocess.Popen(
            [sys.executable, str(file)], env=gateway.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            asyncio.run(gateway.decide(verdict))
            output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert expected in output


def test_a_pairing_that_has_ended(gateway: RealGateway, client: Client) -> None:
    gateway.approver("unpair", "demo-enforcer")

    async def main() -> None:
        async with client:
            with pytest.raises(NotPaired):
                await client.ask(CALL, timeout="10s")

    asyncio.run(main())
