"""Statements by which a device in force adds or revokes a device of the same approver."""

from dataclasses import dataclass

from .bundle import DeviceBundle, read_device_id
from .canonical import canonical
from .encoding import decode
from .errors import Refusal
from .keys import verifies
from .members import MemberReader
from .strict_json import Json

MAX_DEVICES = 32
# Since the devices of an approver were last reset; gateways keep no more.
MAX_STATEMENTS = 512
ADD, REVOKE = "device.add", "device.revoke"


@dataclass(frozen=True)
class SignedStatement:
    """A well-formed statement with signatures that nobody has verified yet."""

    tenant: str
    approver: str
    by: str
    # One of the two is present.
    added: DeviceBundle | None
    revoked: str | None
    # Of a revocation: the devices that stay in force, as far as its signer knows.
    keeps: frozenset[str] | None
    text: str
    signature: bytes
    possession: bytes | None

    @classmethod
    def read(cls, value: Json) -> "SignedStatement":
        signed = MemberReader("the signed device statement", value)
        statement = signed.object("statement")
        signature = decode("a device's signature", signed.text("signature"), 64)
        possession = signed.optional_text("possession")
        signed.finish()
        reader = MemberReader("the device statement", statement)
        reader.version()
        added, revoked, keeps = None, None, None
        if reader.one_of("statement", (ADD, REVOKE)) == ADD:
            added = DeviceBundle.parse(reader.text("bundle"))
        else:
            revoked = read_device_id(reader.text("deviceId"))
            keeps = _read_keeps(reader.array("keeps")) if reader.has("keeps") else None
        by = read_device_id(reader.text("by"))
        reader.time("at")
        tenant, approver = reader.id("tenantId"), reader.id("approverId")
        reader.finish()
        proof = None if possession is None else decode("a device's signature", possession, 64)
        text = canonical(statement)
        return cls(tenant, approver, by, added, revoked, keeps, text, signature, proof)

    def is_signed_by(self, key: bytes) -> bool:
        return verifies(key, self.text.encode(), self.signature)

    def is_possessed_by(self, key: bytes) -> bool:
        return self.possession is not None and verifies(key, self.text.encode(), self.possession)


def _read_keeps(items: list[Json]) -> frozenset[str]:
    ids = [read_device_id(item) for item in items if isinstance(item, str)]
    # In order and none twice, so that there is one spelling.
    if len(ids) != len(items) or len(ids) > MAX_DEVICES or ids != sorted(set(ids)):
        raise Refusal("keeps is not a list of at most 32 device ids, in order and none twice")
    return frozenset(ids)


def read_statements(items: list[Json]) -> list[SignedStatement]:
    """The statements of a list. Malformed ones are skipped: they prove nothing."""
    # Each costs signatures to verify, perhaps several times.
    if len(items) > MAX_STATEMENTS:
        raise Refusal(f"more than {MAX_STATEMENTS} device statements")
    statements: list[SignedStatement] = []
    for item in items:
        try:
            statements.append(SignedStatement.read(item))
        except Refusal:
            continue
    return statements
