"""A Claude agent that refunds orders, each one after a person's approval.

pip install "countersign[claude]"
python claude_refunds.py "Refund order 7, please."
"""

import asyncio
import sys
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

from countersign import Client
from countersign.claude import options_with_approval


@tool("refund", "Refunds an order.", {"order": int})
async def refund(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"refunded order {args['order']}"}]}


def build_options(client: Client, **more: Any) -> ClaudeAgentOptions:
    shop = create_sdk_mcp_server("shop", tools=[refund])
    options = ClaudeAgentOptions(mcp_servers={"shop": shop}, **more)
    # All other tools are asked about, those of the program such as Bash too.
    return options_with_approval(options, client, unasked=["Read", "Glob", "Grep"], timeout="10m")


async def main(prompt: str) -> None:
    async for message in query(prompt=prompt, options=build_options(Client.from_profile())):
        print(message)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
