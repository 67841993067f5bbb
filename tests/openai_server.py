"""A scripted HTTP server that speaks OpenAI's API, for tests over a real connection."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], Any]
Script = Callable[[str, dict[str, Any]], Reply]


@dataclass
class ScriptedServer:
    """What the server was asked, and where it listens."""

    base_url: str = ""
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def completion(text: str) -> Reply:
    """A chat completion that says `text`."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    payload = {"id": "c", "object": "chat.completion", "created": 0, "model": "m"}
    return 200, {}, {**payload, "choices": [choice]}


def failure(status: int, message: str = "no", headers: dict[str, str] | None = None) -> Reply:
    """An error in the API's shape."""
    return status, headers or {}, {"error": {"message": message, "type": "t", "code": None}}


@contextmanager
def openai_server(script: Script) -> Iterator[ScriptedServer]:
    """Run a server on a free loopback port that answers each POST by `script(path, body)`."""
    server = ScriptedServer()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                server.requests.append((self.path, body))
                server.headers.append({k.lower(): v for k, v in self.headers.items()})
            status, headers, payload = script(self.path, body)
            data = json.dumps(payload).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    server.base_url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
