"""OpenAI's chat API over the same pipeline, so that other chat clients can use CodeQA as a model.

The client keeps its conversation and sends all of it each time; nothing is stored here. What is
searched is decided as with automatic retrieval.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Annotated, Any, Literal

from flask import Response
from pydantic import BeforeValidator, Field

from codeqa.chat.events import Event, Failed, Token, as_json
from codeqa.chat.record import Done
from codeqa.chat.values import AskOptions
from codeqa.engine import whole_answer
from codeqa.errors import ContextLengthError, NotFoundError, UsageError, error_from
from codeqa.repositories.multi_repo import member_names
from codeqa.web.endpoints import QUESTION_CHARACTERS, Endpoints, Schema, Text, Values
from codeqa.web.errors import RequestRefusedError, api_failure, explained
from codeqa.web.questions_api import asked_here, exchanges_from_client
from codeqa.web.run import AnswerRun
from codeqa.web.workspace import reader_gone, workspace

MODEL = "codeqa"
RULES = ("system", "developer")
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}

endpoints = Endpoints("completions", __name__)


class TextPart(Schema):
    type: Literal["text"]
    text: str


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [] if content is None else content  # only tools were called


class ClientMessage(Schema):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[
        list[TextPart], BeforeValidator(_parts, json_schema_input_type=str | list[TextPart] | None)
    ] = Field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content)


class StreamOptions(Schema):
    include_usage: bool | None = None
    """Whether a last piece tells what the answer cost."""


class CompletionBody(Schema):
    """What of OpenAI's request is heeded; what else there is, such as `temperature`, is not."""

    model: Text
    """`codeqa`, or one of the names at /v1/models for another repository."""
    messages: Annotated[list[ClientMessage], Field(min_length=1, max_length=2_000)]
    """The conversation so far; the last entry by the user is the question."""
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()


@endpoints.route("GET", "/v1/models")
def models() -> Values:
    """`codeqa`, which asks about the current repository, and a name for each that is indexed."""
    about = {"object": "model", "created": 0, "owned_by": MODEL}
    return {"object": "list", "data": [{"id": name, **about} for name in _repositories()]}


@endpoints.route("POST", "/v1/chat/completions")
def complete(body: CompletionBody) -> Response | Values:
    """The answer to the last entry by the user, in one piece or, with `stream`, as events.

    `temperature` and other wishes about a model are not heeded, tools are never called, and
    images are refused. What the client's system messages ask for goes along as plain text
    behind the question; it never takes the place of CodeQA's own rules.
    """
    options, id_ = _read_messages(body.messages), f"chatcmpl-{uuid.uuid4().hex}"
    if (repository := _repositories().get(body.model)) is None:
        raise NotFoundError(
            "There is no such model.", "Use `codeqa` to ask about the current repository."
        )
    engine = workspace().engine(repository)
    about = {"id": id_, "created": int(time.time()), "model": body.model}
    run = workspace().answers.start(engine, asked_here(engine, options), gone=reader_gone())
    events = _raised(run)
    if body.stream:
        # A failure before the first word has a status of its own, which clients understand best.
        begun = []
        for event in events:
            begun.append(event)
            if isinstance(event, Token | Done):
                break
        with_usage = bool(body.stream_options.include_usage)
        return Response(_stream(about, begun, events, with_usage), headers=HEADERS)
    answer = whole_answer(events)
    done = answer.done
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    return {
        **about,
        "object": "chat.completion",
        "choices": [_choice("message", message, _finish_reason(done))],
        "usage": _usage(done),
        "codeqa": done.whole(),
    }


def _choice(part: str, content: Mapping[str, Any], reason: str | None) -> Values:
    return {"index": 0, part: content, "logprobs": None, "finish_reason": reason}


def _finish_reason(done: Done) -> str:
    return "length" if done.record.cut else "stop"


def _usage(done: Done) -> dict[str, int]:
    """Return the tokens of the model behind the answer; none where none was asked."""
    prompt, completion = done.record.tokens.prompt, done.record.tokens.completion
    total = prompt + completion
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


def _raised(run: AnswerRun) -> Generator[Event]:
    """Yield the events of an answer; an error among them is raised."""
    with closing(run):
        for event in run:
            if isinstance(event, Failed):
                raise error_from(as_json(event.failure))
            yield event


def _stream(
    about: Values, begun: Sequence[Event], events: Generator[Event], with_usage: bool
) -> Iterator[bytes]:
    """The server-sent events of an answer, whose last is `[DONE]` unless it failed."""

    def chunk(delta: Mapping[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choices = [_choice("delta", delta, reason)]
        values = {**about, "object": "chat.completion.chunk", "choices": choices}
        return _sent({**values, **({"usage": None} if with_usage else {}), **more})

    try:
        yield chunk({"role": "assistant", "content": ""})
        for event in chain(begun, events):
            if isinstance(event, Token):
                yield chunk({"content": event.text})
            elif isinstance(event, Done):
                yield chunk({}, _finish_reason(event), codeqa=event.whole())
                if with_usage:
                    yield chunk({}, choices=[], usage=_usage(event))
                yield b"data: [DONE]\n\n"
                return
        raise RequestRefusedError(503)  # the server ends
    except Exception as error:
        yield _sent(api_failure(explained(error))[0])
    finally:
        events.close()


def _sent(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode("utf-8", "replace")


def _repositories() -> dict[str, str]:
    """Names of models, and the ids of the repositories that they ask about: '' for the current one,
    `codeqa/<name>` each that is indexed."""
    named = member_names(workspace().visible())
    return {MODEL: ""} | {f"{MODEL}/{name}": one.id for name, one in named.items()}


def _read_messages(messages: Sequence[ClientMessage]) -> AskOptions:
    """The last entry by the user is the question, which may be searched for without a tag; what
    stands behind it is left out. Raises UsageError where there is none, and ContextLengthError."""
    exchanges = exchanges_from_client((message.role, message.text) for message in messages)
    if not exchanges:
        raise UsageError("There is no question.", "Send a message of the role user with text.")
    history, question = exchanges[:-1], exchanges[-1].question
    if len(question) > QUESTION_CHARACTERS:
        raise ContextLengthError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    wishes = "\n\n".join(one.text for one in messages if one.role in RULES and one.text.strip())
    return AskOptions(question, retrieval="auto", history=history, instructions=wishes, keep=False)
