"""Google ADK agents: `LlmAgent(…, before_tool_callback=approval_callback(client, tools=[…]))`.

A call of a gated tool runs only after a signed approval of its arguments. The callback must be the
last of its agent: a later one could change the call, so calls are denied then. It gates the tools
of one agent. `gate_agents` gives it to inner agents too, and a call or transfer that reaches an
inner agent without it is denied. Tools that are nodes of a workflow belong to no agent: use
`approval_required` on their functions.
"""

import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Unpack

from .client import DEFAULT_TIMEOUT, Client
from .durations import Duration
from .errors import Denied
from .rule_options import RuleOptions, several_approvals
from .tool_gate import ToolGate, _denying, gated_names

try:
    from google.adk.agents import BaseAgent, LlmAgent
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.adk.workflow import BaseNode
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
    **rule: Unpack[RuleOptions],
) -> ToolCallback:
    """Asks before a gated tool runs; without `tools`, before every tool.

    ADK runs the tool if and only if the callback returns None. The model reads a denial as the
    tool's response.
    """
    gate = ToolGate(client, "adk", timeout, approver, repo_ref, several_approvals(**rule))
    gated = None if tools is None else gated_names(tools)

    async def ask(
        tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        try:
            async with _denying(tool.name):
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


def gate_agents(agent: BaseNode, callback: ToolCallback) -> None:
    """Gives the callback to an agent and to all agents in it, after the ones that they have.

    Agents are followed as sub-agents, as tools, and through workflows and their nodes.
    """
    if not isinstance(agent, BaseNode):
        raise TypeError("expected an agent")
    for each in _agents_in(agent):
        if callback not in each.canonical_before_tool_callbacks:
            each.before_tool_callback = [*each.canonical_before_tool_callbacks, callback]


def _agents_in(root: object) -> Iterator[LlmAgent]:
    return (each for each in _parts_of(root) if isinstance(each, LlmAgent))


def _parts_of(root: object) -> Iterator[BaseNode | BaseTool]:
    """The nodes and tools that a node or a tool can run, itself included."""
    waiting: list[object] = [root]
    seen: dict[int, object] = {}
    while waiting:
        part = waiting.pop(0)
        if id(part) in seen or not isinstance(part, BaseNode | BaseTool):
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, BaseTool):
            # Of the framework's tools that run an agent or a node.
            waiting += (getattr(part, "agent", None), getattr(part, "node", None))
            continue
        waiting += part._iter_static_children()
        for name, value in part:
            if name != "parent_agent":
                values = [*value.values()] if isinstance(value, dict) else value
                waiting += values if isinstance(values, list | tuple | set) else [values]


def _check_last(callback: ToolCallback, tool_context: ToolContext) -> None:
    agent = tool_context.get_invocation_context().agent
    if not isinstance(agent, LlmAgent) or agent.canonical_before_tool_callbacks[-1] != callback:
        raise Denied("the approval must be the last before_tool_callback of the agent")


def _check_inner_agents(
    callback: ToolCallback, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
) -> None:
    reached: list[BaseNode | BaseTool] = [tool]
    if tool.name == "transfer_to_agent":
        caller, name = tool_context.get_invocation_context().agent, args.get("agent_name")
        if not isinstance(caller, BaseAgent):
            raise Denied("the caller of the tool is no agent")
        # Names need not be unique.
        reached = [it for it in _parts_of(caller.root_agent) if it.name == name]
        if not reached:
            raise Denied("there is no agent of this name")
    for agent in itertools.chain.from_iterable(map(_agents_in, reached)):
        if callback not in agent.canonical_before_tool_callbacks:
            raise Denied(f"the agent {agent.name} has no approval callback")
