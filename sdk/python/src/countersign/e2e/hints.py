"""Additions of a person to a decision: a reason, the chosen action, answers, a grant."""

from dataclasses import dataclass, field

from .canonical import parse_canonical
from .keys import DecryptionKey
from .members import MemberReader
from .seal import Ciphertext, Purpose, open_ciphertext
from .strict_json import Json, JsonObject

_HINTS = "policyHints"
MAX_REASON_CHARS = 4_000
MAX_ACTION_CHARS = 1_024
_MAX_QUESTIONS, _MAX_TEXTS, _MAX_ANSWER_CHARS = 16, 64, 4_000


@dataclass(frozen=True)
class Hints:
    reason: str | None = field(default=None, repr=False)
    action_id: str | None = None
    answers: tuple[tuple[str, ...], ...] | None = field(default=None, repr=False)


def hints_context(
    request_id: str, artifact_hash: str, enforcer_id: str, device_id: str
) -> JsonObject:
    return {
        "v": 1,
        "requestId": request_id,
        "artifactHash": artifact_hash,
        "enforcerId": enforcer_id,
        "deviceId": device_id,
    }


def open_hints(
    value: JsonObject, context: JsonObject, enforcer_id: str, keys: DecryptionKey, sender: bytes
) -> Hints:
    """Reads `policyHints`, encrypted or plain. The signature must have been verified before."""
    reader = MemberReader(_HINTS, value)
    if not reader.has("sealed"):
        return _read(value)
    sealed = reader.object("sealed")
    reader.finish()
    ciphertext = Ciphertext.read(Purpose.HINTS, sealed)
    content = open_ciphertext(ciphertext, enforcer_id, keys, sender, context)
    return _read(parse_canonical(_HINTS, content))


def _read(value: Json) -> Hints:
    reader = MemberReader(_HINTS, value)
    reason = reader.optional_text("reason", MAX_REASON_CHARS)
    action_id = reader.optional_text("actionId", MAX_ACTION_CHARS)
    answers = _read_answers(reader) if reader.has("answers") else None
    # A grant is not used here: the approval then covers less than was signed, never more.
    if reader.has("grant"):
        reader.required("grant")
    # Something unknown could be a condition, so a decision that has it is not acted on.
    reader.finish()
    return Hints(reason, action_id, answers)


def _read_answers(reader: MemberReader) -> tuple[tuple[str, ...], ...]:
    answers: list[tuple[str, ...]] = []
    for item in reader.array("answers"):
        texts = item if isinstance(item, list) else []
        chosen = tuple(text for text in texts if isinstance(text, str))
        is_short = all(1 <= len(text) <= _MAX_ANSWER_CHARS for text in chosen)
        if len(chosen) != len(texts) or not 1 <= len(chosen) <= _MAX_TEXTS or not is_short:
            raise reader.refusal("answers", "lists of texts")
        answers.append(chosen)
    if not 1 <= len(answers) <= _MAX_QUESTIONS:
        raise reader.refusal("answers", f"of 1 to {_MAX_QUESTIONS} questions")
    return tuple(answers)
