"""A text that is not shown by accident."""

from typing import NoReturn


class SecretText:
    """Never printed, logged or pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def expose(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "SecretText(redacted)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets cannot be pickled")
