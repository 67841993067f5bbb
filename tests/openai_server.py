"""A scripted HTTP server that speaks OpenAI's API, for tests over a real connection.

A script answers each POST by a reply: `completion`, `failure`, `stream`, `silent`, `dropped`,
`context_length` or `rate_limited`. `GET …/models` lists `server.models`.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Plain = tuple[int, dict[str, str], Any]
DEFAULT_MODELS = ("gpt-4o", "gpt-4o-mini", "text-embedding-3-small")
TAKES_LONG = 10.0
"""Seconds after which a helper that waits for the server gives up."""


@dataclass(frozen=True)
class Streamed:
    """A reply in server-sent events.

    `events` are sent as they are, `delay` seconds before each; `first` is the delay of the first
    one when it differs. `end` is how the connection ends: "done" (`[DONE]`), "finished" (no
    `[DONE]`) or "closed" (in the middle of the body). `silence` seconds pass before even the
    status line is sent.
    """

    events: Iterable[bytes] = ()
    delay: float = 0.0
    first: float | None = None
    usage: tuple[int, int] | None = None
    end: str = "done"
    silence: float = 0.0


Reply = Plain | Streamed
Script = Callable[[str, dict[str, Any]], Reply]


@dataclass
class Exchange:
    """One request, and when it was `asked` in `time.monotonic()`."""

    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    asked: float


@dataclass
class ScriptedServer:
    """What the server was asked, and where it listens.

    `requests` and `headers` hold the POSTs, `exchanges` everything, `disconnects` the exchanges
    whose client went away before the reply was complete.
    """

    base_url: str = ""
    models: Sequence[str] = DEFAULT_MODELS
    pages: dict[str, Any] = field(default_factory=dict)
    """Path → JSON that GETs of it are answered with."""
    title: Script = lambda path, body: completion("")
    """Answers requests for the title of a conversation, which only `exchanges` holds."""
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    disconnects: list[Exchange] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition, repr=False)

    def wait_for(self, met: Callable[[], object], seconds: float = TAKES_LONG) -> bool:
        """Whether `met()` becomes true; asked whenever something happened at the server."""
        with self.changed:
            return bool(self.changed.wait_for(met, seconds))

    def wait_for_requests(self, count: int = 1, seconds: float = TAKES_LONG) -> bool:
        """Whether the server has got `count` POSTs by then."""
        return self.wait_for(lambda: len(self.requests) >= count, seconds)

    def wait_for_disconnects(self, count: int = 1, seconds: float = TAKES_LONG) -> bool:
        """Whether the server has seen `count` clients go away by then."""
        return self.wait_for(lambda: len(self.disconnects) >= count, seconds)


def is_for_title(body: dict[str, Any]) -> bool:
    """Whether a request asks for the title of a conversation, which follows an answer unseen."""
    return "You name conversations" in str((body.get("messages") or [""])[0])


def completion(text: str) -> Streamed:
    """An answer that says `text` at once, in ASCII, so that it may be no text of Unicode."""
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return Streamed((f"data: {json.dumps(chunk)}\n\n".encode(),))


def failure(
    status: int,
    message: str = "no",
    headers: dict[str, str] | None = None,
    *,
    code: str | None = None,
    param: str | None = None,
) -> Plain:
    """An error in the API's shape."""
    error = {"message": message, "type": "t", "code": code, "param": param}
    return status, headers or {}, {"error": error}


def context_length() -> Plain:
    """The refusal of a prompt that is too long, in OpenAI's words."""
    said = (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9001 tokens. Please reduce the length of the messages."
    )
    return failure(400, said, code="context_length_exceeded", param="messages")


def rate_limited(retry_after: float | None = None, message: str = "Slow down.") -> Plain:
    """A rate limit, with or without the seconds to wait."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return failure(429, message, headers, code="rate_limit_exceeded")


def delta(text: str = "", reason: str | None = None, **fields: Any) -> bytes:
    """One event of a streamed answer; `fields` are further fields of the delta."""
    content = {"content": text} if text else {}
    choice = {"index": 0, "delta": {**content, **fields}, "finish_reason": reason}
    return event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


def event(payload: Any) -> bytes:
    """`payload` as one server-sent event."""
    return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def stream(
    pieces: Sequence[str],
    delay: float = 0.0,
    usage: tuple[int, int] | None = (7, 5),
    *,
    first: float | None = None,
    reason: str | None = "stop",
    end: str = "done",
) -> Streamed:
    """An answer that comes in `pieces`, `delay` seconds before each, `first` before the first.

    `usage` (prompt, completion tokens) is sent at the end to a client that asks for it; `reason`
    is the finish reason, None for a stream that never says that it is complete.
    """
    events = [delta(piece) for piece in pieces]
    if reason is not None:
        events.append(delta(reason=reason))
    return Streamed(tuple(events), delay, first, usage, end)


def silent(seconds: float, *, headers: bool = True) -> Streamed:
    """A model that says nothing for `seconds`, by default after the response's headers."""
    reply = stream(["late"], first=seconds if headers else 0.0)
    return reply if headers else replace(reply, silence=seconds)


def dropped(after: Sequence[str] = ()) -> Streamed:
    """The connection ends in the middle, after these pieces; without any, before the headers."""
    return Streamed(tuple(map(delta, after)), end="closed")


class _ClientGoneError(Exception):
    """The client closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_GET(self) -> None:
        exchange = self._note("GET", {})
        if self.path in self.server.state.pages:
            self._send(exchange, (200, {}, self.server.state.pages[self.path]))
            return
        if self.path != "/v1/models":
            self._send(exchange, failure(404, "no such path"))
            return
        data = [{"id": name, "object": "model"} for name in self.server.state.models]
        self._send(exchange, (200, {}, {"object": "list", "data": data}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        exchange = self._note("POST", body)
        titles = self.server.state.title
        reply = (titles if is_for_title(body) else self.server.script)(self.path, body)
        try:
            self._send(exchange, reply)
        except (_ClientGoneError, OSError):
            self.close_connection = True
            with self.server.state.changed:
                self.server.state.disconnects.append(exchange)
                self.server.state.changed.notify_all()

    def _note(self, method: str, body: dict[str, Any]) -> Exchange:
        headers = {name.lower(): value for name, value in self.headers.items()}
        exchange = Exchange(method, self.path, body, headers, time.monotonic())
        state = self.server.state
        with state.changed:
            state.exchanges.append(exchange)
            if method == "POST" and not is_for_title(body):
                state.requests.append((self.path, body))
                state.headers.append(headers)
            state.changed.notify_all()
        return exchange

    def _send(self, exchange: Exchange, reply: Reply) -> None:
        if isinstance(reply, tuple):
            self._send_plain(reply)
        else:
            self._send_stream(exchange, reply)

    def _send_plain(self, reply: Plain) -> None:
        status, headers, payload = reply
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_stream(self, exchange: Exchange, reply: Streamed) -> None:
        self.close_connection = reply.end == "closed"
        if self.close_connection and not reply.events:
            return
        self._rest(reply.silence)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, data in enumerate(reply.events):
            wait = reply.delay if number or reply.first is None else reply.first
            self._rest(wait)
            self._chunk(data)
        if self.close_connection:
            return
        asked = (exchange.body.get("stream_options") or {}).get("include_usage")
        if reply.usage and asked:
            prompt, answer = reply.usage
            usage = {"prompt_tokens": prompt, "completion_tokens": answer}
            self._chunk(event({"id": "c", "choices": [], "usage": usage}))
        if reply.end == "done":
            self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _rest(self, seconds: float) -> None:
        """Wait, unless the client goes away or the server is closed: raises _ClientGoneError."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 or seconds == 0:
            readable, _, _ = select.select([self.connection], [], [], max(0.0, min(left, 0.02)))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _ClientGoneError
            if self.server.closing.is_set():
                raise _ClientGoneError
            if seconds == 0:
                return

    def log_message(self, format: str, *args: Any) -> None:
        return


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, state: ScriptedServer, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state = state
        self.script = script
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._workers: list[threading.Thread] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        worker = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        self._workers.append(worker)
        worker.start()

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        with suppress(OSError):
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that the client reset is no error of the server's."""

    def close(self) -> None:
        """Stop listening and close every connection; nothing is left running."""
        self.closing.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for worker in self._workers:
            worker.join(TAKES_LONG)


@contextmanager
def openai_server(
    script: Script | None = None, *, models: Sequence[str] = DEFAULT_MODELS
) -> Iterator[ScriptedServer]:
    """Run a server on a free loopback port that answers each POST by `script(path, body)`."""
    state = ScriptedServer(models=models)
    http = _Http(state, script or (lambda path, body: stream(["Hello", " there."])))
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.base_url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield state
    finally:
        http.close()
        thread.join()
