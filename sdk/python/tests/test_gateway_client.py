"""Calls to a gateway: nodes, proxies, and answers that are not believed."""

import asyncio
import ssl
from typing import Any

import httpx
import pytest

from countersign.durations import Deadline
from countersign.gateway import GatewayCall, GatewayClient, GatewayError, GatewayLocation
from countersign.secret import SecretText


def location(*urls: str) -> GatewayLocation:
    return GatewayLocation(urls, None, False, SecretText("key"))


def test_another_node_is_asked_at_once() -> None:
    seen: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        assert request.headers["authorization"] == "Bearer key"
        if request.url.port == 1:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={})

    async def main() -> None:
        nodes = location("http://127.0.0.1:1/base/", "http://127.0.0.1:2")
        gateway = GatewayClient(nodes, httpx.MockTransport(answer))
        found = await gateway.call(GatewayCall("GET", "/v1/status"), Deadline.after(5))
        assert found.status == 200
        await gateway.close()

    asyncio.run(main())
    assert seen == ["http://127.0.0.1:1/base/v1/status", "http://127.0.0.1:2/v1/status"]


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (httpx.Response(200, content=b"x" * (33 << 20)), "32 MiB"),
        (
            httpx.Response(200, headers={"Content-Encoding": "br"}, stream=httpx.ByteStream(b"")),
            "compressed",
        ),
        (httpx.ConnectError("certificate"), "certificate"),
    ],
)
def test_answers_that_no_second_attempt_changes(response: Any, problem: str) -> None:
    calls = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        if isinstance(response, httpx.Response):
            return response
        raise response from ssl.SSLCertVerificationError("certificate")

    async def main() -> None:
        gateway = GatewayClient(
            location("https://gateway.example.org"), httpx.MockTransport(answer)
        )
        with pytest.raises(GatewayError, match=problem) as failed:
            await gateway.call(GatewayCall("GET", "/"), Deadline.after(5))
        assert not failed.value.is_away
        await gateway.close()

    asyncio.run(main())
    assert calls == 1


def test_proxies_are_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.org:3128")
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example.org:3128")

    async def main() -> None:
        for url, proxies in (
            ("http://127.0.0.1:1", 0),
            ("http://[::1]:1", 0),
            ("http://a.localhost:1", 0),
            ("https://gateway.example.org", 2),
        ):
            gateway = GatewayClient(location(url))
            assert len(gateway._http._mounts) == proxies
            await gateway.close()

    asyncio.run(main())


def test_text_of_the_gateway_is_made_visible() -> None:
    error = GatewayError("\u202e\x1b[2J evil")
    assert str(error) == "\\u{202e}\\u{1b}[2J evil"
