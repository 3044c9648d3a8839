"""An agent of the OpenAI Agents SDK that refunds orders, each one after a person's approval.

The run is interrupted until the decision. Its state could be stored, and go on in another process.

    pip install "countersign[openai-agents]"
    python openai_agents_refunds.py "Refund order 7, please."
"""

import asyncio
import sys
from typing import Any

from agents import Agent, Runner, function_tool

from countersign import Client
from countersign.openai_agents import gate, settle


@function_tool
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded order {order}"


def build_agent(client: Client, model: Any = None) -> Agent[None]:
    gated = gate(refund, client, timeout="24h", durable=True)
    return Agent("refunds", model=model, tools=[gated])


async def run(agent: Agent[None], prompt: str) -> str:
    result = await Runner.run(agent, prompt)
    while result.interruptions:
        state = result.to_state()  # state.to_string() is what to store
        while not await settle(state):
            await asyncio.sleep(5)
        result = await Runner.run(agent, state)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(run(build_agent(Client.from_profile()), sys.argv[1])))
