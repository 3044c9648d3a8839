"""HPKE (RFC 9180) in auth mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM, single-shot.

Written by hand because the HPKE of `cryptography` has base mode only, without associated data.
"""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .errors import Refusal
from .keys import DecryptionKey

_KEM = b"KEM" + (0x20).to_bytes(2, "big")
_SUITE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x20, 1, 2))
_AUTH_MODE = b"\x02"


def _extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, hashlib.sha256)


def _expand(suite: bytes, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
    """For at most 32 bytes, so that one block is enough."""
    labelled = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(key, labelled + b"\x01", hashlib.sha256)[:length]


def derive_key(ikm: bytes) -> DecryptionKey:
    """The X25519 key that DeriveKeyPair makes of `ikm`."""
    secret = _extract(_KEM, b"", b"dkp_prk", ikm)
    return DecryptionKey(_expand(_KEM, secret, b"sk", b"", 32))


def _shared_secret(exchanged: bytes, context: bytes) -> bytes:
    secret = _extract(_KEM, b"", b"eae_prk", exchanged)
    return _expand(_KEM, secret, b"shared_secret", context, 32)


def key_schedule(shared: bytes, info: bytes) -> tuple[bytes, bytes]:
    """The key and the first nonce."""
    context = _AUTH_MODE + _extract(_SUITE, b"", b"psk_id_hash", b"")
    context += _extract(_SUITE, b"", b"info_hash", info)
    secret = _extract(_SUITE, shared, b"secret", b"")
    key = _expand(_SUITE, secret, b"key", context, 32)
    return key, _expand(_SUITE, secret, b"base_nonce", context, 12)


def encapsulate(
    ephemeral: DecryptionKey, sender: DecryptionKey, recipient: bytes
) -> tuple[bytes, bytes]:
    """`enc` and the shared secret."""
    exchanged = ephemeral.exchange(recipient) + sender.exchange(recipient)
    context = ephemeral.public + recipient + sender.public
    return ephemeral.public, _shared_secret(exchanged, context)


def decapsulate(encapsulated: bytes, own: DecryptionKey, sender: bytes) -> bytes:
    exchanged = own.exchange(encapsulated) + own.exchange(sender)
    return _shared_secret(exchanged, encapsulated + own.public + sender)


def seal(
    ephemeral: DecryptionKey,
    sender: DecryptionKey,
    recipient: bytes,
    info: bytes,
    plaintext: bytes,
    associated: bytes,
) -> tuple[bytes, bytes]:
    encapsulated, shared = encapsulate(ephemeral, sender, recipient)
    key, nonce = key_schedule(shared, info)
    return encapsulated, AESGCM(key).encrypt(nonce, plaintext, associated)


def open_sealed(
    encapsulated: bytes,
    own: DecryptionKey,
    sender: bytes,
    info: bytes,
    ciphertext: bytes,
    associated: bytes,
) -> bytes:
    key, nonce = key_schedule(decapsulate(encapsulated, own, sender), info)
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, associated)
    except InvalidTag as error:
        raise Refusal("the content key does not open") from error
