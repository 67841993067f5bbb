"""Conversations, their turns, and what an answer was made from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from codeqa.web.schemas.base import (
    NAME_CHARACTERS,
    WITH_WORDS,
    Clean,
    FailureDetails,
    FilledId,
    Model,
    RepoQuery,
    Values,
    filled,
)
from codeqa.web.schemas.questions import CitationValues

TITLE_CHARACTERS = 200
REASON_CHARACTERS = 2_000


class ChunkNote(Model):
    id: str
    path: str
    start_line: int
    end_line: int
    language: str
    why: str
    score: float | None
    channels: dict[str, int]
    """Name of a channel of the search → rank there."""
    characters: int


class SentMessage(Model):
    role: str
    parts: list[str]


class ContextValues(Model):
    text: str
    """The block exactly as it was sent."""
    chunks: list[ChunkNote]
    dropped: list[ChunkNote]
    messages: list[SentMessage]
    model: str
    host: str
    tokens: Values
    hyde: str
    stages: list[Values]
    hits: list[Values]


class ConversationsQuery(RepoQuery):
    q: Annotated[str, Clean, Field(max_length=NAME_CHARACTERS)] = ""
    """What to look for in titles, questions and answers; empty lists all."""


class Summary(Model):
    id: str
    title: str
    created: float
    updated: float
    turns: int
    turn: str = ""
    """Of a search: the turn that holds what was looked for, empty when the title does."""
    snippet: str = ""
    """And the text around it."""


class Summaries(Model):
    conversations: list[Summary]


class Thumb(Model):
    value: Literal[-1, 0, 1]
    reason: str


class TurnValues(Model):
    id: str
    parent: str
    """Id of the turn before it."""
    siblings: list[str]
    """Ids of the versions of this turn, itself among them, the oldest first."""
    question: str
    tagged: bool
    html: str
    answer: str
    citations: list[CitationValues]
    finished: bool
    error: FailureDetails | None
    generator: str
    model: str
    host: str
    reranker: str
    hyde: str
    stages: list[Values]
    steps: list[Values]
    intent: str
    confidence: float
    source: str
    """What decided the intent."""
    reason: str
    rules: list[str]
    """Names of the rules that decided what was done."""
    searched_automatically: bool
    searches: bool
    """The code was searched for it."""
    goes_on: bool
    """It went on from code that was found before."""
    suggest_codebase: bool
    rewritten: str
    """What was searched for instead of a follow-up that says too little alone."""
    suggestions: list[str]
    hook_problems: list[str]
    notice: str
    tokens: Values
    coverage: str
    mode: str
    created: float
    feedback: Thumb


class OpenedConversation(Model):
    id: str
    title: str
    carries: int
    """Tokens, estimated, that a follow-up sends besides its words."""
    context: bool
    """Whether a follow-up without `@codebase` has code to go on from."""
    turns: list[TurnValues]


class TitleBody(Model):
    title: Annotated[
        str, Clean, Field(max_length=TITLE_CHARACTERS), AfterValidator(filled), WITH_WORDS
    ]


class Renamed(Model):
    id: str
    title: str


class Deleted(Model):
    deleted: str


class BranchBody(Model):
    turn: FilledId
    """Id of the turn whose branch is to be the one in use."""


class ExportQuery(RepoQuery):
    format: Literal["markdown", "json"] = "markdown"


class ExportedTurn(TurnValues):
    context: ContextValues


class Named(Model):
    id: str
    name: str


class ExportedConversation(Model):
    """All that is kept of a conversation."""

    format: Literal["codeqa-conversation"]
    version: Literal[1]
    id: str
    title: str
    created: float
    updated: float
    repository: Named
    turns: list[ExportedTurn]
    """The branch in use, the first question first."""
    others: list[ExportedTurn]
    """Other versions and what followed those, the oldest first; `parent` tells where."""


def _whole(value: Any) -> Any:
    if type(value) is not int:  # `true` would count as 1, 1.0 as well
        raise ValueError("Send 1, -1, or 0 for none")
    return value


class ThumbBody(Model):
    value: Annotated[Literal[-1, 0, 1], BeforeValidator(_whole)]
    """Down, none, up."""
    reason: Annotated[str, Clean, Field(max_length=REASON_CHARACTERS)] | None = None


class ThumbKept(Thumb):
    turn: str
