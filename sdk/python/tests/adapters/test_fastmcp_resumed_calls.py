"""FastMCP: calls that wait longer than their client."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from drive_fastmcp import served, server_of, text_of, tools_of
from entries import until
from fastmcp import Client, Context
from fastmcp.exceptions import ToolError
from harness import Scene, World, pay
from mcp.shared.exceptions import MCPError

from countersign.fastmcp import ApprovalMiddleware
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters


class ServerSession:
    """A server whose calls are answered at once, and a client of it."""

    def __init__(self, scene: Scene, client: Client[Any], approvals: ApprovalMiddleware) -> None:
        self.scene = scene
        self.approvals = approvals
        self._client = client

    async def call(self, name: str, **args: Any) -> Any:
        return await self._client.call_tool(name, args, raise_on_error=False)

    async def waiting_id(self, amount: int) -> str:
        text = text_of((await self.call("pay", amount=amount)).content)
        assert "Nothing was executed yet. Do not repeat this call" in text
        found = re.search(r'request_id "([^"]+)"', text)
        assert found is not None
        return found[1]

    async def result_of(self, request_id: str) -> str:
        return text_of((await self.call("result_of", request_id=request_id)).content)


def resuming(
    work: Callable[[ServerSession], Awaitable[None]], gated: list[str] | None = None, **options: Any
) -> Scene:
    async def main() -> Scene:
        with FakeApprover() as approver:
            approver.when(tool="pay").wait()
            scene = Scene(approver, World(), is_gated=False)
            server = server_of(scene, tools_of(scene))
            approvals = ApprovalMiddleware(
                scene.client, gated, **({"answer_within": "0s"} | options)
            )
            server.add_middleware(approvals)
            server.tool(approvals.result_of)

            @server.tool
            async def delegate(context: Context) -> Any:
                return await context.fastmcp.call_tool("pay", {"amount": 7})

            async with Client(server) as client:
                await work(ServerSession(scene, client, approvals))
            return scene

    return asyncio.run(main())


@pytest.mark.parametrize("gated", [None, ["pay"]])
def test_a_call_is_resumed_once(gated: list[str] | None) -> None:
    async def work(server: ServerSession) -> None:
        world, (approver, request_id) = server.scene.world, (server.scene.approver, "")
        request_id = await server.waiting_id(7)
        assert "Nothing was executed yet" in await server.result_of(request_id)
        assert world.ran == []
        approver.asked[0].approve()
        assert world.ran == []
        result = await server.call("result_of", request_id=request_id)
        assert (result.structured_content, result.is_error) == ({"paid": 7}, False)
        assert world.ran == [pay(7)]
        again = await server.result_of(request_id)
        assert "It may have been executed before" in again
        assert "Nothing was executed" not in again
        assert world.ran == [pay(7)]
        assert [asked.args for asked in approver.asked] == [{"amount": 7}]

    resuming(work, gated)


def test_a_call_that_is_resumed_twice_at_once_runs_once() -> None:
    async def work(server: ServerSession) -> None:
        request_id = await server.waiting_id(7)
        server.scene.approver.asked[0].approve()
        texts = await asyncio.gather(*(server.result_of(request_id) for _ in range(4)))
        assert sum("paid" in text for text in texts) == 1
        assert sum("This call was denied" in text for text in texts) == 3

    assert resuming(work).world.ran == [pay(7)]


def test_a_rejection_reaches_a_resumed_call() -> None:
    async def work(server: ServerSession) -> None:
        request_id = await server.waiting_id(7)
        server.scene.approver.asked[0].reject("not on Friday")
        assert "not on Friday" in await server.result_of(request_id)

    assert resuming(work).world.ran == []


@pytest.mark.parametrize("spoil", ["forge", "down"])
def test_a_gateway_cannot_let_a_resumed_call_pass(spoil: str) -> None:
    async def work(server: ServerSession) -> None:
        request_id = await server.waiting_id(7)
        server.scene.approver.asked[0].reject("no")
        getattr(server.scene.approver.gateway, spoil)()
        assert "Nothing was executed" in await server.result_of(request_id)

    assert resuming(work, timeout="3s").world.ran == []


def test_an_unknown_request_id_runs_nothing() -> None:
    async def work(server: ServerSession) -> None:
        text = await server.result_of("01a1edf9-c730-7dce-8bec-83b62e72")
        assert "It was not executed again" in text
        assert "Nothing was executed" not in text

    scene = resuming(work)
    assert (scene.world.ran, scene.approver.asked) == ([], [])


def test_waiting_calls_end_with_their_question() -> None:
    async def work(server: ServerSession) -> None:
        request_id = await server.waiting_id(7)
        server.scene.approver.asked[0].approve()
        await asyncio.sleep(2.2)
        assert "This call was denied" in await server.result_of(request_id)

    assert resuming(work, timeout="2s").world.ran == []


def test_an_approval_resumes_its_own_call_only() -> None:
    async def work(server: ServerSession) -> None:
        first, second = await server.waiting_id(1), await server.waiting_id(2)
        server.scene.approver.asked[1].approve()
        assert "Nothing was executed yet" in await server.result_of(first)
        assert "paid" in await server.result_of(second)

    assert resuming(work).world.ran == [pay(2)]


def test_a_decision_in_time_needs_no_second_call() -> None:
    async def work(server: ServerSession) -> None:
        running = asyncio.ensure_future(server.call("pay", amount=7))
        await until(lambda: server.scene.approver.asked)
        server.scene.approver.asked[0].approve()
        assert (await running).structured_content == {"paid": 7}

    assert resuming(work, answer_within="5s").world.ran == [pay(7)]


def test_a_client_that_is_gone_withdraws_its_call() -> None:
    async def work(server: ServerSession) -> None:
        running = asyncio.ensure_future(server.call("pay", amount=7))
        await until(lambda: server.scene.approver.asked)
        await asyncio.sleep(0.05)
        running.cancel()
        await until(lambda: server.scene.approver.asked[0].state == "withdrawn")

    assert resuming(work, answer_within="5s").world.ran == []


@pytest.mark.parametrize("is_http", [False, True])
def test_a_client_that_times_out_withdraws_its_call(is_http: bool) -> None:
    async def main() -> World:
        with FakeApprover() as approver:
            approver.when(tool="pay").wait()
            scene = Scene(approver, World())
            server = server_of(scene, tools_of(scene))
            async with served(server) as address, Client(address if is_http else server) as client:
                with pytest.raises((ToolError, MCPError), match=r"(?i)timed out"):
                    await client.call_tool("pay", {"amount": 7}, timeout=1)
                # The server goes on, and so does the person.
                await until(lambda: approver.asked[0].state == "withdrawn")
                approver.asked[0].approve()
                await asyncio.sleep(0.4)
            return scene.world

    assert asyncio.run(main()).ran == []


def test_a_resumed_call_resumes_no_call_inside_it() -> None:
    async def work(server: ServerSession) -> None:
        approver = server.scene.approver
        approver.when(tool="delegate").wait()
        text = text_of((await server.call("delegate")).content)
        approver.asked[0].approve()
        request_id = text.split('"')[1]
        assert "This call waits for an approval" in await server.result_of(request_id)
        assert [asked.tool for asked in approver.asked] == ["delegate", "pay"]

    assert resuming(work).world.ran == []


def test_calls_that_have_ended_are_forgotten() -> None:
    async def work(server: ServerSession) -> None:
        calls = server.approvals._waiting
        request_id = await server.waiting_id(7)
        assert calls.find(request_id) is not None
        await asyncio.sleep(2.1)
        # Whether or not their clients ever come back.
        latest = await server.waiting_id(8)
        assert list(calls._calls) == [latest]
        await asyncio.sleep(2.1)
        assert calls.find(latest) is None

    resuming(work, timeout="2s")
