"""The part that the adapters of agent frameworks share: ask about one call of a tool.

It hands out the arguments to run a tool with, and only after an accepted approval of exactly these.
Everything else raises `Denied`, errors of this library included.
"""

import asyncio
import copy
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from .approval import Approval
from .call import Call, Subject
from .client import Client
from .durations import Duration, timeout_seconds
from .e2e.errors import Refusal
from .e2e.strict_json import parse_object
from .engine import _log_denied
from .errors import Changed, Denied, NotAskable
from .pending import Approved, Outcome, Pending, StillWaiting
from .request import RequestOptions
from .rule_options import SeveralApprovals
from .sync import run_in_background

_WAIT_INTERVAL = "25s"


@dataclass(frozen=True)
class ToolGate:
    """How an adapter asks about calls. `framework` is shown to the approver."""

    client: Client
    framework: str
    timeout: Duration
    approver: str | None = None
    repo_ref: str | None = None
    several: SeveralApprovals | None = None
    # Whether the adapter uses `submit` and what follows from it.
    is_durable: bool = False

    def __post_init__(self) -> None:
        timeout_seconds(self.timeout)
        self._options()
        if self.several is not None and self.is_durable:
            raise TypeError("approvals: a durable request cannot ask several people")

    def _options(self) -> RequestOptions:
        metadata = {"framework": self.framework}
        return RequestOptions(self.repo_ref, self.approver, metadata=metadata, several=self.several)

    async def ask(self, name: str, args: Mapping[str, object]) -> dict[str, object]:
        """Waits for an approval. Returns the arguments to run the call with: a copy of `args`."""
        async with _denying(name):
            detached = _detached(args)
            subject = Subject.of(Call(name, detached))

            def check() -> None:
                if Subject.of(Call(name, detached)).text() != subject.text():
                    raise Changed("the arguments have changed since the call was shown")

            seconds = timeout_seconds(self.timeout)
            approval = await self.client.ask_about(subject, self._options(), seconds, check)
            # As in `_checked`.
            if type(approval) is not Approval:
                raise Denied("there is no approval")
            _check_awaited()
            check()
            return detached

    def ask_sync(self, name: str, args: Mapping[str, object]) -> dict[str, object]:
        """The same for a thread without an event loop."""
        return run_in_background(self.ask(name, args))

    async def submit(self, name: str, args: Mapping[str, object], key: str) -> Pending:
        """Asks without waiting. The same key is the same request, in every process."""
        async with _denying(name):
            if self.several is not None:
                raise Denied("a durable request cannot ask several people")
            pending = await self.client.submit(
                Call(name, _detached(args)),
                timeout=self.timeout,
                key=key,
                approver=self.approver,
                repo_ref=self.repo_ref,
                metadata={"framework": self.framework},
            )
            if type(pending) is not Pending:
                raise Denied("there is no request")
            return pending

    async def outcome(self, name: str, args: Mapping[str, object], key: str) -> Outcome:
        """Submits, and looks for a decision. To run the call, `take` it."""
        try:
            async with _denying(name):
                return _checked(await (await self.submit(name, args, key)).outcome())
        except Denied as denied:
            return denied

    async def take(
        self, name: str, args: Mapping[str, object], key: str
    ) -> dict[str, object] | StillWaiting:
        """Submits, and uses the approval if there is one. It counts once, in every process."""
        async with _denying(name):
            detached = _detached(args)
            pending = await self.submit(name, detached, key)
            outcome = _checked(await pending.outcome())
            return (
                outcome
                if isinstance(outcome, StillWaiting)
                else await _use(outcome, name, detached)
            )

    async def wait_and_take(
        self, name: str, args: Mapping[str, object], key: str
    ) -> dict[str, object]:
        """The same, but waits for a decision until the request ends."""
        async with _denying(name):
            detached = _detached(args)
            pending = await self.submit(name, detached, key)
            outcome = _checked(await pending.outcome())
            while isinstance(outcome, StillWaiting):
                outcome = _checked(await pending.outcome(wait=_WAIT_INTERVAL))
            return await _use(outcome, name, detached)

    def take_sync(
        self, name: str, args: Mapping[str, object], key: str
    ) -> dict[str, object] | StillWaiting:
        return run_in_background(self.take(name, args, key))


def gated_names(tools: Iterable[object]) -> frozenset[str]:
    """The names of tools, given as objects of a framework, functions or texts."""
    if isinstance(tools, str | bytes):
        # Its letters would be gated.
        raise TypeError("tools: expected a list of tools or their names")
    names = [
        tool if isinstance(tool, str) else getattr(tool, "name", getattr(tool, "__name__", None))
        for tool in tools
    ]
    if not names:
        raise ValueError("tools: expected at least one")
    if not all(isinstance(name, str) and name for name in names):
        raise TypeError("tools: expected tools or their names")
    return frozenset(str(name) for name in names)


def arguments_of(text: str | None) -> dict[str, object]:
    """The arguments that a model wrote as JSON, read as strictly as they are shown."""
    try:
        return {**parse_object(text or "{}")}
    except Refusal as error:
        raise NotAskable(f"the arguments are not strict JSON: {error}") from error


def _detached(args: Mapping[str, object]) -> dict[str, object]:
    """A copy that nobody else can change while a person thinks."""
    return copy.deepcopy(dict(args))


async def _use(
    outcome: Approved | Denied, name: str, detached: dict[str, object]
) -> dict[str, object]:
    if isinstance(outcome, Denied):
        raise outcome
    async with outcome.use(Call(name, detached)):
        _check_awaited()
        return detached


def _checked(outcome: object) -> Outcome:
    """The type says so already. A mistake elsewhere must not run a tool."""
    if not isinstance(outcome, Approved | Denied | StillWaiting):
        raise Denied("there is no approval")
    return outcome


def _check_awaited() -> None:
    """A caller that was cancelled while the approval arrived must not run the call."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


@asynccontextmanager
async def _denying(tool: str | None) -> AsyncGenerator[None]:
    """Turns every error before the execution into a denial, and logs it."""
    try:
        yield
    except Denied as denied:
        _log_denied(denied, tool)
        raise
    except Exception as error:
        unexpected = Denied(f"an unexpected error ({type(error).__name__})")
        _log_denied(unexpected, tool)
        raise unexpected from error
