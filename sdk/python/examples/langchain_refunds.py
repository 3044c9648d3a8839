"""A LangChain agent that refunds orders, each one after a person's approval.

pip install "countersign[langchain]" langchain-openai
python langchain_refunds.py "Refund order 7, please."
"""

import sys
from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool

from countersign import Client
from countersign.langchain import ApprovalMiddleware


@tool
def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded order {order}"


def build_agent(client: Client, model: Any = "openai:gpt-5") -> Any:
    gate = ApprovalMiddleware(client, tools=[refund], timeout="10m")
    return create_agent(model, [refund], middleware=[gate])


def main(prompt: str) -> None:
    agent = build_agent(Client.from_profile())
    result = agent.invoke({"messages": [{"role": "user", "content": prompt}]})
    print(result["messages"][-1].content)


if __name__ == "__main__":
    main(sys.argv[1])
