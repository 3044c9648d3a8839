"""The contract between the refusals that every adapter is tested with and one framework.

Each `drive_NAME.py` in this folder has `DRIVERS`, a list of drivers. A driver runs the real
framework with a scripted model: in its first turn the model makes the given calls at once, in its
second turn it ends. An adapter with a durable mode has a second driver for it, whose `run`
suspends, stores the state as text, and resumes it with another client.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from countersign import Client
from countersign.testing import FakeApprover

HERE = Path(__file__).parent


@dataclass(frozen=True)
class ToolCall:
    """A call that the scripted model makes."""

    name: str
    args: Mapping[str, Any]


def pay(amount: Any) -> ToolCall:
    """A call of the gated tool."""
    return ToolCall("pay", {"amount": amount})


def look(place: str) -> ToolCall:
    """A call of the tool that is not gated."""
    return ToolCall("look", {"place": place})


@dataclass
class World:
    """The side effects of the tools. Tools of drivers do nothing but call these methods."""

    ran: list[ToolCall] = field(default_factory=list[ToolCall])

    def pay(self, amount: Any) -> dict[str, Any]:
        self.ran.append(pay(amount))
        return {"paid": amount}

    def look(self, place: str) -> str:
        self.ran.append(look(place))
        return f"saw {place}"


@dataclass
class Scene:
    """One agent with the tools `pay` (gated) and `look` (not gated)."""

    approver: FakeApprover
    world: World
    # Of a question, as the adapter takes it.
    timeout: str = "20s"
    # Without: the same agent as if there were no adapter.
    is_gated: bool = True
    # Everything mutable that the model or the framework holds about outstanding calls. A driver
    # appends functions that change the amount there.
    tampers: list[Callable[[Any], None]] = field(default_factory=list[Callable[[Any], None]])

    _processes: int = 0

    @property
    def client(self) -> Client:
        return self.approver.client

    def client_of_next_process(self) -> Client:
        """For durable drivers: the first process has `client`, each further one its own."""
        self._processes += 1
        return self.client if self._processes == 1 else self.approver.new_client()


@dataclass
class RunReport:
    """The end of a run."""

    # For each call, in the order of the calls, the text that the model got.
    texts: list[str] = field(default_factory=list[str])
    # For each call the object that the framework took as the tool's result.
    results: list[Any] = field(default_factory=list[Any])
    # The run ended with this exception; the model got nothing.
    error: Exception | None = None

    def told(self, call: int = 0) -> str:
        return self.texts[call] if self.error is None else ""


class AdapterDriver(ABC):
    """One adapter in one mode."""

    # Unique; the file's name without `drive_`, with `_durable` for the durable mode.
    name: ClassVar[str]
    # Entries of the framework, such as sync, async, stream. `run` takes each of them.
    entries: ClassVar[Sequence[str]] = ("async",)
    # Ways in which agents contain or call others, such as subagent, handoff.
    nestings: ClassVar[Sequence[str]] = ()
    # Entries that a caller can cancel while they wait.
    cancellable: ClassVar[Sequence[str]] = ("async",)
    # Refusals ("13", or "10 hook") that the framework cannot have, with the reason.
    gaps: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    async def run(self, scene: Scene, calls: Sequence[ToolCall], entry: str = "async") -> RunReport:
        """Runs the agent to its end. An `Exception` of the run goes into the report."""

    async def run_with_silent_hook(self, scene: Scene, call: ToolCall) -> RunReport:
        """Refusal "10 hook": the framework's own question whether to ask is answered with None."""
        raise NotImplementedError

    async def run_with_late_tool(self, scene: Scene, call: ToolCall) -> RunReport:
        """Refusal 16: runs an agent that gets `pay` only after the adapter was set up."""
        raise NotImplementedError

    async def run_nested(self, scene: Scene, call: ToolCall, nesting: str) -> RunReport:
        """Refusal 18: the call is made by the inner agent, and the report is about it."""
        raise NotImplementedError

    async def suspend(self, scene: Scene, calls: Sequence[ToolCall]) -> str:
        """Refusals 13 and 14: runs until the calls wait, and returns the state as text."""
        raise NotImplementedError

    async def resume(self, scene: Scene, state: str) -> RunReport:
        """Resumes a stored run as another process does: new client, new agent, same tools.

        A run that still waits is reported with the error `StillSuspended`.
        """
        raise NotImplementedError

    def edited(self, state: str, amount: int) -> str:
        """The stored state, in which the call of `pay` has another amount."""
        raise NotImplementedError


class StillSuspended(Exception):
    """A run that was resumed, and waits again."""


def load_drivers() -> list[AdapterDriver]:
    """The drivers of all files `drive_NAME.py`."""
    found: list[AdapterDriver] = []
    for path in sorted(HERE.glob("drive_*.py")):
        drivers: list[AdapterDriver] = importlib.import_module(path.stem).DRIVERS
        expected = path.stem.removeprefix("drive_")
        assert {driver.name.removesuffix("_durable") for driver in drivers} == {expected}
        found += drivers
    return found
