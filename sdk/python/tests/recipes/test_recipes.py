"""The recipes run, each with its framework, a scripted model and a fake approver."""

import asyncio
import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from countersign import Client, sync
from countersign.testing import FakeApprover

FOLDER = Path(__file__).resolve().parents[2]
RECIPES: dict[str, str] = dict(
    re.findall(r"<!-- (\w+) -->\n```python\n(.*?)```", (FOLDER / "RECIPES.md").read_text(), re.S)
)
ARGUMENTS = {"order": 7}


def ask_crewai(recipe: ModuleType) -> str:
    from crewai import BaseLLM, Crew, Task

    told: list[str] = []

    class ScriptedModel(BaseLLM):  # type: ignore[misc]
        def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
            results = [str(it["content"]) for it in messages if it.get("role") == "tool"]
            if results:
                told[:] = results
                return "done"
            function = {"name": "refund", "arguments": json.dumps(ARGUMENTS)}
            return [{"id": "call-1", "type": "function", "function": function}]

        def supports_function_calling(self) -> bool:
            return True

    agent = recipe.build_agent(ScriptedModel(model="scripted"))
    task = Task(description="Refund order 7.", expected_output="a word", agent=agent)
    Crew(agents=[agent], tasks=[task]).kickoff()
    return told[0]


def ask_autogen(recipe: ModuleType) -> str:
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, FunctionExecutionResultMessage, RequestUsage

    told: list[str] = []

    class ScriptedModel:
        model_info = {  # noqa: RUF012
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": "unknown",
        }

        async def create(self, messages: Sequence[Any], **_: Any) -> CreateResult:
            results = [it for it in messages if isinstance(it, FunctionExecutionResultMessage)]
            told[:] = [result.content for it in results for result in it.content]
            call = FunctionCall("call-1", json.dumps(ARGUMENTS), "refund_tool")
            return CreateResult(
                finish_reason="stop" if told else "function_calls",
                content="done" if told else [call],
                usage=RequestUsage(1, 1),
                cached=False,
            )

    asyncio.run(recipe.build_agent(ScriptedModel()).run(task="Refund order 7."))
    return told[0]


def ask_ag2(recipe: ModuleType) -> str:
    from ag2.events import ToolCallEvent, ToolResultEvent
    from ag2.testing import TestConfig

    events: list[Any] = []
    call = ToolCallEvent(name="refund_tool", arguments=json.dumps(ARGUMENTS))

    async def main() -> None:
        agent = recipe.build_agent(TestConfig(call, "done"))
        reply = await agent.ask("Refund order 7.")
        events.extend(await reply.history.get_events())

    asyncio.run(main())
    (result,) = [event for event in events if isinstance(event, ToolResultEvent)]
    return str(result.result.parts[0].content)


def ask_smolagents(recipe: ModuleType) -> str:
    from smolagents import Model
    from smolagents.models import ChatMessage, MessageRole

    told: list[str] = []

    class ScriptedModel(Model):  # type: ignore[misc]
        def generate(self, messages: Any, *_: Any, **__: Any) -> ChatMessage:
            last = str(messages[-1].content)
            is_first = "Observation" not in last
            code = "print(refund_tool(order=7))" if is_first else 'final_answer("done")'
            if not is_first:
                told.append(last)
            return ChatMessage(MessageRole.ASSISTANT, f"Thought: go\n<code>\n{code}\n</code>")

    agent = recipe.build_agent(ScriptedModel())
    assert agent.python_executor.timeout_seconds > 10 * 60
    agent.run("Refund order 7.")
    return told[0]


def ask_llama_index(recipe: ModuleType) -> str:
    from llama_index.core.base.llms.types import ToolCallBlock
    from llama_index.core.llms import ChatMessage, MessageRole
    from llama_index.core.llms.mock import MockFunctionCallingLLM

    told: list[str] = []

    def respond(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        told[:] = [str(it.content) for it in messages if it.role == MessageRole.TOOL]
        if told:
            return ChatMessage(role="assistant", content="done")
        call = ToolCallBlock(
            tool_call_id="call-1", tool_name="refund_tool", tool_kwargs=dict(ARGUMENTS)
        )
        return ChatMessage(role="assistant", blocks=[call])

    async def main() -> None:
        await recipe.build_agent(MockFunctionCallingLLM(response_generator=respond)).run("Refund.")

    asyncio.run(main())
    return told[0]


ASK: dict[str, Callable[[ModuleType], str]] = {
    "ag2": ask_ag2,
    "autogen": ask_autogen,
    "crewai": ask_crewai,
    "llama_index": ask_llama_index,
    "smolagents": ask_smolagents,
}


@pytest.fixture
def approver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeApprover:
    made = FakeApprover()
    # CrewAI calls home otherwise, and keeps files there.
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Client, "from_profile", lambda: made.client)
    monkeypatch.setattr(sync.Client, "from_profile", lambda: sync.Client(made.client))
    return made


def recipe_of(name: str, folder: Path) -> ModuleType:
    """From a file: smolagents reads the source of its tools."""
    path = folder / f"{name}_recipe.py"
    before, effect, after = RECIPES[name].partition('    return f"refunded order')
    assert effect
    path.write_text(f"ran = []\n{before}    ran.append(order)\n{effect}{after}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recipe_is_tested() -> None:
    assert set(RECIPES) == set(ASK)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ASK)
@pytest.mark.parametrize("is_approved", [False, True])
def test_recipe(name: str, is_approved: bool, approver: FakeApprover, tmp_path: Path) -> None:
    rule = approver.when(tool="refund", args=ARGUMENTS)
    rule.approve() if is_approved else rule.reject("not on Friday")
    recipe = recipe_of(name, tmp_path)
    text = ASK[name](recipe)
    assert recipe.ran == ([7] if is_approved else [])
    assert [asked.args for asked in approver.asked] == [ARGUMENTS]
    if is_approved:
        assert "refunded order 7" in text
    else:
        assert "refunded" not in text
        assert "not on Friday" in text
        assert "Nothing was executed" in text
