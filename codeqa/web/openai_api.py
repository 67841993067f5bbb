"""OpenAI's chat API on top of the same pipeline, so that chat clients can use CodeQA as a model.

The client sends its whole conversation each time, and nothing is stored here. The code is searched
when a question needs it, as with automatic retrieval.
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
from codeqa.routing.clients import is_task, question_in, task_reply, task_text
from codeqa.web.ai_sdk import EVENT_HEADERS
from codeqa.web.endpoints import QUESTION_CHARACTERS, Endpoints, Schema, Text, Values
from codeqa.web.errors import RequestRefusedError, api_failure, explained
from codeqa.web.questions_api import exchanges_from_client, for_this_user
from codeqa.web.run import AnswerRun
from codeqa.web.workspace import reader_gone, workspace

MODEL = "codeqa"
RULES = ("system", "developer")
THOUGHTS = ("reasoning", "thinking")
"""Parts of earlier answers that are no part of the conversation."""

endpoints = Endpoints("completions", __name__)


class TextPart(Schema):
    type: Literal["text", "input_text", "output_text", "refusal", "reasoning", "thinking"]
    text: str | None = None
    refusal: str | None = None


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return [] if content is None else content  # None: the message only calls tools
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]


class ClientMessage(Schema):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[
        list[TextPart], BeforeValidator(_parts, json_schema_input_type=str | list[TextPart] | None)
    ] = Field(default_factory=list)

    @property
    def text(self) -> str:
        texts = (
            part.text or part.refusal or "" for part in self.content if part.type not in THOUGHTS
        )
        return "\n".join(texts)


class StreamOptions(Schema):
    include_usage: bool | None = None
    """True if a last event has the number of tokens."""


class CompletionBody(Schema):
    """The used part of OpenAI's request; other fields, such as `temperature`, are ignored."""

    model: Text
    """`codeqa` for the current repository, or another name from /v1/models."""
    messages: Annotated[list[ClientMessage], Field(min_length=1, max_length=2_000)]
    """The conversation so far; the last message of the user is the question."""
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()


@endpoints.route("GET", "/v1/models")
def models() -> Values:
    """List `codeqa`, which stands for the current repository, and a name for each indexed one."""
    return {"object": "list", "data": [_model(name) for name in _repositories()]}


@endpoints.route("GET", "/v1/models/<path:model>")
def retrieve(model: str) -> Values:
    """Return one model by its name, as the list has it."""
    _repository_of(model)
    return _model(model)


def _model(name: str) -> Values:
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}


def _repository_of(model: str) -> str:
    """Return the id of a model's repository. Raises NotFoundError."""
    repository = _repositories().get(model)
    if repository is None:
        advice = "Use `codeqa` for the current repository, or a name from /v1/models."
        raise NotFoundError("This model does not exist.", advice)
    return repository


@endpoints.route("POST", "/v1/chat/completions")
def complete(body: CompletionBody) -> Response | Values:
    """Answer the last message of the user, in one piece or, with `stream`, as events.

    `temperature` and similar fields are ignored, tools are never called, and images are refused.
    The client's system messages are added to the question as plain text; they never replace
    CodeQA's own rules.
    """
    options, id_ = _read_messages(body.messages), f"chatcmpl-{uuid.uuid4().hex}"
    engine = workspace().engine(_repository_of(body.model))
    about = {"id": id_, "created": int(time.time()), "model": body.model}
    run = workspace().answers.start(engine, for_this_user(engine, options), gone=reader_gone())
    events = _raised(run)
    if body.stream:
        # An error before the first word is raised here: clients handle an HTTP status best.
        first_events = []
        for event in events:
            first_events.append(event)
            if isinstance(event, Token | Done):
                break
        with_usage = bool(body.stream_options.include_usage)
        return Response(_stream(about, first_events, events, with_usage), headers=EVENT_HEADERS)
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
    """Return the tokens that the model counted; zeros if no model was asked."""
    prompt, completion = done.record.tokens.prompt, done.record.tokens.completion
    total = prompt + completion
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


def _raised(run: AnswerRun) -> Generator[Event]:
    """Yield the events of an answer. Raises the error of a failed one."""
    with closing(run):
        for event in run:
            if isinstance(event, Failed):
                raise error_from(as_json(event.failure))
            yield event


def _stream(
    about: Values, first_events: Sequence[Event], events: Generator[Event], with_usage: bool
) -> Iterator[bytes]:
    """Yield the server-sent events of an answer; `[DONE]` is the last unless it failed."""

    def chunk(delta: Mapping[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choices = [_choice("delta", delta, reason)]
        values = about | {"object": "chat.completion.chunk", "choices": choices}
        if with_usage:
            values["usage"] = None
        return _encoded(values | more)

    try:
        yield chunk({"role": "assistant", "content": ""})
        for event in chain(first_events, events):
            if isinstance(event, Token):
                yield chunk({"content": event.text})
            elif isinstance(event, Done):
                yield chunk({}, _finish_reason(event), codeqa=event.whole())
                if with_usage:
                    yield chunk({}, choices=[], usage=_usage(event))
                yield b"data: [DONE]\n\n"
                return
        raise RequestRefusedError(503)  # the server is shutting down
    except Exception as error:
        yield _encoded(api_failure(explained(error))[0])
    finally:
        events.close()


def _encoded(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode("utf-8", "replace")


def _repositories() -> dict[str, str]:
    """Return the repository id for each name of a model.

    `codeqa` has '', the current repository; `codeqa/<name>` is an indexed one.
    """
    locations = member_names(workspace().visible())
    return {MODEL: ""} | {f"{MODEL}/{name}": where.id for name, where in locations.items()}


def _read_messages(messages: Sequence[ClientMessage]) -> AskOptions:
    """Return the question, the last message of the user, and the exchanges before it.

    Messages after the question are left out. Raises UsageError if there is no question, and
    ContextLengthError if it is too long.
    """
    texts = (
        (one.role, question_in(one.text) if one.role == "user" else one.text) for one in messages
    )
    exchanges = exchanges_from_client(texts)
    if not exchanges:
        raise UsageError("There is no question.", "Send a message of the role user with text.")
    history, question = exchanges[:-1], exchanges[-1].question
    rules = [message.text for message in messages if message.role in RULES]
    wishes = "\n\n".join(text for text in rules if text.strip())
    if is_task(question, wishes):
        text = task_text(question, wishes, history)
        return AskOptions(text, history=(), task=task_reply(text), keep=False)
    if len(question) > QUESTION_CHARACTERS:
        raise ContextLengthError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    return AskOptions(question, retrieval="auto", history=history, instructions=wishes, keep=False)
