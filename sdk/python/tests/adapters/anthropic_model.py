"""A model on loopback that speaks the streaming form of the Messages API and follows a script."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Calls of tools to make in one turn: names with arguments. None ends the turn with a text.
Turn = Sequence[tuple[str, Mapping[str, object]]] | None


class ModelServer:
    """Each request that offers tools takes the next turn. The last turn is repeated as a text."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = list(turns)
        self._lock = threading.Lock()
        self._calls = 0
        self.requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "ModelServer":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def told(self) -> list[str]:
        """The texts of all results of tools that the model has read, in the order of its calls."""
        found: dict[str, str] = {}
        with self._lock:
            for request in self.requests:
                for part in _parts(request):
                    if part.get("type") == "tool_result":
                        found[str(part["tool_use_id"])] = _text(part.get("content"))
        return [text for _, text in sorted(found.items())]

    def _answer(self, request: dict[str, Any]) -> list[dict[str, object]]:
        with self._lock:
            self.requests.append(request)
            turn = self._turns.pop(0) if request.get("tools") and self._turns else None
            blocks: list[dict[str, object]] = []
            for name, args in turn or ():
                self._calls += 1
                call_id = f"toolu_{self._calls:04}"
                blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": args})
            return blocks or [{"type": "text", "text": "done"}]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if not self.path.partition("?")[0].endswith("/messages"):
                    self._send("application/json", b'{"input_tokens": 1}')
                    return
                request = json.loads(body)
                blocks = model._answer(request)
                if request.get("stream"):
                    text = "".join(_events(blocks))
                    self._send("text/event-stream", text.encode())
                else:
                    self._send("application/json", json.dumps(_message(blocks)).encode())

            def do_GET(self) -> None:
                self._send("application/json", b'{"data": []}')

            def _send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def _parts(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in request["messages"]:
        if isinstance(message["content"], list):
            yield from message["content"]


def _text(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return str(content)


def _message(blocks: list[dict[str, object]]) -> dict[str, object]:
    reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _events(blocks: list[dict[str, object]]) -> Iterator[str]:
    whole = _message(blocks)
    reason = whole["stop_reason"]
    yield _event("message_start", {"message": {**whole, "content": [], "stop_reason": None}})
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            empty: dict[str, object] = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty = {**block, "text": ""}
            delta = {"type": "text_delta", "text": str(block["text"])}
        yield _event("content_block_start", {"index": index, "content_block": empty})
        yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    stop = {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}}
    yield _event("message_delta", stop)
    yield _event("message_stop", {})


def _event(kind: str, members: dict[str, object]) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n"
