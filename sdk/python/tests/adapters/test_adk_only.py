"""Google ADK: ways around the callback of an agent."""

import asyncio
import warnings
from typing import Any

import pytest
from drive_adk import reported, run_agent, scripted, tools_of
from entries import until
from google.adk.agents import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import BaseNode, Workflow
from harness import Scene, ToolCall, World, pay
from pydantic import BaseModel

from countersign.adk import approval_callback, gate_agents
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters


def approving() -> Scene:
    approver = FakeApprover()
    approver.when(tool="pay").approve()
    return Scene(approver, World())


def run(agent: Any) -> None:
    # ADK uses deprecated parts of its own.
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        asyncio.run(run_agent(agent))


def rewrite(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
    args["amount"] = 99


@pytest.mark.parametrize("is_later", [False, True])
def test_no_callback_stands_between_approval_and_tool(is_later: bool) -> None:
    scene = approving()
    ask = approval_callback(scene.client, ["pay"])
    model = scripted([pay(7)])
    callbacks: list[Any] = [ask, rewrite] if is_later else [rewrite, ask]
    run(LlmAgent(name="a", model=model, tools=tools_of(scene), before_tool_callback=callbacks))
    asked = [it.args for it in scene.approver.asked]
    if is_later:
        assert (scene.world.ran, asked) == ([], [])
        assert "Nothing was executed" in reported(model).texts[0]
    else:
        assert (scene.world.ran, asked) == ([pay(99)], [{"amount": 99}])


def test_an_argument_that_is_added_while_a_person_thinks_does_not_run() -> None:
    scene = Scene(FakeApprover(), World())
    scene.approver.when(tool="pay").wait()
    kept: list[dict[str, Any]] = []
    notes: list[str] = []

    def pay(amount: int, note: str = "") -> str:
        notes.append(note)
        return "paid"

    def keep(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        kept.append(args)

    async def main() -> None:
        callbacks: list[Any] = [keep, approval_callback(scene.client, ["pay"])]
        model = scripted([ToolCall("pay", {"amount": 7})])
        agent = LlmAgent(name="a", model=model, tools=[pay], before_tool_callback=callbacks)
        running = asyncio.ensure_future(run_agent(agent))
        await until(lambda: scene.approver.asked)
        kept[0]["note"] = "added"
        scene.approver.asked[0].approve()
        await running

    asyncio.run(main())
    assert notes == [""]


class PayRequest(BaseModel):
    request: str


@pytest.mark.parametrize("is_gated", [False, True])
@pytest.mark.parametrize("nesting", ["transfer", "tool", "workflow", "tool in a workflow"])
def test_an_inner_agent_without_the_callback_is_not_reached(nesting: str, is_gated: bool) -> None:
    scene = approving()
    ask = approval_callback(scene.client, ["pay"])
    inner = LlmAgent(name="payer", model=scripted([pay(7)]), tools=tools_of(scene))
    if nesting == "transfer":
        model = scripted([ToolCall("transfer_to_agent", {"agent_name": "payer"})])
        outer = LlmAgent(name="outer", model=model, sub_agents=[inner])
    elif nesting != "tool":
        model = scripted([ToolCall("flow", {"request": "pay"})])
        node: Any = inner if nesting == "workflow" else AgentTool(inner)
        flow = Workflow(name="flow", edges=[("START", node)], input_schema=PayRequest)
        tools: list[Any] = [flow]
        outer = LlmAgent(name="outer", model=model, tools=tools)
    else:
        model = scripted([ToolCall("payer", {"request": "pay"})])
        outer = LlmAgent(name="outer", model=model, tools=[AgentTool(inner)])
    outer.before_tool_callback = ask
    if is_gated:
        gate_agents(outer, ask)
    run(outer)
    if is_gated:
        assert scene.world.ran == [pay(7)]
        assert [asked.tool for asked in scene.approver.asked] == ["pay"]
    else:
        assert scene.world.ran == []
        assert "Nothing was executed" in reported(model).texts[0]


@pytest.mark.parametrize("name", ["payer", "nobody"])
def test_a_transfer_is_denied_unless_each_agent_of_the_name_has_the_callback(name: str) -> None:
    scene = approving()
    ask = approval_callback(scene.client, ["pay"])
    found = LlmAgent(name="payer", model=scripted([]), before_tool_callback=ask)
    other = LlmAgent(name="payer", model=scripted([pay(7)]), tools=tools_of(scene))
    inner = LlmAgent(name="inner", model=scripted([]), before_tool_callback=ask)
    model = scripted([ToolCall("transfer_to_agent", {"agent_name": name})])
    with warnings.catch_warnings(action="ignore"):
        inner.sub_agents = [other]
        outer = LlmAgent(name="outer", model=model, sub_agents=[found, inner])
    outer.before_tool_callback = ask
    run(outer)
    assert "Nothing was executed" in reported(model).texts[0]


def test_agents_get_the_callback_once_and_last() -> None:
    scene = approving()
    ask = approval_callback(scene.client, ["pay"])
    inner = LlmAgent(name="inner", model="none", before_tool_callback=rewrite)
    deep = LlmAgent(name="deep", model="none")
    outer = LlmAgent(name="outer", model="none", sub_agents=[inner], tools=[AgentTool(deep)])
    gate_agents(outer, ask)
    gate_agents(outer, ask)
    assert outer.canonical_before_tool_callbacks == [ask]
    assert deep.canonical_before_tool_callbacks == [ask]
    assert inner.canonical_before_tool_callbacks == [rewrite, ask]
    with pytest.raises(TypeError):
        gate_agents(object(), ask)  # type: ignore[arg-type]


class HelperNode(BaseNode):
    helpers: list[LlmAgent] = []  # noqa: RUF012
    by_name: dict[str, LlmAgent] = {}  # noqa: RUF012


def test_agents_are_found_in_the_members_of_nodes() -> None:
    ask = approval_callback(FakeApprover().client, ["pay"])
    first, second = LlmAgent(name="first", model="none"), LlmAgent(name="second", model="none")
    flow = Workflow(
        name="flow",
        edges=[("START", HelperNode(name="node", helpers=[first], by_name={"second": second}))],
    )
    gate_agents(flow, ask)
    assert first.canonical_before_tool_callbacks == [ask]
    assert second.canonical_before_tool_callbacks == [ask]


def test_without_names_every_tool_is_gated() -> None:
    scene = Scene(FakeApprover(), World())
    model = scripted([pay(7), ToolCall("look", {"place": "home"})])
    callback = approval_callback(scene.client)
    run(LlmAgent(name="a", model=model, tools=tools_of(scene), before_tool_callback=callback))
    assert scene.world.ran == []
    assert {asked.tool for asked in scene.approver.asked} == {"pay", "look"}


@pytest.mark.parametrize(
    ("tools", "error"), [("pay", TypeError), ([7], TypeError), ([], ValueError)]
)
def test_tools_are_a_list(tools: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="tools: expected"):
        approval_callback(FakeApprover().client, tools)


@pytest.mark.parametrize("is_object", [False, True])
def test_tools_are_given_as_functions_or_objects_too(is_object: bool) -> None:
    scene = Scene(FakeApprover(), World())
    model = scripted([pay(7)])
    tool = FunctionTool(tools_of(scene)[0]) if is_object else tools_of(scene)[0]
    callback = approval_callback(scene.client, [tool])
    run(LlmAgent(name="a", model=model, tools=[tool], before_tool_callback=callback))
    assert scene.world.ran == []
    assert [asked.tool for asked in scene.approver.asked] == ["pay"]
