"""The count of a set, and the explanation of a denial."""

from collections.abc import Iterable, Sequence

from .e2e.errors import DecisionRefused
from .e2e.outcome import MISSING, REJECTED, UNTRUSTED
from .e2e.rule import RuleTerms
from .e2e.text import visible
from .e2e.votes import ApproverVote, AskGap, VoteCount, VoteStage, VoteState
from .errors import Denied, TimedOut, TooFewApprovals, Untrusted
from .set_part import SetPart


def count_parts(terms: RuleTerms, parts: Sequence[SetPart]) -> VoteCount:
    """Counts the decisions of all parts. People who are not asked or not waited for drop out."""
    count = VoteCount(terms)
    for part in parts:
        if part.verified is not None:
            count.count(ApproverVote.of(part.verified))
        elif part.refusal is not None or part.loss is not None:
            count.drop_out(part.seat)
    for person in terms.people - {part.seat for part in parts}:
        count.drop_out(person)
    return count


def check_people(terms: RuleTerms, asked: Iterable[str]) -> None:
    """Denies if these people are too few, whatever they decide."""
    count = VoteCount(terms)
    for person in terms.people.difference(asked):
        count.drop_out(person)
    state = count.state()
    if state.stage is not VoteStage.OPEN:
        raise TooFewApprovals(_explained(state.gaps, terms, ()))


def refuse_shared_devices(parts: Sequence[SetPart]) -> None:
    """Lets a device count on one seat only, also if two approvers have it."""
    seen: set[str] = set()
    for part in parts:
        if part.verified is None or not part.verified.is_approval:
            continue
        device = part.verified.device.id
        if device in seen:
            part.refuse(DecisionRefused(2, f"the device {device} has decided for somebody else"))
        seen.add(device)


def denial_of_count(
    state: VoteState, terms: RuleTerms, parts: Sequence[SetPart]
) -> tuple[Denied, str]:
    """The denial that follows from a count, and the cause that the approvers are told."""
    for part in parts:
        is_rejected = part.verified is not None and not part.verified.is_approval
        if state.stage is VoteStage.REJECTED and part.verified is not None and is_rejected:
            return part.exchange.rejected(part.verified), REJECTED
    explained = _explained(state.gaps, terms, parts)
    refused = next((part for part in parts if part.refusal is not None), None)
    if refused is not None:
        return Untrusted(explained, refused.request_id), UNTRUSTED
    absent = frozenset[str]().union(*(gap.absent for gap in state.gaps))
    late = {part.seat for part in parts if isinstance(part.loss, TimedOut)}
    if absent and absent <= late:
        return TimedOut(), MISSING
    return TooFewApprovals(explained), MISSING


def _explained(gaps: Sequence[AskGap], terms: RuleTerms, parts: Sequence[SetPart]) -> str:
    by_seat = {part.seat: part for part in parts}
    texts: list[str] = []
    for gap in gaps:
        noun = "approval" if gap.ask.approvals == 1 else "approvals"
        whys = [
            f"{visible(person)}: {_why_absent(terms, by_seat.get(person))}"
            for person in sorted(gap.absent)
        ]
        why = "; ".join(whys) or f"{len(gap.open)} people are asked"
        texts.append(f"it needs {gap.ask.approvals} {noun} and lacks {gap.lacking} ({why})")
    return "; ".join(texts)


def _why_absent(terms: RuleTerms, part: SetPart | None) -> str:
    if part is None:
        return "not paired with this machine"
    if part.refusal is not None:
        return f"the decision is not trusted: {visible(str(part.refusal))}"
    if part.verified is not None:
        if not part.verified.is_approval:
            return "rejected it"
        if terms.needs_comment and not ApproverVote.of(part.verified).has_comment:
            return "approved it without the comment that is needed"
        return "made another choice"
    return "has not decided" if part.loss is None else str(part.loss)
