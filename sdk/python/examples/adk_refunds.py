"""A Google ADK agent that refunds orders, each one after a person's approval.

pip install "countersign[adk]"
python adk_refunds.py "Refund order 7, please."
"""

import asyncio
import sys
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner

from countersign import Client
from countersign.adk import approval_callback, gate_agents


def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded order {order}"


def build_agent(client: Client, model: Any = "gemini-2.5-flash") -> LlmAgent:
    clerk = LlmAgent(name="clerk", description="Refunds orders.", model=model, tools=[refund])
    desk = LlmAgent(name="desk", model=model, sub_agents=[clerk])
    # For the agents inside too: a callback belongs to one agent.
    gate_agents(desk, approval_callback(client, ["refund"], timeout="10m"))
    return desk


async def main(prompt: str) -> None:
    runner = InMemoryRunner(build_agent(Client.from_profile()))
    for event in await runner.run_debug(prompt, quiet=True):
        for part in event.content.parts or [] if event.content else []:
            print(part.text or "")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
