"""The enforcer of a program: it asks people, and answers with an approval or raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Unpack

from .approval import Approval
from .call import Action, Call, Content, Subject
from .durations import Duration, timeout_seconds
from .pending import Pending
from .profile import Profile, parse_profile, profile_path, read_profile
from .rule_options import RuleOptions, SeveralApprovals, several_approvals
from .state import DirectoryState, State, UseJournal

# It takes as long to import as the rest of this library, so that is left to the first client.
if TYPE_CHECKING:
    from .gateway import TransportFactory
    from .request import RequestOptions

DEFAULT_TIMEOUT = "10m"


class Client:
    """An enforcer that is paired with approvers. Many tasks may use it at the same time."""

    def __init__(
        self,
        load_profile: Callable[[], Profile],
        state: State,
        journal: UseJournal | None = None,
        *,
        _transport: TransportFactory | None = None,
    ) -> None:
        """Use `from_profile` or `from_profile_text`."""
        from .engine import Enforcer

        self._enforcer = Enforcer(load_profile, state, journal, _transport)

    @classmethod
    def from_profile(
        cls,
        name: str | None = None,
        *,
        state: State | str | Path | None = None,
        journal: UseJournal | None = None,
    ) -> Client:
        """The profile that `countersign join` wrote; `$COUNTERSIGN_PROFILE` or `default`.

        What the library learns is kept beside the profile, unless `state` names another place.
        """
        path = profile_path(name)
        # Texts are kept in `NAME.trust.json` and the like.
        beside = DirectoryState(str(path).removesuffix("toml"), is_directory=False)
        return cls(lambda: read_profile(path), beside if state is None else _state(state), journal)

    @classmethod
    def from_profile_text(
        cls, text: str, *, state: State | str | Path, journal: UseJournal | None = None
    ) -> Client:
        """From a profile that is not a private file, such as a mounted secret.

        `state` is a directory that survives restarts, or an object that keeps texts elsewhere.
        """
        profile = parse_profile(text)
        return cls(lambda: profile, _state(state), journal)

    def __repr__(self) -> str:
        return f"Client({self.enforcer_id!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client cannot be pickled")

    @property
    def enforcer_id(self) -> str:
        return self._enforcer.identity.id

    async def ask(
        self,
        call: Call | None = None,
        *,
        type: str | None = None,
        payload: Mapping[str, object] | None = None,
        repo_ref: str | None = None,
        timeout: Duration = DEFAULT_TIMEOUT,
        approver: str | None = None,
        actions: Sequence[Action] = (),
        metadata: Mapping[str, object] | None = None,
        **rule: Unpack[RuleOptions],
    ) -> Approval:
        """Asks, and waits for an approval. Everything else raises `Denied`.

        With `approvals`, as many different people must approve: see `RuleOptions`.
        """
        subject = Subject.of(_asked(call, type, payload))
        options = request_options(repo_ref, approver, actions, metadata, several_approvals(**rule))
        return await self.ask_about(subject, options, timeout_seconds(timeout))

    async def ask_about(
        self,
        subject: Subject,
        options: RequestOptions,
        timeout: float,
        check: Callable[[], None] = lambda: None,
    ) -> Approval:
        """Asks about a call that was converted before. For wrappers and adapters.

        `check` raises `Changed` if the call has changed; nobody is told that it ran then.
        """
        return await self._enforcer.ask(subject, options, timeout, check)

    async def submit(
        self,
        call: Call | None = None,
        *,
        type: str | None = None,
        payload: Mapping[str, object] | None = None,
        repo_ref: str | None = None,
        timeout: Duration,
        key: str | None = None,
        approver: str | None = None,
        actions: Sequence[Action] = (),
        metadata: Mapping[str, object] | None = None,
    ) -> Pending:
        """Asks, and returns once the gateway has the request.

        `timeout` includes the time until this or another process comes back for the decision.
        With a `key`, a repeated submission is the same request, also after a crash.
        """
        subject = Subject.of(_asked(call, type, payload))
        options = request_options(repo_ref, approver, actions, metadata)
        limit = timeout_seconds(timeout)
        return Pending(self._enforcer, await self._enforcer.submit(subject, options, limit, key))

    def pending(self, text: str) -> Pending:
        """A submitted request, from `Pending.to_json()` of this or another process."""
        from .request import PreparedRequest

        self._enforcer.check_process()
        identity = self._enforcer.identity
        request = PreparedRequest.parse(text, identity.keys, identity.id, identity.tenant)
        return Pending(self._enforcer, request)

    async def aclose(self) -> None:
        """Closes the connections of this event loop."""
        await self._enforcer.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _state(state: State | str | Path) -> State:
    return DirectoryState(state) if isinstance(state, str | Path) else state


def request_options(
    repo_ref: str | None,
    approver: str | None,
    actions: Sequence[Action],
    metadata: Mapping[str, object] | None,
    several: SeveralApprovals | None = None,
) -> RequestOptions:
    from .request import RequestOptions

    return RequestOptions(repo_ref, approver, actions, metadata, several)


def _asked(
    call: Call | None, type: str | None, payload: Mapping[str, object] | None
) -> Call | Content:
    if call is not None and type is None and payload is None:
        return call
    if call is None and type is not None and payload is not None:
        return Content(type, payload)
    raise TypeError("expected a call, or a type and a payload")
