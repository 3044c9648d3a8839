"""Pydantic AI: the capability, as it waits and as it defers calls."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar
from uuid import uuid4

from harness import AdapterDriver, RunReport, Scene, StillSuspended, ToolCall
from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from countersign.pydantic_ai import Approvals


def scripted(scene: Scene, calls: Sequence[ToolCall]) -> FunctionModel:
    """Makes its calls first, and ends after their results."""
    made = [
        ToolCallPart(call.name, dict(call.args), f"{n}-{uuid4()}") for n, call in enumerate(calls)
    ]

    def tamper(amount: Any) -> None:
        for part in made:
            assert isinstance(part.args, dict)
            part.args["amount"] = amount

    scene.tampers.append(tamper)

    def is_done(messages: Any) -> bool:
        return any(isinstance(part, ToolReturnPart) for part in messages[-1].parts)

    def answer(messages: Any, _: Any) -> ModelResponse:
        return ModelResponse([TextPart("done")] if is_done(messages) else made)

    async def stream(messages: Any, _: Any) -> AsyncIterator[Any]:
        if is_done(messages):
            yield "done"
            return
        for number, part in enumerate(made):
            args = part.args_as_json_str()
            yield {number: DeltaToolCall(part.tool_name, args, tool_call_id=part.tool_call_id)}

    return FunctionModel(answer, stream_function=stream)


def toolset_of(scene: Scene) -> FunctionToolset[Any]:
    tools: FunctionToolset[Any] = FunctionToolset()

    @tools.tool_plain
    def pay(amount: Any) -> dict[str, Any]:
        return scene.world.pay(amount)

    @tools.tool_plain
    def look(place: str) -> str:
        return scene.world.look(place)

    return tools


def reported(messages: Sequence[Any]) -> RunReport:
    parts = [part for message in messages for part in message.parts]
    results = [part for part in parts if isinstance(part, ToolReturnPart)]
    results.sort(key=lambda part: part.tool_call_id)
    texts = [part.model_response_str() for part in results]
    return RunReport(texts, [(part.content, part.outcome) for part in results])


class PydanticAiDriver(AdapterDriver):
    name = "pydantic_ai"
    entries: ClassVar[Sequence[str]] = ("async", "sync", "stream", "iter")
    cancellable: ClassVar[Sequence[str]] = ("async", "stream", "iter")
    nestings: ClassVar[Sequence[str]] = ("delegation",)
    gaps: ClassVar[dict[str, str]] = {
        "10 hook": "the capability wraps the toolset; no question is asked before the execution",
        "13": "without durable=True a run waits in memory and stores nothing",
        "14": "without durable=True a run waits in memory and stores nothing",
    }
    is_durable = False

    def agent(self, scene: Scene, calls: Sequence[ToolCall], tools: Any = None) -> Agent[Any, Any]:
        capabilities: list[Any] = []
        if scene.is_gated:
            client = scene.client_of_next_process() if self.is_durable else scene.client
            gate = Approvals(client, ["pay"], timeout=scene.timeout, durable=self.is_durable)
            capabilities.append(gate)
        return Agent(
            scripted(scene, calls),
            toolsets=[toolset_of(scene) if tools is None else tools],
            capabilities=capabilities,
            output_type=[str, DeferredToolRequests] if self.is_durable else str,
        )

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        return await self.to_the_end(scene, self.agent(scene, calls), entry)

    async def to_the_end(self, scene: Scene, agent: Agent[Any, Any], entry: str) -> RunReport:
        try:
            return reported((await self.turn(agent, entry, user_prompt="go")).all_messages())
        except Exception as error:
            return RunReport(error=error)

    async def turn(self, agent: Agent[Any, Any], entry: str, **more: Any) -> Any:
        match entry:
            case "sync":
                return await asyncio.to_thread(run_sync, agent, more)
            case "stream":
                async with agent.run_stream(**more) as result:
                    await result.get_output()
                    return result
            case "iter":
                async with agent.iter(**more) as run:
                    async for _ in run:
                        pass
                return run.result
            case _:
                return await agent.run(**more)

    async def run_with_late_tool(self, scene: Scene, call: ToolCall) -> RunReport:
        tools: FunctionToolset[Any] = FunctionToolset()
        agent = self.agent(scene, [call], tools)
        tools.add_tool(toolset_of(scene).tools["pay"])
        return await self.to_the_end(scene, agent, "async")

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        inner = self.agent(scene, [call])
        seen: list[RunReport] = []
        outer: Agent[Any, Any] = Agent(scripted(scene, [ToolCall("delegate", {"task": "pay"})]))

        @outer.tool_plain
        async def delegate(task: str) -> str:
            seen.append(await self.to_the_end(scene, inner, "async"))
            return "done"

        await outer.run("go")
        return seen[0]


def run_sync(agent: Agent[Any, Any], arguments: dict[str, Any]) -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return agent.run_sync(**arguments)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


class PydanticAiDurable(PydanticAiDriver):
    """Each step reads the stored messages, with an agent of another client."""

    name = "pydantic_ai_durable"
    entries: ClassVar[Sequence[str]] = ("async", "sync", "iter")
    cancellable: ClassVar[Sequence[str]] = ("async", "iter")
    gaps: ClassVar[dict[str, str]] = {
        "10 hook": "the capability wraps the toolset; no question is asked before the execution",
    }
    is_durable = True

    async def to_the_end(self, scene: Scene, agent: Agent[Any, Any], entry: str) -> RunReport:
        edits: list[int] = []
        scene.tampers.append(edits.append)
        try:
            result = await self.turn(agent, entry, user_prompt="go")
            while isinstance(result.output, DeferredToolRequests):
                text = result.all_messages_json().decode()
                await asyncio.sleep(0.1)
                while edits:
                    text = self.edited(text, edits.pop())
                result = await self.again(scene, agent, text, result.output, entry)
            return reported(result.all_messages())
        except Exception as error:
            return RunReport(error=error)

    async def again(
        self, scene: Scene, agent: Agent[Any, Any], text: str, requests: Any, entry: str = "async"
    ) -> Any:
        gate = Approvals(scene.client, ["pay"], durable=True)
        return await self.turn(
            agent,
            entry,
            message_history=ModelMessagesTypeAdapter.validate_json(text),
            deferred_tool_results=gate.retry(requests),
        )

    async def suspend(self, scene: Scene, calls: Sequence[ToolCall]) -> str:
        result = await self.agent(scene, calls).run("go")
        assert isinstance(result.output, DeferredToolRequests)
        return result.all_messages_json().decode()

    async def resume(self, scene: Scene, state: str) -> RunReport:
        messages = ModelMessagesTypeAdapter.validate_json(state)
        calls = [part for part in messages[-1].parts if isinstance(part, ToolCallPart)]
        try:
            agent = self.agent(scene, [])
            result = await self.again(scene, agent, state, DeferredToolRequests(approvals=calls))
            if isinstance(result.output, DeferredToolRequests):
                return RunReport(error=StillSuspended())
            return reported(result.all_messages())
        except Exception as error:
            return RunReport(error=error)

    def edited(self, state: str, amount: int) -> str:
        assert '"amount":7' in state
        return state.replace('"amount":7', f'"amount":{amount}')


DRIVERS: list[AdapterDriver] = [PydanticAiDriver(), PydanticAiDurable()]
