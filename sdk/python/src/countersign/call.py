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
from pathlib import PurePath
from typing import cast
from uuid import UUID

from .e2e.artifact import ARTIFACT_TYPES
from .e2e.canonical import canonical
from .e2e.errors import Refusal
from .e2e.strict_json import MAX_SAFE_INTEGER, Json, JsonObject
from .errors import NotAskable

# As deep as the strict reader goes, less the levels of an artifact around it.
_MAX_DEPTH = 60
# Each has one usual text, which reads back as the same value.
_AS_TEXT = (Decimal, UUID, PurePath)


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
        """What two calls are compared by."""
        return comparable(self.artifact_type, self.payload)


def comparable(artifact_type: str, payload: JsonObject) -> str:
    compared = dict(payload)
    if compared.get("kind") == "tool":
        compared.pop("order", None)
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
    converted = _members(members, "", 0)
    _spelled(converted)
    return converted


def _unfit(path: str, problem: str) -> NotAskable:
    return NotAskable(f"{path[:200] or 'the value'} {problem}")


def to_json(value: object, path: str = "", depth: int = 0) -> Json:
    """Plain JSON, times, decimals, UUIDs, paths, enumerations and dataclasses; nothing else."""
    if depth > _MAX_DEPTH:
        raise _unfit(path, "is nested too deep")
    if isinstance(value, Enum):
        return to_json(value.value, path, depth + 1)
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
    if isinstance(value, _AS_TEXT):
        return str(value)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return _members(cast(Mapping[object, object], value), path, depth)
    if type(value) is list or type(value) is tuple:
        items = cast(Sequence[object], value)
        return [to_json(item, f"{path}/{place}", depth + 1) for place, item in enumerate(items)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return _members(fields, path, depth)
    raise _unfit(path, f"is of type {type(value).__name__}, which has no rule for JSON")


def _members(
    members: Mapping[object, object] | Mapping[str, object], path: str, depth: int
) -> JsonObject:
    converted: JsonObject = {}
    for name, value in members.items():
        if type(name) is not str:
            raise _unfit(path, "has a member name that is no text")
        converted[name] = to_json(value, f"{path}/{name}", depth + 1)
    return converted
