"""Questions over HTTP: streamed for the page and other clients, or in one piece."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Annotated, Any, get_type_hints
from urllib.parse import urlencode

from flask import Response, session
from pydantic import Field, create_model

from codeqa.chat.question import PLACES
from codeqa.chat.values import AskOptions, QuestionOptions
from codeqa.engine import Engine, whole_answer
from codeqa.errors import UsageError
from codeqa.render import Cite
from codeqa.repositories.multi_repo import ID_SEPARATOR, MOST_REPOSITORIES
from codeqa.types import Event
from codeqa.web.answer_streams import HEADERS, encode_stream
from codeqa.web.endpoints import (
    NAME_CHARACTERS,
    QUESTION_CHARACTERS,
    Endpoints,
    Id,
    Schema,
    Text,
    Values,
)
from codeqa.web.security import TERMINAL, member_of_request
from codeqa.web.workspace import place_of, reader_gone, workspace

RESERVED = ("/export", "/branch", "/answer", "/stop")
"""Ends of addresses below a conversation's, which its id must therefore not have."""

Span = Annotated[
    str, Field(max_length=NAME_CHARACTERS, pattern=r"^[^\x00\n]+:[0-9]{1,9}-[0-9]{1,9}$")
]

endpoints = Endpoints("questions")


def _options() -> type[Schema]:
    """The fields of QuestionOptions, checked as what a client sends."""
    whole = create_model("Asked", __base__=Schema, options=(QuestionOptions, ...))
    described = whole.model_json_schema()["$defs"]["QuestionOptions"]["properties"]
    places = Annotated[list[Span], Field(max_length=PLACES)]
    checked: dict[Any, Any] = {str: Id, tuple[str, ...]: places}
    options: Values = {}
    for field in fields(QuestionOptions):
        kind = get_type_hints(QuestionOptions)[field.name]
        about = Field(default=field.default, description=described[field.name].get("description"))
        options[field.name] = (checked.get(kind, kind), about)
    return create_model("Options", __base__=Schema, **options)


class SdkMessage(Schema):
    role: str
    content: str | list[Any] | None = None
    parts: list[Any] = Field(default_factory=list)
    """What is said where `content` does not say it; those with a `text` count."""

    @property
    def text(self) -> str:
        if isinstance(said := self.content or self.parts, str):
            return said
        texts = (part.get("text") for part in said if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))


class QuestionBody(_options()):  # type: ignore[misc]  # a new option is declared once
    """A question, in `question`, `query` or the last user's entry of `messages`."""

    question: str = ""
    """`@codebase` in it has the code base searched."""
    query: str = ""
    """The same under its older name."""
    messages: list[SdkMessage] = Field(default_factory=list)
    """A conversation as the AI SDK sends it; only the last entry by the user counts."""
    repo: Text = ""
    """Id of the repository; empty for the current one."""
    repos: list[Id] = Field(default_factory=list, max_length=MOST_REPOSITORIES)
    """Ids of several repositories that are asked at once; paths of the answer begin with their
    names."""
    render: bool = False
    """Whether the stream also holds what the page shows."""
    without_model: bool = False
    """Answer by quoting the code, without a language model."""


ANSWER_DETAILS = ("turn", "intent", "confidence", "retrieval_info", "citations", "grounding",
                  "notice")  # fmt: skip
"""What an answer in one piece tells of itself."""


@endpoints.route("POST", "/chat/stream")
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


@endpoints.route("POST", "/chat")
def batch(body: QuestionBody) -> Values:
    """The answer in one piece, with what it came from."""
    answer = whole_answer(ask_engine(*_asked_engine(body)))
    return {"response": answer.text, **answer_values(answer.details)}


@endpoints.route("POST", "/")
def ask(body: QuestionBody) -> Values:
    """The answer in one piece: `{query, rerank}` gives `{response}`.

    Without `conversation` the questions of one session are one conversation.
    """
    engine, options = _asked_engine(body)
    usual = session.setdefault("conversation", uuid.uuid4().hex)
    options = replace(options, conversation=options.conversation or str(usual))
    return {"response": whole_answer(ask_engine(engine, options)).text}


def _asked_engine(body: QuestionBody) -> tuple[Engine, AskOptions]:
    """What `body` asks, and what it is asked of. Raises UsageError, and NotFoundError for a
    repository that is not indexed."""
    ids = ID_SEPARATOR.join(dict.fromkeys(body.repos))
    return workspace().engine(ids or body.repo), _ask_options(body)


def _ask_options(body: QuestionBody) -> AskOptions:
    """Of `question`, `query` and the last user's entry of `messages` the first that holds words is
    the question. Raises UsageError."""
    said = (message.text for message in reversed(body.messages) if message.role == "user")
    given = (body.question, body.query, *said)
    question = next((text for text in given if text and text.strip()), None)
    if question is None:
        raise UsageError("There is no question.", "Send it as text in `question`.")
    if len(question) > QUESTION_CHARACTERS:
        raise UsageError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    chosen = {field.name: getattr(body, field.name) for field in fields(QuestionOptions)}
    if body.conversation.endswith(RESERVED):
        raise UsageError(
            f"The id of a conversation cannot end with {' or '.join(RESERVED)}.", "Choose another."
        )
    return AskOptions(question, use_model=not body.without_model, **chosen)


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
    return {name: done.get(name) for name in ANSWER_DETAILS}


def citer(engine: Engine) -> Cite:
    """Addresses of the page with cited lines open that an indexed file really has."""
    line_count = cache(engine.files.line_count)

    def cite(path: str, start: int, end: int) -> str | None:
        if not 1 <= start <= end <= (line_count(path) or 0):
            return None
        query = {"repo": engine.location.id, "file": path, "lines": f"{start}-{end}"}
        return f"/?{urlencode(query, safe='/')}"

    return cite
