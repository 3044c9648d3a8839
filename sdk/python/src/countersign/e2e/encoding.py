"""Base64url with one spelling for each value, and randomness as a parameter."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import TypeAlias

from .errors import Refusal

# Returns as many unpredictable bytes as it is asked for.
RandomSource: TypeAlias = Callable[[int], bytes]

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*\Z")


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(what: str, text: str, length: int | None = None) -> bytes:
    """Without padding, and with unused bits zero."""
    if not _ALPHABET.match(text):
        raise Refusal(f"{what} is not base64url")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as error:
        raise Refusal(f"{what} is not base64url") from error
    if encode(data) != text:
        raise Refusal(f"{what} is not base64url")
    if length is not None and len(data) != length:
        raise Refusal(f"{what} does not have {length} bytes")
    return data


def decode_signature(text: str) -> bytes:
    """The signature of a decision, which alone may have padding."""
    padded = len(text) % 4 == 0 and text.endswith("==")
    return decode("the signature", text[:-2] if padded else text, 64)
