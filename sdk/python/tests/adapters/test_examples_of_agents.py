"""The examples run, with a scripted model and a fake approver in place of the real ones."""

import asyncio
import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import drive_adk
import drive_claude
import drive_fastmcp
import drive_langchain
import drive_openai_agents
import drive_pydantic_ai
import pytest
from anthropic_model import ModelServer
from harness import Scene, ToolCall, World

from countersign.testing import FakeApprover

pytestmark = pytest.mark.adapters

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REFUND = ToolCall("refund", {"order": 7})


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def langchain(approver: FakeApprover) -> str:
    model = drive_langchain.scripted([REFUND])
    agent = example("langchain_refunds").build_agent(approver.client, model)
    messages = agent.invoke({"messages": [{"role": "user", "content": "go"}]})["messages"]
    return str(drive_langchain.reported(messages).texts[0])


def openai_agents(approver: FakeApprover) -> str:
    module = example("openai_agents_refunds")
    model = drive_openai_agents.scripted([REFUND])
    assert asyncio.run(module.run(module.build_agent(approver.client, model), "go")) == "done"
    call = model.last_call
    assert call is not None
    told: Any = call.input[-1]
    return str(told["output"])


def pydantic_ai(approver: FakeApprover) -> str:
    model = drive_pydantic_ai.scripted(Scene(approver, World()), [REFUND])
    agent = example("pydantic_ai_refunds").build_agent(approver.client, model)
    messages = asyncio.run(agent.run("go")).all_messages()
    return drive_pydantic_ai.reported(messages).texts[0]


def fastmcp(approver: FakeApprover) -> str:
    server = example("fastmcp_refunds").build_server(approver.client)
    return asyncio.run(drive_fastmcp.call_in_memory(server, [REFUND])).texts[0]


def adk(approver: FakeApprover) -> str:
    agent = example("adk_refunds").build_agent(approver.client)
    (clerk,) = agent.sub_agents
    agent.model = drive_adk.scripted([ToolCall("transfer_to_agent", {"agent_name": "clerk"})])
    clerk.model = drive_adk.scripted([REFUND])
    asyncio.run(drive_adk.run_agent(agent))
    response = drive_adk.reported(clerk.model).results[0].response
    return str(response.get("result") or response["error"])


def claude(approver: FakeApprover) -> str:
    turns = [[("refund", dict(REFUND.args))]]
    with tempfile.TemporaryDirectory() as home, ModelServer(turns) as model:
        options = drive_claude.options_of(Scene(approver, World()), model, home)
        own = {"cwd": options.cwd, "env": options.env}
        made = example("claude_refunds").build_options(approver.client, **own)
        asyncio.run(drive_claude.run_query(made))
        return model.told()[0]


RUNS = [adk, claude, fastmcp, langchain, openai_agents, pydantic_ai]


@pytest.mark.parametrize("run", RUNS)
def test_an_approved_refund(run: Any) -> None:
    with FakeApprover() as approver:
        approver.when(tool="refund", args={"order": 7}).approve()
        assert run(approver) == "refunded order 7"
        assert len(approver.asked) == 1


@pytest.mark.parametrize("run", RUNS)
def test_a_rejected_refund(run: Any) -> None:
    with FakeApprover() as approver:
        approver.when(tool="refund").reject("not on Friday")
        text = run(approver)
        assert "not on Friday" in text
        assert "Nothing was executed" in text
