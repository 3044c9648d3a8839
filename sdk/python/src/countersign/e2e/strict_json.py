"""Strict JSON: every accepted text has one meaning.

`json.loads` keeps the last of two equal members, accepts U+0000 and lone surrogates, and loses
integers beyond a double. Here such texts are refused, so that a hash covers one meaning only.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias, Union

from .errors import Refusal

Json: TypeAlias = Union[bool, int, float, str, list["Json"], dict[str, "Json"], None]  # noqa: UP007
JsonObject: TypeAlias = dict[str, Json]

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 250_000
# Up to here every integer is a distinct double.
MAX_SAFE_INTEGER: Final = 2**53 - 1

MALFORMED: Final = "MALFORMED_JSON"
AMBIGUOUS: Final = "CANONICALIZATION"

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_CODE_UNIT = re.compile(r"u([0-9a-fA-F]{4})")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, tuple[str, Json]] = {
    "t": ("true", True),
    "f": ("false", False),
    "n": ("null", None),
}


class JsonRefused(Refusal):
    """A text that is refused. `code` is the one that a gateway answers with."""

    def __init__(self, code: str, problem: str, at: int) -> None:
        super().__init__(f"{problem}, at character {at}")
        self.code = code


def parse(text: bytes | str) -> Json:
    return _Scanner(_decoded(text)).document()


def parse_object(text: bytes | str) -> JsonObject:
    value = parse(text)
    if not isinstance(value, dict):
        raise JsonRefused(MALFORMED, "not an object", 0)
    return value


def parse_with_sources(text: bytes | str) -> tuple[Json, dict[str, str]]:
    """The value, and the source text of each member if it is an object."""
    scanner = _Scanner(_decoded(text))
    value = scanner.document()
    return value, scanner.sources


def _decoded(text: bytes | str) -> str:
    try:
        encoded = text.encode() if isinstance(text, str) else text
        return encoded.decode()
    except UnicodeError as error:
        raise JsonRefused(MALFORMED, "not UTF-8", 0) from error


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.values = 0
        self.sources: dict[str, str] = {}

    def document(self) -> Json:
        self.skip_space()
        value = self.value()
        self.skip_space()
        if self.at != len(self.text):
            raise self.unexpected()
        return value

    def unexpected(self) -> JsonRefused:
        return JsonRefused(MALFORMED, "not JSON", self.at)

    def skip_space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        if match:
            self.at = match.end()

    def take(self, character: str) -> bool:
        is_next = self.text.startswith(character, self.at)
        self.at += len(character) if is_next else 0
        return is_next

    def require(self, character: str) -> None:
        if not self.take(character):
            raise self.unexpected()

    def value(self) -> Json:
        self.values += 1
        if self.values > MAX_VALUES:
            raise JsonRefused(MALFORMED, "too many values", self.at)
        first = self.text[self.at : self.at + 1]
        if first == '"':
            self.at += 1
            return self.string()
        if first == "{" or first == "[":
            self.at += 1
            return self.nested(self.object if first == "{" else self.array)
        word = _WORDS.get(first)
        if word is not None:
            self.require(word[0])
            return word[1]
        return self.number()

    def nested(self, read: Callable[[], Json]) -> Json:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise JsonRefused(MALFORMED, "nested too deep", self.at)
        value = read()
        self.depth -= 1
        return value

    def array(self) -> Json:
        items: list[Json] = []
        self.skip_space()
        if self.take("]"):
            return items
        while True:
            self.skip_space()
            items.append(self.value())
            self.skip_space()
            if self.take("]"):
                return items
            self.require(",")

    def object(self) -> Json:
        members: dict[str, Json] = {}
        self.skip_space()
        if self.take("}"):
            return members
        while True:
            self.skip_space()
            start = self.at
            self.require('"')
            name = self.string()
            if name in members:
                raise JsonRefused(AMBIGUOUS, "a repeated member name", start)
            self.skip_space()
            self.require(":")
            self.skip_space()
            start = self.at
            members[name] = self.value()
            if self.depth == 1:
                self.sources[name] = self.text[start : self.at]
            self.skip_space()
            if self.take("}"):
                return members
            self.require(",")

    def plain_run(self) -> str:
        match = _PLAIN.match(self.text, self.at)
        run = match.group() if match else ""
        self.at += len(run)
        return run

    def string(self) -> str:
        """A string from behind its first quote on."""
        parts = [self.plain_run()]
        while not self.take('"'):
            self.require("\\")
            parts.append(self.escape())
            parts.append(self.plain_run())
        return "".join(parts)

    def escape(self) -> str:
        start = self.at
        if self.text.startswith("u", start):
            return self.unicode_escape(start)
        character = _ESCAPES.get(self.text[start : start + 1])
        if character is None:
            raise self.unexpected()
        self.at += 1
        return character

    def unicode_escape(self, start: int) -> str:
        code = self.code_unit()
        if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", self.at):
            self.at += 1
            low = self.code_unit()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))
        if 0xD800 <= code < 0xE000:
            raise JsonRefused(AMBIGUOUS, "half of a surrogate pair", start)
        if code == 0:
            raise JsonRefused(AMBIGUOUS, "U+0000", start)
        return chr(code)

    def code_unit(self) -> int:
        match = _CODE_UNIT.match(self.text, self.at)
        if not match:
            raise self.unexpected()
        self.at = match.end()
        return int(match.group(1), 16)

    def number(self) -> int | float:
        start = self.at
        match = _NUMBER.match(self.text, start)
        if not match:
            raise self.unexpected()
        self.at = match.end()
        literal = match.group()
        if match.group(1) is None and match.group(2) is None:
            # Longer ones are beyond the range, and int() refuses very long ones with another error.
            if len(literal) > 17 or abs(int(literal)) > MAX_SAFE_INTEGER:
                raise JsonRefused(AMBIGUOUS, "an integer beyond 2^53-1", start)
            return int(literal)
        number = float(literal)
        if number in (float("inf"), float("-inf")):
            raise JsonRefused(AMBIGUOUS, "a number too large for a double", start)
        return number
