"""Pydantic AI: `Agent(…, capabilities=[Approvals(client, tools=[…])])`.

A call of a gated tool runs only after a signed approval of its arguments. The gate is by name and
innermost, so no other capability stands between the approval and the tool; a run with one that
would is refused. Output functions cannot be gated, and are refused under a gated name. Give it to
sub-agents too: each agent has its own capabilities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from .client import DEFAULT_TIMEOUT, Client
from .durations import Duration
from .errors import Denied
from .pending import StillWaiting
from .rule_options import RuleOptions, several_approvals
from .tool_gate import ToolGate, gated_names

try:
    from pydantic_ai import (
        ApprovalRequired,
        DeferredToolResults,
        ToolApproved,
        ToolDenied,
        UserError,
    )
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.toolsets import PreparedToolset, WrapperToolset
except ImportError as error:
    needed = "countersign.pydantic_ai needs: pip install countersign[pydantic-ai]"
    raise ImportError(needed) from error

if TYPE_CHECKING:
    from pydantic_ai import DeferredToolRequests, RunContext, Tool
    from pydantic_ai.output import OutputContext
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

TESTED_VERSIONS = "pydantic-ai-slim>=2.66.0,<2.67"


class Approvals(AbstractCapability[Any]):
    """Asks before a gated tool runs. The model reads the text of a denial.

    With `durable`, a run ends with `DeferredToolRequests`; its output type must allow that. Store
    the messages, and run again later with them and the results of `retry`. `timeout` includes the
    time until then.
    """

    def __init__(
        self,
        client: Client,
        tools: "Sequence[Tool[Any] | Callable[..., Any] | str]",
        *,
        timeout: Duration = DEFAULT_TIMEOUT,
        durable: bool = False,
        approver: str | None = None,
        repo_ref: str | None = None,
        **rule: Unpack[RuleOptions],
    ) -> None:
        self._gate = ToolGate(
            client, "pydantic-ai", timeout, approver, repo_ref, several_approvals(**rule), durable
        )
        self._gated = gated_names(tools)
        self._is_durable = durable

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: "AbstractToolset[Any]") -> "AbstractToolset[Any]":
        # The framework's own one. A later capability of the same position would wrap it first.
        if type(toolset) not in (PreparedToolset, _GatedToolset):
            raise UserError(f"Approvals must come after the capability of {type(toolset).__name__}")
        return _GatedToolset(toolset, self)

    async def prepare_output_tools(
        self, ctx: "RunContext[Any]", tool_defs: "list[ToolDefinition]"
    ) -> "list[ToolDefinition]":
        for tool in tool_defs:
            if self.is_gated(tool.name):
                raise UserError(f"{tool.name}: an output tool cannot be gated")
        return tool_defs

    async def before_output_process(
        self, ctx: "RunContext[Any]", *, output_context: "OutputContext", output: Any
    ) -> Any:
        """Output functions run outside of the toolset. Of a union, their names are unknown."""
        name = output_context.function_name
        if output_context.has_function and (name is None or self.is_gated(name)):
            raise Denied("an output function cannot be gated")
        return output

    def retry(self, requests: "DeferredToolRequests") -> DeferredToolResults:
        """Results that let the deferred calls of gated tools look for their decisions.

        They approve nothing: a call without a signed approval is denied, or deferred again.
        """
        approvals: dict[str, bool | ToolApproved | ToolDenied] = {
            call.tool_call_id: ToolApproved()
            for call in requests.approvals
            if call.tool_name in self._gated
        }
        return DeferredToolResults(approvals=approvals)

    def is_gated(self, name: str) -> bool:
        return name in self._gated

    async def approved(
        self, name: str, args: dict[str, Any], call_id: str | None
    ) -> dict[str, object]:
        """The arguments to run with. Raises `Denied`, or `ApprovalRequired` to suspend the run."""
        if not self._is_durable:
            return await self._gate.ask(name, args)
        if not call_id:
            raise Denied("a durable request needs the id of the tool call")
        taken = await self._gate.take(name, args, f"pydantic-ai/{call_id}")
        if isinstance(taken, StillWaiting):
            raise ApprovalRequired(metadata={"requestId": taken.request_id})
        return taken


@dataclass
class _GatedToolset(WrapperToolset[Any]):
    """Around the execution. The framework's own notes about approvals are not looked at."""

    approvals: Approvals

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: "RunContext[Any]",
        tool: "ToolsetTool[Any]",
    ) -> Any:
        if self.approvals.is_gated(name):
            try:
                tool_args = await self.approvals.approved(name, tool_args, ctx.tool_call_id)
            except Denied as denied:
                return ToolDenied(denied.for_model())
        return await super().call_tool(name, tool_args, ctx, tool)
