"""LangChain agents: `create_agent(…, middleware=[ApprovalMiddleware(client, tools=[…])])`.

A call of a gated tool runs only after a signed approval of its arguments. The gate is by name, so
a tool that joins the agent later under a gated name is gated too. Put this middleware last in the
list: the ones after it stand between the approval and the tool, and could change the call.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from .client import DEFAULT_TIMEOUT, Client
from .durations import Duration
from .errors import Denied
from .pending import StillWaiting
from .rule_options import RuleOptions, several_approvals
from .tool_gate import ToolGate, gated_names

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.messages import ToolMessage
    from langgraph.types import Command, interrupt
except ImportError as error:
    raise ImportError("countersign.langchain needs: pip install countersign[langchain]") from error

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain.tools import BaseTool

TESTED_VERSIONS = "langchain>=1.4.7,<1.6"


class ApprovalMiddleware(AgentMiddleware[Any, Any, Any]):
    """Asks before a gated tool runs. The model reads the text of a denial.

    With `durable`, a run waits by an interrupt, so it needs a checkpointer and a thread id. Resume
    it with any value, also in another process: the decision is fetched and verified, and the
    resume value is ignored. `timeout` includes the time until then.
    """

    def __init__(
        self,
        client: Client,
        tools: "Sequence[BaseTool | Callable[..., Any] | str]",
        *,
        timeout: Duration = DEFAULT_TIMEOUT,
        durable: bool = False,
        approver: str | None = None,
        repo_ref: str | None = None,
        **rule: Unpack[RuleOptions],
    ) -> None:
        super().__init__()
        self._gate = ToolGate(
            client, "langchain", timeout, approver, repo_ref, several_approvals(**rule), durable
        )
        self._gated = gated_names(tools)
        self._is_durable = durable

    def wrap_tool_call(
        self,
        request: "ToolCallRequest",
        handler: "Callable[[ToolCallRequest], ToolMessage | Command[Any]]",
    ) -> "ToolMessage | Command[Any]":
        call = request.tool_call
        if call["name"] not in self._gated:
            return handler(request)
        try:
            if self._is_durable:
                key = _key(request)
                taken = self._gate.take_sync(call["name"], call["args"], key)
                while isinstance(taken, StillWaiting):
                    interrupt({"requestId": taken.request_id})
                    taken = self._gate.take_sync(call["name"], call["args"], key)
            else:
                taken = self._gate.ask_sync(call["name"], call["args"])
        except Denied as denied:
            return _denial(request, denied)
        return handler(request.override(tool_call={**call, "args": taken}))

    async def awrap_tool_call(
        self,
        request: "ToolCallRequest",
        handler: "Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]",
    ) -> "ToolMessage | Command[Any]":
        call = request.tool_call
        if call["name"] not in self._gated:
            return await handler(request)
        try:
            if self._is_durable:
                key = _key(request)
                taken = await self._gate.take(call["name"], call["args"], key)
                while isinstance(taken, StillWaiting):
                    interrupt({"requestId": taken.request_id})
                    taken = await self._gate.take(call["name"], call["args"], key)
            else:
                taken = await self._gate.ask(call["name"], call["args"])
        except Denied as denied:
            return _denial(request, denied)
        return await handler(request.override(tool_call={**call, "args": taken}))


def _key(request: "ToolCallRequest") -> str:
    configurable = request.runtime.config.get("configurable", {})
    thread, call = configurable.get("thread_id"), request.tool_call["id"]
    if not thread or not call:
        raise Denied("a durable request needs a thread id and the id of the tool call")
    return f"langchain/{thread}/{call}"


def _denial(request: "ToolCallRequest", denied: Denied) -> "ToolMessage":
    call = request.tool_call
    return ToolMessage(
        denied.for_model(), tool_call_id=call["id"] or "", name=call["name"], status="error"
    )
