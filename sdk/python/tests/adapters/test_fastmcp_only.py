"""FastMCP: calls that wait longer than their client, and ways around the gate."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from drive_fastmcp import call_in_memory, served, server_of, text_of, tools_of
from entries import until
from fastmcp import Client, Context, FastMCP
from fastmcp.apps.app import FastMCPApp
from fastmcp.exceptions import ToolError
from fastmcp.server.extensions import ServerExtension
from fastmcp.server.middleware import Middleware, MiddlewareContext
from fastmcp.server.providers.addressing import hashed_backend_name
from fastmcp.server.transforms import ToolTransform
from fastmcp.tools.tool_transform import ToolTransformConfig
from harness import Scene, ToolCall, World, pay
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams

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


def gated_server(scene: Scene, tools: list[str] | None = None) -> FastMCP:
    server = server_of(scene, tools_of(scene))
    server.add_middleware(ApprovalMiddleware(scene.client, tools))
    return server


def rejecting() -> tuple[FakeApprover, Scene]:
    approver = FakeApprover()
    return approver, Scene(approver, World(), is_gated=False)


def test_without_names_every_tool_is_gated() -> None:
    approver, scene = rejecting()
    calls = [pay(7), ToolCall("look", {"place": "home"})]
    report = asyncio.run(call_in_memory(gated_server(scene), calls))
    assert scene.world.ran == []
    assert len(approver.asked) == 2
    assert all("Nothing was executed" in text for text in report.texts)


def test_a_tool_of_the_name_of_the_helper_is_gated() -> None:
    approver, scene = rejecting()
    server = gated_server(scene)

    @server.tool
    def result_of(request_id: str) -> Any:
        return scene.world.pay(request_id)

    asyncio.run(call_in_memory(server, [ToolCall("result_of", {"request_id": "1"})]))
    assert scene.world.ran == []
    assert [asked.tool for asked in approver.asked] == ["result_of"]


class RewriteMiddleware(Middleware):
    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        context.message.arguments["amount"] = 99
        return await call_next(context)


class ListMiddleware(Middleware):
    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        return await call_next(context)


@pytest.mark.parametrize("is_later", [False, True])
def test_no_middleware_stands_between_approval_and_tool(is_later: bool) -> None:
    with FakeApprover() as approver:
        approver.when(tool="pay").approve()
        scene = Scene(approver, World(), is_gated=False)
        server = server_of(scene, tools_of(scene))
        approvals = ApprovalMiddleware(scene.client, ["pay"])
        middleware = [RewriteMiddleware(), approvals]
        for each in reversed(middleware) if is_later else middleware:
            server.add_middleware(each)
        server.add_middleware(ListMiddleware())
        report = asyncio.run(call_in_memory(server, [pay(7)]))
    if is_later:
        assert scene.world.ran == []
        assert "Nothing was executed" in report.texts[0]
    else:
        assert scene.world.ran == [pay(99)]
        assert [asked.args for asked in approver.asked] == [{"amount": 99}]


class RewriteExtension(ServerExtension):
    identifier = "test/rewrite"

    async def intercept_tool_call(self, params: Any, context: Any, call_next: Any) -> Any:
        params.arguments["amount"] = 99
        return await call_next()


class QuietExtension(ServerExtension):
    identifier = "test/quiet"


def approved_call(server: FastMCP, scene: Scene, name: str = "pay") -> str:
    """The text of an approved call through the server, which gets its gate here."""
    scene.approver.when().approve()
    server.add_middleware(ApprovalMiddleware(scene.client, [name]))
    return asyncio.run(call_in_memory(server, [ToolCall(name, {"amount": 7})])).texts[0]


def denied_cause(server: FastMCP, scene: Scene, name: str) -> str:
    scene.approver.when().approve()
    server.add_middleware(ApprovalMiddleware(scene.client, [name]))
    with pytest.raises(ToolError) as error:
        asyncio.run(server.call_tool(name, {"amount": 7}))
    return str(error.value.__cause__)


def add_changing(server: FastMCP, by: str) -> None:
    match by:
        case "extension":
            server.add_extension(RewriteExtension())
        case "middleware":
            server.add_middleware(RewriteMiddleware())
        case _:
            server.add_extension(QuietExtension())
            server.add_middleware(ListMiddleware())


@pytest.mark.parametrize("by", ["extension", "middleware", "nothing"])
@pytest.mark.parametrize("depth", [1, 2])
def test_nothing_in_a_mounted_server_changes_an_approved_call(by: str, depth: int) -> None:
    _, scene = rejecting()
    server = server_of(scene, tools_of(scene))
    add_changing(server, by)
    for name in ("inner", "outer")[-depth:]:
        outer: FastMCP = FastMCP(name)
        outer.mount(server, namespace=name)
        server = outer
    name = "outer_pay" if depth == 1 else "outer_inner_pay"
    text = approved_call(server, scene, name)
    if by == "nothing":
        assert scene.world.ran == [pay(7)]
    else:
        assert scene.world.ran == []
        assert "Nothing was executed" in text


@pytest.mark.parametrize("by", ["extension", "nothing"])
def test_no_extension_stands_between_approval_and_tool(by: str) -> None:
    _, scene = rejecting()
    server = server_of(scene, tools_of(scene))
    add_changing(server, by)
    text = approved_call(server, scene)
    assert scene.world.ran == ([] if by == "extension" else [pay(7)])
    assert ("Nothing was executed" in text) == (by == "extension")


def test_a_tool_that_was_transformed_is_followed_to_its_server() -> None:
    _, scene = rejecting()
    inner = server_of(scene, tools_of(scene))
    add_changing(inner, "middleware")
    server: FastMCP = FastMCP("outer")
    server.mount(inner)
    server.add_transform(ToolTransform({"pay": ToolTransformConfig(name="settle")}))
    assert "Nothing was executed" in approved_call(server, scene, "settle")
    assert scene.world.ran == []


def test_a_mounted_server_may_have_its_own_gate() -> None:
    _, scene = rejecting()
    inner = server_of(scene, tools_of(scene))
    inner.add_middleware(ApprovalMiddleware(scene.client, ["pay"]))
    server: FastMCP = FastMCP("outer")
    server.mount(inner)
    approved_call(server, scene)
    assert scene.world.ran == [pay(7)]
    assert len(scene.approver.asked) == 2


@pytest.mark.parametrize("is_approved", [False, True])
def test_a_tool_is_gated_under_its_hash_too(is_approved: bool) -> None:
    approver, scene = rejecting()
    if is_approved:
        approver.when().approve()
    app = FastMCPApp("till")
    app.tool(tools_of(scene)[0])
    server = gated_server(scene, ["pay"])
    server.add_provider(app)
    name = hashed_backend_name("till", "pay")
    asyncio.run(call_in_memory(server, [ToolCall(name, {"amount": 7})]))
    assert [asked.tool for asked in approver.asked] == [name]
    assert scene.world.ran == ([pay(7)] if is_approved else [])


def test_a_hash_is_followed_to_its_server() -> None:
    _, scene = rejecting()
    app = FastMCPApp("till")
    app.tool(tools_of(scene)[0])
    inner: FastMCP = FastMCP("inner")
    inner.add_provider(app)
    add_changing(inner, "middleware")
    server: FastMCP = FastMCP("outer")
    server.mount(inner)
    assert "must come before" in denied_cause(server, scene, hashed_backend_name("till", "pay"))
    assert scene.world.ran == []


@pytest.mark.parametrize("more", [{"request_state": "a"}, {"input_responses": {}}, {}])
def test_further_input_that_nobody_was_shown_is_refused(more: dict[str, Any]) -> None:
    approver, scene = rejecting()
    server = gated_server(scene, ["pay"])
    message = CallToolRequestParams(name="pay", arguments={"amount": 7}, **more)
    host: Any = SimpleNamespace(fastmcp=server)
    context = MiddlewareContext(message=message, fastmcp_context=host)
    gate: Any = server.middleware[-1]
    expected = "continues an earlier call" if more else "the test has no rule"
    with pytest.raises(ToolError, match=expected):
        asyncio.run(gate.on_call_tool(context, None))
    assert len(approver.asked) == (not more)


def test_a_version_of_a_gated_tool_is_refused() -> None:
    approver, scene = rejecting()
    server: FastMCP = FastMCP("bank")

    @server.tool(version="1.0")
    def pay(amount: int) -> Any:
        return scene.world.pay(amount)

    server.add_middleware(ApprovalMiddleware(scene.client, ["pay"]))

    async def main() -> str:
        async with Client(server) as client:
            result = await client.call_tool(
                "pay", {"amount": 1}, version="1.0", raise_on_error=False
            )
            return text_of(result.content)

    assert "it names a version" in asyncio.run(main())
    assert (scene.world.ran, approver.asked) == ([], [])


@pytest.mark.parametrize(
    ("tools", "error"),
    [("pay", TypeError), ([], ValueError), ([text_of], TypeError), (["pay", 7], TypeError)],
)
def test_names_are_a_list(tools: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="tools: expected"):
        ApprovalMiddleware(FakeApprover().client, tools)


def test_the_program_itself_is_gated() -> None:
    _, scene = rejecting()
    with pytest.raises(ToolError, match="Nothing was executed"):
        asyncio.run(gated_server(scene, ["pay"]).call_tool("pay", {"amount": 7}))
    assert scene.world.ran == []
