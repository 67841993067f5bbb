"""What OpenAI's API takes and gives, and a conversation as its clients send it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from codeqa.chat import AskOptions, Exchange
from codeqa.errors import ContextLengthError
from codeqa.web.errors import FieldError
from codeqa.web.schemas import (
    ASKING,
    NAME_CHARACTERS,
    QUESTION_CHARACTERS,
    AnswerDetails,
    Clean,
    Schema,
)

RULES = ("system", "developer")
UNANSWERED = "(No answer was given.)"
"""Stands for what is missing where the user wrote twice in a row: models want both in turn."""


class TooLongError(ContextLengthError):
    """More than a question may hold or the model behind can read; at this status clients of
    this API shorten it."""

    http_status = 400
    param = "messages"


class TextPart(Schema):
    type: Literal["text"]
    text: Annotated[str, Clean]


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [] if content is None else content  # only tools were called


class Message(Schema):
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


class ResponseFormat(Schema):
    type: Literal["text"]


class CompletionBody(Schema):
    """What of OpenAI's request is heeded; what else there is, such as `temperature`, is not."""

    model: Annotated[str, Clean, Field(max_length=NAME_CHARACTERS)]
    """`codeqa`, or one of the names at /v1/models for another repository."""
    messages: Annotated[
        list[Message],
        Field(min_length=1, max_length=2_000, json_schema_extra={"contains": ASKING}),
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


class Usage(Schema):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionMessage(Schema):
    role: Literal["assistant"]
    content: str
    refusal: None


class CompletionChoice(Schema):
    index: int
    message: CompletionMessage
    logprobs: None
    finish_reason: Literal["stop", "length"]


class Completion(Schema):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage
    codeqa: AnswerDetails
    """What CodeQA tells beyond OpenAI's API."""


class ModelValues(Schema):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Schema):
    object: Literal["list"]
    data: list[ModelValues]


def read_messages(messages: Sequence[Message]) -> AskOptions:
    """The last entry by the user is the question; what stands behind it is left out.

    It may be searched for without a tag. Raises FieldError where there is no question, and
    TooLongError.
    """
    said = [(message.role, message.text) for message in messages if message.text.strip()]
    asked = [number for number, (role, _) in enumerate(said) if role == "user"]
    if not asked:
        raise FieldError(
            "messages", "There is no question.", "Send an entry of the role user with text."
        )
    question = said[asked[-1]][1]
    if len(question) > QUESTION_CHARACTERS:
        raise TooLongError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    wishes = "\n\n".join(text for role, text in said if role in RULES)
    history = _history(said[: asked[-1]])
    return AskOptions(question, retrieval="auto", history=history, instructions=wishes)


def _history(messages: Sequence[tuple[str, str]]) -> tuple[Exchange, ...]:
    """Questions with their answers; an answer before the first question is nobody's."""
    pairs: list[Exchange] = []
    for role, text in messages:
        if role == "user":
            pairs.append(Exchange(text, UNANSWERED))
        elif role == "assistant" and pairs:
            last = pairs[-1]
            whole = text if last.answer == UNANSWERED else f"{last.answer}\n\n{text}"
            pairs[-1] = Exchange(last.question, whole)
    return tuple(pairs)
