"""Refusals. A value that is refused is never used."""


class Refusal(Exception):
    """A text, key, signature or decision that must not be believed."""


class UnknownDevice(Refusal):
    """The device is not known. A list of devices that is read again may have it."""


class DecisionRefused(Refusal):
    """A decision that failed one of the seven checks; `check` is its number."""

    def __init__(self, check: int, cause: str, *, is_unknown_device: bool = False) -> None:
        super().__init__(cause)
        self.check = check
        self.is_unknown_device = is_unknown_device
