"""The options of a call that several people must approve."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

from .e2e.errors import Refusal
from .e2e.rule import COMMENT_DUTIES, MAX_PEOPLE, RuleAsk, RuleTerms, people_of

CommentDuty: TypeAlias = Literal["none", "reject", "approve", "always"]
# More decided parts may not fit into an outcome.
MAX_APPROVALS = 56


class RuleOptions(TypedDict, total=False):
    """With `approvals`, each person is asked on their own, and this enforcer counts."""

    # As many different people must approve.
    approvals: int
    # Only these approvers; by default everyone who is paired.
    from_: Sequence[str]
    # As many people who reject end it; by default one.
    rejections: int
    # The decisions that need a comment. An approval without it does not count.
    comment: CommentDuty


@dataclass(frozen=True)
class SeveralApprovals:
    """The demand for several approvals, before it is known who is paired."""

    approvals: int
    named: frozenset[str] | None
    rejections: int
    comment: str

    def terms(self, paired: Set[str]) -> RuleTerms:
        people = frozenset(paired) if self.named is None else self.named
        return RuleTerms((RuleAsk(self.approvals, people),), self.rejections, self.comment)


def several_approvals(
    *,
    approvals: int | None = None,
    from_: Sequence[str] | None = None,
    rejections: int | None = None,
    comment: str | None = None,
) -> SeveralApprovals | None:
    """Reads `RuleOptions`. None if there are none: then one decision settles the call."""
    if approvals is None:
        if (from_, rejections, comment) != (None, None, None):
            raise TypeError("from_, rejections and comment need approvals")
        return None
    return SeveralApprovals(
        approvals=_count("approvals", approvals, MAX_APPROVALS),
        named=None if from_ is None else _named(from_),
        rejections=1 if rejections is None else _count("rejections", rejections, MAX_PEOPLE),
        comment="none" if comment is None else _duty(comment),
    )


def _count(name: str, value: object, most: int) -> int:
    # True is 1 for Python.
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{name}: expected a number from 1 to {most}")
    return value


def _named(people: Sequence[str]) -> frozenset[str]:
    try:
        # The letters of a text would be ids.
        return people_of(() if isinstance(people, str) else people)
    except Refusal as error:
        raise ValueError(f"from_: expected {error}") from error


def _duty(comment: str) -> str:
    if comment not in COMMENT_DUTIES:
        raise ValueError(f"comment: expected {', '.join(COMMENT_DUTIES)}")
    return comment
