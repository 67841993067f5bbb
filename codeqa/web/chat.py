"""Questions over HTTP: streamed for the page and other clients, or in one piece."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from flask import Blueprint, Response, jsonify, request, session

from codeqa.errors import CodeQAError
from codeqa.render import Cite
from codeqa.web import protocol
from codeqa.web.requests import json_body, read_question, workspace

if TYPE_CHECKING:
    from codeqa.engine import Engine

blueprint = Blueprint("chat", __name__)


@blueprint.post("/chat/stream")
def stream() -> Response:
    """The answer as a data stream; it ends early when its reader goes away."""
    asked = read_question(json_body())
    space = workspace()
    engine = space.engine(asked.repo)
    # waitress knows that a client left before anything is written to it.
    gone: Callable[[], bool] = request.environ.get("waitress.client_disconnected", _never)
    left = False

    def cancelled() -> bool:
        return left or space.closing.is_set() or bool(gone())

    events = engine.chat.ask(
        asked.text,
        rerank=asked.rerank,
        conversation=asked.conversation,
        cancelled=cancelled,
    )
    cite = citer(engine) if asked.render else None

    def body() -> Iterator[bytes]:
        nonlocal left
        try:
            yield from protocol.encode(events, cite=cite)
        finally:
            left = True

    return Response(body(), headers=protocol.HEADERS)


@blueprint.post("/")
def ask() -> Response:
    """The answer in one piece: `{query, rerank}` gives `{response}`."""
    asked = read_question(json_body())
    session.setdefault("user", uuid.uuid4().hex)
    engine = workspace().engine(asked.repo)
    pieces: list[str] = []
    conversation = asked.conversation or str(session["user"])
    for event in engine.chat.ask(asked.text, rerank=asked.rerank, conversation=conversation):
        if event.kind == "token":
            pieces.append(str(event.data["text"]))
        elif event.kind == "error":
            raise CodeQAError(str(event.data["message"]), str(event.data.get("hint", "")))
    return jsonify({"response": "".join(pieces)})


def citer(engine: Engine) -> Cite:
    """Addresses of cited lines that an indexed file of `engine` really has.

    The number of lines of each file is read once.
    """
    counts: dict[str, int | None] = {}

    def cite(path: str, start: int, end: int) -> str | None:
        if path not in counts:
            counts[path] = engine.files.line_count(path)
        lines = counts[path]
        if lines is None or not 1 <= start <= end <= lines:
            return None
        return file_address(engine, path, start, end)

    return cite


def file_address(engine: Engine, path: str, start: int, end: int) -> str:
    """Address of the page with `path` open at those lines."""
    query: dict[str, Any] = {"repo": engine.location.id, "file": path, "lines": f"{start}-{end}"}
    return f"/?{urlencode(query, safe='/')}"


def _never() -> bool:
    return False
