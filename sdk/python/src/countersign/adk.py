"""Google ADK agents: `LlmAgent(…, before_tool_callback=approval_callback(client, tools=[…]))`.

A call of a gated tool runs only after a signed approval of its arguments. The callback must be the
last of its agent: a later one could change the call, so calls are denied then. It gates the tools
of one agent. `gate_agents` gives it to inner agents too, and a call or transfer to an inner agent
without it is denied. Tools that are nodes of a workflow belong to no agent: use
`approval_required` on their functions.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from .client import DEFAULT_TIMEOUT, Client
from .durations import Duration
from .errors import Denied
from .tool_gate import ToolGate, _denying, gated_names

try:
    from google.adk.agents import BaseAgent, LlmAgent
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
except ImportError as error:
    raise ImportError("countersign.adk needs: pip install countersign[adk]") from error

TESTED_VERSIONS = "google-adk>=2.13.0,<2.14"

ToolCallback = Callable[[BaseTool, dict[str, Any], ToolContext], Awaitable[dict[str, Any] | None]]


def approval_callback(
    client: Client,
    tools: Sequence[BaseTool | Callable[..., Any] | str] | None = None,
    *,
    timeout: Duration = DEFAULT_TIMEOUT,
    approver: str | None = None,
    repo_ref: str | None = None,
) -> ToolCallback:
    """Asks before a gated tool runs; without `tools`, before every tool.

    ADK runs the tool if and only if the callback returns None. The model reads a denial as the
    tool's response.
    """
    gate = ToolGate(client, "adk", timeout, approver, repo_ref)
    gated = None if tools is None else gated_names(tools)

    async def ask(
        tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        try:
            async with _denying():
                _check_inner_agents(ask, tool, args, tool_context)
                if gated is None or tool.name in gated:
                    _check_last(ask, tool_context)
                    approved = await gate.ask(tool.name, args)
                    # The tool gets this dictionary. Others may have kept it, or parts of it.
                    args.clear()
                    args.update(approved)
        except Denied as denied:
            return {"error": denied.for_model()}
        return None

    return ask


def gate_agents(agent: BaseAgent, callback: ToolCallback) -> None:
    """Gives the callback to an agent and to all agents in it, after the ones that they have."""
    if not isinstance(agent, BaseAgent):
        raise TypeError("expected an agent")
    for each in _agents_in(agent):
        if callback not in each.canonical_before_tool_callbacks:
            each.before_tool_callback = [*each.canonical_before_tool_callbacks, callback]


def _agents_in(agent: object) -> Iterator[LlmAgent]:
    if isinstance(agent, LlmAgent):
        yield agent
        for tool in agent.tools:
            yield from _agents_in(getattr(tool, "agent", None))
    if isinstance(agent, BaseAgent):
        for inner in agent.sub_agents:
            yield from _agents_in(inner)


def _check_last(callback: ToolCallback, tool_context: ToolContext) -> None:
    agent = tool_context.get_invocation_context().agent
    if not isinstance(agent, LlmAgent) or agent.canonical_before_tool_callbacks[-1] != callback:
        raise Denied("the approval must be the last before_tool_callback of the agent")


def _check_inner_agents(
    callback: ToolCallback, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
) -> None:
    inner: object = getattr(tool, "agent", None)
    if tool.name == "transfer_to_agent":
        caller = tool_context.get_invocation_context().agent
        if not isinstance(caller, BaseAgent):
            raise Denied("the caller of the tool is no agent")
        inner = caller.root_agent.find_agent(str(args.get("agent_name")))
    for agent in _agents_in(inner):
        if callback not in agent.canonical_before_tool_callbacks:
            raise Denied(f"the agent {agent.name} has no approval callback")
