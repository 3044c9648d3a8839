"""A hundred questions at once against a real gateway of two nodes, one of which is killed meanwhile."""

import asyncio
import json
import logging
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from real_gateway import RealGateway, running

from countersign import Client, Rejected, approval_required

pytestmark = pytest.mark.gateway
QUESTIONS = 100
APPROVERS = 3


async def waiting_requests(gateway: RealGateway) -> list[str]:
    async with asyncio.timeout(120):
        while True:
            items = await asyncio.to_thread(gateway.inbox)
            if len(items) == QUESTIONS:
                return [str(item["requestId"]) for item in items]
            await asyncio.sleep(0.2)


def client_of_last_node(gateway: RealGateway, directory: Path) -> Client:
    """All of its questions wait at the node that is killed. The approver uses the other one."""
    profile = Path(gateway.profiles, "default.toml").read_text()
    urls = json.dumps(list(reversed(gateway.urls)))
    state = directory / "state"
    state.mkdir(mode=0o700)
    return Client.from_profile_text(
        re.sub(r"(?m)^urls = .*$", f"urls = {urls}", profile), state=state
    )


def test_each_call_runs_as_often_as_it_was_approved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ran: Counter[int] = Counter()
    approved: Counter[int] = Counter()

    async def main(gateway: RealGateway, client: Client) -> list[object]:
        async with client:

            @approval_required(client, timeout="4m")
            async def pay(amount: int) -> int:
                ran[amount] += 1
                return amount

            calls = [asyncio.ensure_future(pay(amount)) for amount in range(QUESTIONS)]
            waiting = await waiting_requests(gateway)
            os.kill(gateway.processes[1], signal.SIGKILL)

            async def decide() -> None:
                while waiting:
                    request_id = waiting.pop()
                    shown = await asyncio.to_thread(gateway.approver, "show", request_id, "--json")
                    amount = int(re.findall(r'"amount":\s*(\d+)', shown.stdout)[0])
                    verdict = "reject" if amount % 10 == 0 else "approve"
                    approved[amount] += verdict == "approve"
                    await asyncio.to_thread(gateway.approver, verdict, request_id, "--wait", "1s")

            await asyncio.gather(*(decide() for _ in range(APPROVERS)))
            return list(await asyncio.gather(*calls, return_exceptions=True))

    with caplog.at_level(logging.INFO, "countersign"), running(tmp_path, "--nodes", "2") as gateway:
        results = asyncio.run(main(gateway, client_of_last_node(gateway, tmp_path)))
    assert "gateway_away" in caplog.text
    for amount, result in enumerate(results):
        if amount % 10 == 0:
            assert isinstance(result, Rejected), result
        else:
            assert result == amount
    assert +ran == +approved
    assert sum(ran.values()) == QUESTIONS * 9 // 10
