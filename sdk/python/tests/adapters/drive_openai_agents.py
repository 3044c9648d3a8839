"""OpenAI Agents SDK: a gated tool, as it waits and as it interrupts the run."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, ClassVar, cast
from uuid import uuid4

from agents import Agent, AgentHooks, FunctionTool, RunConfig, Runner, RunState, Tool, function_tool
from agents.items import ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call
from harness import AdapterDriver, RunReport, Scene, StillSuspended, ToolCall

from countersign.openai_agents import gate, settle

CONFIG = RunConfig(tracing_disabled=True)


def scripted(calls: Sequence[ToolCall]) -> ScriptedModel:
    made = [
        function_call(call.name, dict(call.args), call_id=f"{number}-{uuid4()}")
        for number, call in enumerate(calls)
    ]
    return ScriptedModel([made, [assistant_message("done")]])


def tools_of(scene: Scene) -> tuple[FunctionTool, FunctionTool]:
    @function_tool(strict_mode=False)
    def pay(amount: Any) -> dict[str, Any]:
        """Pays an amount."""
        return scene.world.pay(amount)

    @function_tool
    def look(place: str) -> str:
        """Looks at a place."""
        return scene.world.look(place)

    return pay, look


def reported(items: Sequence[Any]) -> RunReport:
    results = [item for item in items if isinstance(item, ToolCallOutputItem)]
    results.sort(key=lambda item: str(item.call_id))
    texts = [str(cast(Any, item.raw_item)["output"]) for item in results]
    return RunReport(texts, [item.output for item in results])


class TamperHooks(AgentHooks[Any]):
    """Gets at the objects that the SDK holds about a call that waits."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        def tamper(amount: Any) -> None:
            context.tool_arguments = context.tool_call.arguments = json.dumps({"amount": amount})

        self._scene.tampers.append(tamper)


class OpenaiAgentsDriver(AdapterDriver):
    name = "openai_agents"
    entries: ClassVar[Sequence[str]] = ("async", "sync", "stream")
    cancellable: ClassVar[Sequence[str]] = ("async", "stream")
    nestings: ClassVar[Sequence[str]] = ("agent as tool", "handoff")
    gaps: ClassVar[dict[str, str]] = {
        "13": "without durable=True a run waits in memory and stores nothing",
        "14": "without durable=True a run waits in memory and stores nothing",
        "16": "a gate belongs to a tool object; the SDK has no hook of an agent by tool name",
    }
    is_durable = False

    def gated(self, scene: Scene, tool: FunctionTool) -> FunctionTool:
        if not scene.is_gated:
            return tool
        client = scene.client_of_next_process() if self.is_durable else scene.client
        return gate(tool, client, timeout=scene.timeout, durable=self.is_durable)

    def agent(self, scene: Scene, calls: Sequence[ToolCall]) -> Agent[Any]:
        pay, look = tools_of(scene)
        tools: list[Tool] = [self.gated(scene, pay), look]
        return Agent("payer", model=scripted(calls), tools=tools, hooks=TamperHooks(scene))

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        return await self.to_the_end(scene, self.agent(scene, calls), entry)

    async def to_the_end(self, scene: Scene, agent: Agent[Any], entry: str) -> RunReport:
        try:
            result = await self.turn(agent, "go", entry)
            return reported(result.new_items)
        except Exception as error:
            return RunReport(error=error)

    async def turn(self, agent: Agent[Any], turn: Any, entry: str) -> Any:
        if entry == "sync":
            return await asyncio.to_thread(run_sync, agent, turn)
        if entry == "stream":
            streamed = Runner.run_streamed(agent, turn, run_config=CONFIG)
            async for _ in streamed.stream_events():
                pass
            return streamed
        return await Runner.run(agent, turn, run_config=CONFIG)

    async def run_with_silent_hook(self, scene: Scene, call: ToolCall) -> RunReport:
        agent = self.agent(scene, [call])
        tool = agent.tools[0]
        assert isinstance(tool, FunctionTool)

        async def nothing(*_: Any) -> Any:
            return None

        tool.needs_approval = nothing
        return await self.to_the_end(scene, agent, "async")

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        inner = self.agent(scene, [call])
        if nesting == "handoff":
            transfer = ToolCall("transfer_to_payer", {})
            outer: Agent[Any] = Agent("outer", model=scripted([transfer]), handoffs=[inner])
            return await self.to_the_end(scene, outer, "async")
        seen: list[Any] = []

        async def keep(result: Any) -> str:
            seen.extend(result.new_items)
            return "done"

        delegate = inner.as_tool("delegate", "Pays.", custom_output_extractor=keep)
        model = scripted([ToolCall("delegate", {"input": "pay"})])
        report = await self.to_the_end(
            scene, Agent("outer", model=model, tools=[delegate]), "async"
        )
        return reported(seen) if report.error is None else report


def run_sync(agent: Agent[Any], turn: Any) -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(agent, turn, run_config=CONFIG)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


class OpenaiAgentsDurable(OpenaiAgentsDriver):
    """Each step reads the stored state, with tools of another client."""

    name = "openai_agents_durable"
    gaps: ClassVar[dict[str, str]] = {
        "16": "a gate belongs to a tool object; the SDK has no hook of an agent by tool name",
    }
    is_durable = True

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        return await self.to_the_end(scene, self.agent(scene, calls), entry)

    async def to_the_end(self, scene: Scene, agent: Agent[Any], entry: str) -> RunReport:
        edits: list[int] = []
        scene.tampers.append(edits.append)
        try:
            result = await self.turn(agent, "go", entry)
            while result.interruptions:
                text = result.to_state().to_string()
                state = await RunState.from_string(agent, text)
                while not await settle(state):
                    await asyncio.sleep(0.1)
                    while edits:
                        text = self.edited(text, edits.pop())
                        state = await RunState.from_string(agent, text)
                # The decisions are stored as well.
                state = await RunState.from_string(agent, state.to_string())
                result = await self.turn(agent, state, entry)
            return reported(result.new_items)
        except Exception as error:
            return RunReport(error=error)

    async def suspend(self, scene: Scene, calls: Sequence[ToolCall]) -> str:
        agent = self.agent(scene, calls)
        state = (await Runner.run(agent, "go", run_config=CONFIG)).to_state()
        assert not await settle(state)
        return state.to_string()

    async def resume(self, scene: Scene, state: str) -> RunReport:
        agent = self.agent(scene, [])
        agent.model = ScriptedModel([[assistant_message("done")]])
        try:
            opened = await RunState.from_string(agent, state)
            if not await settle(opened):
                return RunReport(error=StillSuspended())
            return reported((await Runner.run(agent, opened, run_config=CONFIG)).new_items)
        except Exception as error:
            return RunReport(error=error)

    def edited(self, state: str, amount: int) -> str:
        before = r"{\"amount\":7}"
        assert before in state
        # The SDK keeps a digest of each call there. An editor takes it out.
        members = json.loads(state.replace(before, before.replace("7", str(amount))))
        members["context"]["tool_invocations"] = {}
        return json.dumps(members)


DRIVERS: list[AdapterDriver] = [OpenaiAgentsDriver(), OpenaiAgentsDurable()]
