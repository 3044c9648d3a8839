"""Makes every call of a published client library against a gateway, and counts those that work.

`make compat` runs it with each version of the library. A call works if the library returns what
its own documentation says, or raises the error that the situation calls for.
"""

import asyncio
import base64
import importlib.metadata
import inspect
import json
import sys
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import airlock_gateway
import httpx
from airlock_gateway import AirlockGatewayClient, AirlockGatewayError, ArtifactSubmitRequest
from airlock_gateway.models import PairingInitiateRequest, PresenceHeartbeatRequest

VERSION = importlib.metadata.version("airlock-gateway")
# The newer line, in spite of its number.
IS_NEWER = hasattr(AirlockGatewayClient, "submit_ack")
Payload = getattr(airlock_gateway, "EncryptedPayload" if IS_NEWER else "CiphertextRef")
ENFORCER, APPROVER = f"bot-{VERSION}", f"alice-{VERSION}"
HASH = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1"


class Stage:
    """A gateway, credentials for both sides, and a tally of calls."""

    def __init__(self, ready: dict[str, Any]) -> None:
        self.url: str = ready["nodes"][0]
        self.http = httpx.Client(base_url=self.url, timeout=30)
        self.admin: str = ready["admin"]["apiKey"]
        self.key = self.credential("enforcer", ENFORCER)
        self.approver = self.credential("approver", APPROVER)
        self.results: list[tuple[str, str | None]] = []

    def credential(self, role: str, bound: str) -> str:
        """A key of the profile compat; a strict one where the gateway knows no profiles."""
        body = {"role": role, "boundId": bound, "profile": "compat"}
        for sent in (body, {"role": role, "boundId": bound}):
            answer = self.ask(self.admin, "POST", "/platform/v1/credentials", sent)
            if answer.status_code == 201:
                return answer.json()["apiKey"]
        raise RuntimeError(answer.text)

    def ask(self, key: str, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"}
        return self.http.request(method, path, json=body, headers=headers)

    async def attempt(
        self,
        name: str,
        call: Awaitable[Any],
        expected: Callable[[Any], bool] = lambda _: True,
        error: Callable[[AirlockGatewayError], bool] | None = None,
    ) -> Any:
        """Makes a call; it should return something `expected`, or raise an `error` of this kind."""
        result, problem = None, None
        try:
            result = await call
            if error:
                problem = "raised nothing"
            elif not expected(result):
                problem = f"returned {result!r}"
        except AirlockGatewayError as raised:
            if not error or not error(raised):
                problem = f"{raised.status_code} {raised.error_code}: {raised}"
        except Exception as raised:  # A crash of the library is a result too.
            problem = repr(raised)
        self.results.append((name, problem))
        return result

    def client(self, way: str, key: str | None = None) -> AirlockGatewayClient:
        key = key or self.key
        identity, secret = key.removeprefix("csk_").split("_", 1)
        pair = {"client_id": identity, "client_secret": secret}
        ways = {"token": {"token": key}, "pat": {"pat": key}, "parts": pair}
        ways["both"] = {**pair, "token": key}
        return AirlockGatewayClient(self.url, **ways[way])

    def item(self, request: str) -> dict[str, Any] | None:
        """The request in the approver's inbox."""
        inbox = self.ask(self.approver, "GET", f"/v1/approvers/{APPROVER}/inbox?limit=200")
        items = inbox.json()["body"]["items"]
        return next((item for item in items if item["requestId"] == request), None)

    def decide(self, request: str, decision: str, artifact_hash: str) -> None:
        now = datetime.now(UTC).isoformat()
        signature = base64.urlsafe_b64encode(bytes(64)).rstrip(b"=").decode()
        body = {
            "artifactHash": artifact_hash,
            "decision": decision,
            "nonce": uuid.uuid4().hex,
            "signerKeyId": "key",
            "signature": signature,
            "reason": "because",
        }
        envelope = {
            "msgType": "decision.submit",
            "requestId": request,
            "createdAt": now,
            "sender": {"approverId": APPROVER},
            "body": body,
        }
        self.ask(self.approver, "POST", "/v1/decisions", envelope)

    def complete(self, nonce: str, response: dict[str, Any]) -> None:
        body = {"pairingNonce": nonce, "responseJson": json.dumps(response)}
        answer = self.ask(self.approver, "POST", "/v1/pairing/complete", body)
        if answer.status_code != 200:
            body = {"nonce": nonce, "approverId": APPROVER}
            self.ask(self.approver, "POST", "/v1/pairing/complete", body)


def submission(**more: Any) -> ArtifactSubmitRequest:
    settings = {
        "enforcer_id": ENFORCER,
        "artifact_hash": HASH,
        "ciphertext": Payload(alg="AES-256-GCM", data="c2VhbGVk", nonce="bm9uY2U", tag="dGFn"),
    }
    return ArtifactSubmitRequest(**{**settings, **more})


def in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


async def simple_calls(stage: Stage, way: str) -> None:
    """The calls that need nothing before them, with each way to authenticate."""
    async with stage.client(way) as client:
        echoed = lambda echo: echo.utc and echo.local and echo.timezone == "UTC"
        await stage.attempt(f"echo ({way})", client.echo(), echoed)
        allowed = lambda status: status == "Allowed"
        await stage.attempt(f"check_consent ({way})", client.check_consent(), allowed)
        heartbeat = PresenceHeartbeatRequest(
            enforcer_id=ENFORCER, workspace_name="w", enforcer_label="l"
        )
        await stage.attempt(f"send_heartbeat ({way})", client.send_heartbeat(heartbeat))
        policies = client.get_effective_dnd_policies(enforcer_id=ENFORCER, workspace_id="w")
        await stage.attempt(
            f"get_effective_dnd_policies ({way})", policies, lambda found: found.body == []
        )


async def pairing(stage: Stage, way: str) -> str:
    """An enforcer begins, an approver completes; the routing token."""
    async with stage.client(way) as client:
        request = PairingInitiateRequest(
            device_id="device-1",
            enforcer_id=ENFORCER,
            gateway_url=stage.url,
            x25519_public_key="a-key",
            enforcer_label="The bot",
            workspace_name="w",
        )
        named = lambda begun: (
            begun.pairing_nonce and begun.pairing_code and begun.device_id == "device-1"
        )
        begun = await stage.attempt(
            f"initiate_pairing ({way})", client.initiate_pairing(request), named
        )
        if begun is None:
            return ""
        nonce = begun.pairing_nonce
        pending = lambda status: status.state == "Pending" and status.pairing_nonce == nonce
        status = client.get_pairing_status(nonce)
        await stage.attempt(f"get_pairing_status ({way}, pending)", status, pending)
        stage.complete(nonce, {"x25519PublicKey": "hers"})
        done = lambda status: (
            status.state == "Completed"
            and status.routing_token
            and json.loads(status.response_json) == {"x25519PublicKey": "hers"}
        )
        status = client.get_pairing_status(nonce)
        status = await stage.attempt(f"get_pairing_status ({way}, completed)", status, done)
        return (status and status.routing_token) or ""


async def exchanges(stage: Stage, way: str, token: str) -> None:
    """Requests from their submission to their end."""
    metadata = {"routingToken": token} if token else {"approverId": APPROVER}
    async with stage.client(way) as client:

        async def submit(name: str, **more: Any) -> str | None:
            sent = client.submit_artifact(submission(metadata=metadata, **more))
            return await stage.attempt(f"submit_artifact ({way}, {name})", sent, stage.item)

        for decision in ("approve", "reject"):
            request = await submit(decision, expires_at=in_an_hour())
            if not request:
                continue
            pending = lambda status: status.body.state == "pendingApproval"
            status = client.get_exchange_status(request)
            await stage.attempt(f"get_exchange_status ({way}, pending)", status, pending)
            waited = client.wait_for_decision(request, 1)
            await stage.attempt(
                f"wait_for_decision ({way}, timeout)", waited, lambda found: found is None
            )
            stage.decide(request, decision, HASH)
            told = lambda found: found.msg_id and found.body.is_approved == (decision == "approve")
            waited = client.wait_for_decision(request, 5)
            decided = await stage.attempt(f"wait_for_decision ({way}, {decision})", waited, told)
            if IS_NEWER and decided:
                await stage.attempt(
                    f"submit_ack ({way})", client.submit_ack(decided.msg_id, request)
                )
                delivered = lambda status: status.body.state == "delivered"
                status = client.get_exchange_status(request)
                await stage.attempt(f"get_exchange_status ({way}, delivered)", status, delivered)
            again = client.withdraw_exchange(request)
            conflict = lambda error: error.is_conflict
            await stage.attempt(f"withdraw_exchange ({way}, decided)", again, error=conflict)

        lasting = lambda request: stage.item(request) is not None
        sent = client.submit_artifact(submission(metadata=metadata))
        request = await stage.attempt(f"submit_artifact ({way}, no expiry)", sent, lasting)
        if request:
            await stage.attempt(f"withdraw_exchange ({way})", client.withdraw_exchange(request))
        unsealed = Payload(alg="AES-256-GCM", data="c2VhbGVk")
        await submit("no nonce", ciphertext=unsealed, expires_at=in_an_hour())
        over = datetime.now(UTC) - timedelta(minutes=5)
        late = client.submit_artifact(submission(metadata=metadata, expires_at=over))
        expired = lambda error: error.is_expired
        await stage.attempt(f"submit_artifact ({way}, expired)", late, error=expired)
        missing = lambda error: error.status_code == 404 and error.error_code == "not_found"
        unknown = client.get_exchange_status("unknown")
        await stage.attempt(f"get_exchange_status ({way}, unknown)", unknown, error=missing)


async def ended_pairing(stage: Stage, token: str) -> None:
    """A revoked pairing, and one that there never was."""
    async with stage.client("token") as client:
        alone = client.submit_artifact(
            submission(metadata={"routingToken": "unknown"}, expires_at=in_an_hour())
        )
        nobody = lambda error: error.error_code == "no_approver"
        await stage.attempt("submit_artifact (unknown routing token)", alone, error=nobody)
        revoked = lambda answer: answer.status == "revoked"
        await stage.attempt("revoke_pairing", client.revoke_pairing(token), revoked)
        sent = client.submit_artifact(
            submission(metadata={"routingToken": token}, expires_at=in_an_hour())
        )
        ended = lambda error: error.is_pairing_revoked
        await stage.attempt("submit_artifact (revoked pairing)", sent, error=ended)
        # Without metadata it goes to every paired approver, and there is none.
        sent = client.submit_artifact(submission(expires_at=in_an_hour()))
        await stage.attempt("submit_artifact (no metadata, nobody paired)", sent, error=nobody)


async def claimed_pairing(stage: Stage) -> None:
    """An approver offers a code, the enforcer claims it."""
    from airlock_gateway.models import PairingClaimRequest

    offer = stage.ask(stage.approver, "POST", "/v1/pairing/pre-generate").json()

    def claim(code: str) -> Any:
        return PairingClaimRequest(
            pairing_code=code,
            device_id="device-1",
            enforcer_id=ENFORCER,
            enforcer_label="The bot",
            workspace_name="w",
            gateway_url=stage.url,
            x25519_public_key="a-key",
        )

    async with stage.client("pat") as client:
        code = offer.get("pairingCode", "0000-0000")
        named = lambda claimed: claimed.pairing_nonce == offer.get("pairingNonce")
        claimed = await stage.attempt("claim_pairing", client.claim_pairing(claim(code)), named)
        conflict = lambda error: error.is_conflict
        await stage.attempt(
            "claim_pairing (twice)", client.claim_pairing(claim(code)), error=conflict
        )
        wrong = lambda error: error.status_code == 404 and error.error_code == "not_found"
        await stage.attempt(
            "claim_pairing (wrong)", client.claim_pairing(claim("0000-0000")), error=wrong
        )
        if claimed:
            stage.complete(claimed.pairing_nonce, {})
            done = lambda status: status.state == "Completed" and status.routing_token
            status = client.get_pairing_status(claimed.pairing_nonce)
            await stage.attempt("get_pairing_status (claimed)", status, done)


async def encrypted(stage: Stage, token: str) -> None:
    """What the library encrypts arrives as it was sealed."""
    from airlock_gateway import crypto_helpers as crypto
    from airlock_gateway.models import EncryptedArtifactRequest

    ours, hers = crypto.generate_x25519_keypair(), crypto.generate_x25519_keypair()
    key = crypto.derive_shared_key(ours.private_key, hers.public_key)
    request = EncryptedArtifactRequest(
        enforcer_id=ENFORCER,
        plaintext_payload='{"b": 1, "a": "ls"}',
        encryption_key_base64url=key,
        metadata={"routingToken": token} if token else {"approverId": APPROVER},
    )

    def opened(name: str) -> bool:
        sealed = (stage.item(name) or {})["body"]["ciphertext"]
        payload = crypto.EncryptedPayload(
            sealed["alg"], sealed["data"], sealed["nonce"], sealed["tag"]
        )
        her_key = crypto.derive_shared_key(hers.private_key, ours.public_key)
        return crypto.aes_gcm_decrypt(her_key, payload) == '{"a":"ls","b":1}'

    async with stage.client("pat") as client:
        sent = client.encrypt_and_submit_artifact(request)
        await stage.attempt("encrypt_and_submit_artifact", sent, opened)


async def bad_credentials(stage: Stage) -> None:
    refused = lambda error: error.status_code == 401
    async with AirlockGatewayClient(stage.url, token="nonsense") as client:
        await stage.attempt("check_consent (bad token)", client.check_consent(), error=refused)
    async with AirlockGatewayClient(stage.url, client_id="nobody", client_secret="x") as client:
        await stage.attempt("check_consent (bad parts)", client.check_consent(), error=refused)
    if IS_NEWER:
        async with AirlockGatewayClient(stage.url, token=stage.key, pat="nonsense") as client:
            await stage.attempt(
                "check_consent (bad pat, good token)", client.check_consent(), error=refused
            )


async def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        stage = Stage(json.load(file))
    for way in ("token", "parts", "both") + (("pat",) if IS_NEWER else ()):
        await simple_calls(stage, way)
    ways = ("token", "pat" if IS_NEWER else "parts")
    token = ""
    for way in ways:
        token = await pairing(stage, way)
        await exchanges(stage, way, token)
    if IS_NEWER:
        await encrypted(stage, token)
    await bad_credentials(stage)
    await ended_pairing(stage, token)
    if IS_NEWER:
        await claimed_pairing(stage)

    made = {name.split(" ")[0] for name, _ in stage.results}
    public = {
        name
        for name, method in inspect.getmembers(AirlockGatewayClient, inspect.iscoroutinefunction)
        if not name.startswith("_") and name != "close"
    }
    for name in sorted(public - made):
        stage.results.append((name, "was not called"))
    works = [name for name, problem in stage.results if problem is None]
    for name, problem in stage.results:
        if problem:
            print(f"  fails: {name}: {problem}")
    print(f"airlock-gateway {VERSION}: {len(works)} of {len(stage.results)} calls work")
    return 0 if len(works) == len(stage.results) else 1


sys.exit(asyncio.run(main()))
