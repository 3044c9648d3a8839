"""A state in memory. A program that is not a test must not forget revocations at restart."""

import threading
from collections.abc import Generator
from contextlib import contextmanager


class MemoryState:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lock = threading.Lock()
        self._changing = threading.Lock()

    def load(self, name: str) -> str | None:
        with self._lock:
            return self._texts.get(name)

    def store(self, name: str, text: str) -> None:
        with self._lock:
            self._texts[name] = text

    def create(self, name: str, text: str) -> bool:
        with self._lock:
            if name in self._texts:
                return False
            self._texts[name] = text
            return True

    @contextmanager
    def exclusively(self) -> Generator[None]:
        with self._changing:
            yield
