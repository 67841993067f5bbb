"""Questions over HTTP: streamed for the page and other clients, or in one piece."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from flask import Response, jsonify, request, session

from codeqa.errors import error_from
from codeqa.render import Cite
from codeqa.types import Event
from codeqa.web import protocol
from codeqa.web.endpoints import ENGINE, Endpoints
from codeqa.web.errors import RequestRefusedError
from codeqa.web.requests import ask_options, workspace
from codeqa.web.schemas import BatchAnswer, OldAnswer, QuestionBody
from codeqa.web.users import member_of_request

if TYPE_CHECKING:
    from codeqa.chat import AskOptions
    from codeqa.engine import Engine

log = logging.getLogger(__name__)

endpoints = Endpoints("chat", "Questions")


def _never() -> bool:
    return False


@endpoints.post(
    "/chat/stream",
    "text/plain",
    headers={"x-vercel-ai-data-stream": "`v1`: the form of the lines."},
)
def stream(body: QuestionBody) -> Response:
    """The answer as a data stream; it ends early when its reader goes away.

    Lines of the Vercel AI SDK: `8:` annotations, `0:` text, `3:` a failure, `e:` and `d:` the
    end. With `render` also stages with times, finished blocks as safe HTML, and what else the
    page shows.
    """
    options = ask_options(body)
    engine = workspace().engine(body.repo or "")
    left = threading.Event()
    events = ask_engine(engine, options, left.is_set)
    cite = citer(engine) if body.render else None

    def lines() -> Iterator[bytes]:
        try:
            yield from protocol.encode(events, cite=cite)
        finally:
            left.set()

    return Response(lines(), headers=protocol.HEADERS)


@endpoints.post("/chat", BatchAnswer, errors=(*ENGINE, 502, 503))
def batch(body: QuestionBody) -> Response:
    """The answer in one piece, with what it came from."""
    options = ask_options(body)
    text, done = whole(ask_engine(workspace().engine(body.repo or ""), options))
    names = ("turn", "intent", "confidence", "retrieval_info", "citations")
    values = {name: done.get(name) for name in names}
    return jsonify({"response": text, **values, "notice": done.get("notice", "")})


@endpoints.post("/", OldAnswer, errors=(*ENGINE, 502, 503))
def ask(body: QuestionBody) -> Response:
    """The answer in one piece: `{query, rerank}` gives `{response}`.

    Without `conversation` the questions of one session are one conversation.
    """
    options = ask_options(body)
    session.setdefault("conversation", uuid.uuid4().hex)
    engine = workspace().engine(body.repo or "")
    if not options.conversation:
        options = replace(options, conversation=str(session["conversation"]))
    text, _ = whole(ask_engine(engine, options))
    return jsonify({"response": text})


def ask_engine(
    engine: Engine, options: AskOptions, left: Callable[[], bool] = _never
) -> Iterator[Event]:
    """The events of an answer for the user of this request.

    They stop when the reader left, or when the server ends.
    """
    closing = workspace().closing
    # waitress knows that a client left before anything is written to it.
    gone: Callable[[], bool] = request.environ.get("waitress.client_disconnected", _never)
    return engine.chat.ask(
        replace(
            options,
            user=member_of_request().user,
            cancelled=lambda: left() or closing.is_set() or bool(gone()),
        )
    )


def whole(events: Iterator[Event]) -> tuple[str, Mapping[str, Any]]:
    """All of an answer's text, and the data of its `done`.

    Raises what an `error` event tells of, and RequestRefusedError (503) when the server ends.
    """
    pieces: list[str] = []
    for event in events:
        if event.kind == "token":
            pieces.append(str(event.data["text"]))
        elif event.kind == "error":
            raise error_from(event.data)
        elif event.kind == "done":
            return str(event.data.get("revised") or "".join(pieces)), event.data
    raise RequestRefusedError(503)


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
