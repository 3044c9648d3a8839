"""LangChain: the middleware of an agent, as it waits and as it suspends."""

import asyncio
import base64
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from harness import AdapterDriver, RunReport, Scene, StillSuspended, ToolCall
from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from countersign.langchain import ApprovalMiddleware

START_MESSAGE: Any = {"messages": [HumanMessage("go")]}


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
        {"name": call.name, "args": dict(call.args), "id": f"{number}-{uuid4()}"}
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
    kept = [it.model_copy(update={"id": None, "tool_call_id": ""}) for it in results]
    return RunReport([str(message.content) for message in results], kept)


async def reporting(work: Any) -> RunReport:
    try:
        return reported((await work)["messages"])
    except Exception as error:
        return RunReport(error=error)


class LangchainDriver(AdapterDriver):
    name = "langchain"
    entries: ClassVar[Sequence[str]] = ("async", "sync", "stream", "sync stream")
    cancellable: ClassVar[Sequence[str]] = ("async", "stream")
    nestings: ClassVar[Sequence[str]] = ("subagent", "subgraph")
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
            return await reporting(graph.compile().ainvoke(START_MESSAGE))

        @tool
        async def delegate(task: str) -> str:
            """Hands a task to another agent."""
            found = await inner.ainvoke({"messages": [HumanMessage(task)]})
            seen.extend(found["messages"])
            return str(found["messages"][-1].content)

        outer = create_agent(scripted([ToolCall("delegate", {"task": "pay"})]), [delegate])
        await outer.ainvoke(START_MESSAGE)
        return reported(seen)


class LangchainDurable(LangchainDriver):
    """Each step opens the stored checkpoints, and closes them again."""

    name = "langchain_durable"
    entries: ClassVar[Sequence[str]] = ("async", "sync", "stream")
    cancellable: ClassVar[Sequence[str]] = ("async", "stream")
    nestings: ClassVar[Sequence[str]] = ("subgraph",)
    gaps: ClassVar[dict[str, str]] = {
        "10 hook": "the middleware is around the execution; no question is asked before it",
    }

    def middleware(self, scene: Scene) -> list[Any]:
        if not scene.is_gated:
            return []
        client = scene.client_of_next_process()
        gate = ApprovalMiddleware(client, tools=["pay"], timeout=scene.timeout, durable=True)
        return [gate]

    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        return await self._to_the_end(scene, lambda saver: self._made(scene, calls, saver), entry)

    def _made(self, scene: Scene, calls: Sequence[ToolCall], saver: Any) -> Any:
        return self.agent(scene, calls, checkpointer=saver)

    async def run_with_late_tool(self, scene: Scene, call: ToolCall) -> RunReport:
        def made(saver: Any) -> Any:
            tools = tools_of(scene)
            agent = self.agent(scene, [call], tools=tools[1:], checkpointer=saver)
            agent.nodes["tools"].bound._tools_by_name["pay"] = tools[0]
            return agent

        return await self._to_the_end(scene, made)

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        def made(saver: Any) -> Any:
            graph = StateGraph(MessagesState)
            graph.add_node("inner", self.agent(scene, [call]))
            graph.add_edge(START, "inner")
            graph.add_edge("inner", END)
            return graph.compile(checkpointer=saver)

        return await self._to_the_end(scene, made)

    async def suspend(self, scene: Scene, calls: Sequence[ToolCall]) -> str:
        made = lambda saver: self._made(scene, calls, saver)  # noqa: E731
        state, report = await self._step(made, "", START_MESSAGE)
        assert isinstance(report.error, StillSuspended)
        return state

    async def resume(self, scene: Scene, state: str) -> RunReport:
        # The calls are in the stored state. A resume value that claims an approval is ignored.
        made = lambda saver: self._made(scene, [], saver)  # noqa: E731
        claim: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
        return (await self._step(made, state, claim))[1]

    def edited(self, state: str, amount: int) -> str:
        stored = base64.b64decode(state)
        before, after = b"\xa6amount\x07", b"\xa6amount" + bytes([amount])
        assert before in stored
        return base64.b64encode(stored.replace(before, after)).decode()

    async def _to_the_end(
        self, scene: Scene, made: Callable[[Any], Any], entry: str = "async"
    ) -> RunReport:
        stored = ""
        edits: list[int] = []
        scene.tampers.append(edits.append)
        turn: Any = START_MESSAGE
        while True:
            stored, report = await self._step(made, stored, turn, entry)
            if not isinstance(report.error, StillSuspended):
                return report
            await asyncio.sleep(0.1)
            while edits:
                stored = self.edited(stored, edits.pop())
            # Nothing to resume with: the middleware looks for the decision itself.
            turn = None

    async def _step(
        self, made: Callable[[Any], Any], state: str, turn: Any, entry: str = "async"
    ) -> tuple[str, RunReport]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoints.sqlite"
            path.write_bytes(base64.b64decode(state))
            report = await self._turn(made, path, turn, entry)
            return base64.b64encode(path.read_bytes()).decode(), report

    async def _turn(
        self, made: Callable[[Any], Any], path: Path, turn: Any, entry: str
    ) -> RunReport:
        config: Any = {"configurable": {"thread_id": "thread-1"}}
        try:
            if entry == "sync":
                with SqliteSaver.from_conn_string(str(path)) as saver:
                    work = lambda: made(saver).invoke(turn, config)  # noqa: E731
                    return suspended(await asyncio.to_thread(work))
            async with AsyncSqliteSaver.from_conn_string(str(path)) as opened:
                agent = made(opened)
                if entry == "async":
                    return suspended(await agent.ainvoke(turn, config))
                streamed = agent.astream(turn, config, stream_mode="values")
                seen = [it async for it in streamed]
                state = await agent.aget_state(config)
                return suspended(seen[-1] | {"__interrupt__": state.interrupts})
        except Exception as error:
            return RunReport(error=error)


def suspended(found: Any) -> RunReport:
    waits = found.get("__interrupt__")
    return RunReport(error=StillSuspended(str(waits))) if waits else reported(found["messages"])


DRIVERS = [LangchainDriver(), LangchainDurable()]
