"""The state that the library keeps across restarts.

There is no default in memory: a process that forgets revocations would accept a revoked device
whenever the gateway repeats old statements.
"""

import threading
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from .e2e.errors import Refusal
from .e2e.members import MemberReader
from .e2e.strict_json import parse_object
from .errors import ProfileError
from .private_file import (
    FileLock,
    FileProblem,
    create_private,
    locked,
    read_private,
    write_private,
)

# No request lasts longer than 30 days.
USE_LIFETIME = 31 * 24 * 3600.0


@runtime_checkable
class State(Protocol):
    """A place that survives restarts. Names may contain slashes."""

    def load(self, name: str) -> str | None:
        """The text that was stored under this name; None if there is none."""
        ...

    def store(self, name: str, text: str) -> None: ...

    def create(self, name: str, text: str) -> bool:
        """Stores a text unless the name is taken, in one step. False if it is taken."""
        ...

    def exclusively(self) -> AbstractContextManager[None]:
        """Keeps other processes from changing what was loaded, as far as the place can."""
        ...


@runtime_checkable
class UseJournal(Protocol):
    """Takes an approval once. Hosts that share their requests share a journal."""

    async def take(self, request_id: str) -> bool:
        """True for the first caller, False for everyone else, lastingly."""
        ...


class DirectoryState:
    """Files in a directory, or beside a profile: `prefix` is a path that names are appended to."""

    def __init__(self, prefix: str | Path, *, is_directory: bool = True) -> None:
        self._prefix = f"{prefix}/" if is_directory else f"{prefix}"
        # The lock that this thread holds.
        self._held = threading.local()

    def __repr__(self) -> str:
        return f"DirectoryState({self._prefix!r})"

    def path(self, name: str) -> Path:
        return Path(f"{self._prefix}{name}")

    def load(self, name: str) -> str | None:
        try:
            return read_private(self.path(name))
        except FileProblem as problem:
            raise ProfileError(f"{self.path(name)} is not used: {problem}") from problem

    def store(self, name: str, text: str) -> None:
        lock: FileLock | None = getattr(self._held, "lock", None)
        try:
            if lock is not None and not lock.is_held():
                raise FileProblem("another process has taken the lock meanwhile")
            write_private(self.path(name), text)
        except (OSError, FileProblem) as error:
            raise self._unwritable(name, error) from error

    def create(self, name: str, text: str) -> bool:
        try:
            return create_private(self.path(name), text)
        except (OSError, FileProblem) as error:
            raise self._unwritable(name, error) from error

    @contextmanager
    def exclusively(self) -> Generator[None]:
        try:
            with locked(self.path("trust.lock")) as lock:
                self._held.lock = lock
                try:
                    yield
                finally:
                    self._held.lock = None
        except (OSError, FileProblem) as error:
            raise self._unwritable("trust.lock", error) from error

    def _unwritable(self, name: str, error: Exception) -> ProfileError:
        return ProfileError(f"{self.path(name)} cannot be written: {error}")

    def remove_older(self, folder: str, age: float) -> None:
        """Removes old files. One too many does no harm."""
        try:
            for path in self.path(folder).iterdir():
                if time.time() - path.stat().st_mtime > age:
                    path.unlink(missing_ok=True)
        except OSError:
            return


class StateJournal:
    """A name for each approval that was taken, made in one step and kept for 31 days."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._is_cleaned = False

    async def take(self, request_id: str) -> bool:
        is_first = self._state.create(f"used/{request_id}", "")
        if not self._is_cleaned and isinstance(self._state, DirectoryState):
            self._is_cleaned = True
            self._state.remove_older("used", USE_LIFETIME)
            self._state.remove_older("requests", USE_LIFETIME)
        return is_first


def read_members(what: str, text: str) -> MemberReader:
    """The members of a text that this library stored itself."""
    try:
        reader = MemberReader(what, parse_object(text))
        reader.version()
    except Refusal as error:
        raise ProfileError(f"{what} is damaged: {error}") from error
    return reader
