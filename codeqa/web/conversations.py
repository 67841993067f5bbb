"""Earlier conversations of a user about a repository: list, open, rename, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, jsonify

from codeqa.errors import UsageError
from codeqa.web.chat import citer
from codeqa.web.protocol import BlockRenderer
from codeqa.web.requests import engine_of_request, json_body, text_field
from codeqa.web.users import member_of_request

if TYPE_CHECKING:
    from codeqa.engine import Conversation, TurnView
    from codeqa.render import Cite

TITLE_CHARACTERS = 200
NO_THUMB = (0, "")

blueprint = Blueprint("conversations", __name__, url_prefix="/api/conversations")


@blueprint.get("")
def conversations() -> Response:
    """The user's conversations about this repository, the one used last first."""
    found = engine_of_request().chat.conversations(member_of_request().user)
    return jsonify({"conversations": [_summary(one) for one in found]})


@blueprint.get("/<path:conversation>")
def open_conversation(conversation: str) -> Response:
    """A conversation with its questions and rendered answers, the first one first."""
    engine, user = engine_of_request(), member_of_request().user
    summary = engine.chat.conversation(conversation, user)
    cite = citer(engine)
    thumbs = engine.chat.thumbs(conversation, user)
    turns = [
        _turn(turn, cite, thumbs.get(turn.id, NO_THUMB))
        for turn in engine.chat.turns(conversation, user)
    ]
    return jsonify(
        {
            "id": summary.id,
            "title": summary.title,
            "carries": engine.chat.carries(conversation, user),
            "context": engine.chat.has_context(conversation, user),
            "turns": turns,
        }
    )


@blueprint.post("/<path:conversation>")
def rename(conversation: str) -> Response:
    """Give a conversation another title."""
    title = " ".join(text_field(json_body(), "title", most=TITLE_CHARACTERS).split())
    if not title.isprintable():
        raise UsageError("The title holds characters that cannot be shown.", "Use plain text.")
    chat, user = engine_of_request().chat, member_of_request().user
    chat.rename(conversation, title, user)
    return jsonify({"id": conversation, "title": chat.conversation(conversation, user).title})


@blueprint.delete("/<path:conversation>")
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


def _turn(turn: TurnView, cite: Cite, thumb: tuple[int, str]) -> dict[str, Any]:
    """A turn as the page shows it: rendered block by block as when it was streamed."""
    renderer = BlockRenderer(cite)
    blocks = [*renderer.feed(turn.answer), *renderer.finish()]
    return {
        "id": turn.id,
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
        "created": turn.created,
        "feedback": {"value": thumb[0], "reason": thumb[1]},
    }
