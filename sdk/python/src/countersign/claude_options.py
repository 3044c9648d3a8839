"""Options of the Claude Agent SDK under which no call can pass by its hooks and `can_use_tool`."""

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

BYPASS = "bypassPermissions"
# In the simple mode, the program calls no hook at all. Settings of the user can switch it on.
_SIMPLE_MODE_OFF = {"CLAUDE_CODE_SIMPLE": "0"}


def closed_options(options: ClaudeAgentOptions, unasked: Collection[str]) -> ClaudeAgentOptions:
    """Raises `ValueError` for options that let calls pass, and changes the others that could."""
    agents = (options.agents or {}).values()
    if BYPASS in {options.permission_mode, *(agent.permissionMode for agent in agents)}:
        raise ValueError(f"permission_mode: {BYPASS} lets calls pass")
    if options.extra_args:
        raise ValueError("extra_args: arguments of the program can switch hooks off")
    if "PermissionRequest" in (options.hooks or {}):
        raise ValueError("hooks: a PermissionRequest hook can answer for the approval")
    return dataclasses.replace(
        options,
        allowed_tools=[],
        settings=json.dumps(_settings(options, unasked)),
        env={**options.env, **_SIMPLE_MODE_OFF},
    )


def _settings(options: ClaudeAgentOptions, unasked: Collection[str]) -> dict[str, Any]:
    """The settings of highest rank that a caller can give."""
    text = (options.settings or "{}").strip()
    if not text.startswith("{"):
        text = (Path(options.cwd or "") / text).read_text(encoding="utf-8-sig")
    settings: dict[str, Any] = json.loads(text)
    if "hooks" in settings:
        raise ValueError("settings: hooks of settings are switched off; give them as options")
    permissions: dict[str, Any] = settings.get("permissions", {})
    # A second line of defence: a call that no rule allows needs `can_use_tool`.
    allowed = [*permissions.get("allow", []), *options.allowed_tools]
    kept = [rule for rule in allowed if rule.partition("(")[0] in unasked]
    return {
        **settings,
        "permissions": {**permissions, "allow": kept},
        "env": {**settings.get("env", {}), **_SIMPLE_MODE_OFF},
        # Hooks of options are called all the same.
        "disableAllHooks": True,
    }
