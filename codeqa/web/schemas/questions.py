"""Questions, and answers in one piece."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from codeqa.web.schemas.base import QUESTION_CHARACTERS, Clean, Id, Model, Span, Truth

Mode = Literal["", "explain", "locate", "review", "plan", "change"]
Drafts = Literal["", "off", "one", "two"]
SPANS = 200
"""Most chunks that a question pins or excludes: more than any context holds."""

WORDS: dict[str, Any] = {"type": "string", "pattern": r"\S", "maxLength": QUESTION_CHARACTERS}
_USERS = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"const": "user"},
        "content": {
            "anyOf": [
                WORDS,
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "text"}, "text": WORDS},
                    },
                },
            ]
        },
    },
}
_OTHERS = {
    "type": "object",
    "required": ["role"],
    "properties": {"role": {"enum": ["system", "assistant"]}},
}
_MESSAGES = {
    "type": "array",
    "items": {"anyOf": [_USERS, _OTHERS]},
    "contains": _USERS,
    "maxItems": 1_000,
}
_ONE_OF_THEM: dict[str, Any] = {
    "anyOf": [
        {"required": ["question"], "properties": {"question": WORDS}},
        {"required": ["query"], "properties": {"query": WORDS}},
        {"required": ["messages"], "properties": {"messages": _MESSAGES}},
    ]
}


class QuestionBody(Model):
    """A question, in `question`, `query` or the last user's entry of `messages`."""

    model_config = ConfigDict(json_schema_extra=_ONE_OF_THEM)

    question: Annotated[str, Clean] | None = None
    """`@codebase` in it has the code base searched."""
    query: Annotated[str, Clean] | None = None
    """The same under its older name."""
    messages: list[Any] | None = None
    """A conversation as the AI SDK sends it; only the last entry by the user counts."""
    conversation: Id | None = None
    """Id, chosen by the client, of the conversation that this belongs to; empty for none."""
    repo: Id | None = None
    """Id of the repository; empty for the current one."""
    render: Truth = False
    """Whether the stream also holds what the page shows."""
    rerank: Truth = False
    hyde: Drafts | None = None
    """How many drafts of the answer are searched by; empty: as the setting says."""
    mode: Mode | None = None
    """How to answer; empty leaves it to the question."""
    retrieval: Literal["", "explicit", "auto"] | None = None
    """Whether questions without `@codebase` may be searched for; empty: as the setting says."""
    tag_is_default: Truth = False
    """The client put `@codebase` there by itself: small talk and the like go without it."""
    strict: Truth = False
    """Say only what the code shows."""
    without_model: Truth = False
    """Answer by quoting the code, without a language model."""
    replaces: Id | None = None
    """Id of the turn that this one is another version of."""
    after: Id | None = None
    """Id of the turn that this one follows; empty: the last one of the branch in use."""
    pin: Annotated[list[Span], Field(max_length=SPANS)] | None = None
    """Chunks that the context must hold, each as `path:12-34`."""
    exclude: Annotated[list[Span], Field(max_length=SPANS)] | None = None
    """Chunks that it must not hold."""


class Counts(Model):
    num_docs: int
    similar_queries: int


class CitationValues(Model):
    path: str
    start: int
    end: int
    name: str
    """The identifier that the answer names before it; may be empty."""
    verified: bool
    exists: bool
    """The file has these lines, whether or not they were shown."""
    problem: str
    """Why it is not verified; may be empty."""


class BatchAnswer(Model):
    response: str
    turn: str
    """Id under which the turn is kept."""
    intent: str
    confidence: float
    retrieval_info: Counts
    citations: list[CitationValues]
    notice: str
    """What the reader should know about the answer, as sentences; may be empty."""


class OldAnswer(Model):
    response: str
