"""What OpenAI's API takes and gives, and a conversation as its clients send it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from codeqa.chat import AskOptions, Exchange
from codeqa.chat.citations import Citation
from codeqa.text.tokens import well_formed
from codeqa.web.errors import FieldError
from codeqa.web.schemas import (
    NAME_CHARACTERS,
    QUESTION_CHARACTERS,
    WORDS,
    Clean,
    Counts,
    Schema,
)

RULES = ("system", "developer")
ROLES = (*RULES, "user", "assistant", "tool", "function")
UNANSWERED = "(No answer was given.)"
"""Stands for what is missing where the user wrote twice in a row: models want both in turn."""
MEDIA = {"image_url": "an image", "input_image": "an image", "input_audio": "sound",
         "file": "a file", "input_file": "a file"}  # fmt: skip

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


class Usage(Schema):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Extension(Schema):
    """What CodeQA tells beyond OpenAI's API."""

    turn: str
    """Id under which the answer is kept; empty when it is not."""
    intent: str
    confidence: float
    retrieval_info: Counts
    citations: list[Citation]
    notice: str


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
    codeqa: Extension


class ModelValues(Schema):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Schema):
    object: Literal["list"]
    data: list[ModelValues]


class TooMuchError(FieldError):
    """More text than a question may have; clients of this API then shorten it."""

    def __init__(self, param: str, message: str, hint: str = "") -> None:
        super().__init__(param, message, hint)
        self.code = "context_length"  # not the class's: `error_from` finds classes by theirs


def read_messages(messages: Sequence[Any]) -> AskOptions:
    """The last entry by the user is the question; what stands behind it is left out.

    It may be searched for without a tag. Raises FieldError for what is no text, and where there
    is no question.
    """
    read = [_message(message, f"messages[{number}]") for number, message in enumerate(messages)]
    asked = [number for number, (role, text) in enumerate(read) if role == "user" and text.strip()]
    if not asked:
        raise FieldError(
            "messages", "There is no question.", "Send an entry of the role user with text."
        )
    question = read[asked[-1]][1]
    if len(question) > QUESTION_CHARACTERS:
        raise TooMuchError(
            "messages", f"The question is longer than {QUESTION_CHARACTERS:,} characters.",
            "Shorten it.",
        )  # fmt: skip
    wishes = "\n\n".join(text for role, text in read if role in RULES and text.strip())
    history = _history(read[: asked[-1]])
    return AskOptions(question, retrieval="auto", history=history, instructions=wishes)


def _history(messages: Sequence[tuple[str, str]]) -> tuple[Exchange, ...]:
    """Questions with their answers; an answer before the first question is nobody's."""
    pairs: list[Exchange] = []
    for role, text in messages:
        if not text.strip():
            continue
        if role == "user":
            pairs.append(Exchange(text, UNANSWERED))
        elif role == "assistant" and pairs:
            last = pairs[-1]
            whole = text if last.answer == UNANSWERED else f"{last.answer}\n\n{text}"
            pairs[-1] = Exchange(last.question, whole)
    return tuple(pairs)


def _message(message: Any, place: str) -> tuple[str, str]:
    """Role and text. Raises FieldError."""
    if not isinstance(message, Mapping) or message.get("role") not in ROLES:
        raise FieldError(
            place, f"`{place}` has no role that is known.", f"Choose one: {', '.join(ROLES)}."
        )
    content = message.get("content")
    if isinstance(content, list):
        parts = [_part(one, f"{place}.content[{n}]") for n, one in enumerate(content)]
        return message["role"], "\n".join(parts)
    if content is None and message["role"] != "user":  # only tools were called
        return message["role"], ""
    if not isinstance(content, str):
        raise FieldError(f"{place}.content", f"`{place}.content` is no text.", "Send a text.")
    return message["role"], well_formed(content)


def _part(part: Any, place: str) -> str:
    kind = str(part.get("type")) if isinstance(part, Mapping) else ""
    if kind in MEDIA:
        raise FieldError(place, f"`{place}` is {MEDIA[kind]}.", "CodeQA reads text alone.")
    # The text of each of these two stands under the name of its kind.
    text = part.get(kind) if kind in ("text", "refusal") else None
    if not isinstance(text, str):
        raise FieldError(place, f"`{place}` is no text.", 'Send {"type": "text", "text": …}.')
    return well_formed(text)
