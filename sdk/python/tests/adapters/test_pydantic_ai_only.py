"""Pydantic AI: what the other adapters do not have."""

import asyncio
from datetime import date
from typing import Any

import pytest
from drive_pydantic_ai import PydanticAiDurable, reported, scripted, toolset_of
from harness import Scene, ToolCall, World, pay
from pydantic import BaseModel, ConfigDict, PrivateAttr
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    PromptedOutput,
    TextOutput,
    ToolApproved,
    ToolOutput,
    UserError,
)
from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    HandleDeferredToolCalls,
)
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import WrapperToolset

from countersign import Denied, NotAskable
from countersign.call import to_json
from countersign.pydantic_ai import Approvals
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters

DRIVER = PydanticAiDurable()


@pytest.fixture
def scene() -> Scene:
    return Scene(FakeApprover(), World())


@pytest.mark.parametrize(
    "claim", [True, ToolApproved(), ToolApproved(override_args={"amount": 99})]
)
def test_an_approval_of_the_framework_alone_runs_nothing(scene: Scene, claim: Any) -> None:
    async def main() -> None:
        scene.approver.when().wait()
        text = await DRIVER.suspend(scene, [pay(7)])
        messages = ModelMessagesTypeAdapter.validate_json(text)
        (call,) = messages[-1].parts
        assert call.part_kind == "tool-call"
        results = DeferredToolResults(approvals={call.tool_call_id: claim})
        again = DRIVER.agent(scene, [])
        result = await again.run(message_history=messages, deferred_tool_results=results)
        told = reported(result.all_messages())
        is_deferred = isinstance(result.output, DeferredToolRequests)
        assert is_deferred or "Nothing was executed" in told.texts[0]
        assert scene.world.ran == []

    asyncio.run(main())


def test_a_handler_that_approves_everything_runs_nothing(scene: Scene) -> None:
    async def main() -> None:
        scene.approver.when().wait()

        def approve(_: Any, requests: DeferredToolRequests) -> DeferredToolResults:
            return requests.build_results(approve_all=True)

        agent: Agent[Any, Any] = Agent(
            scripted(scene, [pay(7)]),
            toolsets=[toolset_of(scene)],
            capabilities=[
                HandleDeferredToolCalls(handler=approve),
                Approvals(scene.client, ["pay"], durable=True),
            ],
            output_type=[str, DeferredToolRequests],
        )
        result = await agent.run("go")
        assert isinstance(result.output, DeferredToolRequests)
        assert scene.world.ran == []

    asyncio.run(main())


class DoubleAmount(AbstractCapability[Any]):
    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return {"amount": 2 * args["amount"]}


@pytest.mark.parametrize("is_first", [False, True])
def test_the_person_is_asked_about_what_runs(scene: Scene, is_first: bool) -> None:
    scene.approver.when(args={"amount": 14}).approve()
    capabilities: list[Any] = [DoubleAmount(), Approvals(scene.client, ["pay"])]
    agent: Agent[Any, Any] = Agent(
        scripted(scene, [pay(7)]),
        toolsets=[toolset_of(scene)],
        capabilities=capabilities[::-1] if is_first else capabilities,
    )
    asyncio.run(agent.run("go"))
    assert scene.world.ran == [pay(14)]


class DoubleToolset(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {"amount": 2 * tool_args["amount"]}, ctx, tool)


class InnermostCapability(AbstractCapability[Any]):
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        return DoubleToolset(toolset)


@pytest.mark.parametrize("is_last", [False, True])
def test_no_innermost_capability_stands_between_approval_and_tool(
    scene: Scene, is_last: bool
) -> None:
    scene.approver.when().approve()
    capabilities: list[Any] = [Approvals(scene.client, ["pay"]), InnermostCapability()]
    agent: Agent[Any, Any] = Agent(
        scripted(scene, [pay(7)]),
        toolsets=[toolset_of(scene)],
        capabilities=capabilities[::-1] if is_last else capabilities,
    )
    if is_last:
        asyncio.run(agent.run("go"))
        assert scene.world.ran == [pay(14)]
        assert [asked.args for asked in scene.approver.asked] == [{"amount": 14}]
    else:
        with pytest.raises(UserError, match="DoubleToolset"):
            asyncio.run(agent.run("go"))
        assert scene.world.ran == []


def test_two_gates_of_one_agent_both_ask(scene: Scene) -> None:
    scene.approver.when().approve()
    gates = [Approvals(scene.client, ["pay"]), Approvals(scene.client, ["pay", "look"])]
    agent: Agent[Any, Any] = Agent(
        scripted(scene, [pay(7)]), toolsets=[toolset_of(scene)], capabilities=gates
    )
    asyncio.run(agent.run("go"))
    assert scene.world.ran == [pay(7)]
    assert len(scene.approver.asked) == 2


def answering(part: Any) -> FunctionModel:
    return FunctionModel(lambda *_: ModelResponse([part]))


@pytest.mark.parametrize("kind", ["tool", "name", "text", "union", "another"])
@pytest.mark.parametrize("is_of_run", [False, True])
def test_output_functions_with_a_gated_name_do_not_run(
    scene: Scene, kind: str, is_of_run: bool
) -> None:
    scene.approver.when().approve()

    def pay(amount: int) -> str:
        scene.world.pay(amount)
        return "paid"

    def pay_text(text: str) -> str:
        scene.world.pay(text)
        return "paid"

    gated = {"text": "pay_text", "another": "refund"}.get(kind, "pay")
    union: list[Any] = [pay, Receiver]
    cases: dict[str, tuple[Any, Any]] = {
        "tool": (pay, ToolCallPart("final_result", {"amount": 7})),
        "another": (pay, ToolCallPart("final_result", {"amount": 7})),
        "name": (ToolOutput(Receiver, name="pay"), ToolCallPart("pay", {})),
        "text": (TextOutput(pay_text), TextPart("7")),
        "union": (
            PromptedOutput(union),
            TextPart('{"result": {"kind": "pay", "data": {"amount": 7}}}'),
        ),
    }
    output, part = cases[kind]
    agent: Agent[Any, Any] = Agent(
        answering(part),
        capabilities=[Approvals(scene.client, [gated])],
        output_type=str if is_of_run else output,
    )
    more: Any = {"output_type": output} if is_of_run else {}
    if kind == "another":
        assert asyncio.run(agent.run("go", **more)).output == "paid"
        return
    with pytest.raises((Denied, UserError), match="output"):
        asyncio.run(agent.run("go", **more))
    assert scene.world.ran == []


class Receiver(BaseModel):
    name: str
    since: date


def test_models_are_shown_with_all_of_their_fields(scene: Scene) -> None:
    scene.approver.when().approve()
    ran: list[Receiver] = []

    def send(to: Receiver) -> str:
        ran.append(to)
        return "sent"

    made = ToolCall("send", {"to": {"name": "Ada", "since": "2026-02-21"}})
    gate = Approvals(scene.client, [send])
    agent = Agent(scripted(scene, [made]), tools=[send], capabilities=[gate])
    asyncio.run(agent.run("go"))
    assert ran == [Receiver(name="Ada", since=date(2026, 2, 21))]
    assert scene.approver.asked[0].args == {
        "to": {"Receiver": {"name": "Ada", "since": "2026-02-21"}}
    }


class OpenModel(BaseModel):
    model_config = ConfigDict(extra="allow")


class SecretModel(BaseModel):
    _hidden: int = PrivateAttr(default=7)


@pytest.mark.parametrize("model", [OpenModel(more=1), SecretModel()])  # type: ignore[call-arg]
def test_models_with_more_than_their_fields_are_refused(model: BaseModel) -> None:
    with pytest.raises(NotAskable):
        to_json(model)


def test_a_denial_is_no_success(scene: Scene) -> None:
    agent = Agent(
        scripted(scene, [pay(7)]),
        toolsets=[toolset_of(scene)],
        capabilities=[Approvals(scene.client, ["pay"])],
    )
    result = reported(asyncio.run(agent.run("go")).all_messages())
    assert result.results[0][1] == "denied"


def test_tools_are_named(scene: Scene) -> None:
    with pytest.raises(ValueError, match="at least one"):
        Approvals(scene.client, [])
    with pytest.raises(TypeError):
        Approvals(scene.client, [7])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="list"):
        Approvals(scene.client, "pay")
    with pytest.raises(ValueError, match="timeout"):
        Approvals(scene.client, ["pay"], timeout="none")
