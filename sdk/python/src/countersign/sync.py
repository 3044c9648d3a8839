"""The same library for programs without an event loop.

All clients share one event loop in a background thread. Ctrl-C withdraws the request.
"""

import asyncio
import concurrent.futures
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar, Unpack

from . import client as _client
from . import pending as _pending
from .approval import Approval
from .call import Action, Call, Content
from .client import DEFAULT_TIMEOUT
from .durations import Duration
from .errors import Denied
from .pending import StillWaiting
from .rule_options import RuleOptions, several_approvals
from .state import State, UseJournal
from .wrapper import Gate

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

# A cancelled call withdraws its request first.
_CANCEL_TIMEOUT = 4.0


class _Background:
    """The event loop of this process, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A thread does not survive a fork.
            if self._loop is None or self._process != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                threading.Thread(
                    target=self._loop.run_forever, name="countersign", daemon=True
                ).start()
            return self._loop

    def run(self, work: Coroutine[object, object, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self.loop())
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                concurrent.futures.wait([future], _CANCEL_TIMEOUT)
            raise


_BACKGROUND = _Background()


def run_in_background(work: Coroutine[object, object, T]) -> T:
    """Runs a coroutine on the background loop. For adapters that are called without a loop."""
    return _BACKGROUND.run(work)


@dataclass(frozen=True)
class Approved:
    """An approval that has not been used yet."""

    _inner: _pending.Approved

    @property
    def approval(self) -> Approval:
        return self._inner.approval

    @property
    def request_id(self) -> str:
        return self._inner.request_id

    @contextmanager
    def use(self, asked: Call | Content) -> Generator[Approval]:
        """Goes around the execution of exactly the call that was approved."""
        entered = self._inner.use(asked)
        approval = _BACKGROUND.run(_entered(entered.__aenter__()))
        # Again in this thread: others could change the call until here.
        self._inner._request.check(asked)
        yield approval


async def _entered(work: Coroutine[object, object, T]) -> T:
    return await work


Outcome: TypeAlias = Approved | Denied | StillWaiting


class Pending:
    """A submitted request."""

    def __init__(self, inner: _pending.Pending) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def request_id(self) -> str:
        return self._inner.request_id

    def to_json(self) -> str:
        return self._inner.to_json()

    def outcome(self, *, wait: Duration = "0s") -> Outcome:
        found = _BACKGROUND.run(self._inner.outcome(wait=wait))
        return Approved(found) if isinstance(found, _pending.Approved) else found

    def withdraw(self, reason: str = "no longer needed") -> None:
        _BACKGROUND.run(self._inner.withdraw(reason))


class Client:
    """An enforcer that is paired with approvers. Many threads may use it at the same time."""

    def __init__(self, inner: _client.Client) -> None:
        self._inner = inner

    @classmethod
    def from_profile(
        cls,
        name: str | None = None,
        *,
        state: State | str | Path | None = None,
        journal: UseJournal | None = None,
    ) -> "Client":
        return cls(_client.Client.from_profile(name, state=state, journal=journal))

    @classmethod
    def from_profile_text(
        cls, text: str, *, state: State | str | Path, journal: UseJournal | None = None
    ) -> "Client":
        return cls(_client.Client.from_profile_text(text, state=state, journal=journal))

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def enforcer_id(self) -> str:
        return self._inner.enforcer_id

    def ask(
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
        return _BACKGROUND.run(
            self._inner.ask(
                call,
                type=type,
                payload=payload,
                repo_ref=repo_ref,
                timeout=timeout,
                approver=approver,
                actions=actions,
                metadata=metadata,
                **rule,
            )
        )

    def submit(
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
        submitted = self._inner.submit(
            call,
            type=type,
            payload=payload,
            repo_ref=repo_ref,
            timeout=timeout,
            key=key,
            approver=approver,
            actions=actions,
            metadata=metadata,
        )
        return Pending(_BACKGROUND.run(submitted))

    def pending(self, text: str) -> Pending:
        return Pending(self._inner.pending(text))

    def close(self) -> None:
        _BACKGROUND.run(self._inner.aclose())


def _check_plain(function: Callable[..., object]) -> None:
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if is_async or inspect.isgeneratorfunction(function):
        raise TypeError("expected a plain function; for async ones use countersign")


def approval_required(
    client: Client,
    *,
    timeout: Duration = DEFAULT_TIMEOUT,
    show: Sequence[str] | None = None,
    name: str | None = None,
    ask_if: Callable[..., object] | None = None,
    repo_ref: str | None = None,
    approver: str | None = None,
    actions: Sequence[Action] = (),
    metadata: Mapping[str, object] | None = None,
    **rule: Unpack[RuleOptions],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function: each call waits for an approval, or raises `Denied`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        _check_plain(function)
        gate = Gate.of(
            function,
            timeout=timeout,
            show=show,
            name=name,
            ask_if=ask_if,
            repo_ref=repo_ref,
            approver=approver,
            actions=actions,
            metadata=metadata,
            several=several_approvals(**rule),
        )

        @functools.wraps(function)
        def gated(*args: P.args, **kwargs: P.kwargs) -> R:
            if gate.must_ask(args, kwargs):
                subject = gate.subject(args, kwargs)
                check = functools.partial(gate.check_unchanged, subject, args, kwargs)
                asking = client._inner.ask_about(subject, gate.options(), gate.timeout, check)
                _BACKGROUND.run(asking)
                check()
            return function(*args, **kwargs)

        return gated

    return decorate
