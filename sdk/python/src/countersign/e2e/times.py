"""RFC 3339 times as microseconds since 1970."""

import re
from datetime import UTC, datetime, timedelta

from .errors import Refusal

SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.([0-9]+))?(?:[Zz]|([+-])(\d\d):(\d\d))\Z", re.ASCII
)


def parse_time(text: str) -> int:
    match = _RFC3339.match(text)
    if not match:
        raise Refusal("not a time")
    day, clock, fraction, sign, hours, minutes = match.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}+00:00")
    except ValueError as error:
        raise Refusal("not a time") from error
    if not 1 <= at.year <= 9998 or int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise Refusal("not a time")
    offset = (int(hours or 0) * 60 + int(minutes or 0)) * (-1 if sign == "-" else 1)
    seconds = (at - _EPOCH) // timedelta(seconds=1) - offset * 60
    return seconds * SECOND + int(((fraction or "") + "000000")[:6])


def format_time(at: int) -> str:
    text = (_EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{at % SECOND:06}".rstrip("0") if at % SECOND else ""
    return f"{text}{fraction}Z"
