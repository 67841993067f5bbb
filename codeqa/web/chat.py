"""Questions over HTTP: streamed for the page and other clients, or in one piece."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from flask import Blueprint, Response, jsonify, request, session

from codeqa.errors import error_from
from codeqa.render import Cite
from codeqa.types import Event
from codeqa.web import protocol
from codeqa.web.requests import Question, json_body, read_question, workspace
from codeqa.web.users import member_of_request

if TYPE_CHECKING:
    from codeqa.engine import Engine

blueprint = Blueprint("chat", __name__)


@blueprint.post("/chat/stream")
def stream() -> Response:
    """The answer as a data stream; it ends early when its reader goes away."""
    asked = read_question(json_body())
    engine = workspace().engine(asked.repo)
    left = threading.Event()
    events = _events(engine, asked, asked.conversation, left.is_set)
    cite = citer(engine) if asked.render else None

    def body() -> Iterator[bytes]:
        try:
            yield from protocol.encode(events, cite=cite)
        finally:
            left.set()

    return Response(body(), headers=protocol.HEADERS)


@blueprint.post("/")
def ask() -> Response:
    """The answer in one piece: `{query, rerank}` gives `{response}`."""
    asked = read_question(json_body())
    session.setdefault("conversation", uuid.uuid4().hex)
    engine = workspace().engine(asked.repo)
    conversation = asked.conversation or str(session["conversation"])
    pieces: list[str] = []
    for event in _events(engine, asked, conversation, _never):
        if event.kind == "token":
            pieces.append(str(event.data["text"]))
        elif event.kind == "error":
            raise error_from(event.data)
    return jsonify({"response": "".join(pieces)})


def _events(
    engine: Engine, asked: Question, conversation: str, left: Callable[[], bool]
) -> Iterator[Event]:
    """The events of an answer for the user of this request.

    They stop when the reader left, or when the server ends.
    """
    closing = workspace().closing
    # waitress knows that a client left before anything is written to it.
    gone: Callable[[], bool] = request.environ.get("waitress.client_disconnected", _never)
    return engine.chat.ask(
        asked.text,
        rerank=asked.rerank,
        hyde=asked.hyde,
        conversation=conversation,
        user=member_of_request().user,
        mode=asked.mode,
        replaces=asked.replaces,
        use_model=asked.use_model,
        cancelled=lambda: left() or closing.is_set() or bool(gone()),
    )


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
