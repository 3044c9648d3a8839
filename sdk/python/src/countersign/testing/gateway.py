"""A gateway in memory. It can be as hostile as a real one: it never has a device's keys."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote
from uuid import uuid4

import httpx

from ..e2e.strict_json import Json, JsonObject, parse_object

_POLL_INTERVAL = 0.01


@dataclass
class FakeExchange:
    """A request as the gateway knows it."""

    request_id: str
    body: JsonObject
    submissions: int = 1
    state: str = "pendingApproval"
    decision: str | None = None
    message_id: str = field(default_factory=lambda: str(uuid4()))
    outcomes: list[JsonObject] = field(default_factory=list[JsonObject])


class FakeGateway:
    """Carries requests to a fake approver, and decisions back."""

    def __init__(self, on_request: Callable[[FakeExchange], None]) -> None:
        self._on_request = on_request
        self.exchanges: dict[str, FakeExchange] = {}
        # Of the approvers' devices, as a real gateway lists them.
        self.statements: list[Json] = []
        self.calls: list[tuple[str, str]] = []
        self._is_down = False
        self._is_silent = False
        self._change: Callable[[FakeExchange, str], str] | None = None
        # Requests whose decisions are not delivered.
        self._withheld: set[str] = set()
        # Answers to give instead of the right ones: status and headers.
        self.refusals: list[tuple[int, dict[str, str]]] = []

    def down(self) -> None:
        """From now on, no call arrives."""
        self._is_down = True

    def silent(self) -> None:
        """From now on, requests are taken and no decision is delivered."""
        self._is_silent = True

    def withhold(self, request_id: str) -> None:
        """From now on, the decision about this request is not delivered."""
        self._withheld.add(request_id)

    def up(self) -> None:
        """From now on, the gateway is honest again."""
        self._is_down, self._is_silent, self._change = False, False, None
        self._withheld.clear()

    def forge(self) -> None:
        """From now on, decisions are approvals that no device has signed."""

        def forged(_: FakeExchange, decision: str) -> str:
            members = {**json.loads(decision), "decision": "approve"}
            members.pop("policyHints", None)
            return json.dumps(members)

        self._change = forged

    def replay(self) -> None:
        """From now on, the first decision that was ever made is delivered for each request."""

        def replayed(_: FakeExchange, decision: str) -> str:
            earlier = (it.decision for it in self.exchanges.values() if it.decision is not None)
            return next(earlier, decision)

        self._change = replayed

    def swap_artifact(self) -> None:
        """From now on, decisions name this request and the artifact of another one."""

        def swapped(exchange: FakeExchange, decision: str) -> str:
            others = (it for it in self.exchanges.values() if it is not exchange)
            other = next((it.body["artifactHash"] for it in others), "0" * 64)
            return json.dumps({**json.loads(decision), "artifactHash": other})

        self._change = swapped

    def deliver(self, change: Callable[[str], str]) -> None:
        """From now on, the texts of decisions are changed in this way."""
        self._change = lambda _, decision: change(decision)

    def transport(self) -> httpx.AsyncBaseTransport:
        return _FakeTransport(self)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        if self._is_down:
            raise httpx.ConnectError("the fake gateway is down", request=request)
        parts = [
            unquote(part) for part in request.url.raw_path.decode().partition("?")[0].split("/")
        ]
        self.calls.append((request.method, "/".join(parts)))
        if self.refusals:
            status, headers = self.refusals.pop(0)
            return httpx.Response(status, headers=headers)
        match (request.method, parts[2:]):
            case "GET", ["approvers", approver, "devices"]:
                listed = {"approverId": approver, "devices": [], "statements": self.statements}
                return httpx.Response(200, json=listed)
            case "POST", ["artifacts"]:
                return self._submitted(parse_object(request.content))
            case "GET", ["exchanges", request_id, "wait"]:
                return await self._waited(request_id, int(request.url.params["timeout"]))
            case "POST", ["exchanges", request_id, "withdraw"]:
                return self._withdrawn(request_id)
            case "PUT", ["exchanges", request_id, "ciphertext"]:
                return self._sealed_again(request_id, parse_object(request.content))
            case "POST", ["acks"]:
                return self._acknowledged(parse_object(request.content))
            case _:
                return httpx.Response(404)

    def _submitted(self, envelope: JsonObject) -> httpx.Response:
        request_id, body = str(envelope["requestId"]), envelope["body"]
        if not isinstance(body, dict):
            return httpx.Response(400)
        known = self.exchanges.get(request_id)
        if known is None:
            exchange = FakeExchange(request_id, body)
            self.exchanges[request_id] = exchange
            self._on_request(exchange)
        elif known.body["artifactHash"] != body["artifactHash"]:
            return httpx.Response(409)
        else:
            known.submissions += 1
        answer = {"requestId": request_id, "duplicate": known is not None}
        return _envelope(202, "artifact.accepted", request_id, answer)

    async def _waited(self, request_id: str, timeout: int) -> httpx.Response:
        exchange = self.exchanges.get(request_id)
        if exchange is None:
            return httpx.Response(404)
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while loop.time() < until:
            if self._is_down:
                raise httpx.ReadError("the fake gateway went down")
            if exchange.state == "withdrawn":
                return httpx.Response(204, headers={"Exchange-State": exchange.state})
            is_withheld = self._is_silent or request_id in self._withheld
            if exchange.decision is not None and not is_withheld:
                return self._delivery(exchange, exchange.decision)
            await asyncio.sleep(_POLL_INTERVAL)
        return httpx.Response(204)

    def _delivery(self, exchange: FakeExchange, decision: str) -> httpx.Response:
        text = decision if self._change is None else self._change(exchange, decision)
        head = {"msgId": exchange.message_id, "msgType": "decision.deliver"}
        head |= {"requestId": exchange.request_id}
        content = json.dumps(head)[:-1] + f', "body": {text}}}'
        return httpx.Response(200, content=content.encode())

    def _withdrawn(self, request_id: str) -> httpx.Response:
        exchange = self.exchanges.get(request_id)
        if exchange is None:
            return httpx.Response(404)
        if exchange.decision is not None:
            return httpx.Response(409, json={"code": "PROTO_ERR_ALREADY_DECIDED"})
        exchange.state = "withdrawn"
        return _envelope(200, "exchange.withdrawn", request_id, {"state": "withdrawn"})

    def _sealed_again(self, request_id: str, envelope: JsonObject) -> httpx.Response:
        exchange, body = self.exchanges.get(request_id), envelope["body"]
        if exchange is None or not isinstance(body, dict):
            return httpx.Response(404)
        exchange.body = body
        return httpx.Response(204)

    def _acknowledged(self, envelope: JsonObject) -> httpx.Response:
        exchange, body = self.exchanges.get(str(envelope["requestId"])), envelope["body"]
        if exchange is None or not isinstance(body, dict):
            return httpx.Response(404)
        exchange.outcomes.append(body)
        exchange.state = "delivered"
        return httpx.Response(200, json={})


def _envelope(
    status: int, kind: str, request_id: str, body: Mapping[str, object]
) -> httpx.Response:
    members = {"msgType": kind, "requestId": request_id, "body": body}
    return httpx.Response(status, json=members)


class _FakeTransport(httpx.AsyncBaseTransport):
    def __init__(self, gateway: FakeGateway) -> None:
        self._gateway = gateway

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        response = await self._gateway.answer(request)
        response.request = request
        return response
