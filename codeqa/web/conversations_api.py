"""The stored data of a user: conversations, their turns, thumbs, and its deletion."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Literal
from urllib.parse import quote

from flask import Response, jsonify
from pydantic import Field

from codeqa.account import DeletionResult, StoredData
from codeqa.chat.citations import CitedCode
from codeqa.chat.events import as_json
from codeqa.chat.record import TurnRecord
from codeqa.engine import Engine
from codeqa.errors import IndexMissingError, UsageError
from codeqa.render import inert_markdown, render_markdown
from codeqa.state.records import ConversationMatch
from codeqa.text.markdown import code_span, escape
from codeqa.types import Chunk
from codeqa.web.ai_sdk import STREAM_HEADERS
from codeqa.web.endpoints import Endpoints, FilledId, Id, Schema, Text, Values
from codeqa.web.questions_api import citer
from codeqa.web.workspace import conversation_key, reader_gone, workspace

TITLE_CHARACTERS = 200
FILE_NAME_CHARACTERS = 60
REASON_CHARACTERS = 2_000
PLAIN_PATH = re.compile(r"[^\[\]\\\n]+")
"""A path that can be the label of a link in Markdown."""
SHORT_FIELDS = ("id", "title", "created", "updated", "pinned")
CHUNK_NOTE = ("id", "path", "start_line", "end_line", "language", "why")

endpoints = Endpoints("conversations", __name__)


class ThumbBody(Schema):
    value: Annotated[int, Field(strict=True, ge=-1, le=1)]
    """-1 is a thumb down, 0 none, 1 a thumb up."""
    reason: Annotated[str, Field(max_length=REASON_CHARACTERS)] = ""


class ChangeBody(Schema):
    title: Annotated[str, Field(max_length=TITLE_CHARACTERS, pattern=r"\S")] | None = None
    pinned: Annotated[bool, Field(strict=True)] | None = None
    """Whether it is listed before those that are not pinned."""


class BranchBody(Schema):
    turn: FilledId
    """Id of the turn from which to go on."""


@endpoints.route("GET", "/api/conversations")
def conversations(engine: Engine, user: str, q: Text = "") -> Values:
    """List the user's conversations about this repository: pinned ones, then the last used first.

    With `q`, list those whose title, questions or answers contain it: `turn` is the id of the
    latest turn that does, empty if only the title does, and `snippet` the text around it.
    `second` is the second question of one that shares its title with another.
    """
    store, text = engine.conversations, q.strip()
    if text:
        matches = store.find(text, user)
    else:
        matches = [ConversationMatch(conversation, "", "") for conversation in store.all(user)]
    titles = Counter(match.conversation.title for match in matches)
    rows = []
    for match in matches:
        conversation = match.conversation
        row: Values = {name: getattr(conversation, name) for name in (*SHORT_FIELDS, "turns")}
        row |= {"turn": match.turn_id, "snippet": match.snippet, "second": ""}
        if titles[conversation.title] > 1 and conversation.turns > 1:
            row["second"] = store.second_question(conversation.id, user)
        rows.append(row)
    return {"conversations": rows}


@endpoints.route("GET", "/api/conversations/<path:conversation>")
def open_conversation(conversation: str, engine: Engine, user: str, versions: Id = "") -> Values:
    """Return a conversation with its questions and answers (as HTML), the oldest first.

    Of a question that was asked again, only the version in use is returned; the others are its
    `siblings`. With `versions`, the id of a turn in use, all versions of that turn are returned
    instead. `context` says whether a follow-up without `@codebase` has code to go on from;
    `answering` is the id of the turn that is being answered.
    """
    store = engine.conversations
    # Ask for this first: once the running answer has an id, its question is stored.
    answering = workspace().answers.turn(conversation_key(engine, conversation))
    turns = store.turns(conversation, user)
    if versions:
        by_id = {turn.id: turn for turn in turns + store.other_turns(conversation, user)}
        siblings = store.branches(conversation, user).get(versions, ())
        turns = [by_id[turn] for turn in siblings if turn in by_id]
    return {
        "id": conversation,
        "title": store.get(conversation, user).title,
        "context": store.has_context(conversation, user),
        "answering": answering,
        "turns": _turns_values(engine, conversation, user, turns),
    }


@endpoints.route("GET", "/api/conversations/<path:conversation>/export")
def export_conversation(
    conversation: str, engine: Engine, user: str, format: Literal["markdown", "json"] = "markdown"
) -> Response:
    """Export a conversation as Markdown to read, or as JSON with everything that is stored of it.

    `others` in the JSON holds versions that were replaced, and the turns that followed them.
    """
    store = engine.conversations
    summary, used = store.get(conversation, user), store.turns(conversation, user)
    if format == "markdown":
        turns = _turns_values(engine, conversation, user, used)
        text = as_markdown(engine.location.name, summary.title, summary.created, turns)
        text += _addresses(engine, turns)
        content_type, ending = "text/markdown; charset=utf-8", "md"
        response = Response(text.encode("utf-8", "replace"), content_type=content_type)
    else:
        records = used + store.other_turns(conversation, user)
        turns = _turns_values(engine, conversation, user, records)
        for turn in turns:
            turn["context"] = context(turn["id"], engine, user)
        values: Values = {name: getattr(summary, name) for name in SHORT_FIELDS}
        values["repository"] = {"id": engine.location.id, "name": engine.location.name}
        values |= {"turns": turns[: len(used)], "others": turns[len(used) :]}
        response, ending = jsonify(values), "json"
    name = quote(f"{file_name(summary.title)}.{ending}", safe="")
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    return response


@endpoints.route("GET", "/api/conversations/<path:conversation>/answer")
def join(conversation: str, engine: Engine) -> Response:
    """Read along the answer that is being written in a conversation.

    The stream is that of /chat/stream: the lines so far at once, then the rest as it comes.
    """
    key = conversation_key(engine, conversation)
    return Response(workspace().answers.join(key, reader_gone()), headers=STREAM_HEADERS)


@endpoints.route("POST", "/api/conversations/<path:conversation>/stop")
def stop(conversation: str, engine: Engine) -> Values:
    """Stop the answer that is being written; the text so far is stored."""
    return {"stopped": workspace().answers.stop(*conversation_key(engine, conversation))}


@endpoints.route("POST", "/api/conversations/<path:conversation>/branch")
def choose_branch(conversation: str, engine: Engine, user: str, body: BranchBody) -> Values:
    """Go on from another version of a question, and return the conversation as it is then."""
    engine.conversations.choose_branch(conversation, body.turn, user)
    return open_conversation(conversation, engine, user)


@endpoints.route("POST", "/api/conversations/<path:conversation>")
def change(conversation: str, engine: Engine, user: str, body: ChangeBody) -> Values:
    """Give a conversation another title, pin it or take its pin off."""
    store, title = engine.conversations, " ".join((body.title or "").split())
    if not title and body.pinned is None:
        raise UsageError("Nothing was sent that can be changed.", "Send `title` or `pinned`.")
    if not title.isprintable():
        raise UsageError("The title has characters that cannot be shown.", "Use plain text.")
    if title:
        store.rename(conversation, title, user)
    if body.pinned is not None:
        store.pin(conversation, body.pinned, user)
    changed = store.get(conversation, user)
    return {"id": conversation, "title": changed.title, "pinned": changed.pinned}


@endpoints.route("DELETE", "/api/conversations/<path:conversation>")
def delete(conversation: str, engine: Engine) -> Values:
    """Delete a conversation, its answers and its cached code."""
    key = conversation_key(engine, conversation)
    workspace().answers.stop(*key)
    engine.conversations.delete(conversation, key.user)
    return {"deleted": conversation}


@endpoints.route("GET", "/api/context/<turn>")
def context(turn: str, engine: Engine, user: str) -> Values:
    """Return what an answer was made from.

    That is the context block as it was sent, its chunks, the chunks that did not fit, the messages
    as sent, and the stages and hits of the search.
    """
    record = engine.conversations.turn(turn, user)

    def note(chunk: Chunk) -> Values:
        hit = record.hit_of(chunk)
        values = {field: getattr(chunk, field) for field in CHUNK_NOTE}
        name = hit.name if hit else chunk.name  # a hit has the qualified name
        return values | {"name": name, "characters": len(chunk.content)}

    names = ("model", "host", "tokens", "hyde", "stages")
    values: Values = {name: as_json(getattr(record, name)) for name in names}
    return values | {
        "text": record.block.text,
        "chunks": list(map(note, record.chunks)),
        "dropped": list(map(note, record.dropped)),
        "messages": as_json(record.sent),
        "hits": record.hits_as_json(),
    }


@endpoints.route("POST", "/api/turns/<turn>/feedback")
def feedback(turn: str, engine: Engine, user: str, body: ThumbBody) -> Values:
    """Rate an answer: `value` 1 or -1, with a `reason`; 0 takes the rating back."""
    reason = engine.conversations.rate(turn, body.value, body.reason, user)
    return {"turn": turn, "value": body.value, "reason": reason}


@endpoints.route("GET", "/api/privacy")
def stored(user: str) -> StoredData:
    """Return exactly what is stored about this user, where, and who receives it."""
    return workspace().privacy().stored(user)


@endpoints.route("DELETE", "/api/privacy/<scope>")
def forget(scope: str, user: str, id: Id = "", repo: Id = "") -> DeletionResult:
    """Delete data of this user for good: a `conversation`, the `profile`, or `everything`.

    A `conversation` is named by its `id` and the repository `repo`, by default the one that it was
    last continued in. `everything` is all conversations, the profile, thumbs, vectors and cached
    values.
    """
    space = workspace()
    if scope == "everything":
        space.answers.stop("", user)
    elif scope == "conversation" and id:
        space.answers.stop("", user, id)
    return space.privacy().delete(scope, user, id, repo or None)


def _turns_values(
    engine: Engine, conversation: str, user: str, turns: Sequence[TurnRecord]
) -> list[Values]:
    """Return turns as the page gets them, with answers as HTML.

    `siblings` are the ids of all versions of a turn, itself included, the oldest first.
    """
    cite, cited = citer(engine), None
    with suppress(IndexMissingError):
        cited = CitedCode(engine.files, engine.tables())
    thumbs = engine.conversations.thumbs(conversation, user)
    siblings: dict[str, list[str]] = {}
    for versions in engine.conversations.branches(conversation, user).values():
        siblings |= {turn: list(versions) for turn in versions}
    rows = []
    for turn in turns:
        value, reason = thumbs.get(turn.id, (0, ""))
        values: Values = turn.page() | {
            "html": render_markdown(turn.answer, cite),
            "siblings": siblings.get(turn.id, [turn.id]),
            "feedback": {"value": value, "reason": reason},
        }
        if cited:
            cited = replace(cited, chunks=turn.chunks)  # keeps the files that it has read
            values["citations"] = [as_json(cited.updated(citation)) for citation in turn.citations]
        rows.append(values)
    return rows


def _span(citation: Mapping[str, Any]) -> tuple[str, int, int]:
    return citation["path"], citation["start"], citation["end"]


# As Markdown


def as_markdown(repository: str, title: str, begun: float, turns: Sequence[Values]) -> str:
    """Return a conversation as Markdown: title, questions, and answers with their citations."""
    parts = [f"# {_plain(title)}", f"{_plain(repository)} · {_moment(begun)}"]
    for number, turn in enumerate(turns, 1):
        parts += _turn(number, turn)
    return "\n\n".join(parts) + "\n"


def file_name(title: str) -> str:
    """Return a file name made of the words of `title`, which any disk accepts."""
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
    if citations := dict.fromkeys(f"- {_citation(citation)}" for citation in turn["citations"]):
        yield "**Citations:**\n\n" + "\n".join(citations)
    notes = [f"{turn['model']} at {turn['host']}" if turn["model"] else "without a language model"]
    if len(turn["siblings"]) > 1:
        notes.append("other versions are in the JSON export")
    yield f"*{_moment(turn['created'])} · {_plain(' · '.join(notes))}*"


def _addresses(engine: Engine, turns: Sequence[Values]) -> str:
    """Return lines that turn each `[path:12-34]` in a Markdown text into a link to the git host."""
    hosted, definitions = cache(engine.files.hosted), dict[str, None]()
    citations = [citation for turn in turns for citation in turn["citations"]]
    for citation in citations:
        path, start, end = _span(citation)
        if citation["verified"] and PLAIN_PATH.fullmatch(path) and (address := hosted(path)):
            address = address.format(start=start, end=end)
            if start == end:  # an answer may cite one line as `path:12`
                definitions[f"[{path}:{start}]: {address}"] = None
            definitions[f"[{path}:{start}-{end}]: {address}"] = None
    return "\n".join(["", *definitions, ""]) if definitions else ""


def _citation(citation: Values) -> str:
    span = code_span("{}:{}-{}".format(*_span(citation)))
    if not citation["verified"]:
        return f"{span} (could not be verified)"
    return f"{span} (source changed)" if citation.get("changed") else span


def _plain(text: str) -> str:
    """Return `text` as one line, escaped for Markdown."""
    return escape(" ".join(text.split()))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
