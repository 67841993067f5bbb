"""S3 stores for tests: moto's server, and one before it that ignores what a PUT is conditional on,
as some stores do."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUCKET = "codeqa-tests"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "only for tests",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
PASSED_ON = ("content-type", "etag", "last-modified", "content-range", "accept-ranges")


@dataclass(frozen=True, slots=True)
class Stores:
    """Addresses of one store: `careful` honours `If-None-Match`, `careless` does not."""

    careful: str
    careless: str
    requests: list[tuple[str, str, str]]
    """Method, path and whose credential of each request to `careless`."""


@contextmanager
def s3_stores() -> Iterator[Stores]:
    """Run both, with an empty bucket BUCKET."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    _, port = moto.get_host_and_port()
    requests: list[tuple[str, str, str]] = []

    class Careless(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {k: v for k, v in self.headers.items() if k.lower() != "if-none-match"}
            signed = self.headers.get("Authorization", "").partition("Credential=")[2]
            requests.append((self.command, self.path, signed.partition("/")[0]))
            status, answered, data = _asked(port, self.command, self.path, body, headers)
            self.send_response(status)
            for name in PASSED_ON:
                if value := answered.get(name):
                    self.send_header(name, value)
            length = answered.get("content-length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815

        def log_message(self, *words: Any) -> None:
            pass

    careless = ThreadingHTTPServer(("127.0.0.1", 0), Careless)
    threading.Thread(target=careless.serve_forever, daemon=True).start()
    try:
        assert _asked(port, "PUT", f"/{BUCKET}", b"", {})[0] == 200
        addresses = (f"http://127.0.0.1:{one}" for one in (port, careless.server_port))
        yield Stores(*addresses, requests)
    finally:
        careless.shutdown()
        careless.server_close()
        moto.stop()


def _asked(
    port: int, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()
