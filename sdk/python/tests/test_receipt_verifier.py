"""The independent verifier of receipts, on the known answers of tests/vectors."""

from __future__ import annotations

import base64
import contextlib
import json
import unittest
from pathlib import Path
from typing import Any

import pytest
import receipt_formats as formats
import receipt_teams as teams
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from receipt_verifier import Anchors, MalformedReceipt, check_artifact, verify

VECTORS = Path(__file__).parents[3] / "tests" / "vectors"


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


class Receipts(unittest.TestCase):
    def test_people(self) -> None:
        vectors = load("receipt.json")
        anchors = Anchors(vectors["tenantId"], vectors["anchors"])
        for kind in ("consistent", "false"):
            for case in vectors[kind]:
                with self.subTest(f"{kind}: {case['name']}"):
                    assert verify(case["receipt"].encode(), anchors) == case["unproven"]

    def test_malformed(self) -> None:
        vectors = load("receipt.json")
        for case in vectors["malformed"]:
            with self.subTest(case["name"]), pytest.raises(MalformedReceipt):
                verify(case["receipt"].encode(), Anchors(vectors["tenantId"], vectors["anchors"]))

    def test_teams(self) -> None:
        vectors = load("team_receipt.json")
        for kind in ("consistent", "false"):
            for case in vectors[kind]:
                with self.subTest(f"{kind}: {case['name']}"):
                    anchors = Anchors("acme", teams=set(case["teams"]))
                    assert verify(case["receipt"].encode(), anchors) == case["unproven"]

    def test_later_states(self) -> None:
        for case in load("team_receipt.json")["later"]:
            with self.subTest(case["name"]):
                chain = [
                    json.dumps(state) if isinstance(state, dict) else state
                    for state in case["known"]
                ]
                anchors = Anchors("acme", teams=set(case["teams"]), chains=[chain])
                assert verify(case["receipt"].encode(), anchors) == case["unproven"]


class WithoutVectors(unittest.TestCase):
    """Facts and anchors that no vector of receipts has: `asked`, ids of devices, revoked devices."""

    def setUp(self) -> None:
        self.vectors = load("receipt.json")
        self.text = self.vectors["consistent"][0]["receipt"]
        self.device = json.loads(json.loads(self.text)["parts"][0]["decision"])["signerKeyId"]

    def test_device_ids_and_revocation(self) -> None:
        trusted = Anchors("", device_ids={"alice": {self.device}})
        assert verify(self.text.encode(), trusted) == ["enforcer: absent", "asked: absent"]
        revoked = Anchors("acme", self.vectors["anchors"], revoked={"alice": {self.device}})
        assert "device 0: failed" in verify(self.text.encode(), revoked)

    def test_asked(self) -> None:
        receipt, key = json.loads(self.text), Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes_raw()
        decision = formats.read_decision(receipt["parts"][0]["decision"])
        entry = formats.entry_of(decision.body["requestId"], decision.digest)
        for tenant, expected in (("acme", []), ("other", ["asked: failed"])):
            origin = f"gateway/log/{formats.to_b64url(formats.sha256(tenant.encode())[:16])}/1"
            note = f"{origin}\n1\n{base64.b64encode(formats.sha256(bytes(1), entry)).decode()}\n"
            signature = formats.sha256(origin.encode(), b"\n\1", public)[:4] + key.sign(
                note.encode()
            )
            line = f"\u2014 {origin} {base64.b64encode(signature).decode()}\n"
            proof = f"c2sp.org/tlog-proof@v1\nindex 0\n\n{note}\n{line}"
            text = json.dumps({**receipt, "log": [proof]}).encode()
            for keys, result in (
                ([public], expected),
                ([bytes(32)], ["asked: failed"]),
                ([], ["asked: absent"]),
            ):
                anchors = Anchors("acme", self.vectors["anchors"], log_keys=keys)
                assert verify(text, anchors) == ["enforcer: absent", *result]

    def test_current(self) -> None:
        cases = {case["name"]: case for case in load("team_receipt.json")["consistent"]}
        later = json.loads(cases["somebody who has left before the outcome"]["receipt"])["teams"]
        unproven = verify(cases["two members"]["receipt"].encode(), Anchors("acme", chains=[later]))
        assert unproven == ["current 1: absent", "asked: absent"]


class Formats(unittest.TestCase):
    """The vectors of the formats under receipts."""

    def test_json(self) -> None:
        vectors = load("strict_json.json")
        for case in vectors["accepted"]:
            with self.subTest(case["name"]):
                expected = case["canonical"].encode() if "canonical" in case else json_text(case)
                assert formats.canonical(formats.read_json(json_text(case))) == expected
        for case in vectors["refused"]:
            with self.subTest(case["name"]), pytest.raises(formats.Malformed):
                formats.read_json(json_text(case))

    def test_keys(self) -> None:
        vectors = load("small_order.json")
        for kind, usable in (
            ("ed25519", formats.usable_ed25519),
            ("x25519", formats.usable_x25519),
        ):
            assert usable(bytes.fromhex(vectors["usable"][kind]))
            for case in vectors[kind]:
                assert not usable(bytes.fromhex(case["key"])), case["name"]
        for case in vectors["signatures"]:
            key, signature, message = map(
                bytes.fromhex, (case["key"], case["signature"], vectors["message"])
            )
            assert formats.verifies(key, signature, message) == case["valid"], case["name"]

    def test_rules(self) -> None:
        vectors = load("rule.json")
        assert all(teams.read_rule(case["rule"]) for case in vectors["accepted"])
        assert not any(teams.read_rule(case["rule"]) for case in vectors["unknown"])
        for case in vectors["refused"]:
            with self.subTest(case["name"]), pytest.raises(formats.Malformed):
                teams.read_rule(case["rule"])
        part = vectors["part"]
        result = check_artifact(json.loads(part["artifact"])).part(part["requestId"], part["seat"])
        assert formats.canonical(result.body).decode() == part["result"]

    def test_teams(self) -> None:
        vectors = load("team.json")
        for case in vectors["chains"]:
            with self.subTest(case["name"]):
                states = [teams.read_state(json.dumps(state)) for state in case["states"]]
                followed = states[:-1] if case["refusal"] else states
                assert teams.read_chain(followed)[-1].digest == case["head"]["digest"]
                if case["refusal"]:
                    with pytest.raises(formats.Malformed):
                        teams.read_chain(states)
        for case in vectors["states"]:
            with self.subTest(case["name"]), pytest.raises(formats.Malformed):
                teams.read_state(json.dumps(case["state"]))

    def test_statements(self) -> None:
        known, vectors = load("encryption.json"), load("refused.json")["statements"]
        phone = formats.read_bundle(known["keys"]["phone"]["bundle"])
        for case in vectors:
            with self.subTest(case["name"]):
                readable = []
                for item in case["list"]:
                    with contextlib.suppress(formats.Malformed):
                        readable.append(
                            formats.read_statement(
                                item if isinstance(item, str) else json.dumps(item)
                            )
                        )
                own = [
                    item
                    for item in readable
                    if (item.tenant, item.approver) == (known["tenantId"], "alice")
                ]
                result = formats.Follower({phone.id: phone}).follow_all(own)
                assert (sorted(result.devices), sorted(result.revoked)) == (
                    sorted(case["inForce"]),
                    sorted(case["revoked"]),
                )

    def test_log(self) -> None:
        vectors = load("log.json")
        keys = [formats.b64url(vectors["key"])]
        for entry in vectors["entries"]:
            if entry["kind"] == "decision":
                own = formats.entry_of(entry["requestId"], entry["digest"])
                formats.check_log_proof(entry["proof"], own, "acme", keys)
        third = formats.entry_of(
            vectors["entries"][2]["requestId"], vectors["entries"][2]["digest"]
        )
        for case in vectors["refused"]:
            with self.subTest(case["name"]), pytest.raises(formats.Malformed):
                formats.check_log_proof(case["proof"], third, "acme", keys)


def json_text(case: dict[str, Any]) -> bytes:
    if "base64url" in case:
        return formats.b64url(case["base64url"])
    parts = case.get("parts", [[case.get("text"), 1]])
    return "".join(text * count for text, count in parts).encode()


if __name__ == "__main__":
    unittest.main()
