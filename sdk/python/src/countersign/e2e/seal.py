"""Encryption to several recipients: content under a fresh key, and that key under HPKE for each.

Auth mode shows a recipient that the key came from the paired sender.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from . import hpke
from .canonical import canonical
from .encoding import RandomSource, decode, encode
from .errors import Refusal
from .keys import DecryptionKey
from .members import MemberReader
from .strict_json import Json, JsonObject

MAX_RECIPIENTS = 256
_ALGORITHM = "HPKE-X25519-SHA256-A256GCM"
_CONTENT_ALGORITHM = "A256GCM"
_CIPHERTEXT = "the ciphertext"


class Purpose(Enum):
    """A ciphertext of one purpose never opens as one of another."""

    ARTIFACT = (b"countersign seal v1", "deviceId")
    HINTS = (b"countersign hints v1", "enforcerId")

    @property
    def info(self) -> bytes:
        return self.value[0]

    @property
    def recipient_member(self) -> str:
        return self.value[1]


@dataclass(frozen=True)
class Recipient:
    name: str
    key: bytes


@dataclass(frozen=True)
class _WrappedKey:
    recipient: str
    encapsulated: bytes
    key: bytes

    def to_json(self, purpose: Purpose) -> JsonObject:
        return {
            purpose.recipient_member: self.recipient,
            "encapsulated": encode(self.encapsulated),
            "key": encode(self.key),
        }


@dataclass(frozen=True)
class Ciphertext:
    """A well-formed ciphertext. Only opening tells whether it is authentic."""

    purpose: Purpose
    nonce: bytes
    data: bytes
    recipients: tuple[_WrappedKey, ...]

    @classmethod
    def read(cls, purpose: Purpose, value: Json) -> "Ciphertext":
        reader = MemberReader(_CIPHERTEXT, value)
        reader.constant("alg", _ALGORITHM)
        reader.constant("enc", _CONTENT_ALGORITHM)
        nonce = decode("the ciphertext's nonce", reader.text("nonce"), 12)
        data = decode("the ciphertext's data", reader.text("data"))
        items = reader.array("recipients")
        reader.finish()
        if not 1 <= len(items) <= MAX_RECIPIENTS:
            raise Refusal(f"{_CIPHERTEXT} does not have 1 to {MAX_RECIPIENTS} recipients")
        recipients = tuple(_read_recipient(purpose, item) for item in items)
        if len({wrapped.recipient for wrapped in recipients}) != len(recipients):
            raise Refusal(f"{_CIPHERTEXT} names a recipient twice")
        return cls(purpose, nonce, data, recipients)

    def to_json(self) -> JsonObject:
        return {
            "alg": _ALGORITHM,
            "enc": _CONTENT_ALGORITHM,
            "nonce": encode(self.nonce),
            "data": encode(self.data),
            "recipients": _recipients_json(self.purpose, self.recipients),
        }


def _read_recipient(purpose: Purpose, value: Json) -> _WrappedKey:
    reader = MemberReader("a recipient", value)
    wrapped = _WrappedKey(
        reader.text(purpose.recipient_member),
        decode("an encapsulated key", reader.text("encapsulated"), 32),
        decode("an encrypted content key", reader.text("key"), 48),
    )
    reader.finish()
    return wrapped


def _recipients_json(purpose: Purpose, recipients: Sequence[_WrappedKey]) -> list[Json]:
    return [wrapped.to_json(purpose) for wrapped in recipients]


def _content_data(
    purpose: Purpose, context: JsonObject, recipients: Sequence[_WrappedKey]
) -> bytes:
    """All recipients are covered too, so that the whole ciphertext is one unit."""
    return canonical({**context, "recipients": _recipients_json(purpose, recipients)}).encode()


def seal(
    purpose: Purpose,
    sender: DecryptionKey,
    recipients: Sequence[Recipient],
    context: JsonObject,
    plaintext: bytes,
    random: RandomSource,
) -> Ciphertext:
    """Encrypts. `context` is an object that both sides know from elsewhere."""
    if not 1 <= len(recipients) <= MAX_RECIPIENTS:
        raise Refusal(f"there are not 1 to {MAX_RECIPIENTS} devices to encrypt to")
    content_key, nonce = random(32), random(12)
    key_data = canonical(context).encode()
    wrapped: list[_WrappedKey] = []
    for recipient in recipients:
        ephemeral = hpke.derive_key(random(32))
        encapsulated, key = hpke.seal(
            ephemeral, sender, recipient.key, purpose.info, content_key, key_data
        )
        wrapped.append(_WrappedKey(recipient.name, encapsulated, key))
    associated = _content_data(purpose, context, wrapped)
    data = AESGCM(content_key).encrypt(nonce, plaintext, associated)
    return Ciphertext(purpose, nonce, data, tuple(wrapped))


def open_ciphertext(
    ciphertext: Ciphertext,
    own_name: str,
    own: DecryptionKey,
    sender: bytes,
    context: JsonObject,
) -> bytes:
    """Decrypts a ciphertext that the owner of `sender` made in the same context."""
    purpose = ciphertext.purpose
    wrapped = next((it for it in ciphertext.recipients if it.recipient == own_name), None)
    if wrapped is None:
        raise Refusal(f"{_CIPHERTEXT} is for others")
    key_data = canonical(context).encode()
    content_key = hpke.open_sealed(
        wrapped.encapsulated, own, sender, purpose.info, wrapped.key, key_data
    )
    associated = _content_data(purpose, context, ciphertext.recipients)
    try:
        return AESGCM(content_key).decrypt(ciphertext.nonce, ciphertext.data, associated)
    except InvalidTag as error:
        raise Refusal("the content does not open") from error
