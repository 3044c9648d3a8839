"""The rule of a call: how many of which people must approve it.

It stands in the sealed artifact, so every signature covers it. An enforcer counts by its own copy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .encoding import decode
from .errors import Refusal
from .members import MemberReader
from .strict_json import Json, JsonObject
from .text import is_id

RULE = "countersign.rule"
COMMENT_DUTIES = ("none", "reject", "approve", "always")
MAX_PEOPLE = 64
_MAX_ASKS, _MAX_STEPS = 16, 8
_MAX_AFTER_SECONDS = 24 * 60 * 60
_WHAT = "the rule"


@dataclass(frozen=True)
class EscalationStep:
    """People who are asked later, if an ask is still open then."""

    after_seconds: int
    people: frozenset[str]


@dataclass(frozen=True)
class RuleAsk:
    """Approvals by as many different people among these."""

    approvals: int
    first: frozenset[str]
    escalate: tuple[EscalationStep, ...] = ()

    @property
    def people(self) -> frozenset[str]:
        return self.first.union(*(step.people for step in self.escalate))

    def to_json(self) -> JsonObject:
        members: JsonObject = {"approvals": self.approvals, "from": [*sorted(self.first)]}
        if self.escalate:
            members["escalate"] = [
                {"after": step.after_seconds, "from": [*sorted(step.people)]}
                for step in self.escalate
            ]
        return members


@dataclass(frozen=True)
class RuleTerms:
    """The conditions of a rule. All asks must be satisfied."""

    asks: tuple[RuleAsk, ...]
    rejections: int = 1
    comment: str = "none"
    # Approvals by these people do not count.
    not_by: frozenset[str] = frozenset()

    @property
    def people(self) -> frozenset[str]:
        return frozenset[str]().union(*(ask.people for ask in self.asks))

    @property
    def needs_comment(self) -> bool:
        """Whether an approval counts only with a comment. A rejection counts without one."""
        return self.comment in ("approve", "always")

    @property
    def needs_seats(self) -> bool:
        """Whether each person needs an exchange of their own."""
        is_one = len(self.asks) == 1 and self.asks[0].approvals == 1
        return not is_one or self.rejections != 1


@dataclass(frozen=True)
class ApprovalRule:
    """A rule as it stands in one artifact."""

    enforcer_id: str
    set_id: str
    # The person whose decision this exchange asks for, if it asks one only.
    seat: str | None
    terms: RuleTerms

    def with_seat(self, seat: str) -> "ApprovalRule":
        return replace(self, seat=seat)

    def to_json(self) -> JsonObject:
        members: JsonObject = {
            "v": 1,
            "enforcerId": self.enforcer_id,
            "set": self.set_id,
            "asks": [ask.to_json() for ask in self.terms.asks],
            "rejections": self.terms.rejections,
            "comment": self.terms.comment,
        }
        if self.seat is not None:
            members["seat"] = self.seat
        if self.terms.not_by:
            members["notBy"] = [*sorted(self.terms.not_by)]
        return members


@dataclass(frozen=True)
class UnknownRule:
    """A rule of another version, or with teams."""


def read_rule(extensions: JsonObject) -> ApprovalRule | UnknownRule | None:
    if RULE not in extensions:
        return None
    reader = MemberReader(_WHAT, extensions[RULE])
    version = reader.required("v")
    if isinstance(version, bool) or version != 1 or _names_team(reader.members):
        return UnknownRule()
    set_id = reader.text("set")
    decode("the id of a set", set_id, 16)
    terms = RuleTerms(
        asks=tuple(_read_ask(item) for item in _items(reader, "asks", _MAX_ASKS)),
        rejections=_number(reader, "rejections", MAX_PEOPLE),
        comment=reader.one_of("comment", COMMENT_DUTIES),
        not_by=_people(reader, "notBy") if reader.has("notBy") else frozenset(),
    )
    seat = reader.id("seat") if reader.has("seat") else None
    rule = ApprovalRule(reader.id("enforcerId"), set_id, seat, terms)
    reader.finish()
    if len(terms.people) > MAX_PEOPLE:
        raise reader.refusal("asks", f"about at most {MAX_PEOPLE} people")
    if terms.needs_seats if seat is None else seat not in terms.people:
        raise reader.refusal("seat", "one of the people in the asks")
    return rule


def _read_ask(item: Json) -> RuleAsk:
    reader = MemberReader(_WHAT, item)
    steps = _items(reader, "escalate", _MAX_STEPS) if reader.has("escalate") else ()
    ask = RuleAsk(
        approvals=_number(reader, "approvals", MAX_PEOPLE),
        first=_people(reader, "from"),
        escalate=tuple(_read_step(step) for step in steps),
    )
    reader.finish()
    times = [step.after_seconds for step in ask.escalate]
    if times != sorted(set(times)):
        raise reader.refusal("escalate", "steps in the order of time")
    return ask


def _read_step(item: Json) -> EscalationStep:
    reader = MemberReader(_WHAT, item)
    step = EscalationStep(_number(reader, "after", _MAX_AFTER_SECONDS), _people(reader, "from"))
    reader.finish()
    return step


def _items(reader: MemberReader, name: str, most: int) -> Sequence[Json]:
    items = reader.array(name)
    if not 1 <= len(items) <= most:
        raise reader.refusal(name, f"a list of 1 to {most}")
    return items


def _number(reader: MemberReader, name: str, most: int) -> int:
    value = reader.required(name)
    is_number = not isinstance(value, bool) and value in range(1, most + 1)
    if not isinstance(value, int | float) or not is_number:
        raise reader.refusal(name, f"a whole number from 1 to {most}")
    return int(value)


def _people(reader: MemberReader, name: str) -> frozenset[str]:
    try:
        return people_of(reader.array(name))
    except Refusal as error:
        raise reader.refusal(name, str(error)) from error


def people_of(items: Iterable[object]) -> frozenset[str]:
    """The ids of approvers, none twice."""
    listed = list(items)
    people = frozenset(item for item in listed if isinstance(item, str) and is_id(item))
    if len(people) != len(listed) or not 1 <= len(people) <= MAX_PEOPLE:
        raise Refusal(f"1 to {MAX_PEOPLE} ids of approvers, none twice")
    return people


def _names_team(rule: JsonObject) -> bool:
    """A team in the place of people, in an ask or a step. Its members are not known here."""
    asks = _objects(rule, "asks")
    return any("team" in it for ask in asks for it in (ask, *_objects(ask, "escalate")))


def _objects(members: JsonObject, name: str) -> list[JsonObject]:
    items = members.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
