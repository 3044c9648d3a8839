"""Spans of OpenTelemetry say what happened, and nothing about arguments, reasons or keys."""

import asyncio
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from entries import until
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from countersign import Approved, Call, Denied, Rejected, sync, tracing
from countersign.testing import FakeApprover

SOURCE = str(Path(__file__).resolve().parents[1] / "src")
CALL = Call("transfer", {"iban": "secret-iban", "amount": 500})
ALLOWED = {"tool", "request_id", "approver", "end"}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Generator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("countersign"))
    yield exporter
    provider.shutdown()


def told(span: ReadableSpan) -> dict[str, Any]:
    attributes = dict(span.attributes or {})
    assert attributes.keys() <= {f"countersign.{name}" for name in ALLOWED}
    assert not span.events
    assert span.status.description is None
    return {name.removeprefix("countersign."): value for name, value in attributes.items()}


def test_an_approval(spans: InMemorySpanExporter) -> None:
    with FakeApprover() as approver:
        approver.when().approve("a secret reason")
        approval = asyncio.run(approver.client.ask(CALL))
    (span,) = spans.get_finished_spans()
    assert span.name == "countersign.ask"
    assert told(span) == {
        "tool": "transfer",
        "request_id": approval.request_id,
        "approver": "alice",
        "end": "ok",
    }
    assert "secret" not in span.to_json()


def test_a_rejection(spans: InMemorySpanExporter) -> None:
    with FakeApprover() as approver:
        approver.when().reject("a secret reason")
        with pytest.raises(Rejected):
            asyncio.run(approver.client.ask(CALL))
    (span,) = spans.get_finished_spans()
    assert (told(span)["end"], told(span)["request_id"]) == (
        "rejected",
        approver.asked[0].request_id,
    )
    assert "secret" not in span.to_json()


def test_an_error_of_the_library(spans: InMemorySpanExporter) -> None:
    def broken() -> Any:
        raise RuntimeError("a secret detail")

    with FakeApprover() as approver:
        approver.client._enforcer._directory._load_profile = broken
        with pytest.raises(Denied):
            asyncio.run(approver.client.ask(CALL))
    (span,) = spans.get_finished_spans()
    assert told(span) == {"tool": "transfer", "end": "failed"}
    assert "secret" not in span.to_json()


def test_a_durable_request(spans: InMemorySpanExporter) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().approve()
            pending = await approver.client.submit(CALL, timeout="1h", key="secret-key")
            outcome = await pending.outcome()
            assert isinstance(outcome, Approved)
            async with outcome.use(CALL):
                pass
            await pending.withdraw("secret words")

    asyncio.run(main())
    finished = spans.get_finished_spans()
    names = ["submit", "outcome", "use", "withdraw"]
    assert [span.name for span in finished] == [f"countersign.{name}" for name in names]
    assert len({told(span)["request_id"] for span in finished}) == 1
    assert {told(span)["end"] for span in finished} == {"ok"}
    assert not any("secret" in span.to_json() for span in finished)


def test_a_cancelled_call(spans: InMemorySpanExporter) -> None:
    async def main() -> None:
        with FakeApprover() as approver:
            approver.when().wait()
            asking = asyncio.ensure_future(approver.client.ask(CALL))
            await until(lambda: approver.asked)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(main())
    (span,) = spans.get_finished_spans()
    assert told(span)["end"] == "cancelled"


def test_spans_belong_to_the_span_of_the_caller(spans: InMemorySpanExporter) -> None:
    tracer = tracing._tracer()
    assert tracer is not None
    with FakeApprover() as approver, tracer.start_as_current_span("agent") as outer:
        approver.when().approve()
        sync.Client(approver.client).ask(CALL)
        expected = outer.get_span_context().span_id
    inner = spans.get_finished_spans()[0]
    assert inner.parent is not None
    assert inner.parent.span_id == expected


def test_a_tracer_that_fails_is_a_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    class BrokenTracer:
        def start_as_current_span(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("away")

    monkeypatch.setattr(tracing, "_tracer", BrokenTracer)
    with FakeApprover() as approver:
        approver.when().approve()
        with pytest.raises(Denied):
            asyncio.run(approver.client.ask(CALL))
        assert approver.asked == []


def test_the_tracer_is_that_of_the_program() -> None:
    tracing._tracer.cache_clear()
    assert isinstance(tracing._tracer(), trace.Tracer)


def run(script: str) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            f"import sys; sys.path.insert(0, {SOURCE!r})\n{script}",
        ],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


ASK = """
import asyncio
from countersign import Call
from countersign.testing import FakeApprover
with FakeApprover() as approver:
    approver.when().approve()
    print(asyncio.run(approver.client.ask(Call("pay", {}))).approver)
"""


def test_without_opentelemetry_nothing_is_missing() -> None:
    assert run(f"sys.modules['opentelemetry'] = None\n{ASK}") == "alice"


def test_nothing_large_is_imported_before_it_is_needed() -> None:
    """The import must stay below 150 ms, which a busy machine cannot measure."""
    script = "import countersign\nprint(*{name.partition('.')[0] for name in sys.modules})"
    imported = set(run(script).split())
    assert "countersign" in imported
    large = {"asyncio", "ssl", "opentelemetry", "httpx", "pydantic", "langchain", "agents"}
    assert not imported & large
