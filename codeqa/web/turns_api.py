"""Single turns: how one is shown again, what it was made from, and what its user thinks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from codeqa.chat import TurnRecord
from codeqa.chat.citations import Citation, CitedCode
from codeqa.engine import Engine
from codeqa.errors import IndexMissingError
from codeqa.types import Chunk
from codeqa.web.endpoints import Endpoints, values_of
from codeqa.web.protocol import BlockRenderer
from codeqa.web.questions_api import citer
from codeqa.web.schemas import (
    Clean,
    FailureDetails,
    Grounding,
    Schema,
    Values,
    fields_of,
)

REASON_CHARACTERS = 2_000
NOT_SHOWN = ("typed", "retrieval_info", "reply", "hits", "cut", "messages", "chunks", "dropped")
"""Of a turn's record: what is told otherwise, or with its context."""

endpoints = Endpoints("api", "Conversations")


class ChunkNote(fields_of(Chunk, "content", "unit_id", "kind", "role", "signature")):  # type: ignore[misc]
    score: float | None
    channels: dict[str, int]
    """Name of a channel of the search → rank there."""
    characters: int


class SentMessage(Schema):
    role: str
    parts: list[str]


class ContextValues(Schema):
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


class Thumb(Schema):
    value: Literal[-1, 0, 1]
    reason: str


class TurnValues(fields_of(TurnRecord, *NOT_SHOWN)):  # type: ignore[misc]
    question: str
    tagged: bool
    siblings: list[str]
    """Ids of the versions of this turn, itself among them, the oldest first."""
    html: str
    citations: list[Citation]
    grounding: Grounding
    error: FailureDetails | None
    feedback: Thumb


def _whole(value: Any) -> Any:
    if type(value) is not int:  # `true` would count as 1, 1.0 as well
        raise ValueError("Send 1, -1, or 0 for none")
    return value


class ThumbBody(Schema):
    value: Annotated[Literal[-1, 0, 1], BeforeValidator(_whole)]
    """Down, none, up."""
    reason: Annotated[str, Clean, Field(max_length=REASON_CHARACTERS)] | None = None


@endpoints.route("GET", "/api/context/<turn>", ContextValues)
def context(turn: str, engine: Engine, user: str) -> Values:
    """What an answer was made from: the context, its chunks, and the messages as sent."""
    return context_values(engine, turn, user)


@endpoints.route("POST", "/api/turns/<turn>/feedback", {"turn": str, "value": int, "reason": str})
def feedback(turn: str, engine: Engine, user: str, body: ThumbBody) -> Values:
    """Give an answer of this user `value` 1 or -1, with a `reason`; 0 takes both back."""
    kept = engine.conversations.rate(turn, body.value, body.reason or "", user)
    return {"turn": turn, "value": body.value, "reason": kept}


def context_values(engine: Engine, turn: str, user: str) -> Values:
    """What a turn was made from, as JSON holds it. Raises NotFoundError."""
    record = engine.conversations.turn(turn, user)
    return values_of(
        ContextValues,
        record,
        text=record.block.text,
        chunks=[_chunk(chunk, record) for chunk in record.chunks],
        dropped=[_chunk(chunk, record) for chunk in record.dropped],
        messages=record.sent,
        hits=record.hits_shown,
    )


def turns_values(
    engine: Engine, conversation: str, user: str, turns: Sequence[TurnRecord]
) -> list[Values]:
    """These turns of a conversation as JSON holds them."""
    cite = citer(engine)
    cited = None
    with suppress(IndexMissingError):
        cited = CitedCode(engine.files, engine.tables())
    thumbs = engine.conversations.thumbs(conversation, user)
    siblings = {
        one: list(versions)
        for versions in engine.conversations.branches(conversation, user).values()
        for one in versions
    }
    shown = []
    for turn in turns:
        renderer = BlockRenderer(cite)  # as when it was streamed
        blocks = [*renderer.feed(turn.answer), *renderer.finish()]
        value, reason = thumbs.get(turn.id, (0, ""))
        more = {
            "stages": turn.short_stages,
            "html": "".join(block["block"]["html"] for block in blocks),
            "siblings": siblings.get(turn.id, [turn.id]),
            "feedback": {"value": value, "reason": reason},
        }
        if cited:
            cited = replace(cited, chunks=turn.chunks)  # what was read of the files stays
            more["citations"] = [_now(one, cited) for one in turn.citations]
        shown.append(values_of(TurnValues, turn, **more))
    return shown


def _now(citation: Mapping[str, Any], code: CitedCode) -> Values:
    """A citation that was checked, and whether what it cites is another text now."""
    place = (citation["path"], citation["start"], citation["end"])
    return {**citation, "changed": citation["verified"] and code.has_changed(*place)}


def _chunk(chunk: Chunk, record: TurnRecord) -> dict[str, Any]:
    hit = record.hit_of(chunk) or {}
    return values_of(
        ChunkNote,
        chunk,
        score=hit.get("score"),
        channels=hit.get("channels", {}),
        characters=len(chunk.content),
    )
