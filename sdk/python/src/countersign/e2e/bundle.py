"""The public keys of a device as they travel: base64url of canonical JSON.

A bundle that was read is well formed, nothing more: nobody has vouched for it yet.
"""

import hashlib
from dataclasses import dataclass

from .canonical import canonical, parse_canonical
from .encoding import decode, encode
from .errors import Refusal
from .keys import check_encryption_key, check_signing_key
from .members import MemberReader
from .text import is_shown

# An id names keys by half a hash, and is the `signerKeyId` of a device's decisions.
DEVICE_ID_BYTES = 16
MAX_NAME_CHARS = 64
_WHAT = "the device's bundle"


def read_device_id(text: str) -> str:
    decode("a device id", text, DEVICE_ID_BYTES)
    return text


@dataclass(frozen=True)
class DeviceBundle:
    signing_key: bytes
    encryption_key: bytes
    name: str

    @classmethod
    def parse(cls, text: str) -> "DeviceBundle":
        reader = MemberReader(_WHAT, parse_canonical(_WHAT, decode(_WHAT, text)))
        reader.version()
        signing = decode("the device's signing key", reader.text("ed25519"), 32)
        encryption = decode("the device's encryption key", reader.text("x25519"), 32)
        name = reader.text("name")
        if not is_shown(name, MAX_NAME_CHARS):
            raise Refusal("the device's name cannot be displayed")
        check_signing_key("the device's signing key", signing)
        check_encryption_key("the device's encryption key", encryption)
        reader.finish()
        return cls(signing, encryption, name)

    @property
    def id(self) -> str:
        hashed = b"countersign device v1" + self.signing_key + self.encryption_key
        return encode(hashlib.sha256(hashed).digest()[:DEVICE_ID_BYTES])

    def to_text(self) -> str:
        members = canonical(
            {
                "v": 1,
                "ed25519": encode(self.signing_key),
                "x25519": encode(self.encryption_key),
                "name": self.name,
            }
        )
        return encode(members.encode())

    def has_keys_of(self, other: "DeviceBundle") -> bool:
        """Whether the keys are the same. The names may differ."""
        keys = (self.signing_key, self.encryption_key)
        return keys == (other.signing_key, other.encryption_key)
