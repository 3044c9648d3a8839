"""Calls to the gateway: any node of a list, attempts bounded in time, retries that do no harm.

Every call has the same effect however often it arrives. Nothing that a gateway answers is believed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

from .durations import Deadline
from .e2e.errors import Refusal
from .e2e.strict_json import JsonObject, parse_object
from .e2e.text import visible
from .errors import CountersignError, ProfileError
from .secret import SecretText
from .version import VERSION

# It takes as long to import as the rest of this library, so that is left to the first client.
if TYPE_CHECKING:
    import httpx

LOG = logging.getLogger("countersign")
CONNECT_TIMEOUT = 5.0
# For one attempt, unless a call waits for something.
ATTEMPT_TIMEOUT = 15.0
FIRST_RETRY_INTERVAL = 0.1
MAX_RETRY_INTERVAL = 5.0
MAX_ANSWER_BYTES = 32 << 20
_BUSY = (429, 502, 503, 504)


class GatewayError(CountersignError):
    """A call that failed."""

    def __init__(self, message: str, status: int | None = None, code: str = "") -> None:
        super().__init__(visible(message))
        self.status = status
        self.code = code

    @property
    def is_away(self) -> bool:
        """Whether the gateway is away or busy, rather than refuses."""
        return self.status is None or self.status >= 500 or self.status == 429


class UnexpectedAnswer(GatewayError):
    """An answer that makes no sense. Trying again would not help."""

    @property
    def is_away(self) -> bool:
        return False


@dataclass(frozen=True)
class GatewayCall:
    method: str
    path: str
    body: str | None = field(default=None, repr=False)
    attempt_timeout: float = ATTEMPT_TIMEOUT


@dataclass(frozen=True)
class GatewayAnswer:
    status: int
    body: bytes = field(repr=False)
    exchange_state: str | None = None
    retry_after: float | None = None

    def members(self) -> JsonObject:
        try:
            return parse_object(self.body)
        except Refusal as error:
            raise UnexpectedAnswer(f"the gateway's answer is not strict JSON: {error}") from error


def path(*parts: str) -> str:
    """A path with one segment for each part, whatever characters they have."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


@dataclass(frozen=True)
class GatewayLocation:
    """Where a gateway is, how it proves to be it, and the credential for it."""

    urls: Sequence[str]
    ca: str | None
    allow_http: bool
    api_key: SecretText

    def nodes(self) -> list[httpx.URL]:
        return [_parse_url(url, self.allow_http) for url in self.urls]


def _is_loopback(url: httpx.URL) -> bool:
    try:
        return ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        return url.host == "localhost" or url.host.endswith(".localhost")


def _parse_url(text: str, allow_http: bool) -> httpx.URL:
    import httpx

    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise ProfileError(
            "gateway.urls has no address such as https://gateway.example.org"
        ) from error
    if url.scheme == "http" and not (allow_http or _is_loopback(url)):
        raise ProfileError(
            "gateway.urls: plain http would show the credential to the network; use https"
        )
    if url.scheme not in ("http", "https") or not url.host:
        raise ProfileError("gateway.urls: expected https://…")
    if url.userinfo or url.query or url.fragment:
        raise ProfileError("gateway.urls: expected a host, an optional port and an optional path")
    return url


def _tls(location: GatewayLocation, nodes: Sequence[httpx.URL]) -> ssl.SSLContext:
    if not any(node.scheme == "https" for node in nodes):
        # Trusts nobody, and takes no time to load.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context = ssl.create_default_context(cafile=location.ca)
    except (OSError, ssl.SSLError) as error:
        raise ProfileError("gateway.ca cannot be read as certificates") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class GatewayClient:
    """Calls under one credential. It belongs to one event loop."""

    def __init__(
        self, location: GatewayLocation, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        import httpx

        self._nodes = location.nodes()
        self._current = 0
        self._api_key = location.api_key
        self._is_away = False
        self._http = httpx.AsyncClient(
            transport=transport,
            verify=_tls(location, self._nodes),
            # A proxy cannot reach this machine's own ports, and must not see calls in plain.
            trust_env=not any(_is_loopback(node) for node in self._nodes),
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def expect(
        self, call: GatewayCall, expected: Sequence[int], deadline: Deadline
    ) -> GatewayAnswer:
        """Makes a call, and turns any status but those `expected` into an error."""
        answer = await self.call(call, deadline)
        if answer.status not in expected:
            raise _refusal(answer)
        return answer

    async def call(self, call: GatewayCall, deadline: Deadline) -> GatewayAnswer:
        """Makes a call, and retries until an answer or the deadline."""
        pause, tried = FIRST_RETRY_INTERVAL, 1
        before: GatewayError | GatewayAnswer | None = None
        while True:
            last, wait = await self._attempt(call, deadline)
            if isinstance(last, UnexpectedAnswer):
                raise last
            if isinstance(last, GatewayAnswer) and last.status not in _BUSY:
                self._set_away(None)
                return last
            self._set_away(last)
            self._current += 1
            # Another node may be fine: there is no pause before each was tried once.
            is_untried = tried < len(self._nodes) and wait is None
            if wait is None:
                wait = 0.0 if is_untried else pause * random.uniform(0.8, 1.2)
            left = deadline.left()
            if wait >= left:
                # An attempt that the end has cut off says less than the one before it.
                ending = before if left == 0 and before is not None else last
                if isinstance(ending, GatewayAnswer):
                    return ending
                raise ending
            before = last
            await asyncio.sleep(wait)
            tried += 1
            if not is_untried:
                pause = min(pause * 2, MAX_RETRY_INTERVAL)

    async def _attempt(
        self, call: GatewayCall, deadline: Deadline
    ) -> tuple[GatewayAnswer | GatewayError, float | None]:
        import httpx

        node = str(self._nodes[self._current % len(self._nodes)]).rstrip("/")
        try:
            async with asyncio.timeout(min(call.attempt_timeout, deadline.left())):
                answer = await self._send(call, node)
        except TimeoutError:
            return GatewayError(f"the gateway at {node} did not answer in time"), None
        except httpx.HTTPError as error:
            problem = f"the gateway at {node} cannot be reached: {_cause(error)}"
            if _is_untrusted(error):
                return UnexpectedAnswer(problem), None
            return GatewayError(problem), None
        return answer, answer.retry_after

    async def _send(self, call: GatewayCall, node: str) -> GatewayAnswer:
        headers = {
            "Accept": "application/json, */*",
            "Accept-Encoding": "identity",
            "Authorization": f"Bearer {self._api_key.expose()}",
            "User-Agent": f"countersign-python/{VERSION}",
        }
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        content = None if call.body is None else call.body.encode()
        request = self._http.build_request(
            call.method, node + call.path, headers=headers, content=content
        )
        response = await self._http.send(request, stream=True)
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise UnexpectedAnswer("the gateway's answer is compressed")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise UnexpectedAnswer("the gateway's answer has more than 32 MiB")
        finally:
            await response.aclose()
        retry_after = response.headers.get("retry-after", "")
        is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10
        return GatewayAnswer(
            response.status_code,
            bytes(body),
            response.headers.get("exchange-state"),
            float(retry_after) if is_number and response.status_code in _BUSY else None,
        )

    def _set_away(self, cause: GatewayError | GatewayAnswer | None) -> None:
        if cause is not None and not self._is_away:
            text = cause if isinstance(cause, GatewayError) else f"it is busy ({cause.status})"
            LOG.warning("gateway_away: %s", text)
        self._is_away = cause is not None


def _cause(error: BaseException) -> str:
    """The innermost cause. The layers around it only repeat that a request failed."""
    inner = error.__cause__ or error.__context__
    text = _cause(inner) if inner is not None else str(error)
    return text or type(error).__name__


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether the certificate is not one to trust, which no second attempt changes."""
    if error is None:
        return False
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    return _is_untrusted(error.__cause__ or error.__context__)


def _refusal(answer: GatewayAnswer) -> GatewayError:
    code = ""
    try:
        members = parse_object(answer.body)
        body = members.get("body", members)
        found = body.get("code") if isinstance(body, dict) else None
        code = found.removeprefix("PROTO_ERR_") if isinstance(found, str) else ""
    except Refusal:
        pass
    shown = code[:64] or "no reason given"
    return GatewayError(f"the gateway refused it: {shown} ({answer.status})", answer.status, code)


TransportFactory: TypeAlias = Callable[[], "httpx.AsyncBaseTransport"]
