"""A Pydantic AI agent that refunds orders, each one after a person's approval.

pip install "countersign[pydantic-ai]" "pydantic-ai-slim[openai]"
python pydantic_ai_refunds.py "Refund order 7, please."
"""

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent

from countersign import Client
from countersign.pydantic_ai import Approvals


def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded order {order}"


def build_agent(client: Client, model: Any = "openai:gpt-5") -> Agent[None, str]:
    gate = Approvals(client, tools=[refund], timeout="10m")
    return Agent(model, tools=[refund], capabilities=[gate])


async def main(prompt: str) -> None:
    result = await build_agent(Client.from_profile()).run(prompt)
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
