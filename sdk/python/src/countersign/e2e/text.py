"""Characters that could make a text look like another one."""

import re

_CONTROL_OR_BIDI = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNSEEN = (
    "\xad\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# Unusual spaces, and characters that fonts leave empty or draw as they please.
_BLANK = (
    "\x85\xa0\u1680\u2000-\u200a\u202f\u205f\u3000\u034f\u0600-\u0605\u06dd\u070f\u0890\u0891"
    "\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ue000-\uf8ff\ufe00-\ufe0f\uffa0\ufffc"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0100-\U000e01ef\U000f0000-\U0010ffff"
)
_NOT_IN_IDS = re.compile(f"[{_CONTROL_OR_BIDI}]")
_INVISIBLE = re.compile(f"[{_CONTROL_OR_BIDI}{_UNSEEN}]")
_MISLEADING = re.compile(f"[{_CONTROL_OR_BIDI}{_UNSEEN}{_BLANK}\ud800-\udfff]")

MAX_ID_CHARS = 128


def is_id(text: str) -> bool:
    return 1 <= len(text) <= MAX_ID_CHARS and not _NOT_IN_IDS.search(text)


def is_shown(text: str, max_chars: int) -> bool:
    """Whether a name has something to see, and nothing that cannot be seen."""
    return bool(text.strip()) and len(text) <= max_chars and not _INVISIBLE.search(text)


def has_visible(text: str) -> bool:
    """Whether a text has a character that people can see."""
    return bool(_INVISIBLE.sub("", text).strip())


def visible(text: str) -> str:
    """Text from elsewhere, as it may be logged or displayed: misleading characters as `\\u{…}`."""
    return _MISLEADING.sub(lambda found: f"\\u{{{ord(found.group()):x}}}", text)
