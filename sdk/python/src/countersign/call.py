"""A call of a tool, as a person is asked about it.

Arguments become JSON by the rules below and no others: the person must read what will run.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import TYPE_CHECKING, cast
from uuid import UUID

from .e2e.artifact import ARTIFACT_TYPES
from .e2e.canonical import canonical
from .e2e.errors import Refusal
from .e2e.strict_json import MAX_SAFE_INTEGER, Json, JsonObject
from .e2e.text import visible
from .errors import NotAskable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# As deep as the strict reader goes, less the levels of an artifact around it.
_MAX_DEPTH = 60
# Each has one usual text, which reads back as the same value. Not subclasses, here and below: they
# can write themselves as something else than what runs.
_AS_TEXT = (Decimal, UUID, PurePosixPath, PureWindowsPath, PosixPath, WindowsPath)
_TIMES = (date, datetime, time)
# An object that is also one of these has contents beside its fields.
_CONTAINERS = (str, bytes, int, float, complex, list, tuple, dict, set, frozenset, Mapping)


@dataclass(frozen=True)
class Call:
    """A call of a tool: its name, and its arguments by name."""

    name: str
    args: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True)
class Content:
    """Anything else that a person can be asked about."""

    type: str
    payload: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True)
class Action:
    """A choice to offer the approver; the chosen one is `action_id` of the approval."""

    decision: str
    id: str
    caption: str

    @classmethod
    def approve(cls, id: str, caption: str) -> "Action":
        return cls("approve", id, caption)

    @classmethod
    def reject(cls, id: str, caption: str) -> "Action":
        return cls("reject", id, caption)


@dataclass(frozen=True)
class Subject:
    """A call or content in plain JSON, detached from the objects it was made of."""

    artifact_type: str
    payload: JsonObject = field(repr=False)
    # For logs.
    tool: str | None

    @classmethod
    def of(cls, asked: Call | Content, order: Sequence[str] | None = None) -> "Subject":
        """`order` names arguments in the order of display. It is not part of the comparison."""
        if isinstance(asked, Content):
            if asked.type not in ARTIFACT_TYPES:
                raise NotAskable(f"type is not one of {', '.join(ARTIFACT_TYPES)}")
            return cls(asked.type, _object(asked.payload), None)
        if not asked.name.strip():
            raise NotAskable("the name of the tool is empty")
        payload: JsonObject = {"kind": "tool", "tool": asked.name, "input": _object(asked.args)}
        if order is not None:
            payload["order"] = list(order)
        return cls("command.review", payload, asked.name)

    def text(self) -> str:
        """The text by which two calls are compared."""
        return comparable(self.artifact_type, self.payload, is_call=self.tool is not None)


def comparable(artifact_type: str, payload: JsonObject, *, is_call: bool) -> str:
    """Of a call without the order of display, and of anything else with all that was shown."""
    compared = dict(payload)
    order = compared.get("order")
    if is_call and isinstance(order, list) and all(isinstance(name, str) for name in order):
        del compared["order"]
    return _spelled([artifact_type, compared])


def tool_of(payload: JsonObject) -> str | None:
    tool = payload.get("tool")
    return tool if payload.get("kind") == "tool" and isinstance(tool, str) else None


def _spelled(value: Json) -> str:
    try:
        return canonical(value)
    except Refusal as error:
        raise NotAskable(str(error)) from error


def _object(members: Mapping[str, object]) -> JsonObject:
    if type(members) is not dict:
        raise _unfit("", f"is of type {visible(type(members).__name__)}, not dict")
    converted = _members(cast(Mapping[object, object], members), "", 0)
    _spelled(converted)
    return converted


def _unfit(path: str, problem: str) -> NotAskable:
    return NotAskable(f"{visible(path[:200]) or 'the value'} {problem}")


def to_json(value: object, path: str = "", depth: int = 0) -> Json:
    """Plain JSON, times, decimals, UUIDs, paths, enumerations, dataclasses and Pydantic models."""
    if depth > _MAX_DEPTH:
        raise _unfit(path, "is nested too deep")
    if isinstance(value, Enum):
        return _enumerated(value, path)
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int:
        if abs(value) > MAX_SAFE_INTEGER:
            raise _unfit(path, "is an integer beyond 2^53-1")
        return value
    if type(value) is float:
        # The canonical form of a larger one is an integer that strict readers refuse.
        if not math.isfinite(value) or (value.is_integer() and abs(value) > MAX_SAFE_INTEGER):
            raise _unfit(path, "is no number that every reader understands")
        return value
    if type(value) is str:
        return value
    if type(value) in _AS_TEXT:
        return str(value)
    if type(value) in _TIMES:
        return cast(date | datetime | time, value).isoformat()
    if type(value) is dict:
        return _members(cast(dict[object, object], value), path, depth)
    if type(value) is list or type(value) is tuple:
        items = cast(Sequence[object], value)
        return [to_json(item, f"{path}/{place}", depth + 1) for place, item in enumerate(items)]
    if not isinstance(value, type) and (names := _field_names(value)) is not None:
        return {type(value).__qualname__: _members(_fields(value, names, path), path, depth + 1)}
    raise _unfit(path, f"is of type {visible(type(value).__name__)}, which has no rule for JSON")


def _enumerated(value: Enum, path: str) -> str:
    """The value if it is a text, otherwise class and name: a number would not say what it means."""
    if type(value.value) is str:
        return value.value
    # A combination of flags may have none.
    if type(value.name) is not str:
        raise _unfit(path, "is an enumeration's value without a name")
    return f"{type(value).__qualname__}.{value.name}"


def _field_names(value: object) -> set[str] | None:
    """Of a dataclass or a Pydantic model, without importing Pydantic."""
    if dataclasses.is_dataclass(value):
        return {each.name for each in dataclasses.fields(cast("DataclassInstance", value))}
    declared: object = getattr(type(value), "__pydantic_fields__", None)
    return set(cast(dict[str, object], declared)) if isinstance(declared, dict) else None


def _fields(value: object, names: set[str], path: str) -> dict[str, object]:
    """The members, as they are kept: not what a property says of them."""
    members: dict[str, object] = getattr(value, "__dict__", {})
    hidden = (getattr(value, f"__pydantic_{kind}__", None) for kind in ("extra", "private"))
    if isinstance(value, _CONTAINERS) or members.keys() != names or any(hidden):
        raise _unfit(path, "is an object that has more or less than its fields")
    return members


def _members(
    members: Mapping[object, object] | Mapping[str, object], path: str, depth: int
) -> JsonObject:
    converted: JsonObject = {}
    for name, value in members.items():
        if type(name) is not str:
            raise _unfit(path, "has a member name that is no text")
        converted[name] = to_json(value, f"{path}/{name}", depth + 1)
    return converted
