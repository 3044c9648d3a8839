"""OpenAI Agents SDK: `Agent(…, tools=[gate(tool, client)])`.

A call of a gated tool runs only after a signed approval of its arguments. The gate belongs to the
tool: use `gate` for every agent, sub-agent and later addition that gets the tool.
"""

import copy
import json
from typing import TYPE_CHECKING, Any, Unpack

from .client import DEFAULT_TIMEOUT, Client
from .durations import Duration
from .errors import Denied
from .pending import Approved, Outcome, StillWaiting
from .rule_options import RuleOptions, several_approvals
from .tool_gate import ToolGate, _denying, arguments_of

try:
    from agents import FunctionTool
except ImportError as error:
    needed = "countersign.openai_agents needs: pip install countersign[openai-agents]"
    raise ImportError(needed) from error

if TYPE_CHECKING:
    from agents import RunState, ToolApprovalItem
    from agents.tool_context import ToolContext

TESTED_VERSIONS = "openai-agents>=0.24.0,<0.25"


def gate(
    tool: FunctionTool,
    client: Client,
    *,
    timeout: Duration = DEFAULT_TIMEOUT,
    durable: bool = False,
    approver: str | None = None,
    repo_ref: str | None = None,
    **rule: Unpack[RuleOptions],
) -> FunctionTool:
    """A copy of the tool that asks before it runs. The model reads the text of a denial.

    With `durable`, the run is interrupted. Store its state, and call `settle` before it goes on.
    `timeout` includes the time until then.
    """
    if not isinstance(tool, FunctionTool):
        raise TypeError("expected a function tool")
    if isinstance(tool.on_invoke_tool, _GatedInvoker):
        raise TypeError("the tool is gated already")
    gated = copy.copy(tool)
    asking = ToolGate(
        client, "openai-agents", timeout, approver, repo_ref, several_approvals(**rule), durable
    )
    gated.on_invoke_tool = _GatedInvoker(tool, asking, durable)
    if durable:
        gated.needs_approval = True
    return gated


class _GatedInvoker:
    """Runs the tool with the arguments that were approved."""

    def __init__(self, tool: FunctionTool, gate: ToolGate, is_durable: bool) -> None:
        self.tool, self.gate, self.is_durable = tool, gate, is_durable

    async def __call__(self, context: "ToolContext[Any]", text: str) -> Any:
        # `tool_namespace` copies the tool that has this invoker, so only the call says which it is.
        name = _qualified(self.tool.name, context.tool_namespace)
        try:
            async with _denying(name):
                args = arguments_of(text)
                if self.is_durable:
                    # The SDK's own approval counts for nothing. This waits for the signed one.
                    key = _key(context.tool_call_id)
                    taken = await self.gate.wait_and_take(name, args, key)
                else:
                    taken = await self.gate.ask(name, args)
        except Denied as denied:
            return denied.for_model()
        return await self.tool.on_invoke_tool(context, json.dumps(taken))


async def settle(state: "RunState[Any, Any]") -> bool:
    """Approves or rejects the interruptions of durable gates, as people decided.

    False if some are undecided yet: settle again later. The wrapped tool verifies each decision
    once more. Interruptions of other tools are left alone.
    """
    is_settled = True
    for item in state.get_interruptions():
        invoker = _invoker(item)
        if invoker is None or not invoker.is_durable:
            continue
        outcome = await _outcome(invoker, item)
        if isinstance(outcome, StillWaiting):
            is_settled = False
        elif isinstance(outcome, Approved):
            state.approve(item)
        else:
            state.reject(item, rejection_message=outcome.for_model())
    return is_settled


async def _outcome(invoker: _GatedInvoker, item: "ToolApprovalItem") -> Outcome:
    name = _qualified(invoker.tool.name, item.tool_namespace)
    try:
        async with _denying(name):
            args = arguments_of(getattr(item.raw_item, "arguments", None))
            key = _key(getattr(item.raw_item, "call_id", None))
            return await invoker.gate.outcome(name, args, key)
    except Denied as denied:
        return denied


def _key(call_id: str | None) -> str:
    if not call_id:
        raise Denied("a durable request needs the id of the tool call")
    return f"openai-agents/{call_id}"


def _qualified(name: str, namespace: str | None) -> str:
    """Tools of one name in several namespaces are different tools."""
    return f"{namespace}.{name}" if namespace else name


def _invoker(item: "ToolApprovalItem") -> _GatedInvoker | None:
    # The SDK calls a tool that is loaded later, and has no namespace, by its name as one.
    namespace = None if item.tool_namespace == item.tool_name else item.tool_namespace
    name = _qualified(item.tool_name or "", namespace)
    # As the SDK does: of tools with the same name, the last one runs.
    for tool in reversed(item.agent.tools):
        if isinstance(tool, FunctionTool) and tool.qualified_name == name:
            invoker = tool.on_invoke_tool
            return invoker if isinstance(invoker, _GatedInvoker) else None
    return None
