"""Keys of enforcers, and public keys of devices. Private keys are never printed or pickled."""

import hashlib
import hmac
from typing import NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from .encoding import RandomSource, encode
from .errors import Refusal
from .points import is_encryption_key, is_signing_key, is_small_order


def verifies(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Strictly: no keys or nonces of small order, no malleable signatures."""
    if not is_signing_key(public_key) or len(signature) != 64 or is_small_order(signature[:32]):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def check_signing_key(what: str, key: bytes) -> bytes:
    if not is_signing_key(key):
        raise Refusal(f"{what} is not a usable key")
    return key


def check_encryption_key(what: str, key: bytes) -> bytes:
    if not is_encryption_key(key):
        raise Refusal(f"{what} is not a usable key")
    return key


# The salt that makes a key for proofs of records out of an enforcer's private key.
_RECORD_KEY = b"countersign stored request v1"


class _Secret:
    """A private key that does not leave the process by accident."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(redacted)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private keys cannot be pickled")


class DecryptionKey(_Secret):
    """An X25519 private key: it opens, and seals as its owner."""

    def __init__(self, private: bytes) -> None:
        self._key = X25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def exchange(self, public: bytes) -> bytes:
        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:
            raise Refusal("a key exchange without a secret result") from error

    def prove_record(self, record: str) -> str:
        """Proves that a record of a request comes from a holder of this key."""
        key = hmac.digest(_RECORD_KEY, self._key.private_bytes_raw(), hashlib.sha256)
        return encode(hmac.digest(key, record.encode(), hashlib.sha256))

    def proves_record(self, record: str, proof: str) -> bool:
        return hmac.compare_digest(self.prove_record(record).encode(), proof.encode())


class SignatureKey(_Secret):
    """An Ed25519 private key."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw()

    @classmethod
    def generate(cls, random: RandomSource) -> "SignatureKey":
        return cls(random(32))

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def seed_text(self) -> str:
        """The seed, for a record that is protected as a secret."""
        return encode(self._key.private_bytes_raw())
