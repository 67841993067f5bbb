"""OpenAI's chat API over the same pipeline, so that other chat clients can use CodeQA as a model.

The client keeps its conversation and sends all of it each time; nothing is stored here unless
it asks for that. What is searched is decided as with automatic retrieval.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from flask import Response

from codeqa.errors import CodeQAError, ContextLengthError, NotFoundError, error_from, places_of
from codeqa.store import Location, list_locations
from codeqa.types import Event
from codeqa.web.endpoints import ENGINE, Endpoints
from codeqa.web.errors import api_error
from codeqa.web.openai_format import (
    Completion,
    CompletionBody,
    ModelList,
    ModelValues,
    read_messages,
)
from codeqa.web.questions_api import answer_values, ask_engine, whole
from codeqa.web.schemas import Values
from codeqa.web.workspace import workspace

MODEL = "codeqa"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}
log = logging.getLogger(__name__)

endpoints = Endpoints("completions", "OpenAI's API", "/v1")


class UnknownModelError(NotFoundError):
    """No repository answers to that name."""

    code = "model_not_found"
    param = "model"


class TooLongError(ContextLengthError):
    """The model behind CodeQA cannot read all of it; at this status clients shorten it."""

    http_status = 400
    param = "messages"


@dataclass(frozen=True, slots=True)
class Reply:
    """What every part of one answer says of itself."""

    id: str
    model: str
    created: int
    stored: bool

    def chunk(self, choices: Sequence[Mapping[str, Any]], **more: Any) -> bytes:
        """One server-sent event of a streamed answer."""
        return _sent(self._values("chat.completion.chunk", choices, **more))

    def complete(self, text: str, done: Mapping[str, Any]) -> dict[str, Any]:
        """The answer in one piece."""
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": finish_reason(done),
        }
        told = {"usage": usage(done), "codeqa": self.extension(done)}
        return self._values("chat.completion", [choice], **told)

    def extension(self, done: Mapping[str, Any]) -> dict[str, Any]:
        """What CodeQA tells beyond that API."""
        turn = str(done.get("turn", "")) if self.stored else ""
        return {**answer_values(done), "turn": turn}

    def _values(self, kind: str, choices: Sequence[Mapping[str, Any]], **more: Any) -> Values:
        about = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return {**about, "choices": choices, **more}


@endpoints.get("/models", ModelList, errors=(507,))
def models() -> Values:
    """`codeqa`, which asks about the current repository, and a name for each that is indexed."""
    names = [MODEL, *(name for name, _ in _named())]
    return {"object": "list", "data": [_model(name) for name in names]}


@endpoints.get("/models/<path:model>", ModelValues)
def one_model(model: str) -> Values:
    """One of these names."""
    _repository(model)
    return _model(model)


@endpoints.post(
    "/chat/completions",
    {200: (Completion, "text/event-stream")},
    errors=(*ENGINE, 502, 503),
)
def complete(body: CompletionBody) -> Response | Values:
    """The answer to the last entry by the user, in one piece or, with `stream`, as events.

    `temperature` and other wishes about a model are not heeded, tools are never called, and
    images are refused. What the client's system messages ask for goes along as plain text
    behind the question; it never takes the place of CodeQA's own rules.
    """
    options, stored = read_messages(body.messages), bool(body.store)
    engine = workspace().engine(_repository(body.model))
    reply = Reply(f"chatcmpl-{uuid.uuid4().hex}", body.model, int(time.time()), stored)
    kept_as = uuid.uuid4().hex if stored else ""
    options = replace(options, conversation=kept_as, keep=stored)
    left = threading.Event()
    events = _explained(ask_engine(engine, options, left.is_set))
    if not body.stream:
        return reply.complete(*whole(events))
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    # A failure before the first word has a status of its own, which clients understand best.
    begun = _until_text(events)

    def pieces() -> Iterator[bytes]:
        try:
            yield from _stream(chain(begun, events), reply, with_usage)
        finally:
            left.set()
            events.close()  # type: ignore[attr-defined]

    return Response(pieces(), headers=HEADERS)


def finish_reason(done: Mapping[str, Any]) -> str:
    return "length" if done.get("cut") else "stop"


def usage(done: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of the model behind the answer; none where none was asked."""
    tokens = done.get("tokens") or {}
    prompt, completion = int(tokens.get("prompt", 0)), int(tokens.get("completion", 0))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _explained(events: Iterator[Event]) -> Iterator[Event]:
    """`events`; an error among them is raised."""
    with closing(events):  # type: ignore[type-var]
        for event in events:
            if event.kind == "error":
                error = error_from(event.data)
                if isinstance(error, ContextLengthError):
                    raise TooLongError(error.message, error.hint)
                raise error
            yield event


def _until_text(events: Iterator[Event]) -> list[Event]:
    begun = []
    for event in events:
        begun.append(event)
        if event.kind in ("token", "done"):
            break
    return begun


def _stream(events: Iterator[Event], reply: Reply, with_usage: bool) -> Iterator[bytes]:
    """The server-sent events of an answer, whose last is `[DONE]` unless it failed."""
    none: dict[str, Any] = {"usage": None} if with_usage else {}
    yield reply.chunk([_choice({"role": "assistant", "content": ""})], **none)
    try:
        for event in events:
            if event.kind == "token":
                yield reply.chunk([_choice({"content": event.data["text"]})], **none)
            elif event.kind == "done":
                last = _choice({}, finish_reason(event.data))
                yield reply.chunk([last], **none, codeqa=reply.extension(event.data))
                if with_usage:
                    yield reply.chunk([], usage=usage(event.data))
                yield b"data: [DONE]\n\n"
                return
        failure = api_error(503, "not_ready", "The server is ending. Try again in a moment.")
    except CodeQAError as error:
        failure = api_error(error.http_status, error.code, str(error))
    except Exception as error:
        log.error("an answer failed: %s", places_of(error))
        failure = api_error(500, "internal", "The answer failed. The server's log says why.")
    yield _sent(failure)


def _choice(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _sent(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode("utf-8", "replace")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}


def _named() -> list[tuple[str, Location]]:
    """`codeqa/<name>` of each indexed repository, with its id where another has that name."""
    found = list_locations(workspace().settings)
    names = [location.name for location in found]
    return [(f"{MODEL}/{one.name if names.count(one.name) == 1 else one.id}", one) for one in found]


def _repository(model: str) -> str:
    """Id of the repository that `model` names, '' for the current one.

    Raises UnknownModelError.
    """
    if model == MODEL:
        return ""
    for name, location in _named():
        if model in (name, f"{MODEL}/{location.id}"):
            return location.id
    raise UnknownModelError(
        "There is no such model.", "`codeqa` asks about the current repository."
    )
