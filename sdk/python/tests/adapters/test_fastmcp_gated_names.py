"""FastMCP: which calls are gated, by whatever name and from wherever they come."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from drive_fastmcp import call_in_memory, gated_server, rejecting, text_of, tools_of
from fastmcp import Client, FastMCP
from fastmcp.apps.app import FastMCPApp
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import MiddlewareContext
from fastmcp.server.providers.addressing import hashed_backend_name
from harness import ToolCall, pay
from mcp_types import CallToolRequestParams

from countersign.fastmcp import ApprovalMiddleware
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters


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
