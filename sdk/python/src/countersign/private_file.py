"""Files that their owner alone can read, replaced as a whole."""

import os
import secrets
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_LOCK_TIMEOUT = 10.0
_LOCK_INTERVAL = 0.01


class FileProblem(Exception):
    """Why a file is not used."""


def read_private(path: Path) -> str | None:
    """The text; None if there is no such file."""
    try:
        file = open(path, encoding="utf-8")  # noqa: SIM115
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileProblem(error.strerror or "it cannot be read") from error
    with file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise FileProblem("it is no file")
        if found.st_uid != os.geteuid():
            raise FileProblem("it belongs to another user")
        if found.st_mode & 0o077:
            raise FileProblem(f"others can read it (mode {stat.S_IMODE(found.st_mode):o})")
        try:
            return file.read()
        except (OSError, UnicodeError) as error:
            raise FileProblem("it cannot be read") from error


def write_private(path: Path, text: str) -> None:
    """Replaces a file of the state. Readers never see it half written."""
    prepare_directory(path.parent)
    replace_private(path, text)


def replace_private(path: Path, text: str) -> None:
    """Replaces a file anywhere. A link of this name is replaced, not followed."""
    part = _write_part(path, text)
    os.replace(part, path)
    _sync_directory(path.parent)


def create_private(path: Path, text: str) -> bool:
    """Makes a file with all of its text in one step. False if there is one already."""
    prepare_directory(path.parent)
    part = _write_part(path, text)
    try:
        # A link fails if the name is taken, and never shows a file that is half written.
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(part)
    _sync_directory(path.parent)
    return True


def prepare_directory(directory: Path) -> None:
    """Makes the directory if need be. Who can write in it could remove what must be remembered."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    if found.st_uid != os.geteuid():
        raise FileProblem(f"the directory {directory} belongs to another user")
    if found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        raise FileProblem(f"others can write in the directory {directory} (mode {mode:o})")


def _write_part(path: Path, text: str) -> Path:
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return part


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileLock:
    """A lock that every language can take: a file that is there meanwhile.

    One that a killed process left is removed after ten seconds. A holder that was suspended for
    longer has lost it, so it asks `is_held` before it stores anything.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        # While it is open, no other file can have its number.
        self._descriptor = descriptor

    def is_held(self) -> bool:
        return _identity(self._path) == _identity(self._descriptor)

    def release(self) -> None:
        try:
            if self.is_held():
                self._path.unlink(missing_ok=True)
        finally:
            os.close(self._descriptor)


@contextmanager
def locked(path: Path) -> Generator[FileLock]:
    prepare_directory(path.parent)
    until = time.monotonic() + 2 * _LOCK_TIMEOUT
    while True:
        try:
            lock = FileLock(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > until:
                raise FileProblem(f"{path} is locked by another process") from None
        remove_stale_lock(path)
        time.sleep(_LOCK_INTERVAL)
    try:
        yield lock
    finally:
        lock.release()


def remove_stale_lock(path: Path) -> None:
    """Removes a lock that is too old, and never one that another process has taken since."""
    try:
        found = path.stat()
        if abs(time.time() - found.st_mtime) <= _LOCK_TIMEOUT:
            return
        # A name of its own: only one process gets the file, and can see which one it got.
        taken = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
        os.rename(path, taken)
    except FileNotFoundError:
        return
    try:
        if _identity(taken) != (found.st_dev, found.st_ino):
            # Put back. If the name is taken again, the holder notices that it lost the lock.
            os.link(taken, path)
    except FileExistsError:
        pass
    finally:
        taken.unlink(missing_ok=True)


def _identity(file: Path | int) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
