"""Spans for OpenTelemetry, if `opentelemetry-api` is installed. It is imported at the first call.

Spans say which tool, which request, which approver and how it ended. They have no arguments,
reasons or keys, and no texts of exceptions.
"""

import asyncio
import functools
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .e2e.text import visible
from .errors import Denied
from .version import VERSION

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

_MAX_CHARS = 200


class OperationSpan:
    """A span, or nothing where there is no OpenTelemetry."""

    def __init__(self, span: "Span | None") -> None:
        self._span = span

    def note(self, name: str, value: str | None) -> None:
        if self._span is not None and value is not None:
            self._span.set_attribute(f"countersign.{name}", visible(value)[:_MAX_CHARS])


@contextmanager
def operation(name: str, tool: str | None) -> Generator[OperationSpan]:
    """A span around an operation of the library, with its end: `ok`, `cancelled` or a cause."""
    tracer = _tracer()
    if tracer is None:
        yield OperationSpan(None)
        return
    with tracer.start_as_current_span(
        f"countersign.{name}", record_exception=False, set_status_on_exception=False
    ) as inner:
        span = OperationSpan(inner)
        span.note("tool", tool)
        try:
            yield span
        except Denied as denied:
            span.note("request_id", denied.request_id)
            span.note("end", denied.cause)
            raise
        except asyncio.CancelledError:
            span.note("end", "cancelled")
            raise
        except BaseException as error:
            span.note("end", type(error).__name__)
            raise
        span.note("end", "ok")


@functools.cache
def _tracer() -> "Tracer | None":
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("countersign", VERSION)
