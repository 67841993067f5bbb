"""Earlier conversations of a user about a repository: list, find, open, rename, export, delete."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Response, jsonify
from pydantic import AfterValidator, Field

from codeqa.engine import Engine
from codeqa.errors import UsageError
from codeqa.state.records import ConversationMatch
from codeqa.web import export
from codeqa.web.endpoints import Endpoints, values_of
from codeqa.web.schemas import (
    NAME_CHARACTERS,
    WITH_WORDS,
    Clean,
    FilledId,
    RepoQuery,
    Schema,
    Values,
    filled,
)
from codeqa.web.turns_api import ContextValues, TurnValues, context_values, turns_values
from codeqa.web.users import member_of_request
from codeqa.web.workspace import engine_of

TITLE_CHARACTERS = 200

endpoints = Endpoints("conversations", "Conversations", "/api/conversations")


class ConversationsQuery(RepoQuery):
    q: Annotated[str, Clean, Field(max_length=NAME_CHARACTERS)] = ""
    """What to look for in titles, questions and answers; empty lists all."""


class Summary(Schema):
    id: str
    title: str
    created: float
    updated: float
    turns: int
    turn: str
    """Of a search: the turn that holds what was looked for, empty when the title does."""
    snippet: str
    """And the text around it."""


class Summaries(Schema):
    conversations: list[Summary]


class OpenedConversation(Schema):
    id: str
    title: str
    carries: int
    """Tokens, estimated, that a follow-up sends besides its words."""
    context: bool
    """Whether a follow-up without `@codebase` has code to go on from."""
    turns: list[TurnValues]


class TitleBody(Schema):
    title: Annotated[
        str, Clean, Field(max_length=TITLE_CHARACTERS), AfterValidator(filled), WITH_WORDS
    ]


class Renamed(Schema):
    id: str
    title: str


class Deleted(Schema):
    deleted: str


class BranchBody(Schema):
    turn: FilledId
    """Id of the turn whose branch is to be the one in use."""


class ExportQuery(RepoQuery):
    format: Literal["markdown", "json"] = "markdown"


class ExportedTurn(TurnValues):
    context: ContextValues


class Named(Schema):
    id: str
    name: str


class ExportedConversation(Schema):
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


@endpoints.get("", Summaries)
def conversations(query: ConversationsQuery) -> Values:
    """The user's conversations about this repository, the one used last first.

    With `q` those whose title, questions or answers hold it, and where.
    """
    kept, user = engine_of(query).conversations, member_of_request().user
    if wanted := query.q.strip():
        found = kept.find(wanted, user)
    else:
        found = [ConversationMatch(one, "", "") for one in kept.all(user)]
    return {
        "conversations": [
            values_of(Summary, one.conversation, turn=one.turn_id, snippet=one.snippet)
            for one in found
        ]
    }


@endpoints.get("/<path:conversation>", OpenedConversation)
def open_conversation(conversation: str, query: RepoQuery) -> Values:
    """A conversation with its questions and rendered answers, the first one first.

    Of a question that was asked again the version in use; the others are its siblings.
    """
    return _opened(engine_of(query), conversation, member_of_request().user)


@endpoints.get(
    "/<path:conversation>/export",
    {200: ("text/markdown", ExportedConversation)},
    headers={"Content-Disposition": "A name for the file."},
)
def export_conversation(conversation: str, query: ExportQuery) -> Response:
    """A conversation as a file: Markdown to read, or JSON with everything that is kept of it."""
    engine, user = engine_of(query), member_of_request().user
    as_json = query.format == "json"
    summary = engine.conversations.get(conversation, user)
    used = engine.conversations.turns(conversation, user)
    others = engine.conversations.other_turns(conversation, user) if as_json else []
    shown = turns_values(engine, conversation, user, [*used, *others])
    turns = [{**one, "context": context_values(engine, one["id"], user)} for one in shown]
    values = values_of(
        ExportedConversation,
        summary,
        format=export.FORMAT,
        version=export.VERSION,
        repository={"id": engine.location.id, "name": engine.location.name},
        turns=turns[: len(used)],
        others=turns[len(used) :],
    )
    if as_json:
        response, ending = jsonify(values), "json"
    else:
        text = export.as_markdown(values).encode("utf-8", "replace")
        response, ending = Response(text, content_type="text/markdown; charset=utf-8"), "md"
    response.headers["Content-Disposition"] = export.attachment(summary.title, ending)
    return response


@endpoints.post("/<path:conversation>/branch", OpenedConversation)
def choose_branch(conversation: str, query: RepoQuery, body: BranchBody) -> Values:
    """Go on from another version of a question, and give the conversation as it is then."""
    engine, user = engine_of(query), member_of_request().user
    engine.conversations.choose_branch(conversation, body.turn, user)
    return _opened(engine, conversation, user)


@endpoints.post("/<path:conversation>", Renamed)
def rename(conversation: str, query: RepoQuery, body: TitleBody) -> Values:
    """Give a conversation another title."""
    title = " ".join(body.title.split())
    if not title.isprintable():
        raise UsageError("The title holds characters that cannot be shown.", "Use plain text.")
    kept, user = engine_of(query).conversations, member_of_request().user
    kept.rename(conversation, title, user)
    return {"id": conversation, "title": kept.get(conversation, user).title}


@endpoints.delete("/<path:conversation>", Deleted)
def delete(conversation: str, query: RepoQuery) -> Values:
    """Delete a conversation, its answers and what is cached for it."""
    engine_of(query).conversations.delete(conversation, member_of_request().user)
    return {"deleted": conversation}


def _opened(engine: Engine, conversation: str, user: str) -> Values:
    kept = engine.conversations
    return values_of(
        OpenedConversation,
        kept.get(conversation, user),
        carries=kept.carries(conversation, user),
        context=kept.has_context(conversation, user),
        turns=turns_values(engine, conversation, user, kept.turns(conversation, user)),
    )
