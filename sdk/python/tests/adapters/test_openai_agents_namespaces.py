"""OpenAI Agents SDK: tools of one name in several namespaces are different tools."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, FunctionTool, Runner, RunState, function_tool, tool_namespace
from agents.testing import ScriptedModel, assistant_message, function_call
from drive_openai_agents import CONFIG

from countersign import Client
from countersign.openai_agents import gate, settle
from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters

SPACES = ("bank", "shop")


def pay_tool(ran: list[str], name: str) -> FunctionTool:
    @function_tool
    def pay(amount: int) -> str:
        """Pays an amount."""
        ran.append(name)
        return "paid"

    return pay


def agent_of(client: Client, ran: list[str], *turns: Any, is_durable: bool = True) -> Agent[Any]:
    tools: list[Any] = []
    for name in SPACES:
        gated = gate(pay_tool(ran, name), client, durable=is_durable)
        tools += tool_namespace(name=name, description=name, tools=[gated])
    return Agent("payer", model=ScriptedModel([*turns, [assistant_message("done")]]), tools=tools)


def call_of(namespace: str) -> list[Any]:
    return [function_call("pay", {"amount": 5}, call_id="c1", namespace=namespace)]


def resumed(edit: Callable[[str], str], *, is_settled: bool) -> list[str]:
    """Resumes a run in which a person has approved `bank.pay`. Returns the tools that ran."""
    ran: list[str] = []

    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            result = await Runner.run(
                agent_of(approver.client, ran, call_of("bank")), "go", run_config=CONFIG
            )
            state = result.to_state()
            assert not await settle(state)
            approver.asked[0].approve()
            agent = agent_of(approver.new_client(), ran)
            state = await RunState.from_string(agent, edit(state.to_string()))
            if is_settled:
                assert await settle(state)
            else:
                for item in state.get_interruptions():
                    state.approve(item)
            await Runner.run(agent, state, run_config=CONFIG)

    asyncio.run(main())
    return ran


@pytest.mark.parametrize("is_settled", [False, True])
def test_the_namespace_is_a_part_of_the_name(is_settled: bool) -> None:
    assert resumed(lambda text: text, is_settled=is_settled) == ["bank"]


@pytest.mark.parametrize("is_settled", [False, True])
def test_an_approval_counts_for_no_other_namespace(is_settled: bool) -> None:
    def edit(text: str) -> str:
        members = json.loads(text.replace('"bank', '"shop'))
        assert json.loads(text) != members
        # The SDK keeps a digest of each call there. An editor takes it out.
        members["context"]["tool_invocations"] = {}
        return json.dumps(members)

    assert resumed(edit, is_settled=is_settled) == []


@pytest.mark.parametrize("space", SPACES)
def test_the_person_reads_the_namespace(space: str) -> None:
    ran: list[str] = []
    with FakeApprover() as approver:
        approver.when(tool=f"{space}.pay").approve()
        agent = agent_of(approver.client, ran, call_of(space), is_durable=False)
        asyncio.run(Runner.run(agent, "go", run_config=CONFIG))
        assert [asked.tool for asked in approver.asked] == [f"{space}.pay"]
    assert ran == [space]
