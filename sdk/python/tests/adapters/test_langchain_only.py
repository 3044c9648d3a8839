"""LangChain: what the other adapters do not have."""

import asyncio
from typing import Any

import pytest
from drive_langchain import START_MESSAGE, LangchainDurable, reported, scripted, tools_of
from harness import Scene, StillSuspended, World, pay
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from countersign.langchain import ApprovalMiddleware
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters


@pytest.fixture
def scene() -> Scene:
    return Scene(FakeApprover(), World())


def agent_of(scene: Scene, amount: int, *middleware: Any, **more: Any) -> Any:
    return create_agent(scripted([pay(amount)]), tools_of(scene), middleware=middleware, **more)


def test_a_denial_is_an_error_of_the_tool(scene: Scene) -> None:
    gate = ApprovalMiddleware(scene.client, tools=["pay"])
    messages = agent_of(scene, 7, gate).invoke(START_MESSAGE)["messages"]
    (message,) = [it for it in messages if isinstance(it, ToolMessage)]
    assert (message.status, message.name) == ("error", "pay")
    assert message.tool_call_id == messages[1].tool_calls[0]["id"]


@pytest.mark.parametrize("claim", [True, 7, "approve", {"decisions": [{"type": "approve"}]}])
def test_the_resume_value_is_ignored(scene: Scene, claim: Any) -> None:
    async def main() -> None:
        driver = LangchainDurable()
        scene.approver.when().wait()
        state = await driver.suspend(scene, [pay(7)])
        made = lambda saver: driver._made(scene, [], saver)  # noqa: E731
        state, report = await driver._step(made, state, Command(resume=claim))
        assert isinstance(report.error, StillSuspended)
        scene.approver.asked[0].reject("not on Friday")
        _, report = await driver._step(made, state, Command(resume=claim))
        assert "not on Friday" in report.texts[0]
        assert scene.world.ran == []

    asyncio.run(main())


def test_the_interrupt_names_the_request(scene: Scene) -> None:
    scene.approver.when().wait()
    gate = ApprovalMiddleware(scene.client, tools=["pay"], durable=True)
    agent = agent_of(scene, 7, gate, checkpointer=InMemorySaver())
    found = agent.invoke(START_MESSAGE, {"configurable": {"thread_id": "t"}})
    (waits,) = found["__interrupt__"]
    assert waits.value == {"requestId": scene.approver.asked[0].request_id}


def test_two_suspended_calls_go_on_one_after_the_other(scene: Scene) -> None:
    async def main() -> None:
        driver = LangchainDurable()
        scene.approver.when().wait()
        state = await driver.suspend(scene, [pay(7), pay(8)])
        made = lambda saver: driver._made(scene, [], saver)  # noqa: E731
        by_amount = {str(asked.args): asked for asked in scene.approver.asked}
        by_amount["{'amount': 8}"].approve()
        state, report = await driver._step(made, state, None)
        assert isinstance(report.error, StillSuspended)
        assert scene.world.ran == [pay(8)]
        by_amount["{'amount': 7}"].approve()
        _, report = await driver._step(made, state, None)
        assert report.error is None
        assert scene.world.ran == [pay(8), pay(7)]
        assert len(scene.approver.asked) == 2

    asyncio.run(main())


def test_a_durable_request_needs_a_thread(scene: Scene) -> None:
    scene.approver.when().approve()
    gate = ApprovalMiddleware(scene.client, tools=["pay"], durable=True)
    messages = agent_of(scene, 7, gate).invoke(START_MESSAGE)["messages"]
    assert "Nothing was executed" in reported(messages).texts[0]
    assert scene.world.ran == []
    assert scene.approver.asked == []


class DoubleAmount(AgentMiddleware[Any, Any, Any]):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        doubled = {**call, "args": {"amount": 2 * call["args"]["amount"]}}
        return handler(request.override(tool_call=doubled))


def test_the_person_is_asked_about_what_runs(scene: Scene) -> None:
    scene.approver.when(args={"amount": 14}).approve()
    gate = ApprovalMiddleware(scene.client, tools=["pay"])
    agent_of(scene, 7, DoubleAmount(), gate).invoke(START_MESSAGE)
    assert scene.world.ran == [pay(14)]


class Retry(AgentMiddleware[Any, Any, Any]):
    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        handler(request)
        return handler(request)


def test_a_retry_is_asked_about_again(scene: Scene) -> None:
    scene.approver.when().approve()
    gate = ApprovalMiddleware(scene.client, tools=["pay"])
    agent_of(scene, 7, Retry(), gate).invoke(START_MESSAGE)
    assert scene.world.ran == [pay(7), pay(7)]
    assert len(scene.approver.asked) == 2


def test_an_error_of_the_tool_is_its_own(scene: Scene) -> None:
    @tool("pay")
    def broken(amount: int) -> str:
        """Pays."""
        raise ValueError("no money left")

    scene.approver.when().approve()
    gate = ApprovalMiddleware(scene.client, tools=[broken])
    agent = create_agent(scripted([pay(7)]), [broken], middleware=[gate])
    with pytest.raises(ValueError, match="no money left"):
        agent.invoke(START_MESSAGE)


def test_tools_are_named(scene: Scene) -> None:
    def pay_plain(amount: int) -> str:
        return ""

    gate = ApprovalMiddleware(scene.client, tools=[tools_of(scene)[0], pay_plain, "other"])
    assert gate._gated == {"pay", "pay_plain", "other"}
    with pytest.raises(ValueError, match="at least one"):
        ApprovalMiddleware(scene.client, tools=[])
    with pytest.raises(TypeError):
        ApprovalMiddleware(scene.client, tools=[7])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="timeout"):
        ApprovalMiddleware(scene.client, tools=["pay"], timeout="none")
