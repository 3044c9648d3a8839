"""HPKE against another implementation of it."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey

from countersign.e2e import hpke
from countersign.e2e.errors import Refusal
from countersign.e2e.keys import DecryptionKey

SUITE = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES256_GCM)


def test_both_open_what_the_other_has_sealed() -> None:
    for _ in range(20):
        sender, recipient = os.urandom(32), os.urandom(32)
        own_sender, own_recipient = DecryptionKey(sender), DecryptionKey(recipient)
        secret_sender = KEMKey.from_pyca_cryptography_key(
            X25519PrivateKey.from_private_bytes(sender)
        )
        secret = KEMKey.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(recipient))
        public = KEMKey.from_pyca_cryptography_key(
            X25519PublicKey.from_public_bytes(own_recipient.public)
        )
        sender_public = KEMKey.from_pyca_cryptography_key(
            X25519PublicKey.from_public_bytes(own_sender.public)
        )
        text, info, associated = os.urandom(32), b"info", b"associated"
        encapsulated, theirs = SUITE.create_sender_context(public, info, sks=secret_sender)
        sealed = theirs.seal(text, associated)
        opened = hpke.open_sealed(
            encapsulated, own_recipient, own_sender.public, info, sealed, associated
        )
        assert opened == text
        with pytest.raises(Refusal):
            hpke.open_sealed(encapsulated, own_recipient, own_sender.public, info, sealed, b"other")
        ephemeral = hpke.derive_key(os.urandom(32))
        encapsulated, sealed = hpke.seal(
            ephemeral, own_sender, own_recipient.public, info, text, associated
        )
        reader = SUITE.create_recipient_context(encapsulated, secret, info, pks=sender_public)
        assert reader.open(sealed, associated) == text
