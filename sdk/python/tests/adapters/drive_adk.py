"""Google ADK: the callback of an agent, run by ADK's runner with a scripted model."""

import asyncio
import json
import warnings
from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

from google.adk.agents import LlmAgent, RunConfig, SequentialAgent
from google.adk.agents.run_config import StreamingMode  # type: ignore[attr-defined]
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from harness import AdapterDriver, RunReport, Scene, ToolCall

from countersign.adk import approval_callback, gate_agents


class ScriptedModel(BaseLlm):
    """Makes its calls first, and ends after their results."""

    model: str = "scripted"
    calls: list[Any] = []  # noqa: RUF012
    # The responses of tools that it has read.
    told: list[Any] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        found = [it.function_response for it in parts if it.function_response]
        if self.calls and not found:
            made = [types.Part(function_call=call) for call in self.calls]
            yield LlmResponse(content=types.Content(role="model", parts=made))
            return
        self.told[:] = found
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="done")]))


def scripted(calls: Sequence[ToolCall]) -> ScriptedModel:
    made = [
        types.FunctionCall(id=f"call-{number}", name=it.name, args=dict(it.args))
        for number, it in enumerate(calls)
    ]
    return ScriptedModel(calls=made, told=[])


def tools_of(scene: Scene) -> list[Any]:
    def pay(amount: Any) -> dict[str, Any]:
        """Pays an amount."""
        return scene.world.pay(amount)

    async def look(place: str) -> str:
        """Looks at a place."""
        return scene.world.look(place)

    return [pay, look]


def callback_of(scene: Scene) -> Any:
    if not scene.is_gated:
        return None
    return approval_callback(scene.client, ["pay"], timeout=scene.timeout)


def reported(model: ScriptedModel) -> RunReport:
    results = sorted(model.told, key=lambda it: it.id)
    return RunReport(
        [json.dumps(it.response, ensure_ascii=False).replace('\\"', '"') for it in results], results
    )


async def run_agent(agent: Any, entry: str = "async") -> None:
    runner = InMemoryRunner(agent, app_name="bank")
    session = await runner.session_service.create_session(app_name="bank", user_id="alice")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    run: dict[str, Any] = {"user_id": "alice", "session_id": session.id, "new_message": message}
    if entry == "sync":
        await asyncio.to_thread(lambda: [*runner.run(**run)])
        return
    if entry == "stream":
        run["run_config"] = RunConfig(streaming_mode=StreamingMode.SSE)
    async for _ in runner.run_async(**run):
        pass


class AdkDriver(AdapterDriver):
    name = "adk"
    entries = ("async", "sync", "stream")
    cancellable = ("async", "stream")
    nestings = ("transfer", "agent as a tool", "sequence")
    gaps: ClassVar[dict[str, str]] = {
        "13": "a call waits in memory; a session that is resumed asks again",
        "14": "a call waits in memory; a session that is resumed asks again",
    }

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        return await self._run(scene, scripted(calls), tools_of(scene), entry)

    async def _run(
        self, scene: Scene, model: ScriptedModel, tools: list[Any], entry: str = "async"
    ) -> RunReport:
        kept: list[dict[str, Any]] = []

        def keep(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
            """A callback of somebody else, who keeps the arguments and changes them later."""
            kept.append(args)

        def tamper(amount: Any) -> None:
            for args in [*kept, *(call.args for call in model.calls)]:
                args["amount"] = amount

        scene.tampers.append(tamper)
        callbacks = [keep, callback_of(scene)] if scene.is_gated else []
        agent = LlmAgent(
            name="payer", model=model, tools=tools, before_tool_callback=callbacks or None
        )
        try:
            await run_agent(agent, entry)
        except Exception as error:
            return RunReport(error=error)
        return reported(model)

    async def run_with_silent_hook(self, scene: Scene, call: ToolCall) -> RunReport:
        model = scripted([call])
        agent = LlmAgent(
            name="payer",
            model=model,
            tools=tools_of(scene),
            before_tool_callback=[lambda **_: None, callback_of(scene)],
        )
        await run_agent(agent)
        return reported(model)

    async def run_with_late_tool(self, scene: Scene, call: ToolCall) -> RunReport:
        pay, look = tools_of(scene)
        tools = [look]
        model = scripted([call])
        agent = LlmAgent(
            name="payer", model=model, tools=tools, before_tool_callback=callback_of(scene)
        )
        agent.tools.append(pay)
        await run_agent(agent)
        return reported(model)

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        # ADK uses deprecated parts of its own.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            return await self._run_nested(scene, call, nesting)

    async def _run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        model = scripted([call])
        inner = LlmAgent(name="payer", model=model, tools=tools_of(scene), description="pays")
        if nesting == "sequence":
            outer: Any = SequentialAgent(name="outer", sub_agents=[inner])
        elif nesting == "transfer":
            step = ToolCall("transfer_to_agent", {"agent_name": "payer"})
            outer = LlmAgent(name="outer", model=scripted([step]), sub_agents=[inner])
        else:
            step = ToolCall("payer", {"request": "pay"})
            outer = LlmAgent(name="outer", model=scripted([step]), tools=[AgentTool(inner)])
        gate_agents(outer, callback_of(scene))
        await run_agent(outer)
        return reported(model)


DRIVERS = [AdkDriver()]
