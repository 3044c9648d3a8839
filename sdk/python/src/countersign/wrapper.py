"""`approval_required`: a function that runs only if a person has approved exactly this call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeVar, Unpack

from .call import Action, Call, Subject
from .client import DEFAULT_TIMEOUT, Client, request_options
from .durations import Duration, timeout_seconds
from .errors import Changed, Denied
from .rule_options import RuleOptions, SeveralApprovals, several_approvals

if TYPE_CHECKING:
    from .request import RequestOptions

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Gate:
    """How calls of one function are asked about."""

    name: str
    signature: inspect.Signature
    timeout: float
    show: tuple[str, ...] | None
    ask_if: Callable[..., object] | None
    repo_ref: str | None
    approver: str | None
    metadata: Mapping[str, object] | None
    actions: Sequence[Action]
    several: SeveralApprovals | None

    @classmethod
    def of(
        cls,
        function: Callable[..., object],
        *,
        timeout: Duration,
        show: Sequence[str] | None,
        name: str | None,
        ask_if: Callable[..., object] | None,
        repo_ref: str | None,
        approver: str | None,
        actions: Sequence[Action],
        metadata: Mapping[str, object] | None,
        several: SeveralApprovals | None,
    ) -> Gate:
        signature = inspect.signature(function)
        unknown = set(show or ()) - set(signature.parameters)
        if unknown:
            raise TypeError(f"show: {min(unknown)} is no parameter of the function")
        # The function does not learn which one was chosen.
        if sum(action.decision == "approve" for action in actions) > 1:
            raise TypeError("actions: more than one approves; use ask, which returns the choice")
        called = name or getattr(function, "__name__", "")
        if not called:
            raise TypeError("name: the function has none")
        gate = cls(
            called,
            signature,
            timeout_seconds(timeout),
            None if show is None else tuple(show),
            ask_if,
            repo_ref,
            approver,
            metadata,
            actions,
            several,
        )
        # Options that contradict each other are refused now, not at the first call.
        gate.options()
        return gate

    def subject(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Subject:
        """The call with all of its arguments, in the order of the signature."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        order = None
        if self.show is not None:
            rest = (name for name in bound.arguments if name not in self.show)
            order = (*self.show, *rest)
        return Subject.of(Call(self.name, bound.arguments), order)

    def options(self) -> RequestOptions:
        return request_options(
            self.repo_ref, self.approver, self.actions, self.metadata, self.several
        )

    def must_ask(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Only `False` lets a call pass. An error of the condition denies."""
        if self.ask_if is None:
            return True
        try:
            answer = self.ask_if(*args, **kwargs)
        except Exception as error:
            raise Denied(f"the condition failed ({type(error).__name__})") from error
        return answer is not False

    def check_unchanged(
        self, asked: Subject, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Arguments can be changed while a person thinks."""
        if self.subject(args, kwargs).text() != asked.text():
            raise Changed("the arguments have changed since the call was shown")


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
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Decorates an `async def` function: each call waits for an approval, or raises `Denied`.

    `show` names arguments to display first; nothing is left out. `ask_if` gets the arguments, and
    lets a call pass unasked only if it returns `False`. With `approvals`, as many different people
    must approve: see `RuleOptions`.
    """

    def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        if not inspect.iscoroutinefunction(function):
            raise TypeError("expected an async function; for others use countersign.sync")
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
        async def gated(*args: P.args, **kwargs: P.kwargs) -> R:
            import asyncio

            if gate.must_ask(args, kwargs):
                subject = gate.subject(args, kwargs)
                check = functools.partial(gate.check_unchanged, subject, args, kwargs)
                await client.ask_about(subject, gate.options(), gate.timeout, check)
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError
                # Again: they could change while the approver was told.
                check()
            return await function(*args, **kwargs)

        return gated

    return decorate
