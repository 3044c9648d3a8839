"""FastMCP servers: `server.add_middleware(ApprovalMiddleware(client, tools=[…]))`.

A call of a gated tool runs only after a signed approval of its arguments. Gated names are those
that this server lists. Middleware that handles calls must come before this one. After it, in an
extension or in a mounted server, it could change an approved call, and calls are denied.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Unpack

from .client import DEFAULT_TIMEOUT, Client
from .durations import Duration, seconds
from .errors import Denied, NotAskable
from .pending_calls import PendingCall, PendingCalls, UnknownCall
from .rule_options import RuleOptions, several_approvals
from .tool_gate import ToolGate, _denying, gated_names

try:
    from fastmcp import FastMCP
    from fastmcp.exceptions import ToolError
    from fastmcp.server.dependencies import get_context
    from fastmcp.server.extensions import ServerExtension
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.server.providers.addressing import parse_hashed_backend_name
    from fastmcp.server.providers.fastmcp_provider import FastMCPProviderTool
    from fastmcp.tools.base import Tool, ToolResult
    from fastmcp.tools.tool_transform import TransformedTool
    from fastmcp.utilities.versions import VersionSpec
    from mcp_types import CallToolRequestParams
except ImportError as error:
    raise ImportError("countersign.fastmcp needs: pip install countersign[fastmcp]") from error

TESTED_VERSIONS = "fastmcp>=4.1.2,<4.2"
_CALL_HOOKS = ("__call__", "_dispatch_handler", "on_message", "on_request", "on_call_tool")
# The call that `result_of` resumes.
_RESUMED: ContextVar[PendingCall | None] = ContextVar("countersign_resumed", default=None)


class ApprovalMiddleware(Middleware):
    """Asks before a gated tool runs; without `tools`, before every tool.

    For clients that end calls early, give `answer_within` less than their timeout, and add the
    tool: `server.tool(approvals.result_of)`. A call that is not decided by then is answered with a
    request id. It runs once, when the client calls `result_of` after the approval.
    """

    def __init__(
        self,
        client: Client,
        tools: Sequence[str] | None = None,
        *,
        timeout: Duration = DEFAULT_TIMEOUT,
        answer_within: Duration | None = None,
        approver: str | None = None,
        repo_ref: str | None = None,
        **rule: Unpack[RuleOptions],
    ) -> None:
        # A function can be listed under another name than its own.
        if tools is not None and not all(isinstance(name, str) for name in tools):
            raise TypeError("tools: expected names")
        terms, is_short = several_approvals(**rule), answer_within is not None
        self._gate = ToolGate(client, "fastmcp", timeout, approver, repo_ref, terms, is_short)
        self._tools = None if tools is None else gated_names(tools)
        self._waiting = PendingCalls(self._gate, seconds("answer_within", answer_within or 0))
        self._can_wait = not is_short

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        resumed, message = _RESUMED.get(), context.message
        # Calls that the tool makes itself are not resumed ones.
        _RESUMED.set(None)
        try:
            async with _denying(message.name):
                if await self._is_gated(context):
                    arguments = await self._approved(message, resumed)
                    message = message.model_copy(update={"arguments": arguments})
        except Denied as denied:
            raise ToolError(denied.for_model()) from denied
        return await call_next(context.copy(message=message))

    async def result_of(self, request_id: str) -> ToolResult:
        """Waits for the approval of an earlier call, runs it, and returns its result."""
        waiting = self._waiting.find(request_id)
        if waiting is None:
            raise ToolError(UnknownCall(request_id).for_model())
        _RESUMED.set(waiting)
        # Through all middleware again, since another caller may have come.
        return await get_context().fastmcp.call_tool(waiting.name, waiting.arguments)

    async def _is_gated(self, context: MiddlewareContext[CallToolRequestParams]) -> bool:
        if context.fastmcp_context is None:
            raise Denied("the call has no server")
        server, name = context.fastmcp_context.fastmcp, context.message.name
        tool = await server.get_tool(name)
        if getattr(tool, "fn", None) == self.result_of:
            return False
        # A tool can be reached by a name that is not listed.
        if self._tools is not None and name not in self._tools and tool is not None:
            return False
        _check_unchanged(server, server.middleware[server.middleware.index(self) + 1 :])
        await _check_mounted(server, name)
        return True

    async def _approved(
        self, message: CallToolRequestParams, resumed: PendingCall | None
    ) -> dict[str, Any]:
        if message.input_responses is not None or message.request_state is not None:
            raise NotAskable("it continues an earlier call with further input")
        if message.meta is not None:
            raise NotAskable("it names a version of the tool")
        arguments = message.arguments or {}
        if self._can_wait:
            return await self._gate.ask(message.name, arguments)
        if resumed is None:
            return await self._waiting.ask(message.name, arguments)
        return await self._waiting.resume(resumed, message.name, arguments)


def _check_unchanged(server: FastMCP[Any], later: Sequence[Middleware]) -> None:
    """Denies if anything between the approval and the tool could change the call."""
    for each in later:
        if any(getattr(type(each), it) is not getattr(Middleware, it) for it in _CALL_HOOKS):
            raise Denied(f"{type(each).__name__} must come before the approval")
    for extension in server._extensions.values():
        if type(extension).intercept_tool_call is not ServerExtension.intercept_tool_call:
            raise Denied(f"the extension {extension.identifier} handles calls after the approval")


async def _check_mounted(server: FastMCP[Any], name: str) -> None:
    """A mounted server has middleware of its own, which runs after the approval."""
    tool = await _tool_of(server, name, None)
    while isinstance(tool, FastMCPProviderTool | TransformedTool):
        if isinstance(tool, TransformedTool):
            tool = tool.parent_tool
            continue
        inner: FastMCP[Any] = tool._server
        later = [it for it in inner.middleware if type(it) is not ApprovalMiddleware]
        _check_unchanged(inner, later)
        version = VersionSpec(eq=tool.version) if tool.version else None
        tool = await _tool_of(inner, tool._original_name or "", version)


async def _tool_of(server: FastMCP[Any], name: str, version: VersionSpec | None) -> Tool | None:
    """As the server finds it: by its listed name, or by its hash."""
    tool, hashed = await server.get_tool(name, version), parse_hashed_backend_name(name)
    return await server.get_tool_by_hash(*hashed) if tool is None and hashed else tool
