"""Reads the members of an object, and refuses those that nobody asked for."""

import re
from collections.abc import Sequence

from .errors import Refusal
from .strict_json import Json, JsonObject
from .text import is_id
from .times import parse_time

_HASH = re.compile(r"[0-9a-f]{64}\Z")


class MemberReader:
    def __init__(self, what: str, value: Json) -> None:
        if not isinstance(value, dict):
            raise Refusal(f"{what} is not an object")
        self.what = what
        self.members = value
        self._rest = set(value)

    def refusal(self, name: str, expected: str) -> Refusal:
        return Refusal(f"{self.what}: {name} is not {expected}")

    def has(self, name: str) -> bool:
        return name in self.members

    def required(self, name: str) -> Json:
        if name not in self.members:
            raise Refusal(f"{self.what}: {name} is missing")
        self._rest.discard(name)
        return self.members[name]

    def text(self, name: str, least: int = 0, most: int | None = None) -> str:
        value = self.required(name)
        if not isinstance(value, str):
            raise self.refusal(name, "a text")
        if len(value) < least or (most is not None and len(value) > most):
            raise self.refusal(name, f"of {least} to {most} characters")
        return value

    def optional_text(self, name: str, most: int | None = None) -> str | None:
        return self.text(name, 0, most) if self.has(name) else None

    def constant(self, name: str, expected: str) -> None:
        if self.text(name) != expected:
            raise self.refusal(name, expected)

    def one_of(self, name: str, words: Sequence[str]) -> str:
        word = self.text(name)
        if word not in words:
            raise self.refusal(name, " or ".join(words))
        return word

    def id(self, name: str) -> str:
        text = self.text(name)
        if not is_id(text):
            raise self.refusal(name, "an id")
        return text

    def hash(self, name: str) -> str:
        text = self.text(name)
        if not _HASH.match(text):
            raise self.refusal(name, "a SHA-256 in lowercase hexadecimal digits")
        return text

    def time(self, name: str) -> int:
        text = self.text(name)
        try:
            return parse_time(text)
        except Refusal as error:
            raise self.refusal(name, "a time") from error

    def object(self, name: str) -> JsonObject:
        value = self.required(name)
        if not isinstance(value, dict):
            raise self.refusal(name, "an object")
        return value

    def optional_object(self, name: str) -> JsonObject | None:
        return self.object(name) if self.has(name) else None

    def array(self, name: str) -> list[Json]:
        value = self.required(name)
        if not isinstance(value, list):
            raise self.refusal(name, "an array")
        return value

    def version(self) -> None:
        """Read first, so that a later version is refused as such and not for its new members."""
        value = self.required("v")
        if isinstance(value, bool) or value != 1:
            raise Refusal(f"{self.what} has another version; update this library")

    def finish(self) -> None:
        if self._rest:
            raise Refusal(f"{self.what} has unknown members")
