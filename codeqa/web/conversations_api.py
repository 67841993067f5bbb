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
from codeqa.web.ai_sdk import HEADERS
from codeqa.web.endpoints import Endpoints, FilledId, Id, Schema, Text, Values
from codeqa.web.questions_api import citer
from codeqa.web.workspace import place_of, reader_gone, workspace

TITLE_CHARACTERS = 200
FILE_NAME_CHARACTERS = 60
REASON_CHARACTERS = 2_000
PLAIN_PATH = re.compile(r"[^\[\]\\\n]+")
"""One that a link of Markdown can be called by."""
SUMMARY = ("id", "title", "created", "updated")
CHUNK_NOTE = ("id", "path", "start_line", "end_line", "language", "why")

endpoints = Endpoints("conversations", __name__)


class ThumbBody(Schema):
    value: Annotated[int, Field(strict=True, ge=-1, le=1)]
    """Down, none, up."""
    reason: Annotated[str, Field(max_length=REASON_CHARACTERS)] = ""


class TitleBody(Schema):
    title: Annotated[str, Field(max_length=TITLE_CHARACTERS, pattern=r"\S")]


class BranchBody(Schema):
    turn: FilledId
    """Id of the turn whose branch is to be the one in use."""


@endpoints.route("GET", "/api/conversations")
def conversations(engine: Engine, user: str, q: Text = "") -> Values:
    """The user's conversations about this repository, the one used last first.

    With `q` those whose title, questions or answers hold it: `turn` is the id of the latest that
    does, empty where only the title does, and `snippet` the text around it.
    """
    kept = engine.conversations
    if wanted := q.strip():
        found = kept.find(wanted, user)
    else:
        found = [ConversationMatch(one, "", "") for one in kept.all(user)]
    shown = []
    for one in found:
        values = {name: getattr(one.conversation, name) for name in (*SUMMARY, "turns")}
        shown.append({**values, "turn": one.turn_id, "snippet": one.snippet})
    return {"conversations": shown}


@endpoints.route("GET", "/api/conversations/<path:conversation>")
def open_conversation(conversation: str, engine: Engine, user: str, versions: Id = "") -> Values:
    """A conversation with its questions and rendered answers, the first one first.

    Of a question that was asked again the version in use; the others are its siblings. With
    `versions`, the id of a turn in use, all versions of that one in place of the turns. `context`
    is whether a follow-up without `@codebase` has code to go on from; `answering`, the id of the
    turn that is being answered.
    """
    kept = engine.conversations
    # First: once it tells its id the question is kept.
    answering = workspace().answers.turn(place_of(engine, conversation))
    turns = kept.turns(conversation, user)
    if versions:
        every = {one.id: one for one in (*turns, *kept.other_turns(conversation, user))}
        siblings = kept.branches(conversation, user).get(versions, ())
        turns = [every[one] for one in siblings if one in every]
    return {
        "id": conversation,
        "title": kept.get(conversation, user).title,
        "context": kept.has_context(conversation, user),
        "answering": answering,
        "turns": _turns_values(engine, conversation, user, turns),
    }


@endpoints.route("GET", "/api/conversations/<path:conversation>/export")
def export_conversation(
    conversation: str, engine: Engine, user: str, format: Literal["markdown", "json"] = "markdown"
) -> Response:
    """A conversation as a file: Markdown to read, or JSON with everything that is kept of it, in
    `others` versions that were replaced and what followed those."""
    kept = engine.conversations
    summary, used = kept.get(conversation, user), kept.turns(conversation, user)
    if format == "markdown":
        shown = _turns_values(engine, conversation, user, used)
        text = as_markdown(engine.location.name, summary.title, summary.created, shown)
        text += _addresses(engine, shown)
        content_type, ending = "text/markdown; charset=utf-8", "md"
        response = Response(text.encode("utf-8", "replace"), content_type=content_type)
    else:
        every = [*used, *kept.other_turns(conversation, user)]
        shown = _turns_values(engine, conversation, user, every)
        turns = [{**one, "context": context(one["id"], engine, user)} for one in shown]
        values: Values = {name: getattr(summary, name) for name in SUMMARY}
        values["repository"] = {"id": engine.location.id, "name": engine.location.name}
        values |= {"turns": turns[: len(used)], "others": turns[len(used) :]}
        response, ending = jsonify(values), "json"
    name = quote(f"{file_name(summary.title)}.{ending}", safe="")
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    return response


@endpoints.route("GET", "/api/conversations/<path:conversation>/answer")
def join(conversation: str, engine: Engine) -> Response:
    """The answer that is being written in a conversation, as /chat/stream gives it to who asked:
    what there is at once, then the rest as it comes."""
    place = place_of(engine, conversation)
    return Response(workspace().answers.join(place, reader_gone()), headers=HEADERS)


@endpoints.route("POST", "/api/conversations/<path:conversation>/stop")
def stop(conversation: str, engine: Engine) -> Values:
    """End the answer that is being written; what came of it is kept."""
    return {"stopped": workspace().answers.stop(*place_of(engine, conversation))}


@endpoints.route("POST", "/api/conversations/<path:conversation>/branch")
def choose_branch(conversation: str, engine: Engine, user: str, body: BranchBody) -> Values:
    """Go on from another version of a question, and give the conversation as it is then."""
    engine.conversations.choose_branch(conversation, body.turn, user)
    return open_conversation(conversation, engine, user)


@endpoints.route("POST", "/api/conversations/<path:conversation>")
def rename(conversation: str, engine: Engine, user: str, body: TitleBody) -> Values:
    """Give a conversation another title."""
    title = " ".join(body.title.split())
    if not title.isprintable():
        raise UsageError("The title holds characters that cannot be shown.", "Use plain text.")
    engine.conversations.rename(conversation, title, user)
    return {"id": conversation, "title": engine.conversations.get(conversation, user).title}


@endpoints.route("DELETE", "/api/conversations/<path:conversation>")
def delete(conversation: str, engine: Engine) -> Values:
    """Delete a conversation, its answers and what is cached for it."""
    place = place_of(engine, conversation)
    workspace().answers.stop(*place)
    engine.conversations.delete(conversation, place.user)
    return {"deleted": conversation}


@endpoints.route("GET", "/api/context/<turn>")
def context(turn: str, engine: Engine, user: str) -> Values:
    """What an answer was made from: the context block as it was sent, its chunks, those that had
    no room in it, the messages as sent, what the search did and found."""
    record = engine.conversations.turn(turn, user)

    def note(chunk: Chunk) -> Values:
        hit = record.hit_of(chunk)
        values = {field: getattr(chunk, field) for field in CHUNK_NOTE}
        name = hit.name if hit else chunk.name  # the whole one
        return {**values, "name": name, "characters": len(chunk.content)}

    names = ("model", "host", "tokens", "hyde", "stages")
    return {
        **{name: as_json(getattr(record, name)) for name in names},
        "text": record.block.text,
        "chunks": list(map(note, record.chunks)),
        "dropped": list(map(note, record.dropped)),
        "messages": as_json(record.sent),
        "hits": record.hits_shown(),
    }


@endpoints.route("POST", "/api/turns/<turn>/feedback")
def feedback(turn: str, engine: Engine, user: str, body: ThumbBody) -> Values:
    """Give an answer of this user `value` 1 or -1, with a `reason`; 0 takes both back."""
    kept = engine.conversations.rate(turn, body.value, body.reason, user)
    return {"turn": turn, "value": body.value, "reason": kept}


@endpoints.route("GET", "/api/privacy")
def stored(user: str) -> StoredData:
    """Exactly what is stored of this user: counts, profile, places, and who receives it."""
    return workspace().privacy().stored(user)


@endpoints.route("DELETE", "/api/privacy/<scope>")
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
    """`siblings` are the ids of the versions of a turn, itself among them, the oldest first."""
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
        values: Values = turn.page() | {
            "html": render_markdown(turn.answer, cite),
            "siblings": siblings.get(turn.id, [turn.id]),
            "feedback": {"value": value, "reason": reason},
        }
        if cited:
            cited = replace(cited, chunks=turn.chunks)  # what was read of the files stays
            values["citations"] = [
                as_json(one)
                | {"changed": one.verified and cited.has_changed(one.path, one.start, one.end)}
                for one in turn.citations
            ]
        shown.append(values)
    return shown


def _place(citation: Mapping[str, Any]) -> tuple[str, int, int]:
    return citation["path"], citation["start"], citation["end"]


# As Markdown


def as_markdown(repository: str, title: str, begun: float, turns: Sequence[Values]) -> str:
    """A conversation as Markdown: title, questions, answers, and what those rest on."""
    parts = [f"# {_plain(title)}", f"{_plain(repository)} · {_moment(begun)}"]
    for number, turn in enumerate(turns, 1):
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
    if cited := dict.fromkeys(f"- {_citation(one)}" for one in turn["citations"]):
        yield "**Citations:**\n\n" + "\n".join(cited)
    writer = f"{turn['model']} at {turn['host']}" if turn["model"] else "without a language model"
    writer += " · other versions are in the export as JSON" * (len(turn["siblings"]) > 1)
    yield f"*{_moment(turn['created'])} · {_plain(writer)}*"


def _addresses(engine: Engine, turns: Sequence[Values]) -> str:
    """Where citations lead for who has not the repository, at its git host: with these lines at
    the end of a Markdown text `[path:12-34]` is a link in it."""
    hosted, found = cache(engine.files.hosted), dict[str, None]()
    cited = [one for turn in turns for one in turn["citations"] if one["verified"]]
    for path, start, end in map(_place, cited):
        if PLAIN_PATH.fullmatch(path) and (address := hosted(path)):
            address = address.format(start=start, end=end)
            written = {f"{start}-{end}", *[f"{start}"] * (start == end)}
            found |= dict.fromkeys(f"[{path}:{lines}]: {address}" for lines in sorted(written))
    return "\n".join(["", *found, ""]) if found else ""


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
