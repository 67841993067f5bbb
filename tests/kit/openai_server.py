"""A scripted HTTP server that speaks OpenAI's API, for tests over a real connection.

A script answers each POST by a reply: `completion`, `failure`, `stream`, `silent`, `dropped`,
`context_length` or `rate_limited`. `GET …/models` lists `server.models`.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.kit.waiting import LOOK_AGAIN, PATIENCE

Plain = tuple[int, dict[str, str], Any]
DEFAULT_MODELS = ("gpt-4o", "gpt-4o-mini", "text-embedding-3-small")
Gate = threading.Event | threading.Semaphore
NEVER = threading.Event()
"""A gate that stays shut."""


@dataclass(frozen=True)
class Streamed:
    """A reply in server-sent events.

    `events` are sent as they are, but for gates: the reply waits there until an Event is set or a
    Semaphore is released. `delay` seconds pass before each event. `end` is how the connection
    ends: "done" (`[DONE]`), "finished" (no `[DONE]`) or "closed" (in the middle of the body). Even
    the status line waits for `begin`.
    """

    events: Iterable[bytes | Gate] = ()
    delay: float | None = None
    usage: tuple[int, int] | None = None
    end: str = "done"
    begin: Gate | None = None


Reply = Plain | Streamed
Script = Callable[[str, dict[str, Any]], Reply]


@dataclass(eq=False)
class Exchange:
    """One request; no other is the same."""

    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]


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

    def wait_for(self, met: Callable[[], object]) -> bool:
        """Whether `met()` becomes true; asked whenever something happened at the server."""
        with self.changed:
            return bool(self.changed.wait_for(met, PATIENCE))

    def wait_for_requests(self, count: int = 1) -> bool:
        """Whether the server gets `count` POSTs."""
        return self.wait_for(lambda: len(self.requests) >= count)

    def wait_for_disconnects(self, count: int = 1) -> bool:
        """Whether the server sees `count` clients go away."""
        return self.wait_for(lambda: len(self.disconnects) >= count)


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
    message = (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9001 tokens. Please reduce the length of the messages."
    )
    return failure(400, message, code="context_length_exceeded", param="messages")


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
    pieces: Sequence[str | Gate],
    delay: float | None = None,
    usage: tuple[int, int] | None = (7, 5),
    *,
    reason: str | None = "stop",
    end: str = "done",
) -> Streamed:
    """An answer that comes in `pieces`, with gates where it waits (`Streamed`), or `delay` seconds
    before each.

    `usage` (prompt, completion tokens) is sent at the end to a client that asks for it; `reason`
    is the finish reason, None for a stream that never says that it is complete.
    """
    events = [delta(piece) if isinstance(piece, str) else piece for piece in pieces]
    if reason is not None:
        events.append(delta(reason=reason))
    return Streamed(tuple(events), delay, usage, end)


def silent(seconds: float = 600, *, headers: bool = True) -> Streamed:
    """A model that says nothing for longer than anybody waits, by default after the response's
    headers."""
    return Streamed((NEVER,), begin=None if headers else NEVER)


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
        data = self.rfile.read(length := int(self.headers["Content-Length"]))
        if len(data) < length:  # the client went away before it had asked
            self.close_connection = True
            return
        body = json.loads(data)
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
        exchange = Exchange(method, self.path, body, headers)
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
        self._pass(reply.begin)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for data in reply.events:
            if not isinstance(data, bytes):
                self._pass(data)
                continue
            self._pass(time.monotonic() + (reply.delay or 0.0))
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

    def _pass(self, gate: Gate | float | None) -> None:
        """Wait until `gate` opens, or for a moment of `time.monotonic()`. Raises _ClientGoneError
        when the client goes away or the server is closed."""
        while True:
            readable, _, _ = select.select([self.connection], [], [], 0)
            gone = readable and not self.connection.recv(1, socket.MSG_PEEK)
            if gone or self.server.closing.is_set():
                raise _ClientGoneError
            match gate:
                case None:
                    return
                case threading.Event():
                    is_open = gate.wait(LOOK_AGAIN)
                case threading.Semaphore():
                    is_open = gate.acquire(timeout=LOOK_AGAIN)
                case _:
                    left = gate - time.monotonic()
                    is_open = left <= 0 or self.server.closing.wait(min(left, LOOK_AGAIN))
            if is_open:
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
        self.errors: list[BaseException | None] = []
        self._lock = threading.Lock()
        self._workers: list[threading.Thread] = []
        self._serving = threading.Thread(target=self.serve, daemon=True)
        self._serving.start()

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
        """Keep what a script raised; a connection that the client reset is no error."""
        if not isinstance(error := sys.exception(), OSError):
            self.errors.append(error)

    def serve(self) -> None:
        """Take connections until the server is closed."""
        while True:
            request, address = self.get_request()
            if self.closing.is_set():
                request.close()
                return
            self.process_request(request, address)

    def close(self) -> None:
        """Stop listening and close every connection; nothing is left running."""
        self.closing.set()
        socket.create_connection(self.server_address).close()  # wakes who waits for connections
        self._serving.join()
        self.server_close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for worker in self._workers:
            worker.join(PATIENCE)


@contextmanager
def openai_server(
    script: Script | None = None, *, models: Sequence[str] = DEFAULT_MODELS
) -> Iterator[ScriptedServer]:
    """Run a server on a free loopback port that answers each POST by `script(path, body)`."""
    state = ScriptedServer(models=models)
    http = _Http(state, script or (lambda path, body: stream(["Hello", " there."])))
    state.base_url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield state
    finally:
        http.close()
    for error in http.errors:
        raise AssertionError(f"the script failed: {error!r}") from error
