"""Errors. Their texts have no arguments or secrets; text from elsewhere is made visible."""

from .e2e.text import visible

# Of requests, as the gateway names them.
_STATES = frozenset(
    {"pendingApproval", "decided", "delivered", "withdrawn", "cancelled", "expired"}
)


class CountersignError(Exception):
    """Base of all errors of this library."""


class ProfileError(CountersignError):
    """The profile, or a file beside it, is missing, damaged, or readable by others."""


class Denied(CountersignError):
    """The call must not run. There is no other answer than this and an accepted approval."""

    cause = "failed"
    _effect = "Nothing was executed."
    _advice = "Tell the user that it was not done."
    # A denial passes several layers.
    _is_logged = False

    def __init__(self, message: str, request_id: str | None = None) -> None:
        super().__init__(message)
        # None if the call was denied before there was a request.
        self.request_id = request_id

    def __reduce__(self) -> tuple[object, ...]:
        """A person's reason does not travel in pickles."""
        kept = {name: value for name, value in vars(self).items() if name != "reason"}
        return _restored, (type(self), self.args, kept)

    def for_model(self) -> str:
        """One paragraph for the model: why, that nothing was executed, and what not to do."""
        return (
            f"This call was denied: {self._why()}. {self._effect} Do not repeat this call, "
            f"and do not try to reach the same effect in another way. {self._advice}"
        )

    def _why(self) -> str:
        return "it could not be approved"


def _restored(kind: type[Denied], args: tuple[object, ...], members: dict[str, object]) -> Denied:
    denied = kind.__new__(kind)
    denied.args = args
    vars(denied).update(members)
    return denied


class Rejected(Denied):
    """A person said no."""

    cause = "rejected"
    reason: str | None = None

    def __init__(
        self,
        approver: str,
        reason: str | None = None,
        action_id: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(f"{visible(approver)} rejected it", request_id)
        self.approver = approver
        # The person's own words. They are not part of the error's text, which may be logged.
        self.reason = reason
        self.action_id = action_id

    def _why(self) -> str:
        if self.reason is None:
            return str(self)
        return f'{self}, with the reason "{visible(self.reason)}"'


class TimedOut(Denied):
    """Nobody decided in time."""

    cause = "timed_out"

    def __init__(self, request_id: str | None = None) -> None:
        super().__init__("nobody decided in time", request_id)

    def _why(self) -> str:
        return str(self)


class Expired(TimedOut):
    """An approval came, or was used, too late. The call has to be asked again."""

    cause = "expired"

    def __init__(self, request_id: str | None = None) -> None:
        super().__init__(request_id)
        self.args = ("the approval has expired",)


class Ended(Denied):
    """The request was withdrawn or cancelled, as the gateway says. No later decision counts."""

    cause = "ended"

    def __init__(self, state: str, request_id: str | None = None) -> None:
        # The gateway says it, and the model reads it: no other words get through.
        self.state = state if state in _STATES else "unknown"
        super().__init__(f"the request ended without a decision ({self.state})", request_id)

    def _why(self) -> str:
        return str(self)


class Unavailable(Denied):
    """The gateway is away, or refuses."""

    cause = "unavailable"

    def __init__(self, detail: str, request_id: str | None = None) -> None:
        super().__init__(f"nobody could be asked: {visible(detail)}", request_id)

    def _why(self) -> str:
        return "nobody could be asked, because the approval gateway is unavailable"


class Untrusted(Denied):
    """A decision that failed a check. The model learns nothing about it."""

    cause = "untrusted"

    def __init__(self, check: str, request_id: str | None = None) -> None:
        super().__init__(f"the decision is not trusted: {visible(check)}", request_id)

    def _why(self) -> str:
        return "it was not approved"


class TooFewApprovals(Denied):
    """Too few of the people who must approve did so, or can be asked."""

    cause = "too_few"

    def _why(self) -> str:
        return "too few of the people who must approve it did so"


class NotPaired(Denied):
    """No approver is paired with this enforcer, or the approver has ended the pairing."""

    cause = "not_paired"

    def __init__(
        self, detail: str = "no approver is paired", request_id: str | None = None
    ) -> None:
        super().__init__(f"{visible(detail)}; pair one: countersign pair", request_id)

    def _why(self) -> str:
        return "no approver is paired with this machine"


class AlreadyUsed(Denied):
    """The approval was used before: it counts for one execution."""

    cause = "already_used"
    _effect = "It was not executed again. It may have been executed before."
    _advice = "Tell the user to check whether it was done."

    def __init__(self, request_id: str) -> None:
        super().__init__("the approval was used before", request_id)

    def _why(self) -> str:
        return str(self)


class Changed(Denied):
    """The call is not the one that was approved."""

    cause = "changed"

    def __init__(
        self,
        detail: str = "the call is not the one that was approved",
        request_id: str | None = None,
    ) -> None:
        super().__init__(detail, request_id)

    def _why(self) -> str:
        return str(self)


class NotAskable(Denied):
    """Arguments that cannot be shown to a person as what will run."""

    cause = "not_askable"

    def _why(self) -> str:
        return f"a person cannot be asked about it: {self}"


class KeyReused(Denied):
    """The key of a submission was used before, for another call or with other options."""

    cause = "key_reused"

    def __init__(self) -> None:
        super().__init__("the key was used before, for another call")

    def _why(self) -> str:
        return str(self)
