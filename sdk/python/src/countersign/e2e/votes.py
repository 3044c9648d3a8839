"""Counts the decisions about one call by its rule.

Only decisions that `accept` has verified, each against the devices of its own seat, may be counted.
"""

from dataclasses import dataclass
from enum import Enum, auto

from .accept import VerifiedDecision
from .rule import RuleAsk, RuleTerms
from .text import has_visible


@dataclass(frozen=True)
class VoteChoice:
    """The choice within an approval. Approvals of different choices are never added up."""

    action_id: str | None = None
    answers: tuple[tuple[str, ...], ...] | None = None

    @property
    def order(self) -> tuple[object, ...]:
        return (
            self.action_id is not None,
            self.action_id or "",
            self.answers is not None,
            self.answers or (),
        )


@dataclass(frozen=True)
class ApproverVote:
    """A verified decision, as far as it matters for the count."""

    approver: str
    is_approval: bool
    choice: VoteChoice
    has_comment: bool

    @classmethod
    def of(cls, verified: VerifiedDecision) -> "ApproverVote":
        hints = verified.hints
        choice = VoteChoice(hints.action_id, hints.answers)
        has_comment = has_visible(hints.reason or "")
        return cls(verified.approver, verified.is_approval, choice, has_comment)


@dataclass(frozen=True)
class AskGap:
    """An ask that lacks approvals."""

    ask: RuleAsk
    lacking: int
    # People whose approval would still count, and those whose approval cannot be had any more.
    open: frozenset[str]
    absent: frozenset[str]

    @property
    def is_possible(self) -> bool:
        return self.lacking <= len(self.open)


class VoteStage(Enum):
    OPEN = "open"
    SATISFIED = "satisfied"
    # Enough people have rejected. Approvals do not matter any more.
    REJECTED = "rejected"
    # Too few people are left.
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class VoteState:
    stage: VoteStage
    # Of the approvals that satisfy the rule.
    choice: VoteChoice | None = None
    gaps: tuple[AskGap, ...] = ()


class _NoApproval(Enum):
    REJECTED = auto()
    # Unreachable, expired, or approved without the comment that the rule requires.
    ABSENT = auto()


class VoteCount:
    """The count of one set. A person has one vote: the first approval stays, a rejection replaces
    it.
    """

    def __init__(self, terms: RuleTerms) -> None:
        self._terms = terms
        self._people: dict[str, VoteChoice | _NoApproval] = {}

    def count(self, vote: ApproverVote) -> None:
        """Counts a decision. One by somebody whom the rule does not name changes nothing."""
        if vote.approver not in self._terms.people:
            return
        if not vote.is_approval:
            # Also by somebody in `notBy`: a further rule must not take away a rejection.
            self._people[vote.approver] = _NoApproval.REJECTED
            return
        is_short = self._terms.needs_comment and not vote.has_comment
        counts = not is_short and vote.approver not in self._terms.not_by
        self._people.setdefault(vote.approver, vote.choice if counts else _NoApproval.ABSENT)

    def drop_out(self, approver: str) -> None:
        """A person will not decide any more. A decision that was counted stays."""
        self._people.setdefault(approver, _NoApproval.ABSENT)

    def state(self) -> VoteState:
        rejected = [it for it in self._people.values() if it is _NoApproval.REJECTED]
        if len(rejected) >= self._terms.rejections:
            return VoteState(VoteStage.REJECTED)
        approved = {it for it in self._people.values() if isinstance(it, VoteChoice)}
        counts: list[tuple[VoteChoice | None, tuple[AskGap, ...]]] = []
        for choice in sorted(approved, key=lambda it: it.order):
            gaps = self._gaps(choice)
            if not gaps:
                return VoteState(VoteStage.SATISFIED, choice)
            counts.append((choice, gaps))
        # None is a choice that nobody has approved yet. Of choices that are equally far, the one
        # that somebody has approved is told.
        counts.append((None, self._gaps(None)))
        _, gaps = min(counts, key=lambda it: (not _is_possible(it[1]), _lacking(it[1])))
        return VoteState(VoteStage.OPEN if _is_possible(gaps) else VoteStage.IMPOSSIBLE, gaps=gaps)

    def approvers(self) -> frozenset[str]:
        """The people whose approvals are counted for the choice that satisfies the rule."""
        state = self.state()
        if state.stage is not VoteStage.SATISFIED:
            return frozenset()
        return frozenset(name for name, it in self._people.items() if it == state.choice)

    def _gaps(self, choice: VoteChoice | None) -> tuple[AskGap, ...]:
        """The asks that lack approvals of this choice."""
        gaps: list[AskGap] = []
        for ask in self._terms.asks:
            approved = {it for it in ask.people if self._has_approved(it, choice)}
            waiting = {it for it in ask.people if it not in self._people} - self._terms.not_by
            lacking = ask.approvals - len(approved)
            if lacking > 0:
                absent = ask.people - approved - waiting
                gaps.append(AskGap(ask, lacking, frozenset(waiting), absent))
        return tuple(gaps)

    def _has_approved(self, person: str, choice: VoteChoice | None) -> bool:
        return choice is not None and self._people.get(person) == choice


def _is_possible(gaps: tuple[AskGap, ...]) -> bool:
    return all(gap.is_possible for gap in gaps)


def _lacking(gaps: tuple[AskGap, ...]) -> int:
    return sum(gap.lacking for gap in gaps)
