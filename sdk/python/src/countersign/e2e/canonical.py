"""Canonical JSON (RFC 8785), and hashes over it."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import cast

from .errors import Refusal
from .strict_json import MAX_DEPTH, MAX_SAFE_INTEGER, MAX_VALUES, Json, parse


class NotCanonical(Refusal):
    """A value without a canonical form."""


def canonical(value: Json) -> str:
    """The canonical text. It accepts the values that the strict reader returns, and no others."""
    writer = _Writer()
    writer.write(value, 0)
    return "".join(writer.parts)


def canonical_without(members: Mapping[str, Json], name: str) -> str:
    """The text that a hash or a signature in the member `name` covers."""
    return canonical({other: value for other, value in members.items() if other != name})


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def hash_without(members: Mapping[str, Json], name: str) -> str:
    return sha256_hex(canonical_without(members, name).encode())


def parse_canonical(what: str, text: bytes | str) -> Json:
    """Parses a text that must be canonical already."""
    value = parse(text)
    encoded = text.encode() if isinstance(text, str) else text
    if canonical(value).encode() != encoded:
        raise Refusal(f"{what} is not canonical")
    return value


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values = 0

    def write(self, value: object, depth: int) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            raise NotCanonical("too many values")
        if value is None or isinstance(value, bool):
            self.parts.append({None: "null", True: "true", False: "false"}[value])
        elif type(value) is int:
            if abs(value) > MAX_SAFE_INTEGER:
                raise NotCanonical("an integer beyond 2^53-1")
            self.parts.append(str(value))
        elif type(value) is float:
            self.parts.append(number_text(value))
        elif type(value) is str:
            self.parts.append(_string_text(value))
        elif type(value) is list or type(value) is dict:
            if depth >= MAX_DEPTH:
                raise NotCanonical("nested too deep")
            if isinstance(value, list):
                self._write_items(cast(list[object], value), depth + 1)
            else:
                self._write_members(cast(dict[object, object], value), depth + 1)
        else:
            raise NotCanonical(f"a value of type {type(value).__name__}")

    def _write_items(self, items: list[object], depth: int) -> None:
        self.parts.append("[")
        for index, item in enumerate(items):
            if index:
                self.parts.append(",")
            self.write(item, depth)
        self.parts.append("]")

    def _write_members(self, members: dict[object, object], depth: int) -> None:
        texts = {name: _string_text(name) for name in members}
        # By UTF-16 code units: U+1F600, two surrogates, comes before U+FB33.
        names = sorted(texts, key=lambda name: str(name).encode("utf-16-be"))
        self.parts.append("{")
        for index, name in enumerate(names):
            self.parts.append(f"{',' if index else ''}{texts[name]}:")
            self.write(members[name], depth)
        self.parts.append("}")


def _string_text(text: object) -> str:
    if type(text) is not str:
        raise NotCanonical("a member name that is no text")
    if "\x00" in text:
        raise NotCanonical("U+0000 in a text")
    try:
        text.encode()
    except UnicodeError as error:
        raise NotCanonical("half of a surrogate pair in a text") from error
    return json.dumps(text, ensure_ascii=False)


def number_text(number: float) -> str:
    """A double as ECMAScript prints it."""
    if not math.isfinite(number):
        raise NotCanonical("a number that is not finite")
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    # repr() has the fewest digits that read back as the same double, as ECMAScript demands.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'+' if point > 0 else '-'}{abs(point - 1)}"
