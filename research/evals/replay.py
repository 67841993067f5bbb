"""Serve collected drafts as a language model would: `python -m research.evals.replay FILE …`.

A file has a line for each question: `{"id", "question", "first", "second"}`,
written once by a model that saw nothing but the prompt; a field may be missing, and the request
is then refused. So a measurement with a model can be repeated offline::

    python -m research.evals.replay research/evals/drafts/strong.jsonl --port 8099 &
    CODEQA_MODEL=custom/replay CODEQA_MODEL_URL=http://127.0.0.1:8099/v1 \\
        python -m research.evals.search \\
        --questions research/benchmarks/retrieval/development.jsonl --trees ~/trees \\
        --out ranked.jsonl --hyde two
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FIRST = "Help predict the answer to the query: "
SECOND = re.compile(r"^Question: (.*)\Z", re.MULTILINE | re.DOTALL)

Recorded = Mapping[str, Any]


def answer_for(messages: Iterable[Mapping[str, Any]], known: Mapping[str, Recorded]) -> str | None:
    """What was recorded for this request; None when nothing was."""
    text = {message["role"]: _text(message["content"]) for message in messages}
    system, user = text.get("system", ""), text.get("user", "")
    if user.startswith(FIRST):
        return known.get(user.removeprefix(FIRST).strip(), {}).get("first")
    if asked := SECOND.search(system):
        return known.get(asked.group(1).strip(), {}).get("second")
    return None


def load(paths: Iterable[Path]) -> dict[str, Recorded]:
    """Question → what was recorded for it; later files add to earlier ones."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.setdefault(row["question"].strip(), {}).update(row)
    return dict(found)


def serve(known: Mapping[str, Recorded], port: int) -> ThreadingHTTPServer:
    """A server on loopback; port 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            model = {"id": "replay", "max_model_len": 128_000}
            self._send(200, {"object": "list", "data": [model]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answer = answer_for(body["messages"], known)
            if answer is None:
                self._send(404, {"error": {"message": "nothing was recorded for this request"}})
                return
            choice = {"index": 0, "delta": {"content": answer}, "finish_reason": "stop"}
            event = f"data: {json.dumps({'choices': [choice]})}\n\n"
            self._send(200, event.encode(), "text/event-stream")

        def _send(self, status: int, payload: Any, kind: str = "application/json") -> None:
            data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--port", type=int, default=8099)
    options = parser.parse_args()
    known = load(options.files)
    server = serve(known, options.port)
    print(f"{len(known)} questions at http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
