"""LangChain: the middleware of an agent, as it waits and as it suspends."""

import asyncio
import base64
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from harness import AdapterDriver, RunReport, Scene, StillSuspended, ToolCall
from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from countersign.langchain import ApprovalMiddleware

START_MESSAGE = {"messages": [HumanMessage("go")]}


class ScriptedModel(BaseChatModel):
    """Makes its calls first, and ends after their results."""

    message: AIMessage

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        is_done = isinstance(messages[-1], ToolMessage)
        message = AIMessage("done") if is_done else self.message
        return ChatResult(generations=[ChatGeneration(message=message)])


def scripted(calls: Sequence[ToolCall]) -> ScriptedModel:
    made: list[Any] = [
        {"name": call.name, "args": dict(call.args), "id": f"call-{number}"}
        for number, call in enumerate(calls)
    ]
    return ScriptedModel(message=AIMessage("", tool_calls=made))


def tools_of(scene: Scene) -> list[BaseTool]:
    @tool
    def pay(amount: Any) -> dict[str, Any]:
        """Pays an amount."""
        return scene.world.pay(amount)

    @tool
    def look(place: str) -> str:
        """Looks at a place."""
        return scene.world.look(place)

    return [pay, look]


def reported(messages: Sequence[Any]) -> RunReport:
    results = [message for message in messages if isinstance(message, ToolMessage)]
    results.sort(key=lambda message: message.tool_call_id)
    kept = [message.model_copy(update={"id": None}) for message in results]
    return RunReport([str(message.content) for message in results], kept)


async def reporting(work: Any) -> RunReport:
    try:
        return reported((await work)["messages"])
    except Exception as error:
        return RunReport(error=error)


class LangchainDriver(AdapterDriver):
    name = "langchain"
    entries = ("async", "sync", "stream", "sync stream")
    cancellable = ("async", "stream")
    nestings = ("subagent", "subgraph")
    gaps: ClassVar[dict[str, str]] = {
        "10 hook": "the middleware is around the execution; no question is asked before it",
        "13": "without durable=True a run waits in memory and stores nothing",
        "14": "without durable=True a run waits in memory and stores nothing",
    }

    def middleware(self, scene: Scene) -> list[Any]:
        if not scene.is_gated:
            return []
        gate = ApprovalMiddleware(scene.client, tools=["pay"], timeout=scene.timeout)
        return [gate]

    def agent(self, scene: Scene, calls: Sequence[ToolCall], **more: Any) -> Any:
        model = scripted(calls)

        def tamper(amount: Any) -> None:
            for call in model.message.tool_calls:
                call["args"]["amount"] = amount

        scene.tampers.append(tamper)
        return create_agent(
            model, more.pop("tools", tools_of(scene)), middleware=self.middleware(scene), **more
        )

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        return await reporting(self._run(self.agent(scene, calls), entry))

    async def _run(self, agent: Any, entry: str) -> Any:
        mode = {"stream_mode": "values"}
        match entry:
            case "async":
                return await agent.ainvoke(START_MESSAGE)
            case "sync":
                return await asyncio.to_thread(agent.invoke, START_MESSAGE)
            case "stream":
                return [it async for it in agent.astream(START_MESSAGE, **mode)][-1]
            case _:
                return (await asyncio.to_thread(lambda: [*agent.stream(START_MESSAGE, **mode)]))[-1]

    async def run_with_late_tool(self, scene: Scene, call: ToolCall) -> RunReport:
        tools = tools_of(scene)
        agent = self.agent(scene, [call], tools=tools[1:])
        # The same node serves the run: its tools are looked up by name for each call.
        agent.nodes["tools"].bound._tools_by_name["pay"] = tools[0]
        return await reporting(agent.ainvoke(START_MESSAGE))

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        inner = self.agent(scene, [call])
        seen: list[Any] = []
        if nesting == "subgraph":
            graph = StateGraph(MessagesState)
            graph.add_node("inner", inner)
            graph.add_edge(START, "inner")
            graph.add_edge("inner", END)
            return await reporting(graph.compile().ainvoke(START_MESSAGE))  # type: ignore[arg-type]

        @tool
        async def delegate(task: str) -> str:
            """Hands a task to another agent."""
            found = await inner.ainvoke({"messages": [HumanMessage(task)]})
            seen.extend(found["messages"])
            return str(found["messages"][-1].content)

        outer = create_agent(scripted([ToolCall("delegate", {"task": "pay"})]), [delegate])
        await outer.ainvoke(START_MESSAGE)  # type: ignore[arg-type]
        return reported(seen)


DRIVERS = [LangchainDriver()]
