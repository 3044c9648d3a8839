"""Claude Agent SDK: `query(prompt=…, options=options_with_approval(options, client))`.

A tool runs only after a signed approval of its input, in subagents too. A `PreToolUse` hook asks,
and `can_use_tool` compares the approved input with the one that will run, since other hooks can
change it. Hooks of settings files and plugins are switched off: they can answer for
`can_use_tool`.
"""

import dataclasses
from collections.abc import Collection
from typing import Any, Unpack

from .call import Call, Subject
from .client import DEFAULT_TIMEOUT, Client
from .durations import Deadline, Duration, timeout_seconds
from .errors import Changed, Denied, Expired
from .rule_options import RuleOptions, several_approvals
from .tool_gate import ToolGate, _denying

try:
    from claude_agent_sdk import (
        CanUseTool,
        ClaudeAgentOptions,
        HookMatcher,
        PermissionResultAllow,
        PermissionResultDeny,
        ToolPermissionContext,
    )
except ImportError as error:
    raise ImportError("countersign.claude needs: pip install countersign[claude]") from error

from .claude_options import BYPASS, closed_options

TESTED_VERSIONS = "claude-agent-sdk>=0.2.182,<0.2.185"
# Of the hook: beyond every question, also if the machine sleeps meanwhile.
HOOK_TIMEOUT = 86_400.0


def options_with_approval(
    options: ClaudeAgentOptions,
    client: Client,
    *,
    unasked: Collection[str] = (),
    timeout: Duration = DEFAULT_TIMEOUT,
    approver: str | None = None,
    repo_ref: str | None = None,
    **rule: Unpack[RuleOptions],
) -> ClaudeAgentOptions:
    """Options with which every tool is asked about, except those named in `unasked`.

    Tools in `unasked` keep the permissions that `options` give them. Raises `ValueError` for
    options that could let a call pass.
    """
    if isinstance(unasked, str):
        raise ValueError("unasked: expected a list of names")
    if timeout_seconds(timeout) > HOOK_TIMEOUT / 2:
        raise ValueError("timeout: expected at most 12h")
    closed = closed_options(options, unasked)
    gate = ToolGate(client, "claude", timeout, approver, repo_ref, several_approvals(**rule))
    approvals = _InputGate(gate, frozenset(unasked), options.can_use_tool)
    ask = HookMatcher(hooks=[approvals.before_tool], timeout=HOOK_TIMEOUT, on_failure="block")
    hooks = dict(options.hooks or {})
    hooks["PreToolUse"] = [*hooks.get("PreToolUse", []), ask]
    return dataclasses.replace(closed, hooks=hooks, can_use_tool=approvals.can_use_tool)


@dataclasses.dataclass(frozen=True)
class _InputApproval:
    text: str
    deadline: Deadline


class _InputGate:
    def __init__(self, gate: ToolGate, unasked: frozenset[str], other: CanUseTool | None) -> None:
        self._gate, self._unasked, self._other = gate, unasked, other
        # By the id of the tool call.
        self._approved: dict[str, _InputApproval] = {}

    async def before_tool(self, event: Any, call_id: str | None, _: Any) -> Any:
        try:
            async with _denying(None):
                name = event["tool_name"]
                if name in self._unasked:
                    return {}
                if not call_id or event.get("permission_mode") == BYPASS:
                    raise Denied("this permission mode lets calls pass")
                deadline = Deadline.after(timeout_seconds(self._gate.timeout))
                approved = await self._gate.ask(name, event["tool_input"])
                text = Subject.of(Call(name, approved)).text()
                self._approved[call_id] = _InputApproval(text, deadline)
        except Denied as denied:
            return _decision("deny", denied.for_model())
        # Not "allow": with that, the input of another hook would run.
        return _decision("ask", "approved; the input is compared")

    async def can_use_tool(
        self, name: str, given: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        if name in self._unasked:
            if self._other is not None:
                return await self._other(name, given, context)
            return PermissionResultDeny(message=f"There is no permission to use {name}.")
        try:
            async with _denying(name):
                approved = self._approved.pop(context.tool_use_id or "", None)
                if approved is None or approved.text != Subject.of(Call(name, given)).text():
                    raise Changed
                if approved.deadline.left() == 0:
                    raise Expired
        except Denied as denied:
            return PermissionResultDeny(message=denied.for_model())
        return PermissionResultAllow(updated_input=given)


def _decision(decision: str, reason: str) -> dict[str, Any]:
    members = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **members}}
