"""Earlier conversations of a user about a repository: list, find, open, rename, export, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, jsonify

from codeqa.errors import UsageError
from codeqa.web import export, schemas
from codeqa.web.api import context_values
from codeqa.web.chat import citer
from codeqa.web.openapi import ENGINE, described
from codeqa.web.protocol import BlockRenderer
from codeqa.web.requests import engine_of_request, read_body, read_query
from codeqa.web.users import member_of_request

if TYPE_CHECKING:
    from codeqa.chat import TurnView
    from codeqa.engine import Engine
    from codeqa.render import Cite
    from codeqa.state import Conversation

TAG = "Conversations"
NO_THUMB = (0, "")

blueprint = Blueprint("conversations", __name__, url_prefix="/api/conversations")


@blueprint.get("")
@described(TAG, schemas.Summaries, query=schemas.ConversationsQuery, errors=ENGINE)
def conversations() -> Response:
    """The user's conversations about this repository, the one used last first.

    With `q` those whose title, questions or answers hold it, and where.
    """
    chat, user = engine_of_request().chat, member_of_request().user
    wanted = read_query(schemas.ConversationsQuery).q.strip()
    if not wanted:
        return jsonify({"conversations": [_summary(one) for one in chat.conversations(user)]})
    found = [
        {**_summary(one.conversation), "turn": one.turn_id, "snippet": one.snippet}
        for one in chat.find(wanted, user)
    ]
    return jsonify({"conversations": found})


@blueprint.get("/<path:conversation>")
@described(TAG, schemas.OpenedConversation, query=schemas.RepoQuery, errors=ENGINE)
def open_conversation(conversation: str) -> Response:
    """A conversation with its questions and rendered answers, the first one first.

    Of a question that was asked again the version in use; the others are its siblings.
    """
    return jsonify(_opened(engine_of_request(), conversation, member_of_request().user))


@blueprint.get("/<path:conversation>/export")
@described(
    TAG,
    {200: ("text/markdown", schemas.ExportedConversation)},
    query=schemas.ExportQuery,
    errors=ENGINE,
    headers={"Content-Disposition": "A name for the file."},
)
def export_conversation(conversation: str) -> Response:
    """A conversation as a file: Markdown to read, or JSON with everything that is kept of it."""
    wanted = read_query(schemas.ExportQuery).format
    engine, user = engine_of_request(), member_of_request().user
    summary = engine.chat.conversation(conversation, user)
    used = engine.chat.turns(conversation, user)
    others = engine.chat.other_turns(conversation, user) if wanted == "json" else []
    shown = _turns(engine, conversation, user, [*used, *others])
    turns = [{**one, "context": context_values(engine, one["id"], user)} for one in shown]
    repository = {"id": engine.location.id, "name": engine.location.name}
    values = export.as_values(summary, repository, turns[: len(used)], turns[len(used) :])
    if wanted == "json":
        response, ending = jsonify(values), "json"
    else:
        text = export.as_markdown(values).encode("utf-8", "replace")
        response, ending = Response(text, content_type="text/markdown; charset=utf-8"), "md"
    response.headers["Content-Disposition"] = export.attachment(summary.title, ending)
    return response


@blueprint.post("/<path:conversation>/branch")
@described(
    TAG,
    schemas.OpenedConversation,
    body=schemas.BranchBody,
    query=schemas.RepoQuery,
    errors=ENGINE,
)
def choose_branch(conversation: str) -> Response:
    """Go on from another version of a question, and give the conversation as it is then."""
    turn = read_body(schemas.BranchBody).turn
    engine, user = engine_of_request(), member_of_request().user
    engine.chat.choose_branch(conversation, turn, user)
    return jsonify(_opened(engine, conversation, user))


@blueprint.post("/<path:conversation>")
@described(TAG, schemas.Renamed, body=schemas.TitleBody, query=schemas.RepoQuery, errors=ENGINE)
def rename(conversation: str) -> Response:
    """Give a conversation another title."""
    title = " ".join(read_body(schemas.TitleBody).title.split())
    if not title.isprintable():
        raise UsageError("The title holds characters that cannot be shown.", "Use plain text.")
    chat, user = engine_of_request().chat, member_of_request().user
    chat.rename(conversation, title, user)
    return jsonify({"id": conversation, "title": chat.conversation(conversation, user).title})


@blueprint.delete("/<path:conversation>")
@described(TAG, schemas.Deleted, query=schemas.RepoQuery, errors=ENGINE)
def delete(conversation: str) -> Response:
    """Delete a conversation, its answers and what is cached for it."""
    engine_of_request().chat.delete(conversation, member_of_request().user)
    return jsonify({"deleted": conversation})


def _summary(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "created": conversation.created,
        "updated": conversation.updated,
        "turns": conversation.turns,
    }


def _opened(engine: Engine, conversation: str, user: str) -> dict[str, Any]:
    summary = engine.chat.conversation(conversation, user)
    return {
        "id": summary.id,
        "title": summary.title,
        "carries": engine.chat.carries(conversation, user),
        "context": engine.chat.has_context(conversation, user),
        "turns": _turns(engine, conversation, user, engine.chat.turns(conversation, user)),
    }


def _turns(
    engine: Engine, conversation: str, user: str, turns: Sequence[TurnView]
) -> list[dict[str, Any]]:
    """These turns of a conversation as JSON holds them."""
    cite = citer(engine)
    thumbs = engine.chat.thumbs(conversation, user)
    siblings = {
        one: versions
        for versions in engine.chat.branches(conversation, user).values()
        for one in versions
    }
    return [
        {
            **_turn(turn, cite, thumbs.get(turn.id, NO_THUMB)),
            "siblings": list(siblings.get(turn.id, (turn.id,))),
        }
        for turn in turns
    ]


def _turn(turn: TurnView, cite: Cite, thumb: tuple[int, str]) -> dict[str, Any]:
    """A turn as the page shows it: rendered block by block as when it was streamed."""
    renderer = BlockRenderer(cite)
    blocks = [*renderer.feed(turn.answer), *renderer.finish()]
    return {
        "id": turn.id,
        "parent": turn.parent,
        "question": turn.question,
        "tagged": turn.tagged,
        "html": "".join(block["block"]["html"] for block in blocks),
        "answer": turn.answer,
        "citations": turn.citations,
        "finished": turn.finished,
        "error": turn.error,
        "generator": turn.generator,
        "model": turn.model,
        "host": turn.host,
        "reranker": turn.reranker,
        "hyde": turn.hyde,
        "stages": turn.stages,
        "notice": turn.notice,
        "tokens": turn.tokens,
        "coverage": turn.coverage,
        "mode": turn.mode,
        "intent": turn.intent,
        "confidence": turn.confidence,
        **turn.reasons,
        "steps": turn.steps,
        "rewritten": turn.rewritten,
        "suggestions": turn.suggestions,
        "hook_problems": turn.hook_problems,
        "created": turn.created,
        "feedback": {"value": thumb[0], "reason": thumb[1]},
    }
