"""Tiny models in ONNX and a hub of their own, for tests of what runs through fastembed."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.kit.waiting import LOOK_AGAIN, PATIENCE

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache of this test alone, and no way to the hub."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub cache"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    return tmp_path / "hub cache"


def put_in_cache(cache: Path, model: Path, name: str) -> None:
    """Put a model where the hub's client keeps what it has fetched."""
    repository = cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(model, repository / "snapshots" / SHA)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(SHA)


@contextmanager
def hub_of(name: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A server that speaks the hub's protocol for the one model `name`; the files it gave."""
    from huggingface_hub import constants

    given: list[str] = []
    paths = (path for path in model.rglob("*") if path.is_file())
    files = {path.relative_to(model).as_posix(): path.read_bytes() for path in paths}
    files |= {"model.safetensors": b"big", "README.md": b"# Read", "onnx/model_q4.onnx": b"big"}

    tree = [
        {"type": "file", "path": path, "size": len(body), "oid": path}
        for path, body in files.items()
    ]

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def _answer(self, body: object) -> None:
            self._send(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            if path == f"/api/models/{name}/revision/main":
                siblings = [{"rfilename": file} for file in files]
                self._answer({"id": name, "sha": SHA, "siblings": siblings})
            elif path == f"/api/models/{name}/tree/{SHA}":
                self._answer(tree)
            elif path.startswith(f"/{name}/resolve/{SHA}/"):
                file = path.rsplit(f"{SHA}/", 1)[1]
                if self.command == "GET":
                    given.append(file)
                self._send(200, files[file], {"ETag": f'"{file}"', "X-Repo-Commit": SHA})
            else:
                self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

        do_HEAD = do_GET  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    thread = threading.Thread(target=server.serve_forever, args=(LOOK_AGAIN,), daemon=True)
    thread.start()
    try:
        yield given
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
