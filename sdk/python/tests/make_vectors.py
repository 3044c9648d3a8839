"""Makes `strict_json.json`, `accept.json` and `small_order.json` in tests/vectors.

`python make_vectors.py` writes them; a test compares them.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from countersign.e2e.artifact import PlainArtifact
from countersign.e2e.canonical import canonical
from countersign.e2e.encoding import decode_signature, encode
from countersign.e2e.keys import DecryptionKey, SignatureKey
from countersign.e2e.strict_json import JsonObject
from countersign.e2e.times import parse_time
from countersign.testing.device import FakeDevice

VECTORS = Path(__file__).resolve().parents[3] / "tests" / "vectors"
L = 2**252 + 27742317777372353535851937790883648493
P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


class KnownRandom:
    """Bytes that anyone can compute: SHA-256 of a label and a counter."""

    def __init__(self, label: str, first: tuple[bytes, ...] = ()) -> None:
        self.label, self.counter, self.first = label, 0, list(first)

    def __call__(self, count: int) -> bytes:
        if self.first:
            return self.first.pop(0)
        data = b""
        while len(data) < count:
            data += hashlib.sha256(f"{self.label} {self.counter}".encode()).digest()
            self.counter += 1
        return data[:count]


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


def strict_json() -> dict[str, Any]:
    canonical_forms = {
        "white space": (' {"b" :\t[ 1 ,\r\n2 ] , "a":null} ', '{"a":null,"b":[1,2]}'),
        "order by UTF-16 code units": ('{"\ufb33":1,"😀":2,"é":3,"z":4,"":5}', None),
        "escapes": (r'"\u0041\/\b\f\n\r\t\"\\\u001f\u007f\u2028"', None),
        "a surrogate pair": (r'"\ud83d\ude00"', '"😀"'),
        "a name that needs escapes": (r'{"\u0022\n":1}', r'{"\"\n":1}'),
        "words": ("[true,false,null]", "[true,false,null]"),
        "empty": ('[{},[],""]', '[{},[],""]'),
        "the largest integers": ("[9007199254740991,-9007199254740991]", None),
        "zeros": ("[0,-0,0.0,-0.0,0e9]", "[0,0,0,0,0]"),
        "whole doubles": ("[1.0,1e0,10E1,1e20,100000000000000000000e0]", None),
        "doubles": ("[1.5,0.1,1e-6,1e-7,1e21,1.7976931348623157e308,5e-324]", None),
        "a double beyond 2^53": ("9007199254740993.0", "9007199254740992"),
        "digits that round": ("[333333333.33333329,4.50,2e-3,0.000000000000000000000000001]", None),
        "an underflow": ("1e-400", "0"),
    }
    expected = {
        "order by UTF-16 code units": '{"":5,"z":4,"é":3,"😀":2,"\ufb33":1}',
        "escapes": '"A/\\b\\f\\n\\r\\t\\"\\\\\\u001f\x7f\u2028"',
        "the largest integers": "[9007199254740991,-9007199254740991]",
        "whole doubles": "[1,1,100,100000000000000000000,100000000000000000000]",
        "doubles": "[1.5,0.1,0.000001,1e-7,1e+21,1.7976931348623157e+308,5e-324]",
        "digits that round": "[333333333.3333333,4.5,0.002,1e-27]",
    }
    accepted: list[dict[str, Any]] = [
        {"name": name, "text": text, "canonical": form or expected[name]}
        for name, (text, form) in canonical_forms.items()
    ]
    accepted += [
        {"name": "64 arrays", "parts": [["[", 64], ["]", 64]], "canonicalParts": "same"},
        {
            "name": "250,000 values",
            "parts": [["[", 1], ["0,", 249_998], ["0]", 1]],
            "canonicalParts": "same",
        },
    ]
    malformed = {
        "nothing": "", "white space only": " \n", "a leading zero": "01", "a sign": "+1",
        "no digits behind the point": "1.", "no digits before the point": ".5", "no exponent": "1e",
        "hexadecimal": "0x1", "not a number": "NaN", "infinity": "-Infinity", "other words": "True",
        "single quotes": "'a'", "a comma too many": "[1,]", "a comma too many in an object": '{"a":1,}',
        "a missing comma": "[1 2]", "a missing colon": '{"a" 1}', "a name without quotes": "{a:1}",
        "a comment": "1 // one", "two values": "{}{}", "a line feed in a string": '"a\nb"',
        "a raw U+0000": '"\x00"', "an unknown escape": r'"\x41"', "a short escape": r'"\u12"',
        "an unfinished string": '"a', "an unfinished array": "[1", "a byte order mark": "\ufeff{}",
        "a no-break space": "\xa0{}", "a form feed": "\f{}", "digits of another script": "١",
    }  # fmt: skip
    ambiguous = {
        "a repeated name": '{"a":1,"a":1}', "a repeated name, escaped": r'{"a":1,"\u0061":2}',
        "a repeated name, nested": '[{"b":{"a":1,"a":1}}]', "a repeated empty name": '{"":1,"":1}',
        "a lone high surrogate": r'"\ud800"', "a lone low surrogate": r'"\udc00"',
        "surrogates in the wrong order": r'"\udc00\ud800"', "two high surrogates": r'"\ud83d\ud83d"',
        "a lone surrogate in a name": r'{"\ud83d":1}', "U+0000": r'"\u0000"',
        "U+0000 in a name": r'{"a\u0000b":1}', "2^53": "9007199254740992", "-2^53": "-9007199254740992",
        "an integer of 20 digits": "10000000000000000000", "a double too large": "1e309",
        "a negative double too large": "[-1e309]",
    }  # fmt: skip
    refused: list[dict[str, Any]] = [
        {"name": name, "text": text, "code": code}
        for code, texts in (("MALFORMED_JSON", malformed), ("CANONICALIZATION", ambiguous))
        for name, text in texts.items()
    ]
    for name, data in {
        "Latin-1": b'"\xe4"', "an overlong U+0000": b'"\xc0\x80"', "a surrogate in UTF-8": b'"\xed\xa0\x80"',
        "beyond U+10FFFF": b'"\xf4\x90\x80\x80"', "a cut character": b'"\xf0\x9f\x98"',
    }.items():  # fmt: skip
        refused.append({"name": name, "base64url": encode(data), "code": "MALFORMED_JSON"})
    refused += [
        {"name": "65 arrays", "parts": [["[", 65], ["]", 65]], "code": "MALFORMED_JSON"},
        {
            "name": "5,000 objects",
            "parts": [['{"a":', 5_000], ["0", 1], ["}", 5_000]],
            "code": "MALFORMED_JSON",
        },
        {
            "name": "250,001 values",
            "parts": [["[", 1], ["0,", 249_999], ["0]", 1]],
            "code": "MALFORMED_JSON",
        },
        {"name": "an integer of 5,000 digits", "parts": [["9", 5_000]], "code": "CANONICALIZATION"},
    ]
    return {
        "about": "Texts that strict JSON (docs/protocol.md 2.1) accepts, with their canonical form, and texts that it refuses, with the code of the gateway. A text is `text`; or the bytes `base64url`; or `parts`, each a text and how often it is repeated, joined. With `canonicalParts` = `same` the text is canonical itself.",
        "accepted": accepted,
        "refused": refused,
    }


def accept() -> dict[str, Any]:
    file = load("encryption.json")
    keys = file["keys"]
    end = parse_time("2026-02-21T12:10:00Z")
    artifact = PlainArtifact.parse(file["artifact"]["plaintext"])

    def device(name: str) -> FakeDevice:
        seeds = (
            bytes.fromhex(keys[name]["ed25519Seed"]),
            bytes.fromhex(keys[name]["x25519Private"]),
        )
        return FakeDevice(name, KnownRandom(f"accept {name}", seeds))

    phone, laptop = device("phone"), device("laptop")
    tablet = FakeDevice("tablet", KnownRandom("accept tablet"))
    stranger = FakeDevice("stranger", KnownRandom("accept stranger"))
    enforcer_key = bytes.fromhex(keys["enforcer"]["x25519Public"])
    other_enforcer = DecryptionKey(KnownRandom("accept other enforcer")(32))

    def sealed(
        hints: JsonObject, by: FakeDevice = phone, key: bytes = enforcer_key, **other: str
    ) -> JsonObject:
        subject = {
            "request_id": artifact.request_id,
            "artifact_hash": artifact.hash,
            "enforcer_id": "build-bot",
        }
        return by.seal_hints(hints, **{**subject, **other}, enforcer_key=key)

    def members(
        verdict: str = "approve", hints: JsonObject | None = None, **other: Any
    ) -> JsonObject:
        by = other.pop("by", phone)
        decided = by.decide(artifact, verdict, expires_at=end, hints=hints)
        return {**decided, **other}

    def signed(verdict: str = "approve", hints: JsonObject | None = None, **other: Any) -> str:
        by: FakeDevice = other.get("by", phone)
        return by.signed(members(verdict, hints, **other))

    def without(name: str) -> str:
        return phone.signed({other: value for other, value in members().items() if other != name})

    def case(name: str, decision: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "decision": decision, **more}

    good = signed()
    spaced = json.dumps(dict(reversed(json.loads(good).items())), indent=1)
    padded = canonical({**json.loads(good), "signature": json.loads(good)["signature"] + "=="})
    no, yes = {"verdict": "reject"}, {"verdict": "approve"}
    accepted = [
        case("an approval", good, **yes, device=phone.id),
        case("by the other device", signed(by=laptop), **yes, device=laptop.id),
        case("in another spelling", spaced, **yes, device=phone.id),
        case("with a padded signature", padded, **yes, device=phone.id),
        case("with sealed additions", signed(hints=sealed({"reason": "fine", "actionId": "staging"})), **yes, device=phone.id, reason="fine", actionId="staging"),
        case("with additions in plain", signed(hints={"reason": "fine"}), **yes, device=phone.id, reason="fine"),
        case("for a session, which counts for this request only", signed(scope="session", hints={"grant": {"match": "same"}}), **yes, device=phone.id),
        case("with a grant of an unknown form", signed(hints={"grant": 7}), **yes, device=phone.id),
        case("a rejection", signed("reject", sealed({"reason": "no"})), **no, device=phone.id, reason="no"),
        case("a rejection without repository", signed("reject", repoRef=""), **no, device=phone.id),
        case("a rejection whose additions do not open", signed("reject", sealed({"reason": "no"}, laptop)), **no, device=phone.id),
        case("a rejection with unknown additions", signed("reject", {"mood": "bad"}), **no, device=phone.id),
    ]  # fmt: skip
    names = [name for name in members() if name != "sigAlg"]
    unsigned = {name: value for name, value in json.loads(good).items() if name != "signature"}
    signature = SignatureKey(bytes.fromhex(keys["phone"]["ed25519Seed"])).sign(b"another text")
    malleable = _malleable(good)
    refused = [case("no object", "[]", check=1), case("compact", without("sigAlg"), check=1)]
    refused += [case(f"without {name}", without(name), check=1) for name in names]
    refused += [
        case("without signature", canonical(unsigned), check=1),
        case("an unknown member", signed(condition="only on Fridays"), check=1),
        case("a repeated member", good[:-1] + ',"decision":"approve"}', check=1),
        case("another hash algorithm", signed(artifactHashAlg="SHA-512"), check=1),
        case("another signature algorithm", signed(sigAlg="Ed448"), check=1),
        case("another verdict", signed("allow"), check=1),
        case("another scope", signed(scope="always"), check=1),
        case("an end that is no time", signed(expiresAt="tomorrow"), check=1),
        case("an empty nonce", signed(nonce=""), check=1),
        case("a hash in capital letters", signed(artifactHash=artifact.hash.upper()), check=1),
        case("additions that are null", signed(policyHints=None), check=1),
        case("a signature that is cut", canonical({**unsigned, "signature": "AAAA"}), check=1),
        case("a device that is no id", signed(signerKeyId="phone"), check=2),
        case("a device that is not known", signed(by=stranger), check=2),
        case("a revoked device", signed(by=tablet), check=2),
        case("a signature of another text", canonical({**unsigned, "signature": encode(signature)}), check=3),
        case("a signature of another device", canonical({**json.loads(signed(by=laptop)), "signerKeyId": phone.id}), check=3),
        case("a rejection turned into an approval", canonical({**json.loads(signed("reject")), "decision": "approve"}), check=3),
        case("a later end than was signed", canonical({**json.loads(good), "expiresAt": "2026-02-21T13:00:00Z"}), check=3),
        case("additions that were taken away", canonical({name: value for name, value in json.loads(signed(hints=sealed({"reason": "only once"}))).items() if name != "policyHints"}), check=3),
        case("a malleable signature", malleable, check=3),
        case("a signature of zeros", canonical({**unsigned, "signature": encode(bytes(64))}), check=3),
        case("about another request", signed(requestId="01J2V8V3K6B2Z9X6G1V7Y2QK8J"), check=4),
        case("about another artifact", signed(artifactHash="0" * 64), check=4),
        case("about another repository", signed(repoRef="repo:acme/gadgets"), check=4),
        case("an approval without repository", signed(repoRef=""), check=4),
        case("a rejection about another repository", signed("reject", repoRef="repo:acme/gadgets"), check=4),
        case("that has expired", signed(expiresAt="2026-02-21T12:00:59Z"), check=5),
        case("that expires now", signed(expiresAt="2026-02-21T12:01:00Z"), check=5),
        case("in time, of a request that has expired", signed(expiresAt="2026-02-21T13:00:00Z"), check=6, at="2026-02-21T12:10:00Z"),
        case("a rejection of a request that has expired", signed("reject", expiresAt="2026-02-21T13:00:00Z"), check=6, at="2026-02-21T12:30:00Z"),
        case("with an unknown addition", signed(hints={"mood": "good"}), check=7),
        case("with an unknown addition, sealed", signed(hints=sealed({"until": "noon"})), check=7),
        case("with a reason that is no text", signed(hints={"reason": 1}), check=7),
        case("with a reason that is too long", signed(hints={"reason": "a" * 4_001}), check=7),
        case("with additions sealed by another device", signed(hints=sealed({"reason": "fine"}, laptop)), check=7),
        case("with additions sealed to another enforcer", signed(hints=sealed({"reason": "fine"}, key=other_enforcer.public)), check=7),
        case("with additions of another request", signed(hints=sealed({"reason": "fine"}, request_id="01J2V8V3K6B2Z9X6G1V7Y2QK8J")), check=7),
        case("with sealed additions and plain ones", signed(hints={**sealed({"reason": "fine"}), "reason": "fine"}), check=7),
        case("with answers that are none", signed(hints={"answers": []}), check=7),
    ]  # fmt: skip
    return {
        "about": "Decisions that an enforcer accepts, and decisions that it must refuse, with the number of the first check of docs/encryption.md (Decisions) that fails. `decision` is the text as it arrives. The enforcer has asked alice about `artifact`, knows `devices` as in force and `revoked` as revoked, and judges at `at` unless a case has another time.",
        "at": "2026-02-21T12:01:00Z",
        "tenantId": "acme",
        "approverId": "alice",
        "enforcerId": "build-bot",
        "enforcerPrivate": keys["enforcer"]["x25519Private"],
        "artifact": artifact.text,
        "devices": [phone.bundle.to_text(), laptop.bundle.to_text()],
        "revoked": [tablet.id],
        "revokedBundle": tablet.bundle.to_text(),
        "accepted": accepted,
        "refused": refused,
    }


def _malleable(good: str) -> str:
    members = json.loads(good)
    raw = decode_signature(members["signature"])
    scalar = int.from_bytes(raw[32:], "little") + L
    return canonical({**members, "signature": encode(raw[:32] + scalar.to_bytes(32, "little"))})


def _eighth_order_y() -> list[int]:
    """The roots of d y^4 + 2 y^2 - 1, of which two are points of order 8."""
    root = pow(1 + D, (P + 3) // 8, P)
    if root * root % P != (1 + D) % P:
        root = root * pow(2, (P - 1) // 4, P) % P
    found: set[int] = set()
    for sign in (1, -1):
        square = (-1 + sign * root) * pow(D, -1, P) % P
        y = pow(square, (P + 3) // 8, P)
        if y * y % P != square:
            y = y * pow(2, (P - 1) // 4, P) % P
        if y * y % P == square:
            found |= {y, P - y}
    return sorted(found)


def small_order() -> dict[str, Any]:
    ys: dict[str, int] = {"order 1": 1, "order 2": P - 1, "order 4": 0}
    ys |= {f"order 8, {index}": y for index, y in enumerate(_eighth_order_y())}
    ys |= {"order 4, another spelling": P, "order 1, another spelling": P + 1}
    message = next(text for text in map(_unsigned, range(100)) if _forged(text))
    signing: list[dict[str, Any]] = []
    for name, y in ys.items():
        for sign in (0, 1):
            weak = (y | sign << 255).to_bytes(32, "little")
            signing.append({"name": f"{name}, sign {sign}", "key": weak.hex()})
    identity = (1).to_bytes(32, "little")
    key = SignatureKey(hashlib.sha256(b"small order").digest())
    good = key.sign(message)
    scalar = int.from_bytes(good[32:], "little") + L
    # R is the neutral element, so that S = k a verifies by the equation alone.
    digest = hashlib.sha512(hashlib.sha256(b"small order").digest()).digest()
    secret = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | 1 << 254
    k = int.from_bytes(hashlib.sha512(identity + key.public + message).digest(), "little")
    neutral = identity + (k * secret % L).to_bytes(32, "little")
    signatures = [
        {"name": "a good one", "key": key.public.hex(), "signature": good.hex(), "valid": True},
        {"name": "under the neutral element: verifies for every message", "key": identity.hex(), "signature": (identity + bytes(32)).hex(), "valid": False},
        {"name": "under a key of order 2", "key": (P - 1).to_bytes(32, "little").hex(), "signature": (_forged(message) or b"").hex(), "valid": False},
        {"name": "with a first half of small order", "key": key.public.hex(), "signature": neutral.hex(), "valid": False},
        {"name": "malleable: S + L", "key": key.public.hex(), "signature": (good[:32] + scalar.to_bytes(32, "little")).hex(), "valid": False},
        {"name": "zeros", "key": key.public.hex(), "signature": bytes(64).hex(), "valid": False},
    ]  # fmt: skip
    # Orders 2 and 4, order 8, and the same on the twist.
    roots = [0, 1, P - 1, *_order_8_u()]
    encryption = [
        {"name": f"small order, {index}", "key": u.to_bytes(32, "little").hex()}
        for index, u in enumerate(roots)
    ]
    spellings = {
        "0 spelled as 2^255-19": P,
        "1 spelled as 2^255-18": P + 1,
        "9 spelled as 2^255-10": P + 9,
        "2^255-1": 2**255 - 1,
        "9 with the highest bit": 9 | 1 << 255,
    }
    encryption += [
        {"name": name, "key": u.to_bytes(32, "little").hex()} for name, u in spellings.items()
    ]
    off_curve = next(
        y for y in range(2, 50) if pow((y * y - 1) * (D * y * y + 1), (P - 1) // 2, P) == P - 1
    )
    signing.append({"name": "not on the curve", "key": off_curve.to_bytes(32, "little").hex()})
    return {
        "about": "Public keys that must be refused, and signatures over `message` with their result under strict verification. Some libraries accept the invalid ones. Bytes are hexadecimal. `usable` keys must be accepted.",
        "message": message.hex(),
        "ed25519": signing,
        "x25519": encryption,
        "usable": {"ed25519": key.public.hex(), "x25519": (9).to_bytes(32, "little").hex()},
        "signatures": signatures,
    }


def _unsigned(number: int) -> bytes:
    return f"message {number}, which nobody signed".encode()


def _forged(message: bytes) -> bytes | None:
    """Under a key of order 2: R is the neutral element if k is even, else the key itself."""
    key = (P - 1).to_bytes(32, "little")
    for point in ((1).to_bytes(32, "little"), key):
        k = int.from_bytes(hashlib.sha512(point + key + message).digest(), "little") % L
        if (k % 2 == 1) == (point == key):
            return point + bytes(32)
    return None


def _order_8_u() -> list[int]:
    """u = (1 + y) / (1 - y) for the points of order 8."""
    return sorted({(1 + y) * pow(1 - y, -1, P) % P for y in _eighth_order_y()})


MAKERS = {"strict_json.json": strict_json, "accept.json": accept, "small_order.json": small_order}


def text_of(name: str) -> str:
    return json.dumps(MAKERS[name](), indent=2, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    for file_name in MAKERS:
        (VECTORS / file_name).write_text(text_of(file_name))
