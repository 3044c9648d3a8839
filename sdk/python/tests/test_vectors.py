"""The known answers of tests/vectors."""

import base64
import hashlib
import json
from typing import Any

import pytest
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from make_vectors import MAKERS, VECTORS, load, text_of

from countersign.e2e import hpke
from countersign.e2e.accept import OwnRequest, accept
from countersign.e2e.artifact import PlainArtifact, repository_hash, seal_artifact
from countersign.e2e.bundle import DeviceBundle
from countersign.e2e.canonical import canonical, canonical_without, hash_without, number_text
from countersign.e2e.encoding import decode
from countersign.e2e.errors import DecisionRefused, Refusal
from countersign.e2e.hints import open_hints
from countersign.e2e.keys import DecryptionKey, SignatureKey, verifies
from countersign.e2e.outcome import OutcomeSubject, sign_outcome
from countersign.e2e.points import is_encryption_key, is_signing_key
from countersign.e2e.seal import Ciphertext, Purpose, open_ciphertext
from countersign.e2e.statement import read_statements
from countersign.e2e.strict_json import JsonRefused, parse
from countersign.e2e.times import format_time, parse_time
from countersign.e2e.trust import DeviceTrust
from countersign.errors import Changed
from countersign.request import PreparedRequest

ENCRYPTION = load("encryption.json")
REFUSED = load("refused.json")
STRICT = load("strict_json.json")
ACCEPT = load("accept.json")
SMALL = load("small_order.json")


def named(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.get("name", "") for case in cases])


def text_of_case(case: dict[str, Any]) -> bytes:
    if "base64url" in case:
        return decode("a case", case["base64url"])
    if "parts" in case:
        return "".join(text * times for text, times in case["parts"]).encode()
    text: str = case["text"]
    return text.encode()


@pytest.mark.parametrize("name", MAKERS)
def test_published_vectors_are_those_that_the_script_makes(name: str) -> None:
    assert (VECTORS / name).read_text() == text_of(name)


@named(STRICT["accepted"])
def test_strict_json_is_accepted(case: dict[str, Any]) -> None:
    text = text_of_case(case)
    form = text if "parts" in case else case["canonical"].encode()
    value = parse(text)
    assert canonical(value).encode() == form
    assert rfc8785.dumps(value) == form


@named(STRICT["refused"])
def test_other_json_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(JsonRefused) as refused:
        parse(text_of_case(case))
    assert refused.value.code == case["code"]


def test_numbers_are_those_of_a_second_implementation() -> None:
    for seed in range(5_000):
        bits = hashlib.sha256(str(seed).encode()).digest()
        mantissa, exponent = int.from_bytes(bits[:7], "little"), bits[8] * 256 + bits[9]
        number = float(f"{mantissa}e{exponent % 640 - 330}")
        if number not in (float("inf"),):
            assert number_text(number).encode() == rfc8785.dumps(number)


@pytest.mark.parametrize("row", load("hashes.json")["hashes"], ids=lambda row: row["name"])
def test_hashes(row: dict[str, Any]) -> None:
    assert canonical_without(row["object"], row["hashField"]) == row["canonical"]
    assert hash_without(row["object"], row["hashField"]) == row["sha256"]


def test_signatures() -> None:
    file = load("ed25519.json")
    key, signature = (decode("a key", file[name]) for name in ("publicKey", "signature"))
    for row in file["rows"]:
        assert verifies(key, row["message"].encode(), signature) == row["valid"]


@named(SMALL["ed25519"])
def test_weak_signing_keys_are_refused(case: dict[str, Any]) -> None:
    assert not is_signing_key(bytes.fromhex(case["key"]))


@named(SMALL["x25519"])
def test_weak_encryption_keys_are_refused(case: dict[str, Any]) -> None:
    assert not is_encryption_key(bytes.fromhex(case["key"]))


@named(SMALL["signatures"])
def test_verification_is_strict(case: dict[str, Any]) -> None:
    key, signature = bytes.fromhex(case["key"]), bytes.fromhex(case["signature"])
    assert verifies(key, bytes.fromhex(SMALL["message"]), signature) == case["valid"]


def test_the_library_below_accepts_forgeries_under_weak_keys() -> None:
    """The reason for our own check; if this fails, the check has become a second one."""
    accepted = 0
    for case in SMALL["signatures"]:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(case["key"]))
        try:
            key.verify(bytes.fromhex(case["signature"]), bytes.fromhex(SMALL["message"]))
            accepted += not case["valid"]
        except InvalidSignature:
            continue
    assert accepted == 3


def test_usable_keys() -> None:
    assert is_signing_key(bytes.fromhex(SMALL["usable"]["ed25519"]))
    assert is_encryption_key(bytes.fromhex(SMALL["usable"]["x25519"]))


def test_hpke() -> None:
    file = load("rfc9180.json")
    row = {
        name: bytes.fromhex(value)
        for name, value in file.items()
        if name[0] in "iseptkb" and isinstance(value, str) and name != "source"
    }
    ephemeral, sender = hpke.derive_key(row["ikmE"]), hpke.derive_key(row["ikmS"])
    recipient = hpke.derive_key(row["ikmR"])
    assert (ephemeral.public, sender.public) == (row["pkEm"], row["pkSm"])
    encapsulated, shared = hpke.encapsulate(ephemeral, sender, recipient.public)
    assert (encapsulated, shared) == (row["enc"], row["shared_secret"])
    assert hpke.decapsulate(encapsulated, recipient, sender.public) == shared
    assert hpke.key_schedule(shared, row["info"]) == (row["key"], row["base_nonce"])
    first = {name: bytes.fromhex(value) for name, value in file["encryptions"][0].items()}
    sealed = hpke.seal(ephemeral, sender, recipient.public, row["info"], first["pt"], first["aad"])
    assert sealed == (row["enc"], first["ct"])
    opened = hpke.open_sealed(
        row["enc"], recipient, sender.public, row["info"], first["ct"], first["aad"]
    )
    assert opened == first["pt"]


def enforcer_key() -> DecryptionKey:
    return DecryptionKey(bytes.fromhex(ENCRYPTION["keys"]["enforcer"]["x25519Private"]))


def pinned(*names: str) -> DeviceTrust:
    bundles = [DeviceBundle.parse(ENCRYPTION["keys"][name]["bundle"]) for name in names]
    return DeviceTrust("acme", "alice", bundles)


@pytest.mark.parametrize("name", ["phone", "laptop"])
def test_device_ids(name: str) -> None:
    key = ENCRYPTION["keys"][name]
    bundle = DeviceBundle.parse(key["bundle"])
    assert (bundle.id, bundle.to_text()) == (key["deviceId"], key["bundle"])


def test_weak_bundles_are_refused() -> None:
    assert ENCRYPTION["refusals"]
    for refusal in ENCRYPTION["refusals"]:
        with pytest.raises(Refusal):
            DeviceBundle.parse(refusal["deviceBundle"])


def test_sealing_with_known_randomness() -> None:
    file = ENCRYPTION["artifact"]
    drawn = [file["contentKey"], decode("a nonce", file["ciphertext"]["nonce"]).hex()]
    drawn += [row["ikmE"] for row in file["ephemeral"]]
    source = iter(drawn)
    artifact = PlainArtifact.parse(file["plaintext"])
    sealed = seal_artifact(
        enforcer_key(),
        "build-bot",
        artifact,
        [pinned("phone", "laptop")],
        lambda _: bytes.fromhex(next(source)),
    )
    assert sealed.to_json() == file["ciphertext"]
    assert canonical(artifact.context("build-bot")) == file["keyAssociatedData"]


def test_opening() -> None:
    file = ENCRYPTION["artifact"]
    artifact = PlainArtifact.parse(file["plaintext"])
    for name in ("phone", "laptop"):
        keys = ENCRYPTION["keys"][name]
        opened = open_ciphertext(
            Ciphertext.read(Purpose.ARTIFACT, file["ciphertext"]),
            keys["deviceId"],
            DecryptionKey(bytes.fromhex(keys["x25519Private"])),
            enforcer_key().public,
            artifact.context("build-bot"),
        )
        assert opened.decode() == file["plaintext"]


@named(REFUSED["ciphertexts"])
def test_other_ciphertexts_are_refused(case: dict[str, Any]) -> None:
    keys = ENCRYPTION["keys"]["phone"]
    context = {"v": 1, **case["context"]}
    with pytest.raises(Refusal):  # noqa: PT012
        sealed = Ciphertext.read(Purpose.ARTIFACT, case["ciphertext"])
        own = DecryptionKey(bytes.fromhex(keys["x25519Private"]))
        text = open_ciphertext(sealed, keys["deviceId"], own, enforcer_key().public, context)
        if PlainArtifact.parse(text).context(context["enforcerId"]) != context:
            raise Refusal("it does not agree with what stands beside it")


@named(ENCRYPTION["decisions"])
def test_hints_open(case: dict[str, Any]) -> None:
    body, phone = case["body"], pinned("phone").in_force[0]
    assert canonical_without(body, "signature") == case["signable"]
    if "policyHints" in body:
        context = parse(case["sealedHints"]["keyAssociatedData"])
        assert isinstance(context, dict)
        hints = open_hints(
            body["policyHints"], context, "build-bot", enforcer_key(), phone.encryption_key
        )
        plain = json.loads(case["sealedHints"]["plaintext"])
        assert hints.reason == plain.get("reason")
        assert [list(texts) for texts in hints.answers or ()] == plain.get("answers", [])


def judge(decision: str, at: int, trust: DeviceTrust, artifact: PlainArtifact) -> Any:
    request = OwnRequest.of(artifact, "build-bot")
    try:
        value = parse(decision)
    except Refusal as error:
        raise DecisionRefused(1, str(error)) from error
    return accept(value, request, enforcer_key(), [trust], at)


@named(REFUSED["decisions"])
def test_other_decisions_are_refused(case: dict[str, Any]) -> None:
    artifact = PlainArtifact.parse(ENCRYPTION["artifact"]["plaintext"])
    with pytest.raises(DecisionRefused):
        judge(
            json.dumps(case["body"]), parse_time(REFUSED["at"]), pinned("phone", "laptop"), artifact
        )


def known_devices() -> DeviceTrust:
    bundles = [DeviceBundle.parse(text) for text in (*ACCEPT["devices"], ACCEPT["revokedBundle"])]
    return DeviceTrust(ACCEPT["tenantId"], ACCEPT["approverId"], bundles, set(ACCEPT["revoked"]))


@named(ACCEPT["accepted"])
def test_decisions_are_accepted(case: dict[str, Any]) -> None:
    artifact = PlainArtifact.parse(ACCEPT["artifact"])
    verified = judge(case["decision"], parse_time(ACCEPT["at"]), known_devices(), artifact)
    assert verified.is_approval == (case["verdict"] == "approve")
    assert (verified.approver, verified.device.id) == ("alice", case["device"])
    assert (verified.hints.reason, verified.hints.action_id) == (
        case.get("reason"),
        case.get("actionId"),
    )


@named(ACCEPT["refused"])
def test_decisions_are_refused_by_the_right_check(case: dict[str, Any]) -> None:
    artifact = PlainArtifact.parse(ACCEPT["artifact"])
    at = parse_time(case.get("at", ACCEPT["at"]))
    with pytest.raises(DecisionRefused) as refused:
        judge(case["decision"], at, known_devices(), artifact)
    assert refused.value.check == case["check"]


def test_every_check_has_a_refused_decision() -> None:
    assert {case["check"] for case in ACCEPT["refused"]} == set(range(1, 8))


@named(REFUSED["statements"])
def test_statements_are_followed(case: dict[str, Any]) -> None:
    trust = pinned("phone")
    trust.follow_all(read_statements(case["list"]))
    assert {device.id for device in trust.in_force} == set(case["inForce"])
    assert trust.revoked == set(case["revoked"])


@pytest.mark.parametrize("row", load("repository.json")["repositories"])
def test_repositories(row: dict[str, str]) -> None:
    assert repository_hash(row["salt"], row["text"]) == row["repoRef"]


def test_stored_requests_belong_to_the_enforcer_that_stored_them() -> None:
    file = load("stored_request.json")
    keys = DecryptionKey(decode("a key", file["privateKey"]))
    request = PreparedRequest.parse(file["accepted"], keys, "build-bot", "acme")
    assert request.to_json(keys) == file["accepted"]
    for case in file["refused"]:
        members = json.loads(case["record"])
        with pytest.raises(Changed):
            PreparedRequest.parse(case["record"], keys, members["enforcerId"], members["tenantId"])


def test_outcomes_have_the_published_form() -> None:
    file = load("outcome.json")
    artifact = PlainArtifact.parse(file["artifact"])
    published = json.loads(file["accepted"][0]["envelope"])
    statement = json.loads(base64.b64decode(published["payload"]))
    envelope = json.loads(
        sign_outcome(
            SignatureKey(bytes(32)),
            [
                OutcomeSubject(
                    artifact.request_id, artifact.hash, *statement["predicate"]["decisions"]
                )
            ],
            tenant=file["tenantId"],
            enforcer_id=file["enforcerId"],
            cause="",
            at=parse_time(statement["predicate"]["at"]),
        )
    )
    assert envelope["payload"] == published["payload"]
    assert envelope.keys() == published.keys()


def test_times() -> None:
    assert parse_time("2026-02-21T13:10:00.5+01:00") == parse_time("2026-02-21T12:10:00.500000Z")
    assert format_time(parse_time("2026-02-21T12:10:00.120Z")) == "2026-02-21T12:10:00.12Z"
    for text in (
        "2026-02-30T00:00:00Z",
        "2026-02-21",
        "2026-02-21T12:10:00",
        "0000-01-01T00:00:00Z",
        "2026-02-21T12:10:00Z\n",
    ):
        with pytest.raises(Refusal):
            parse_time(text)
