"""What OpenAI's API takes and gives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from codeqa.web.schemas.base import (
    NAME_CHARACTERS,
    Clean,
    Model,
)
from codeqa.web.schemas.questions import WORDS, CitationValues, Counts

_PART = {
    "type": "object",
    "required": ["type", "text"],
    "properties": {"type": {"const": "text"}, "text": {"type": "string", "maxLength": 10_000}},
}
_QUESTION_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"const": "user"}, "content": WORDS},
}
_ANY_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "developer", "assistant", "tool"]},
        "content": {
            "anyOf": [{"type": "string"}, {"type": "null"}, {"type": "array", "items": _PART}]
        },
    },
}


class StreamOptions(Model):
    include_usage: bool | None = None
    """Whether a last piece tells what the answer cost."""


class ResponseFormat(Model):
    type: Literal["text"]


class CompletionBody(Model):
    """What of OpenAI's request is heeded; what else there is, such as `temperature`, is not."""

    model: Annotated[str, Clean, Field(max_length=NAME_CHARACTERS)]
    """`codeqa`, or one of the names at /v1/models for another repository."""
    messages: Annotated[
        list[Any],
        Field(
            min_length=1,
            max_length=2_000,
            json_schema_extra={
                "items": {"anyOf": [_QUESTION_MESSAGE, _ANY_MESSAGE]},
                "contains": _QUESTION_MESSAGE,
            },
        ),
    ]
    """The conversation so far; the last entry by the user is the question."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None
    """Whether the answer is kept as a conversation of its own."""
    n: Literal[1] | None = None
    response_format: ResponseFormat | None = None
    tool_choice: Literal["none", "auto"] | None = None
    """Tools are never called."""


class Usage(Model):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Extension(Model):
    """What CodeQA tells beyond OpenAI's API."""

    turn: str
    """Id under which the answer is kept; empty when it is not."""
    intent: str
    confidence: float
    retrieval_info: Counts
    citations: list[CitationValues]
    notice: str


class CompletionMessage(Model):
    role: Literal["assistant"]
    content: str
    refusal: None


class CompletionChoice(Model):
    index: int
    message: CompletionMessage
    logprobs: None
    finish_reason: Literal["stop", "length"]


class Completion(Model):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage
    codeqa: Extension


class ModelValues(Model):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Model):
    object: Literal["list"]
    data: list[ModelValues]
