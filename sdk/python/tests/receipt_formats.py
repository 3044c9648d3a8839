"""Formats under receipts: strict and canonical JSON, keys, statements, decisions, hints, outcomes, log proofs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SAFE = 2**53 - 1


class Malformed(ValueError):
    """A text, or a value in it, does not have the form that the specification gives it."""


def need(condition: object, reason: str) -> None:
    if not condition:
        raise Malformed(reason)


# --- JSON ---------------------------------------------------------------------------------------------------------


def _integer(text: str) -> int:
    # The length is compared first, because Python refuses to convert very long texts with another error.
    need(len(text) <= 17 and text.isascii() and abs(int(text)) <= SAFE, "integer beyond 2^53-1")
    return int(text)


def _double(text: str) -> int | float:
    value = float(text)
    need(value - value == 0, "number too large")
    # 1.0 and 1 are the same JSON number, and have the same canonical form.
    return int(value) if value.is_integer() and abs(value) <= SAFE else value


def _constant(text: str) -> Any:
    raise Malformed(f"{text} is not JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    need(len(result) == len(pairs), "repeated member")
    return result


def read_json(text: bytes | str) -> Any:
    """Strict JSON (protocol.md 2.1)."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(
            decoded,
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=_double,
            parse_constant=_constant,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Malformed("not JSON") from error
    count, stack = 0, [(value, 1)]
    while stack:
        item, depth = stack.pop()
        count += 1
        if isinstance(item, str):
            _plain(item)
        elif isinstance(item, (dict, list)):
            need(depth <= 64, "nested too deeply")
            if isinstance(item, dict):
                for name in item:
                    _plain(name)
            stack.extend(
                (child, depth + 1) for child in (item.values() if isinstance(item, dict) else item)
            )
    need(count <= 250_000, "too many values")
    return value


def _plain(text: str) -> None:
    need(
        "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text),
        "U+0000 or half of a pair",
    )


def canonical(value: Any) -> bytes:
    """RFC 8785."""
    return _canonical(value).encode()


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return (
            "{" + ",".join(f"{_canonical(name)}:{_canonical(value[name])}" for name in names) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, float):
        return _ecmascript(value)
    return json.dumps(value, ensure_ascii=False)


def _ecmascript(value: float) -> str:
    # Python and ECMAScript choose the same digits, and differ only in where they put the point and the exponent.
    sign, numbers, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits, minus = "".join(map(str, numbers)), "-" if sign else ""
    assert isinstance(exponent, int)
    point = len(digits) + exponent
    if 0 < point <= 21:
        body = digits.ljust(point, "0") if exponent >= 0 else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        body = "0." + "0" * -point + digits
    else:
        body = f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{point - 1:+d}"
    return minus + body


# --- Values -------------------------------------------------------------------------------------------------------


def obj(value: Any, required: str, optional: str = "") -> dict[str, Any]:
    need(isinstance(value, dict), "not an object")
    names = set(required.split())
    need(names <= set(value) <= names | set(optional.split()), "a member is missing or unknown")
    return dict(value)


def versioned(value: Any) -> Any:
    need(isinstance(value, dict) and whole(value.get("v"), 1, 1), "not version 1")
    return value


def string(value: Any, low: int = 0, high: int = 1 << 30) -> str:
    need(isinstance(value, str) and low <= len(value) <= high, "not a text of the right length")
    return str(value)


def one_of(value: Any, *choices: str) -> str:
    need(isinstance(value, str) and value in choices, "not one of the known words")
    return str(value)


def whole(value: Any, low: int, high: int) -> int:
    need(
        isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
        "not a number in range",
    )
    return int(value)


def array(value: Any, low: int, high: int) -> list[Any]:
    need(isinstance(value, list) and low <= len(value) <= high, "not an array of the right length")
    return list(value)


def boolean(value: Any) -> bool:
    need(isinstance(value, bool), "not a boolean")
    return bool(value)


def b64url(value: Any, length: int | None = None, padding: bool = False) -> bytes:
    text = string(value)
    if padding and text.endswith("="):
        need(len(text) % 4 == 0, "padding")
        text = text.removesuffix("=").removesuffix("=")
    need(re.fullmatch(r"[A-Za-z0-9_-]*", text) and len(text) % 4 != 1, "not base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    need(to_b64url(data) == text and length in (None, len(data)), "unused bits, or another length")
    return data


def to_b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def b64(value: Any, length: int | None = None) -> bytes:
    try:
        data = base64.b64decode(string(value), validate=True)
    except ValueError as error:
        raise Malformed("not base64") from error
    need(
        base64.b64encode(data).decode() == value and length in (None, len(data)),
        "unused bits, or another length",
    )
    return data


def digest_text(value: Any) -> str:
    need(re.fullmatch(r"[0-9a-f]{64}", string(value)), "not a hash")
    return str(value)


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def time(value: Any) -> datetime:
    form = r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))"
    match = re.fullmatch(form, string(value), re.ASCII)
    need(match, "not an RFC 3339 time")
    assert match
    day, clock, fraction, sign, hours, minutes = match.groups()
    zone = f"{sign}{hours}:{minutes}" if sign else "+00:00"
    try:
        moment = datetime.fromisoformat(
            f"{day}T{clock}{(fraction or '.0')[:7].ljust(7, '0')}{zone}"
        )
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Malformed("no such time") from error
    need(1 <= moment.year <= 9998, "year out of range")
    return moment


def _ranges(text: str) -> re.Pattern[str]:
    return re.compile(f"[{text}]")


_CONTROL = "\x00-\x1f\x7f-\x9f"
_BAD_IN_IDS = _ranges(_CONTROL + "\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069")
_INVISIBLE = _ranges(
    _CONTROL + "\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)


def client_id(value: Any) -> str:
    need(not _BAD_IN_IDS.search(string(value, 1, 128)), "not an id")
    return str(value)


def is_blank(text: str) -> bool:
    # str.isspace is White_Space and U+001C to U+001F, which are invisible here anyway.
    return all(c.isspace() or _INVISIBLE.match(c) for c in text)


def name_text(value: Any) -> str:
    need(not _INVISIBLE.search(string(value, 1, 64)) and not is_blank(value), "not a name")
    return str(value)


def ids(value: Any, low: int, high: int) -> list[str]:
    result = [client_id(item) for item in array(value, low, high)]
    need(len(set(result)) == len(result), "somebody twice")
    return result


# --- Keys ---------------------------------------------------------------------------------------------------------

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_L = 2**252 + 27742317777372353535851937790883648493
_Y8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_SMALL_ORDER_Y = {0, 1, _P - 1, _Y8, _P - _Y8}


def _small_order(point: bytes) -> bool:
    return (int.from_bytes(point, "little") & (2**255 - 1)) % _P in _SMALL_ORDER_Y


@lru_cache(maxsize=4096)
def usable_ed25519(key: bytes) -> bool:
    """On the curve, in its one spelling (RFC 8032), and not of small order. Libraries check this only partly."""
    y = int.from_bytes(key, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    return (
        len(key) == 32 and y < _P and pow(square, (_P - 1) // 2, _P) == 1 and not _small_order(key)
    )


def usable_x25519(key: bytes) -> bool:
    if len(key) != 32 or int.from_bytes(key, "little") >= _P:
        return False
    try:
        X25519PrivateKey.from_private_bytes(b"\x01" * 32).exchange(
            X25519PublicKey.from_public_bytes(key)
        )
    except ValueError:
        return False  # The library refuses the result zero, which small order gives with any private key.
    return True


def verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    """Strict Ed25519: no weak key, no first half of small order, and S below the order of the group."""
    if len(signature) != 64 or not usable_ed25519(key) or _small_order(signature[:32]):
        return False
    if int.from_bytes(signature[32:], "little") >= _L:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Device:
    id: str
    ed25519: bytes
    x25519: bytes


@lru_cache(maxsize=4096)
def read_bundle(text: str) -> Device:
    data = b64url(text)
    value = read_json(data)
    need(canonical(value) == data, "not canonical")
    obj(versioned(value), "ed25519 name v x25519")
    name_text(value["name"])
    keys = b64url(value["ed25519"], 32), b64url(value["x25519"], 32)
    need(usable_ed25519(keys[0]) and usable_x25519(keys[1]), "weak key")
    return Device(to_b64url(sha256(b"countersign device v1", *keys)[:16]), *keys)


# --- Statements about devices -------------------------------------------------------------------------------------


@dataclass
class Statement:
    kind: str
    tenant: str
    approver: str
    by: str
    signed: bytes
    signature: bytes
    possession: bytes | None = None
    device: Device | None = None
    revoked: str = ""
    keeps: list[str] | None = None


def read_statement(text: str) -> Statement:
    envelope = obj(read_json(text), "statement signature", "possession")
    body = versioned(envelope["statement"])
    kind = one_of(body.get("statement"), "device.add", "device.revoke")
    common = "approverId at by statement tenantId v "
    obj(
        body,
        common + ("bundle" if kind == "device.add" else "deviceId"),
        "" if kind == "device.add" else "keeps",
    )
    time(body["at"])
    b64url(body["by"], 16)
    result = Statement(
        kind,
        client_id(body["tenantId"]),
        client_id(body["approverId"]),
        body["by"],
        canonical(body),
        b64url(envelope["signature"], 64),
    )
    if kind == "device.add":
        result.device = read_bundle(string(body["bundle"]))
        need(("possession" in envelope) == (result.device.id != result.by), "possession")
        result.possession = b64url(envelope["possession"], 64) if "possession" in envelope else None
    else:
        need("possession" not in envelope, "possession")
        b64url(body["deviceId"], 16)
        result.revoked = body["deviceId"]
        if "keeps" in body:
            result.keeps = array(body["keeps"], 0, 32)
            for item in result.keeps:
                b64url(item, 16)
            need(result.keeps == sorted(set(result.keeps)), "keeps is not in order")
    return result


@dataclass
class Follower:
    """The devices of one approver that follow from those in `devices` (Devices of an approver)."""

    devices: dict[str, Device]
    revoked: set[str] = field(default_factory=set)
    adder: dict[str, str] = field(default_factory=dict)

    def follow_all(self, statements: Iterable[Statement]) -> Follower:
        # A statement may stand before the one that makes its signer known.
        listed = list(statements)
        while [self._follow(statement) for statement in listed].count(True):
            pass
        return self

    def _follow(self, statement: Statement) -> bool:
        """Whether this has added a device."""
        new = statement.device
        if new is not None and self.devices.get(new.id) == new:
            return False
        signer = self.devices.get(statement.by)
        if signer is None or not verifies(signer.ed25519, statement.signature, statement.signed):
            return False
        if new is None:
            self._revoke(statement.revoked, statement.keeps)
            return False
        if (
            statement.possession is None
            or not verifies(new.ed25519, statement.possession, statement.signed)
            or new.id in self.revoked
            or new.id in self.devices
            or len(self.devices) >= 32
        ):
            return False
        self.devices[new.id] = new
        self.adder.setdefault(new.id, statement.by)
        return True

    def _revoke(self, device_id: str, keeps: list[str] | None) -> None:
        ended, queue = {device_id}, [device_id] if keeps is not None else []
        while queue:  # also through devices that were revoked before
            parent = queue.pop()
            for child, adder in self.adder.items():
                if adder == parent and child not in ended and child not in (keeps or []):
                    ended.add(child)
                    queue.append(child)
        self.revoked |= {item for item in ended if item == device_id or item in self.devices}
        for item in ended:
            self.devices.pop(item, None)


# --- Decisions and their hints ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    team: str
    seq: int
    digest: str


def read_head(value: Any) -> Head:
    obj(value, "teamId seq digest")
    b64url(value["teamId"], 16)
    return Head(value["teamId"], whole(value["seq"], 0, 2047), digest_text(value["digest"]))


@dataclass
class Decision:
    body: dict[str, Any]
    approves: bool
    signature: bytes
    signed: bytes

    @property
    def digest(self) -> str:
        return sha256(self.signed, self.signature).hex()


def read_decision(text: str) -> Decision:
    body = obj(
        read_json(text),
        "requestId artifactHashAlg artifactHash repoRef decision scope expiresAt nonce sigAlg "
        "signerKeyId signature",
        "policyHints",
    )
    client_id(body["requestId"]), client_id(body["signerKeyId"])
    one_of(body["artifactHashAlg"], "SHA-256"), one_of(body["sigAlg"], "Ed25519")
    (
        one_of(body["scope"], "once", "timebox", "session"),
        one_of(body["decision"], "approve", "reject"),
    )
    (
        digest_text(body["artifactHash"]),
        string(body["repoRef"], 0, 1024),
        string(body["nonce"], 1, 512),
    )
    time(body["expiresAt"])
    need(isinstance(body.get("policyHints", {}), dict), "policyHints")
    signed = canonical({name: value for name, value in body.items() if name != "signature"})
    return Decision(
        body, body["decision"] == "approve", b64url(body["signature"], 64, padding=True), signed
    )


@dataclass(frozen=True)
class Hints:
    commented: bool = False
    choice: bytes = b""  # approvals count together only if this is equal
    heads: tuple[Head, ...] = ()


def read_hints(value: Any) -> Hints:
    obj(value, "", "reason actionId grant answers teams")
    need(isinstance(value.get("grant", {}), dict), "grant")
    reason = string(value.get("reason", ""), 0, 4000)
    string(value.get("actionId", ""), 0, 1024)
    for answer in array(value.get("answers", []), 0, 16):
        for text in array(answer, 1, 64):
            string(text, 1, 4000)
    heads = tuple(map(read_head, array(value["teams"], 1, 16))) if "teams" in value else ()
    choice = canonical([[name, value[name]] for name in ("actionId", "answers") if name in value])
    return Hints(not is_blank(reason), choice, heads)


def open_hints(sealed: Any, key: bytes, context: dict[str, Any]) -> Any:
    """The content key opens `data` alone; the recipients' entries stay closed, but are authenticated."""
    obj(sealed, "alg enc nonce data recipients")
    one_of(sealed["alg"], "HPKE-X25519-SHA256-A256GCM"), one_of(sealed["enc"], "A256GCM")
    for entry in array(sealed["recipients"], 1, 256):
        obj(entry, "enforcerId encapsulated key")
        client_id(entry["enforcerId"]), b64url(entry["encapsulated"], 32), b64url(entry["key"], 48)
    ids([entry["enforcerId"] for entry in sealed["recipients"]], 1, 256)
    bound = canonical({**context, "recipients": sealed["recipients"]})
    try:
        plain = AESGCM(key).decrypt(b64url(sealed["nonce"], 12), b64url(sealed["data"]), bound)
    except (InvalidTag, ValueError) as error:
        raise Malformed("the key does not open the hints") from error
    value = read_json(plain)
    need(canonical(value) == plain, "not canonical")
    return value


# --- Outcomes -----------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    tenant: str
    enforcer: str
    allowed: bool
    cause: str
    set: str | None
    subjects: list[tuple[str, str]]
    decisions: list[str]
    at: datetime
    signed: bytes
    signature: bytes


def read_outcome(text: str) -> Outcome:
    kind = "application/vnd.in-toto+json"
    envelope = obj(read_json(string(text, 0, 16_384)), "payload payloadType signatures")
    one_of(envelope["payloadType"], kind)
    signature = b64(obj(array(envelope["signatures"], 1, 1)[0], "sig")["sig"], 64)
    payload = b64(envelope["payload"])
    body = obj(read_json(payload), "_type predicateType subject predicate")
    need(canonical(body) == payload, "not canonical")
    one_of(body["_type"], "https://in-toto.io/Statement/v1")
    one_of(body["predicateType"], "urn:countersign:outcome:v1")
    predicate = obj(
        versioned(body["predicate"]), "v tenantId enforcerId outcome cause decisions at", "set"
    )
    allowed = one_of(predicate["outcome"], "allowed", "denied") == "allowed"
    causes = ("",) if allowed else ("rejected", "untrusted", "changed", "interrupted", "missing")
    in_set = predicate.get("set")
    if "set" in predicate:
        b64url(in_set, 16)
    decisions = [digest_text(item) for item in array(predicate["decisions"], 1, 64)]
    subjects = []
    for item in array(body["subject"], 1, 64 if in_set else 1):
        obj(item, "name digest")
        subjects.append(
            (client_id(item["name"]), digest_text(obj(item["digest"], "sha256")["sha256"]))
        )
    need(len({name for name, _ in subjects}) == len(subjects), "a subject twice")
    need(in_set is None or len(subjects) == len(decisions), "one decision for each subject")
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)
    return Outcome(
        client_id(predicate["tenantId"]),
        client_id(predicate["enforcerId"]),
        allowed,
        one_of(predicate["cause"], *causes),
        in_set,
        subjects,
        decisions,
        time(predicate["at"]),
        signed,
        signature,
    )


# --- The log ------------------------------------------------------------------------------------------------------


def entry_of(request_id: str, digest: str) -> bytes:
    body = {"digest": digest, "kind": "decision", "requestId": request_id, "v": 1}
    return sha256(b"countersign leaf v1", canonical(body))


def _number(text: str) -> int:
    need(re.fullmatch(r"0|[1-9]\d{0,15}", text, re.ASCII), "not a number")
    return int(text)


def check_log_proof(proof: str, entry: bytes, tenant: str, keys: Iterable[bytes]) -> None:
    """Raises unless this is an inclusion proof of `entry` in a tree that one of the keys has signed for the tenant."""
    lines, _, note = proof.partition("\n\n")
    magic, index_line, *hashes = lines.split("\n") if "\n" in lines else ("", "")
    need(magic == "c2sp.org/tlog-proof@v1" and index_line.startswith("index "), "not a proof")
    index, path = _number(index_line.removeprefix("index ")), [b64(item, 32) for item in hashes]
    text, gap, signatures = note.partition("\n\n")
    need(gap and text.count("\n") == 2 and signatures.endswith("\n"), "not a checkpoint")
    origin, size_line, root_line = text.split("\n")
    size, root = _number(size_line), b64(root_line, 32)
    place = origin.split("/")
    need(
        len(place) >= 3
        and place[-2] == to_b64url(sha256(tenant.encode())[:16])
        and _number(place[-1]) > 0,
        "tenant",
    )
    own: list[bytes] = []
    for line in signatures[:-1].split("\n"):
        need(line.startswith("\u2014 ") and line.count(" ") == 2, "not a signature")
        _, name, value = line.split(" ")
        if name == origin:  # Others are those of witnesses.
            own.append(b64(value, 68))
    need(len(own) == 1, "not one signature of the log")
    signed = (text + "\n").encode()
    need(
        any(
            sha256(origin.encode(), b"\n\x01", key)[:4] == own[0][:4]
            and verifies(key, own[0][4:], signed)
            for key in keys
        ),
        "not signed by a known key",
    )
    need(_root(sha256(b"\0", entry), index, size, path) == root, "not in the tree")


def _root(node: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """RFC 9162, 2.1.3.2."""
    last = size - 1
    if index > last:
        return None
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            node = sha256(b"\1", sibling, node)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            node = sha256(b"\1", node, sibling)
        index, last = index >> 1, last >> 1
    return node if last == 0 else None
