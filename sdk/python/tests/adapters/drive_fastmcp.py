"""FastMCP: the middleware of a server, called by FastMCP's own client."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import uvicorn
from entries import until
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from harness import AdapterDriver, RunReport, Scene, ToolCall, World

from countersign.fastmcp import ApprovalMiddleware
from countersign.testing import FakeApprover


def tools_of(scene: Scene) -> list[Any]:
    def pay(amount: Any) -> dict[str, Any]:
        return scene.world.pay(amount)

    def look(place: str) -> str:
        return scene.world.look(place)

    return [pay, look]


def server_of(scene: Scene, tools: Sequence[Any], **options: Any) -> FastMCP:
    server: FastMCP = FastMCP("bank")
    for tool in tools:
        server.tool(tool)
    if scene.is_gated:
        approvals = ApprovalMiddleware(scene.client, ["pay"], timeout=scene.timeout, **options)
        server.add_middleware(approvals)
    return server


def text_of(content: Sequence[Any]) -> str:
    return " ".join(part.text for part in content)


@asynccontextmanager
async def served(server: FastMCP) -> AsyncGenerator[str]:
    """The address of the server, over HTTP on loopback."""
    config = uvicorn.Config(server.http_app(), port=0, log_level="error", ws="none")
    host = uvicorn.Server(config)
    running = asyncio.ensure_future(host.serve())
    await until(lambda: host.started)
    port = host.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        host.should_exit = host.force_exit = True
        await running


async def call_in_memory(server: FastMCP | str, calls: Sequence[ToolCall]) -> RunReport:
    """As an agent does: all calls at once, in one session."""
    async with Client(server) as client:
        made = (client.call_tool(it.name, dict(it.args), raise_on_error=False) for it in calls)
        results = await asyncio.gather(*made)
    kept = [(it.content, it.structured_content, it.is_error) for it in results]
    return RunReport([text_of(it.content) for it in results], kept)


async def call_directly(server: FastMCP, calls: Sequence[ToolCall]) -> RunReport:
    """As another part of the same program does, without a session."""
    report = RunReport()
    for call in calls:
        try:
            result = await server.call_tool(call.name, dict(call.args))
            report.texts.append(text_of(result.content))
            report.results.append((result.content, result.structured_content))
        except ToolError as error:
            report.texts.append(str(error))
            report.results.append(error)
    return report


class FastmcpDriver(AdapterDriver):
    name = "fastmcp"
    entries = ("async", "direct", "http")
    cancellable = ("async", "direct", "http")
    nestings = ("mounted", "mounted with its own gate", "called by a tool")
    gaps: ClassVar[dict[str, str]] = {
        "10 hook": "the middleware is around the execution; no question is asked before it",
        "13": "a call waits in the memory of the server, which stores nothing",
        "14": "a call waits in the memory of the server, which stores nothing",
    }

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        made = [ToolCall(it.name, dict(it.args)) for it in calls]

        def tamper(amount: Any) -> None:
            for call in made:
                call.args["amount"] = amount  # type: ignore[index]

        scene.tampers.append(tamper)
        server = server_of(scene, tools_of(scene))
        # The client writes null for a number that JSON has not: only the program itself can give it.
        if entry == "http":
            async with served(server) as address:
                return await call_in_memory(address, made)
        if entry == "direct" or any(it.args.get("amount") != it.args.get("amount") for it in made):
            return await call_directly(server, made)
        return await call_in_memory(server, made)

    async def run_with_late_tool(self, scene: Scene, call: ToolCall) -> RunReport:
        pay, look = tools_of(scene)
        server = server_of(scene, [look])
        server.tool(pay)
        return await call_in_memory(server, [call])

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        if nesting == "called by a tool":
            server = server_of(scene, tools_of(scene))

            @server.tool
            async def delegate(context: Context) -> Any:
                return await context.fastmcp.call_tool(call.name, dict(call.args))

            return await call_in_memory(server, [ToolCall("delegate", {})])
        if nesting == "mounted":
            inner: FastMCP = FastMCP("inner")
            inner.tool(tools_of(scene)[0])
            outer = server_of(scene, [])
            outer.mount(inner)
            return await call_in_memory(outer, [call])
        outer = FastMCP("outer")
        outer.mount(server_of(scene, tools_of(scene)), namespace="bank")
        return await call_in_memory(outer, [ToolCall(f"bank_{call.name}", call.args)])


DRIVERS = [FastmcpDriver()]


def gated_server(scene: Scene, tools: list[str] | None = None) -> FastMCP:
    server = server_of(scene, tools_of(scene))
    server.add_middleware(ApprovalMiddleware(scene.client, tools))
    return server


def rejecting() -> tuple[FakeApprover, Scene]:
    approver = FakeApprover()
    return approver, Scene(approver, World(), is_gated=False)
