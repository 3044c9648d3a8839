"""FastMCP: no middleware, extension or mounted server changes a call after its approval."""

import asyncio
from typing import Any

import pytest
from drive_fastmcp import call_in_memory, rejecting, server_of, tools_of
from fastmcp import FastMCP
from fastmcp.apps.app import FastMCPApp
from fastmcp.exceptions import ToolError
from fastmcp.server.extensions import ServerExtension
from fastmcp.server.middleware import Middleware
from fastmcp.server.providers.addressing import hashed_backend_name
from fastmcp.server.transforms import ToolTransform
from fastmcp.tools.tool_transform import ToolTransformConfig
from harness import Scene, ToolCall, World, pay

from countersign.fastmcp import ApprovalMiddleware
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters


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
