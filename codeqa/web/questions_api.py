"""Answer questions over HTTP: as a stream for the page and other clients, or in one piece."""

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
from codeqa.chat.pinned import MOST_SPANS
from codeqa.chat.values import AskOptions
from codeqa.engine import Engine, whole_answer
from codeqa.errors import CodeQAError, UsageError
from codeqa.render import Cite
from codeqa.repositories.multi_repo import ID_SEPARATOR, MOST_REPOSITORIES
from codeqa.search.rerank import parse_rerank
from codeqa.types import Exchange
from codeqa.web.ai_sdk import PARTS_HEADERS, STREAM_HEADERS, encode_parts, encode_stream
from codeqa.web.endpoints import QUESTION_CHARACTERS, Endpoints, Id, Schema, Span, Text, Values
from codeqa.web.run import AnswerRun
from codeqa.web.security import TERMINAL, current_user, require_owner
from codeqa.web.workspace import conversation_key, reader_gone, workspace

RESERVED = ("/export", "/branch", "/answer", "/stop")
"""Ends of addresses below that of a conversation; the id of none may end like this."""

UNANSWERED = "(No answer was given.)"
"""Stands for a missing answer when the user wrote twice in a row: models expect turns."""

endpoints = Endpoints("questions", __name__)


def _options() -> type[Schema]:
    """Return a schema that checks the fields of QuestionOptions in a client's request."""
    spans = Annotated[list[Span], Field(max_length=MOST_SPANS)]
    checked: dict[Any, Any] = {str: Id, tuple[str, ...]: spans}
    options: Values = {}
    for field in fields(QuestionOptions):
        kind = get_type_hints(QuestionOptions)[field.name]
        if field.name == "rerank":  # `parse_rerank` says which values mean yes
            kind = Annotated[bool, BeforeValidator(parse_rerank)]
        about = Field(default=field.default, description=field.metadata["help"])
        options[field.name] = (checked.get(kind, kind), about)
    return create_model("Options", __base__=Schema, **options)


class SdkMessage(Schema):
    role: str
    content: str | list[Any] | None = None
    parts: list[Any] = Field(default_factory=list)
    """The message in parts, used when `content` is empty; only those of text count."""

    @property
    def text(self) -> str:
        if isinstance(content := self.content or self.parts, str):
            return content
        parts = (part for part in content if isinstance(part, dict))
        texts = (part.get("text") for part in parts if part.get("type", "text") == "text")
        return "".join(text for text in texts if isinstance(text, str))


class QuestionBody(_options()):  # type: ignore[misc]  # a new option is declared once
    """A question, in `question`, `query` or the user's last message in `messages`."""

    question: str = ""
    """With `@codebase` in it, the code base is searched."""
    query: str = ""
    """The older name of `question`."""
    messages: list[SdkMessage] = Field(default_factory=list)
    """A conversation as the AI SDK sends it; the user's last message is the question. Without
    `conversation` the client keeps the conversation, and its follow-ups have `retrieval` `auto`."""
    trigger: Text = ""
    """Sent by the AI SDK from version 5 on, which then gets the stream of that version. So does a
    client whose last message has `parts` without `content`."""
    repo: Text = ""
    """Id of the repository; empty for the current one."""
    repos: list[Id] = Field(default_factory=list, max_length=MOST_REPOSITORIES)
    """Ids of several repositories to ask at once; paths in the answer begin with their names."""
    render: bool = False
    """True if the stream also has what the page shows."""
    without_model: bool = False
    """Answer by quoting the code, without a language model."""

    @property
    def reads_parts(self) -> bool:
        """True if the client reads the stream of the AI SDK's version 5."""
        last = self.messages[-1:]
        return bool(self.trigger or (last and last[0].parts and last[0].content is None))


@endpoints.route("POST", "/chat/stream")
def stream(body: QuestionBody) -> Response:
    """Answer a question as a stream of the Vercel AI SDK, version 4 or 5.

    The lines of version 4 are `8:` annotations, `0:` text, `3:` an error, `e:` and `d:` the end. To
    `useChat` of version 5 server-sent events are sent, with annotations in `data-codeqa`. With
    `render` there are also stages with times, finished blocks as safe HTML, and what else the page
    shows. With `render` and `conversation` the answer goes on after the client leaves, until it is
    stopped; /api/conversations/{conversation}/answer reads it along.
    """
    engine, options = _engine_and_options(body)
    cite = citer(engine) if body.render else None
    if cite and options.conversation and current_user() != TERMINAL:
        key = conversation_key(engine, options.conversation)
        runs = workspace().answers
        lines = runs.start_for_page(engine, options, key, cite, reader_gone())
        return Response(lines, headers=STREAM_HEADERS)
    run = start_alone(engine, options)
    if body.reads_parts and not cite:
        response = Response(encode_parts(run), headers=PARTS_HEADERS)
    else:
        response = Response(encode_stream(run, cite=cite), headers=STREAM_HEADERS)
    response.call_on_close(run.close)  # also when nobody reads a line
    return response


@endpoints.route("POST", "/chat")
def batch(body: QuestionBody) -> Values:
    """Answer a question in one piece, with its sources."""
    with closing(start_alone(*_engine_and_options(body))) as run:
        answer = whole_answer(run)
    return {"response": answer.text, **answer.done.whole()}


@endpoints.route("POST", "/")
def ask(body: QuestionBody) -> Values:
    """Answer a question in one piece: `{query, rerank}` gives `{response}`.

    Without `conversation` all questions of a session are one conversation.
    """
    engine, options = _engine_and_options(body)
    of_session = session.setdefault("conversation", uuid.uuid4().hex)
    options = replace(options, conversation=options.conversation or str(of_session), history=None)
    with closing(start_alone(engine, options)) as run:
        return {"response": whole_answer(run).text}


def start_alone(engine: Engine, options: AskOptions) -> AnswerRun:
    """Start an answer that only this request reads.

    Raises RequestRefusedError while its conversation is being answered. That does not hold for the
    terminal: all terminals share one conversation.
    """
    exclusive = current_user() != TERMINAL and options.conversation
    key = conversation_key(engine, exclusive or uuid.uuid4().hex)
    return workspace().answers.start(engine, options, key, reader_gone())


def _engine_and_options(body: QuestionBody) -> tuple[Engine, AskOptions]:
    """Return the engine of the repository in `body`, and the question with its options.

    Raises UsageError, and NotFoundError for a repository that is not indexed.
    """
    if body.with_model:
        require_owner("choose the model of an answer")
    ids = ID_SEPARATOR.join(dict.fromkeys(body.repos))
    engine, options = workspace().engine(ids or body.repo), _ask_options(body)
    return engine, for_this_user(engine, options)


def for_this_user(engine: Engine, options: AskOptions) -> AskOptions:
    """Return `options` with the user of this request; note question and engine for the logs."""
    g.question, g.engine = options.question, engine
    return replace(options, user=current_user().id)


def _ask_options(body: QuestionBody) -> AskOptions:
    """Return the question and its options. Raises UsageError.

    The question is the first text among `question`, `query` and the user's last message.
    """
    exchanges = exchanges_from_client((message.role, message.text) for message in body.messages)
    texts = [body.question, body.query]
    if exchanges:
        texts.append(exchanges[-1].question)
    question = next((text for text in texts if text and text.strip()), None)
    if question is None:
        raise UsageError("There is no question.", "Send it as text in `question`.")
    if len(question.removeprefix("@codebase ")) > QUESTION_CHARACTERS:
        raise UsageError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    chosen = {field.name: getattr(body, field.name) for field in fields(QuestionOptions)}
    if body.conversation.endswith(RESERVED):
        raise UsageError(
            f"The id of a conversation cannot end with {' or '.join(RESERVED)}.",
            "Choose another id.",
        )
    history = exchanges[:-1] if question == texts[-1] else exchanges
    if history and not body.conversation:
        # The client keeps the conversation, but not the code of earlier answers.
        chosen |= {"history": history, "retrieval": body.retrieval or "auto"}
    return AskOptions(question, use_model=not body.without_model, **chosen)


def exchanges_from_client(messages: Iterable[tuple[str, str]]) -> tuple[Exchange, ...]:
    """Return the messages of a client (role and text) as exchanges; the last has the new question.

    An answer before the first question is left out.
    """
    exchanges: list[Exchange] = []
    for role, text in messages:
        if role == "user" and text.strip():
            exchanges.append(Exchange(text, UNANSWERED))
        elif role == "assistant" and text.strip() and exchanges:
            last = exchanges[-1]
            answer = text if last.answer == UNANSWERED else f"{last.answer}\n\n{text}"
            exchanges[-1] = Exchange(last.question, answer)
    return tuple(exchanges)


def citer(engine: Engine) -> Cite:
    """Return a function that gives the address of the page with the cited lines open.

    It returns '' for text that is no citation, and None for lines that no indexed file has.
    """
    line_count = cache(engine.files.line_count)

    def cite(path: str, start: int, end: int) -> str | None:
        count = line_count(path) or 0
        if 1 <= start <= min(end, count):
            query = {"repo": engine.location.id, "file": path, "lines": f"{start}-{end}"}
            return f"/?{urlencode(query, safe='/')}"
        with suppress(CodeQAError):  # the index was removed meanwhile
            if not (count or CitedCode(engine.files, engine.tables()).is_missing(path)):
                return ""
        return None

    return cite
