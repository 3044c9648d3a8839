"""An MCP server that refunds orders, each one after a person's approval.

pip install "countersign[fastmcp]"
python fastmcp_refunds.py
"""

from fastmcp import FastMCP

from countersign import Client
from countersign.fastmcp import ApprovalMiddleware


def build_server(client: Client) -> FastMCP:
    server: FastMCP = FastMCP("refunds")

    @server.tool
    def refund(order: int) -> str:
        """Refunds an order."""
        return f"refunded order {order}"

    # Many clients end a call after a minute. They get a request id, and come back with it.
    approvals = ApprovalMiddleware(client, ["refund"], timeout="10m", answer_within="45s")
    server.add_middleware(approvals)
    server.tool(approvals.result_of)
    return server


if __name__ == "__main__":
    build_server(Client.from_profile()).run()
