"""Questions over HTTP: streamed for the page and other clients, or in one piece."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Annotated, Any
from urllib.parse import urlencode

from flask import Response, session
from pydantic import Field, create_model

from codeqa.chat.question import PLACES
from codeqa.chat.values import AskOptions, Citation, QuestionOptions, Sentence
from codeqa.engine import Engine, whole_answer
from codeqa.errors import UsageError
from codeqa.render.html import Cite
from codeqa.repositories.multi_repo import ID_SEPARATOR, MOST_REPOSITORIES, repositories_meant
from codeqa.types import Event
from codeqa.web.answer_streams import HEADERS, encode_stream
from codeqa.web.endpoints import (
    NAME_CHARACTERS,
    QUESTION_CHARACTERS,
    Clean,
    Endpoints,
    Id,
    Schema,
    Text,
    Truth,
    Values,
    fields_of,
)
from codeqa.web.security import TERMINAL, member_of_request
from codeqa.web.workspace import place_of, reader_gone, workspace

RESERVED = ("/export", "/branch", "/answer", "/stop")
"""Ends of addresses below a conversation's, which its id must therefore not have."""

Span = Annotated[
    str, Field(max_length=NAME_CHARACTERS, pattern=r"^[^\x00\n]+:[0-9]{1,9}-[0-9]{1,9}$"), Clean
]

endpoints = Endpoints("chat", "Questions")


def _options() -> type[Schema]:
    """The fields of QuestionOptions as a client sends them: checked, and null where nothing is
    chosen."""
    places = Annotated[list[Span], Field(max_length=PLACES)]
    checked: dict[Any, Any] = {str: Id | None, bool: Truth, tuple[str, ...]: places | None}
    fields: Values = {}
    for name, field in fields_of(QuestionOptions).model_fields.items():
        default = False if field.annotation is bool else None
        kind = checked.get(field.annotation, field.annotation | None)  # type: ignore[operator]
        fields[name] = (kind, Field(default=default, description=field.description))
    return create_model("Options", __base__=Schema, **fields)


class QuestionBody(_options()):  # type: ignore[misc]  # a new option is declared once
    """A question, in `question`, `query` or the last user's entry of `messages`."""

    question: Annotated[str, Clean] | None = None
    """`@codebase` in it has the code base searched."""
    query: Annotated[str, Clean] | None = None
    """The same under its older name."""
    messages: list[Any] | None = None
    """A conversation as the AI SDK sends it; only the last entry by the user counts."""
    repo: Text | None = None
    """Id of the repository; empty for the current one."""
    repos: Annotated[list[Id], Field(max_length=MOST_REPOSITORIES)] | None = None
    """Ids of several repositories that are asked at once; paths of the answer begin with their
    names."""
    render: Truth = False
    """Whether the stream also holds what the page shows."""
    without_model: Truth = False
    """Answer by quoting the code, without a language model."""


class Grounding(Schema):
    """How much of an answer is shown by the code that was sent for it."""

    supported: int
    """Sentences that have their evidence in it."""
    claims: int
    """Sentences that claim something about the code."""
    left_out: int
    """Sentences that a strict answer was written without."""
    sentences: list[Sentence]


class AnswerDetails(Schema):
    """What an answer in one piece tells of itself."""

    turn: str
    """Id under which it is kept; empty when it is not."""
    intent: str
    confidence: float
    retrieval_info: dict[str, int]
    """`num_docs` and `similar_queries`."""
    citations: list[Citation]
    grounding: Grounding
    notice: str
    """What the reader should know about the answer, as sentences; may be empty."""


class BatchAnswer(AnswerDetails):
    response: str


@endpoints.route("POST", "/chat/stream", "text/plain")
def stream(body: QuestionBody) -> Response:
    """The answer as a data stream.

    Lines of the Vercel AI SDK: `8:` annotations, `0:` text, `3:` a failure, `e:` and `d:` the
    end. With `render` also stages with times, finished blocks as safe HTML, and what else the
    page shows; with `render` and `conversation` it goes on when its reader leaves, until it is
    stopped, and is read along at /api/conversations/{conversation}/answer.
    """
    engine, options = _asked_engine(body)
    if body.render and options.conversation and member_of_request() != TERMINAL:
        lines = workspace().answers.start(
            place_of(engine, options.conversation),
            lambda cancelled: ask_engine(engine, options, cancelled),
            citer(engine),
            reader_gone(),
        )
    else:
        cite = citer(engine) if body.render else None
        lines = encode_stream(ask_engine(engine, options), cite=cite)
    return Response(lines, headers=HEADERS)


@endpoints.route("POST", "/chat", BatchAnswer)
def batch(body: QuestionBody) -> Values:
    """The answer in one piece, with what it came from."""
    answer = whole_answer(ask_engine(*_asked_engine(body)))
    return {"response": answer.text, **answer_values(answer.details)}


@endpoints.route("POST", "/", {"response": str})
def ask(body: QuestionBody) -> Values:
    """The answer in one piece: `{query, rerank}` gives `{response}`.

    Without `conversation` the questions of one session are one conversation.
    """
    engine, options = _asked_engine(body)
    usual = session.setdefault("conversation", uuid.uuid4().hex)
    options = replace(options, conversation=options.conversation or str(usual))
    return {"response": whole_answer(ask_engine(engine, options)).text}


def _asked_engine(body: QuestionBody) -> tuple[Engine, AskOptions]:
    """What `body` asks, and of which repositories: those it has the ids of, and those that the
    question names as `@repo:name`. Raises UsageError, and NotFoundError for one that is not
    indexed."""
    options, space = _ask_options(body), workspace()
    engine = space.engine(ID_SEPARATOR.join(dict.fromkeys(body.repos or ())) or body.repo or "")
    several, question = repositories_meant(space.settings, engine.repositories, options.question)
    if len(several) > len(engine.repositories):
        engine = space.engine(ID_SEPARATOR.join(one.id for one in several))
    return engine, replace(options, question=question)


def _ask_options(body: QuestionBody) -> AskOptions:
    """Of `question`, `query` and the last user's entry of `messages` the first that holds words is
    the question. Raises UsageError."""
    given = (body.question, body.query, _last_message(body.messages or ()))
    question = next((text for text in given if text and text.strip()), None)
    if question is None:
        raise UsageError("There is no question.", "Send it as text in `question`.")
    if len(question) > QUESTION_CHARACTERS:
        raise UsageError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    chosen = {field.name: getattr(body, field.name) for field in fields(QuestionOptions)}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if chosen.get("conversation", "").endswith(RESERVED):
        raise UsageError(
            f"The id of a conversation cannot end with {' or '.join(RESERVED)}.", "Choose another."
        )
    return AskOptions(question, use_model=not body.without_model, **chosen)


def _last_message(messages: Sequence[Any]) -> str | None:
    """Text of the last entry by the user that has any, as the AI SDK sends a conversation."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content") or message.get("parts")
            if isinstance(content, list):
                parts = (part.get("text") for part in content if isinstance(part, dict))
                content = "".join(text for text in parts if isinstance(text, str))
            if isinstance(content, str) and content.strip():
                return content
    return None


def ask_engine(
    engine: Engine, options: AskOptions, cancelled: Callable[[], bool] | None = None
) -> Iterator[Event]:
    """The events of an answer for the user of this request, until it is `cancelled` (without that:
    its reader left), or the server ends."""
    closing, user = workspace().closing, member_of_request().user
    cancelled = cancelled or reader_gone()
    return engine.chat.ask(
        replace(options, user=user, cancelled=lambda: closing.is_set() or cancelled())
    )


def answer_values(done: Mapping[str, Any]) -> Values:
    """What an answer in one piece tells of itself, from the data of its `done`."""
    return {name: done.get(name) for name in AnswerDetails.model_fields}


def citer(engine: Engine) -> Cite:
    """Addresses of the page with cited lines open that an indexed file really has."""
    line_count = cache(engine.files.line_count)

    def cite(path: str, start: int, end: int) -> str | None:
        if not 1 <= start <= end <= (line_count(path) or 0):
            return None
        query = {"repo": engine.location.id, "file": path, "lines": f"{start}-{end}"}
        return f"/?{urlencode(query, safe='/')}"

    return cite
