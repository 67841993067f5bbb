"""What is kept of a user: conversations about a repository, listed, found, opened, renamed,
exported and deleted; single turns, what those were made from and what their user thinks of them;
and all that is stored, and its deletion for good."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote

from flask import Response, jsonify
from pydantic import BeforeValidator, Field

from codeqa.account import DeletionResult, StoredData
from codeqa.chat.citations import CitedCode
from codeqa.chat.record import TurnRecord
from codeqa.chat.values import Citation
from codeqa.engine import Engine
from codeqa.errors import IndexMissingError, UsageError
from codeqa.render.html import inert_markdown, render_markdown
from codeqa.state.records import Conversation, ConversationMatch
from codeqa.text.markdown import code_span, escape
from codeqa.types import Chunk
from codeqa.web.answer_streams import HEADERS
from codeqa.web.endpoints import (
    NAME_CHARACTERS,
    Clean,
    Endpoints,
    FailureDetails,
    FilledId,
    Id,
    Schema,
    Values,
    fields_of,
    values_of,
)
from codeqa.web.questions_api import Grounding, citer
from codeqa.web.workspace import place_of, reader_gone, workspace

TITLE_CHARACTERS = 200
FILE_NAME_CHARACTERS = 60
REASON_CHARACTERS = 2_000
EXPORT_FORMAT, EXPORT_VERSION = "codeqa-conversation", 1
NOT_SHOWN = ("typed", "retrieval_info", "reply", "hits", "cut", "messages", "chunks", "dropped")
"""Of a turn's record: what is told otherwise, or with its context."""

endpoints = Endpoints("conversations", "Conversations", "/api/conversations")
turns = Endpoints("turns", "Conversations")
privacy = Endpoints("privacy", "Privacy", "/api/privacy")


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


class Summary(fields_of(Conversation, "user", "repository")):  # type: ignore[misc]
    turn: str
    """Of a search: the turn that holds what was looked for, empty when the title does."""
    snippet: str
    """And the text around it."""


class OpenedConversation(Schema):
    id: str
    title: str
    context: bool
    """Whether a follow-up without `@codebase` has code to go on from."""
    answering: str
    """Id of the turn that is being answered, which /answer reads along; empty for none."""
    turns: list[TurnValues]


class TitleBody(Schema):
    title: Annotated[str, Field(max_length=TITLE_CHARACTERS, pattern=r"\S"), Clean]


class BranchBody(Schema):
    turn: FilledId
    """Id of the turn whose branch is to be the one in use."""


class ExportedTurn(TurnValues):
    context: ContextValues


class ExportedConversation(Schema):
    """All that is kept of a conversation."""

    format: Literal["codeqa-conversation"]
    version: Literal[1]
    id: str
    title: str
    created: float
    updated: float
    repository: dict[str, str]
    """Its `id` and `name`."""
    turns: list[ExportedTurn]
    """The branch in use, the first question first."""
    others: list[ExportedTurn]
    """Other versions and what followed those, the oldest first; `parent` tells where."""


@endpoints.route("GET", "", {"conversations": list[Summary]})
def conversations(
    engine: Engine,
    user: str,
    q: Annotated[str, Clean, Field(max_length=NAME_CHARACTERS)] = "",
) -> Values:
    """The user's conversations about this repository, the one used last first.

    With `q` those whose title, questions or answers hold it, and where.
    """
    kept = engine.conversations
    if wanted := q.strip():
        found = kept.find(wanted, user)
    else:
        found = [ConversationMatch(one, "", "") for one in kept.all(user)]
    return {
        "conversations": [
            values_of(Summary, one.conversation, turn=one.turn_id, snippet=one.snippet)
            for one in found
        ]
    }


@endpoints.route("GET", "/<path:conversation>", OpenedConversation)
def open_conversation(conversation: str, engine: Engine, user: str) -> Values:
    """A conversation with its questions and rendered answers, the first one first.

    Of a question that was asked again the version in use; the others are its siblings.
    """
    kept = engine.conversations
    # First: once it tells its id the question is kept.
    answering = workspace().answers.turn(place_of(engine, conversation))
    return values_of(
        OpenedConversation,
        kept.get(conversation, user),
        context=kept.has_context(conversation, user),
        answering=answering,
        turns=_turns_values(engine, conversation, user, kept.turns(conversation, user)),
    )


@endpoints.route("GET", "/<path:conversation>/export", "text/markdown", ExportedConversation)
def export_conversation(
    conversation: str,
    engine: Engine,
    user: str,
    format: Literal["markdown", "json"] = "markdown",
) -> Response:
    """A conversation as a file: Markdown to read, or JSON with everything that is kept of it."""
    as_json = format == "json"
    summary = engine.conversations.get(conversation, user)
    used = engine.conversations.turns(conversation, user)
    others = engine.conversations.other_turns(conversation, user) if as_json else []
    shown = _turns_values(engine, conversation, user, [*used, *others])
    turns = [{**one, "context": context(one["id"], engine, user)} for one in shown]
    values = values_of(
        ExportedConversation,
        summary,
        format=EXPORT_FORMAT,
        version=EXPORT_VERSION,
        repository={"id": engine.location.id, "name": engine.location.name},
        turns=turns[: len(used)],
        others=turns[len(used) :],
    )
    if as_json:
        response, ending = jsonify(values), "json"
    else:
        text = as_markdown(values).encode("utf-8", "replace")
        response, ending = Response(text, content_type="text/markdown; charset=utf-8"), "md"
    name = quote(f"{file_name(summary.title)}.{ending}", safe="")
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    return response


@endpoints.route("GET", "/<path:conversation>/answer", "text/plain")
def join(conversation: str, engine: Engine) -> Response:
    """The answer that is being written in a conversation, as /chat/stream gives it to who asked:
    what there is at once, then the rest as it comes."""
    place = place_of(engine, conversation)
    return Response(workspace().answers.join(place, reader_gone()), headers=HEADERS)


@endpoints.route("POST", "/<path:conversation>/stop", {"stopped": int})
def stop(conversation: str, engine: Engine) -> Values:
    """End the answer that is being written; what came of it is kept."""
    return {"stopped": workspace().answers.stop(*place_of(engine, conversation))}


@endpoints.route("POST", "/<path:conversation>/branch", OpenedConversation)
def choose_branch(conversation: str, engine: Engine, user: str, body: BranchBody) -> Values:
    """Go on from another version of a question, and give the conversation as it is then."""
    engine.conversations.choose_branch(conversation, body.turn, user)
    return open_conversation(conversation, engine, user)


@endpoints.route("POST", "/<path:conversation>", {"id": str, "title": str})
def rename(conversation: str, engine: Engine, user: str, body: TitleBody) -> Values:
    """Give a conversation another title."""
    title = " ".join(body.title.split())
    if not title.isprintable():
        raise UsageError("The title holds characters that cannot be shown.", "Use plain text.")
    engine.conversations.rename(conversation, title, user)
    return {"id": conversation, "title": engine.conversations.get(conversation, user).title}


@endpoints.route("DELETE", "/<path:conversation>", {"deleted": str})
def delete(conversation: str, engine: Engine) -> Values:
    """Delete a conversation, its answers and what is cached for it."""
    place = place_of(engine, conversation)
    workspace().answers.stop(*place)
    engine.conversations.delete(conversation, place.user)
    return {"deleted": conversation}


@turns.route("GET", "/api/context/<turn>", ContextValues)
def context(turn: str, engine: Engine, user: str) -> Values:
    """What an answer was made from: the context, its chunks, and the messages as sent."""
    record = engine.conversations.turn(turn, user)

    def note(chunk: Chunk) -> Values:
        hit = record.hit_of(chunk) or {}
        found = {"score": hit.get("score"), "channels": hit.get("channels", {})}
        return values_of(ChunkNote, chunk, characters=len(chunk.content), **found)

    return values_of(
        ContextValues,
        record,
        text=record.block.text,
        chunks=list(map(note, record.chunks)),
        dropped=list(map(note, record.dropped)),
        messages=record.sent,
        hits=record.hits_shown,
    )


@turns.route("POST", "/api/turns/<turn>/feedback", {"turn": str, "value": int, "reason": str})
def feedback(turn: str, engine: Engine, user: str, body: ThumbBody) -> Values:
    """Give an answer of this user `value` 1 or -1, with a `reason`; 0 takes both back."""
    kept = engine.conversations.rate(turn, body.value, body.reason or "", user)
    return {"turn": turn, "value": body.value, "reason": kept}


@privacy.route("GET", "", StoredData)
def stored(user: str) -> StoredData:
    """Exactly what is stored of this user: counts, profile, places, and who receives it."""
    return workspace().privacy().stored(user)


@privacy.route("DELETE", "/<scope>", DeletionResult)
def forget(scope: str, user: str, id: Id = "", repo: Id = "") -> DeletionResult:
    """Delete of this user for good the `conversation` with this `id`, about the repository `repo`
    or the one that it was last continued in; the `profile`; or `everything`: all conversations, the
    profile, thumbs, vectors and cached values."""
    space = workspace()
    if scope == "everything":
        space.answers.stop("", user)
    elif scope == "conversation" and id:
        space.answers.stop("", user, id)
    return space.privacy().delete(scope, user, id, repo or None)


def _turns_values(
    engine: Engine, conversation: str, user: str, turns: Sequence[TurnRecord]
) -> list[Values]:
    cite, cited = citer(engine), None
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
        value, reason = thumbs.get(turn.id, (0, ""))
        more = {
            "stages": turn.short_stages,
            "html": render_markdown(turn.answer, cite),
            "siblings": siblings.get(turn.id, [turn.id]),
            "feedback": {"value": value, "reason": reason},
        }
        if cited:
            cited = replace(cited, chunks=turn.chunks)  # what was read of the files stays
            more["citations"] = [
                {**one, "changed": one["verified"] and cited.has_changed(*_place(one))}
                for one in turn.citations
            ]
        shown.append(values_of(TurnValues, turn, **more))
    return shown


def _place(citation: Mapping[str, Any]) -> tuple[str, int, int]:
    return citation["path"], citation["start"], citation["end"]


# As Markdown


def as_markdown(exported: Values) -> str:
    """An `ExportedConversation` as Markdown: title, questions, answers, and what those rest on."""
    name, begun = _plain(exported["repository"]["name"]), _moment(exported["created"])
    parts = [f"# {_plain(exported['title'])}", f"{name} · {begun}"]
    for number, turn in enumerate(exported["turns"], 1):
        parts += _turn(number, turn)
    return "\n\n".join(parts) + "\n"


def file_name(title: str) -> str:
    """A name for a file after `title`, in signs that any disk takes."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", title))
    return "-".join(words)[:FILE_NAME_CHARACTERS].strip("-_") or "conversation"


def _turn(number: int, turn: Values) -> Iterator[str]:
    yield f"## {number}. Question"
    question = ("@codebase " if turn["tagged"] else "") + turn["question"]
    yield "\n".join(f"> {line}".rstrip() for line in inert_markdown(question).split("\n"))
    yield f"## {number}. Answer"
    if turn["answer"].strip():
        yield inert_markdown(turn["answer"])
    if turn["error"]:
        yield f"**Failed:** {_plain(turn['error']['message'])}"
    elif not turn["finished"]:
        yield "**Stopped here.**"
    if turn["notice"]:
        yield f"**Note:** {_plain(turn['notice'])}"
    cited = [_citation(one) for one in turn["citations"]]
    if cited:
        yield "**Citations:**\n\n" + "\n".join(f"- {one}" for one in dict.fromkeys(cited))
    if used := turn["context"]["chunks"]:
        places = (f"{one['path']}:{one['start_line']}-{one['end_line']}" for one in used)
        yield "**Code that was used:**\n\n" + "\n".join(f"- {code_span(one)}" for one in places)
    yield f"*{_plain(' · '.join(_facts(turn)))}*"


def _facts(turn: Values) -> Iterator[str]:
    yield _moment(turn["created"])
    if turn["model"]:
        yield f"{turn['model']} at {turn['host']}" if turn["host"] else turn["model"]
    else:
        yield "without a language model"
    if turn["mode"]:
        yield f"mode: {turn['mode']}"
    if turn["coverage"]:
        yield f"searched: {turn['coverage']}"


def _citation(citation: Values) -> str:
    place = code_span("{}:{}-{}".format(*_place(citation)))
    if not citation["verified"]:
        return f"{place} (could not be verified)"
    return f"{place} (source changed)" if citation.get("changed") else place


def _plain(text: str) -> str:
    """One line of text that means nothing but itself in Markdown."""
    return escape(" ".join(text.split()))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
