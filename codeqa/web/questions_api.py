"""Questions over HTTP: streamed for the page and other clients, or in one piece."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import fields, replace
from functools import cache
from typing import Annotated, Any, get_type_hints
from urllib.parse import urlencode

from flask import Response, g, session
from pydantic import BeforeValidator, Field, create_model

from codeqa.chat.citations import CitedCode
from codeqa.chat.options import QuestionOptions
from codeqa.chat.pinned import PLACES
from codeqa.chat.values import AskOptions
from codeqa.engine import Engine, whole_answer
from codeqa.errors import CodeQAError, UsageError
from codeqa.render import Cite
from codeqa.repositories.multi_repo import ID_SEPARATOR, MOST_REPOSITORIES
from codeqa.search.rerank import parse_rerank
from codeqa.types import Exchange
from codeqa.web.ai_sdk import HEADERS, encode_stream
from codeqa.web.endpoints import QUESTION_CHARACTERS, Endpoints, Id, Schema, Span, Text, Values
from codeqa.web.run import AnswerRun
from codeqa.web.security import TERMINAL, member_of_request, require_owner
from codeqa.web.workspace import place_of, reader_gone, workspace

RESERVED = ("/export", "/branch", "/answer", "/stop")
"""Ends of addresses below a conversation's, which its id must therefore not have."""

UNANSWERED = "(No answer was given.)"
"""Stands for what is missing where the user wrote twice in a row: models want both in turn."""

endpoints = Endpoints("questions", __name__)


def _options() -> type[Schema]:
    """The fields of QuestionOptions, checked as what a client sends."""
    places = Annotated[list[Span], Field(max_length=PLACES)]
    checked: dict[Any, Any] = {str: Id, tuple[str, ...]: places}
    options: Values = {}
    for field in fields(QuestionOptions):
        kind = get_type_hints(QuestionOptions)[field.name]
        if field.name == "rerank":  # only what the source system takes for yes
            kind = Annotated[bool, BeforeValidator(parse_rerank)]
        about = Field(default=field.default, description=field.metadata["help"])
        options[field.name] = (checked.get(kind, kind), about)
    return create_model("Options", __base__=Schema, **options)


class SdkMessage(Schema):
    role: str
    content: str | list[Any] | None = None
    parts: list[Any] = Field(default_factory=list)
    """What is said where `content` does not say it; those with a `text` count."""

    @property
    def text(self) -> str:
        if isinstance(content := self.content or self.parts, str):
            return content
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))


class QuestionBody(_options()):  # type: ignore[misc]  # a new option is declared once
    """A question, in `question`, `query` or the last user's entry of `messages`."""

    question: str = ""
    """`@codebase` in it has the code base searched."""
    query: str = ""
    """The same under its older name."""
    messages: list[SdkMessage] = Field(default_factory=list)
    """A conversation as the AI SDK sends it; the last entry by the user is the question. Without
    `conversation` the client keeps it, and `retrieval` is `auto` for its follow-ups."""
    repo: Text = ""
    """Id of the repository; empty for the current one."""
    repos: list[Id] = Field(default_factory=list, max_length=MOST_REPOSITORIES)
    """Ids of several repositories that are asked at once; paths of the answer begin with their
    names."""
    render: bool = False
    """Whether the stream also holds what the page shows."""
    without_model: bool = False
    """Answer by quoting the code, without a language model."""


@endpoints.route("POST", "/chat/stream")
def stream(body: QuestionBody) -> Response:
    """The answer as a data stream.

    Lines of the Vercel AI SDK: `8:` annotations, `0:` text, `3:` a failure, `e:` and `d:` the
    end. With `render` also stages with times, finished blocks as safe HTML, and what else the
    page shows; with `render` and `conversation` it goes on when its reader leaves, until it is
    stopped, and is read along at /api/conversations/{conversation}/answer.
    """
    engine, options = _asked_engine(body)
    cite = citer(engine) if body.render else None
    if cite and options.conversation and member_of_request() != TERMINAL:
        place = place_of(engine, options.conversation)
        runs = workspace().answers
        lines = runs.start_for_page(engine, options, place, cite, reader_gone())
        return Response(lines, headers=HEADERS)
    run = start_alone(engine, options)
    response = Response(encode_stream(run, cite=cite), headers=HEADERS)
    response.call_on_close(run.close)  # also where nobody reads a line
    return response


@endpoints.route("POST", "/chat")
def batch(body: QuestionBody) -> Values:
    """The answer in one piece, with what it came from."""
    with closing(start_alone(*_asked_engine(body))) as run:
        answer = whole_answer(run)
    return {"response": answer.text, **answer.done.whole()}


@endpoints.route("POST", "/")
def ask(body: QuestionBody) -> Values:
    """The answer in one piece: `{query, rerank}` gives `{response}`.

    Without `conversation` the questions of one session are one conversation.
    """
    engine, options = _asked_engine(body)
    usual = session.setdefault("conversation", uuid.uuid4().hex)
    options = replace(options, conversation=options.conversation or str(usual), history=None)
    with closing(start_alone(engine, options)) as run:
        return {"response": whole_answer(run).text}


def start_alone(engine: Engine, options: AskOptions) -> AnswerRun:
    """Start an answer that only who asked for it reads. Raises RequestRefusedError while another
    one is made in its conversation; all terminals share one, and do not wait."""
    shared = member_of_request() != TERMINAL and options.conversation
    place = place_of(engine, shared or uuid.uuid4().hex)
    return workspace().answers.start(engine, options, place, reader_gone())


def _asked_engine(body: QuestionBody) -> tuple[Engine, AskOptions]:
    """What `body` asks, and what it is asked of. Raises UsageError, and NotFoundError for a
    repository that is not indexed."""
    if body.with_model:
        require_owner("choose the model of an answer")
    ids = ID_SEPARATOR.join(dict.fromkeys(body.repos))
    engine, options = workspace().engine(ids or body.repo), _ask_options(body)
    return engine, asked_here(engine, options)


def asked_here(engine: Engine, options: AskOptions) -> AskOptions:
    """Return the options of who sent this request, and note for its log what is asked."""
    g.question, g.engine = options.question, engine
    return replace(options, user=member_of_request().user)


def _ask_options(body: QuestionBody) -> AskOptions:
    """Of `question`, `query` and the last user's entry of `messages` the first that holds words is
    the question. Raises UsageError."""
    exchanges = exchanges_from_client((one.role, one.text) for one in body.messages)
    texts = (body.question, body.query, *(one.question for one in exchanges[-1:]))
    question = next((text for text in texts if text and text.strip()), None)
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
    history = exchanges[:-1] if question == texts[-1] else exchanges
    if history and not body.conversation:
        # It keeps the conversation itself, and no code of earlier answers.
        chosen |= {"history": history, "retrieval": body.retrieval or "auto"}
    return AskOptions(question, use_model=not body.without_model, **chosen)


def exchanges_from_client(messages: Iterable[tuple[str, str]]) -> tuple[Exchange, ...]:
    """Return the messages of a client, pairs of role and text, by question and answer; the last
    holds what it asks now."""
    pairs: list[Exchange] = []  # an answer before the first question is nobody's
    for role, text in ((role, text) for role, text in messages if text.strip()):
        if role == "user":
            pairs.append(Exchange(text, UNANSWERED))
        elif role == "assistant" and pairs:
            last = pairs[-1]
            whole = text if last.answer == UNANSWERED else f"{last.answer}\n\n{text}"
            pairs[-1] = Exchange(last.question, whole)
    return tuple(pairs)


def citer(engine: Engine) -> Cite:
    """Return what gives the address of the page with cited lines open; '' for what is no citation,
    None for lines that no indexed file has."""
    line_count = cache(engine.files.line_count)

    def cite(path: str, start: int, end: int) -> str | None:
        count = line_count(path) or 0
        if 1 <= start <= min(end, count):
            query = {"repo": engine.location.id, "file": path, "lines": f"{start}-{end}"}
            return f"/?{urlencode(query, safe='/')}"
        with suppress(CodeQAError):  # the index is gone by now
            if not (count or CitedCode(engine.files, engine.tables()).is_missing(path)):
                return ""
        return None

    return cite
