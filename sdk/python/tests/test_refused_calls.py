"""Refusals of the gateway, which nobody signs: they deny, and a durable request goes on."""

import asyncio

import httpx
import pytest

from countersign import Approved, Call, Denied, TimedOut, Unavailable
from countersign.testing import FakeApprover

CALL = Call("transfer", {"iban": "DE02", "amount": 500})


@pytest.mark.parametrize(
    ("place", "status", "code", "denial"),
    [
        ("/wait", 404, "NOT_FOUND", Unavailable),
        ("/v1/artifacts", 404, "NOT_FOUND", Unavailable),
        ("/v1/artifacts", 422, "EXPIRED", TimedOut),
    ],
)
def test_a_refused_call_is_not_final(
    place: str, status: int, code: str, denial: type[Denied]
) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            honest, body = approver.gateway.answer, {"code": f"PROTO_ERR_{code}"}

            async def refusing(request: httpx.Request) -> httpx.Response:
                is_refused = request.url.path.endswith(place)
                return httpx.Response(status, json=body) if is_refused else await honest(request)

            approver.gateway.answer = refusing  # type: ignore[method-assign]
            try:
                pending = await approver.client.submit(CALL, timeout="1h", key="k")
                denied = await pending.outcome()
            except Denied as error:
                denied = error
            assert type(denied) is denial
            approver.gateway.answer = honest  # type: ignore[method-assign]
            pending = await approver.client.submit(CALL, timeout="1h", key="k")
            assert pending.request_id == denied.request_id
            ran = []
            outcome = await pending.outcome()
            assert isinstance(outcome, Approved)
            async with outcome.use(CALL):
                ran.append(pending.request_id)
            assert ran == [denied.request_id]

    asyncio.run(main())
