"""A git server of https on this machine: `git http-backend` behind Python's own HTTP server."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.kit.repositories import git, write
from tests.kit.waiting import PATIENCE


class GitServer:
    """Serves the bare repositories below `folder`, as `https://localhost:PORT/owner/name`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self.certificate = folder / "certificate.pem"
        self.seen: list[str] = []
        """Paths asked for, and what they came with as Authorization."""
        self.held = threading.Event()
        """While it is clear, no answer is given."""
        self.held.set()

    def commit(self, name: str, files: dict[str, str | None], branch: str = "main") -> None:
        """Commit `files` on `branch` of the repository `owner/name`; None deletes one."""
        work, bare = self.folder / f"{name}.work", self.folder / f"{name}.git"
        if not work.is_dir():
            git(self.folder, "init", "-q", "--bare", "-b", "main", str(bare))
            git(self.folder, "init", "-q", "-b", "main", str(work))
            git(work, "remote", "add", "origin", str(bare))
        git(work, "checkout", "-q", "-B", branch)
        write(work, {path: text for path, text in files.items() if text is not None})
        for path in (path for path, text in files.items() if text is None):
            (work / path).unlink()
        git(work, "add", "-A")
        git(work, "commit", "-qm", "some change", "--allow-empty")
        git(work, "push", "-qf", "origin", branch)


@contextlib.contextmanager
def git_server(folder: Path) -> Iterator[GitServer]:
    """Serve with a certificate that only who is told of it trusts (`http.sslCAInfo`)."""
    serving = GitServer(folder)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *about: object) -> None:
            pass

        def do_GET(self) -> None:
            serving.held.wait(PATIENCE)
            parts = urlsplit(self.path)
            serving.seen.append(f"{self.path} {self.headers.get('Authorization', '')}".strip())
            length = int(self.headers.get("Content-Length") or 0)
            done = subprocess.run(
                ["git", "http-backend"],
                input=self.rfile.read(length),
                capture_output=True,
                check=True,
                env={
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(folder),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_CONFIG_COUNT": "1",  # a folder may be another user's
                    "GIT_CONFIG_KEY_0": "safe.directory",
                    "GIT_CONFIG_VALUE_0": "*",
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "REQUEST_METHOD": self.command,
                    "PATH_INFO": parts.path,
                    "QUERY_STRING": parts.query,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "CONTENT_LENGTH": str(length),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                },
            )
            head, _, body = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            fields["Content-Length"] = str(len(body))
            for field, value in fields.items():
                self.send_header(field, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

    key = folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", key, "-out", serving.certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    serving.address = f"https://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield serving
    finally:
        serving.held.set()
        server.shutdown()
        server.server_close()
