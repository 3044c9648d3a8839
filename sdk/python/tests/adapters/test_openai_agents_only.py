"""OpenAI Agents SDK: what the other adapters do not have."""

import asyncio
import json
from typing import Any

import pytest
from agents import Agent, FunctionTool, Runner, RunState, WebSearchTool, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from drive_openai_agents import CONFIG, OpenaiAgentsDurable, reported, tools_of
from harness import Scene, World, pay

from countersign.openai_agents import gate, settle
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters

DRIVER = OpenaiAgentsDurable()


@pytest.fixture
def scene() -> Scene:
    return Scene(FakeApprover(), World())


async def opened(scene: Scene, text: str) -> tuple[Agent[Any], RunState[Any, Any]]:
    agent = DRIVER.agent(scene, [])
    agent.model = ScriptedModel([[assistant_message("done")]])
    return agent, await RunState.from_string(agent, text)


@pytest.mark.parametrize("always", [False, True])
def test_an_approval_of_the_framework_alone_runs_nothing(scene: Scene, always: bool) -> None:
    async def main() -> None:
        scene.approver.when().wait()
        agent, state = await opened(scene, await DRIVER.suspend(scene, [pay(7)]))
        state.approve(state.get_interruptions()[0], always_approve=always)
        running = asyncio.ensure_future(Runner.run(agent, state, run_config=CONFIG))
        await asyncio.sleep(0.3)
        assert scene.world.ran == []
        scene.approver.asked[0].reject("not on Friday")
        assert "not on Friday" in reported((await running).new_items).texts[0]
        assert scene.world.ran == []

    asyncio.run(main())


def test_a_stored_rejection_that_was_edited(scene: Scene) -> None:
    async def main() -> None:
        scene.approver.when().wait()
        text = await DRIVER.suspend(scene, [pay(7)])
        scene.approver.asked[0].reject("not on Friday")
        _, state = await opened(scene, text)
        assert await settle(state)
        stored = json.loads(state.to_string())
        (record,) = stored["context"]["function_tool_approvals"]
        assert record["decision"]["rejected"]
        record["decision"] = {"approved": record["decision"]["rejected"], "rejected": []}
        agent, state = await opened(scene, json.dumps(stored))
        result = await Runner.run(agent, state, run_config=CONFIG)
        assert "not on Friday" in reported(result.new_items).texts[0]
        assert scene.world.ran == []

    asyncio.run(main())


def test_the_tool_compares_the_call_itself(scene: Scene) -> None:
    async def main() -> None:
        scene.approver.when().wait()
        text = await DRIVER.suspend(scene, [pay(7)])
        scene.approver.asked[0].approve()
        agent, state = await opened(scene, text)
        assert await settle(state)
        # The SDK notices this as well. The gate must not depend on it.
        (tool, _), (item,) = agent.tools, state.get_interruptions()
        assert isinstance(tool, FunctionTool)
        call_id = str(getattr(item.raw_item, "call_id", ""))
        for arguments in ('{"amount":99}', '{"amount":7}'):
            context = ToolContext(
                None, tool_name="pay", tool_call_id=call_id, tool_arguments=arguments
            )
            told = await tool.on_invoke_tool(context, arguments)
            assert ("Nothing was executed" in str(told)) == ("99" in arguments)
        assert scene.world.ran == [pay(7)]

    asyncio.run(main())


def run_text(scene: Scene, arguments: str, **more: Any) -> str:
    """The model's text after one call with these arguments as it wrote them."""
    model = ScriptedModel(
        [[function_call("pay", arguments, call_id="call-1")], [assistant_message("done")]]
    )
    gated = gate(tools_of(scene)[0], scene.client, **more)
    agent = Agent("payer", model=model, tools=[gated])
    result = asyncio.run(Runner.run(agent, "go", run_config=CONFIG))
    return reported(result.new_items).texts[0]


@pytest.mark.parametrize(
    "text", ['{"amount":1,"amount":99}', '{"amount":1', "[1]", '{"amount":NaN}']
)
def test_arguments_that_can_be_read_in_two_ways(
    scene: Scene, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene.approver.when().approve()
    assert "Nothing was executed" in run_text(scene, text)
    assert scene.world.ran == []
    assert scene.approver.asked == []
    (logged,) = [it.getMessage() for it in caplog.records if it.name == "countersign"]
    assert "denied: request -, tool pay, cause not_askable" in logged
    assert "99" not in logged


def test_numbers_keep_their_type(scene: Scene) -> None:
    scene.approver.when().approve()
    run_text(scene, '{"amount":1.0}')
    (ran,) = scene.world.ran
    assert type(ran.args["amount"]) is float


def test_a_timeout_of_the_tool_withdraws(scene: Scene) -> None:
    async def main() -> None:
        scene.approver.when().wait()

        @function_tool(strict_mode=False, timeout=0.3)
        async def pay(amount: Any) -> str:
            """Pays an amount."""
            scene.world.pay(amount)
            return "paid"

        model = ScriptedModel(
            [[function_call("pay", {"amount": 7}, call_id="c")], [assistant_message("done")]]
        )
        agent = Agent("payer", model=model, tools=[gate(pay, scene.client)])
        await Runner.run(agent, "go", run_config=CONFIG)
        assert scene.approver.asked[0].state == "withdrawn"
        scene.approver.asked[0].approve()
        await asyncio.sleep(0.3)
        assert scene.world.ran == []

    asyncio.run(main())


def test_settle_leaves_other_tools_alone(scene: Scene) -> None:
    async def main() -> None:
        look = tools_of(scene)[1]
        look.needs_approval = True
        model = ScriptedModel([[function_call("look", {"place": "home"}, call_id="c")]])
        agent = Agent("looker", model=model, tools=[look])
        state = (await Runner.run(agent, "go", run_config=CONFIG)).to_state()
        assert await settle(state)
        assert (await Runner.run(agent, state, run_config=CONFIG)).interruptions
        assert scene.world.ran == []
        assert scene.approver.asked == []

    asyncio.run(main())


def test_settle_leaves_gates_alone_that_wait_in_memory(scene: Scene) -> None:
    async def main() -> None:
        tool = gate(tools_of(scene)[0], scene.client)
        tool.needs_approval = True
        model = ScriptedModel([[function_call("pay", {"amount": 7}, call_id="c")]])
        agent = Agent("payer", model=model, tools=[tool])
        state = (await Runner.run(agent, "go", run_config=CONFIG)).to_state()
        assert await settle(state)
        assert scene.approver.asked == []
        assert state.get_interruptions()

    asyncio.run(main())


def test_only_function_tools_are_gated_and_once(scene: Scene) -> None:
    tool = tools_of(scene)[0]
    gated = gate(tool, scene.client)
    assert isinstance(gated, FunctionTool)
    assert gated is not tool
    assert tool.needs_approval is False
    with pytest.raises(TypeError, match="already"):
        gate(gated, scene.client)
    with pytest.raises(TypeError, match="function tool"):
        gate(WebSearchTool(), scene.client)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout"):
        gate(tool, scene.client, timeout="none")
