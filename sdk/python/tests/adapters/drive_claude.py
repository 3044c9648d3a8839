"""Claude Agent SDK: its own program, with a scripted model on loopback."""

import json
import tempfile
from collections.abc import Sequence
from typing import Any, ClassVar

from anthropic_model import ModelServer, Turn
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    create_sdk_mcp_server,
    query,
    tool,
)
from harness import AdapterDriver, RunReport, Scene, ToolCall
from mcp.types import ToolAnnotations

from countersign.claude import options_with_approval

# Calls of tools that only read are made at the same time.
AT_ONCE = ToolAnnotations(read_only_hint=True)
PAY_SCHEMA = {"type": "object", "properties": {"amount": {}}, "required": ["amount"]}


def tools_of(scene: Scene) -> list[Any]:
    @tool("pay", "Pays an amount.", PAY_SCHEMA, annotations=AT_ONCE)
    async def pay(args: dict[str, Any]) -> dict[str, Any]:
        return answer(json.dumps(scene.world.pay(args["amount"])))

    @tool("look", "Looks at a place.", {"place": str}, annotations=AT_ONCE)
    async def look(args: dict[str, Any]) -> dict[str, Any]:
        return answer(scene.world.look(args["place"]))

    return [pay, look]


def answer(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def options_of(scene: Scene, model: ModelServer, home: str, **more: Any) -> ClaudeAgentOptions:
    """Options of an agent that has nothing of this machine's user."""
    env = {
        "HOME": home,
        "CLAUDE_CONFIG_DIR": f"{home}/.claude",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
        # The names of tools without that of their server.
        "CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",
    }
    tools = more.pop("mcp_tools", None) or tools_of(scene)
    return ClaudeAgentOptions(
        mcp_servers={"bank": create_sdk_mcp_server("bank", tools=tools)},
        # Rules have the long names all the same.
        allowed_tools=["mcp__bank__pay", "mcp__bank__look", "Agent"],
        cwd=home,
        env=env | more.pop("env", {}),
        **more,
    )


def gated(scene: Scene, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    if not scene.is_gated:
        return options
    unasked = ["look", "mcp__bank__look", "Agent"]
    return options_with_approval(options, scene.client, unasked=unasked, timeout=scene.timeout)


async def run_query(options: ClaudeAgentOptions, entry: str = "async") -> None:
    if entry == "client":
        async with ClaudeSDKClient(options) as client:
            await client.query("go")
            async for _ in client.receive_response():
                pass
        return
    async for _ in query(prompt="go", options=options):
        pass


class ClaudeDriver(AdapterDriver):
    name = "claude"
    entries = ("async", "client", "stream")
    cancellable = ("async", "client", "stream")
    nestings = ("subagent",)
    # The program has to start first.
    run_timeout = 8
    gaps: ClassVar[dict[str, str]] = {
        "13": "a session that is resumed does not resume its pending question",
        "14": "a session that is resumed does not resume its pending question",
    }

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        made: list[dict[str, Any]] = [dict(it.args) for it in calls]
        turn = [(it.name, args) for it, args in zip(calls, made, strict=True)]

        def tamper(amount: Any) -> None:
            for args in made:
                args["amount"] = amount

        scene.tampers.append(tamper)
        # The program itself refuses an input that is not JSON, before any hook.
        if any(args.get("amount") != args.get("amount") for args in made):
            return await self._ask_hook(scene, turn[0])
        return await self._run(scene, [turn], entry, include_partial_messages=entry == "stream")

    async def _run(
        self, scene: Scene, turns: Sequence[Turn], entry: str = "async", **more: Any
    ) -> RunReport:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
            ModelServer(turns) as model,
        ):
            options = gated(scene, options_of(scene, model, home, **more))
            await run_query(options, entry)
            return RunReport(model.told(), model.told())

    async def _ask_hook(self, scene: Scene, call: tuple[str, dict[str, Any]]) -> RunReport:
        hooks: Any = gated(scene, ClaudeAgentOptions()).hooks
        event = {"tool_name": call[0], "tool_input": call[1]}
        answer = await hooks["PreToolUse"][-1].hooks[0](event, "toolu_0001", {})
        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
        return RunReport([answer["hookSpecificOutput"]["permissionDecisionReason"]])

    async def run_with_silent_hook(self, scene: Scene, call: ToolCall) -> RunReport:
        async def silent(*_: Any) -> Any:
            return {}

        hooks: Any = {"PreToolUse": [HookMatcher(hooks=[silent])]}
        return await self._run(scene, [[(call.name, call.args)]], hooks=hooks)

    async def run_with_late_tool(self, scene: Scene, call: ToolCall) -> RunReport:
        pay, look = tools_of(scene)
        turns: list[Turn] = [[(call.name, call.args)]]
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
            ModelServer(turns) as model,
        ):
            options = gated(scene, options_of(scene, model, home, mcp_tools=[look]))
            assert isinstance(options.mcp_servers, dict)
            options.mcp_servers["till"] = create_sdk_mcp_server("till", tools=[pay])
            await run_query(options)
            return RunReport(model.told(), model.told())

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        step = ("Agent", {"description": "pay", "prompt": "pay", "subagent_type": "payer"})
        agents = {"payer": AgentDefinition(description="pays", prompt="Pay.", background=False)}
        turns: list[Turn] = [[step], [(call.name, call.args)]]
        report = await self._run(scene, turns, agents=agents)
        return RunReport(report.texts[1:], report.results[1:])


DRIVERS = [ClaudeDriver()]
