"""What is stored of the user who asks, and its deletion for good."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from codeqa.web.openapi import ENGINE, described
from codeqa.web.requests import read_query, workspace
from codeqa.web.schemas.privacy import ConversationQuery, ErasedValues, Stored
from codeqa.web.users import member_of_request

TAG = "Privacy"

blueprint = Blueprint("privacy", __name__, url_prefix="/api/privacy")


@blueprint.get("")
@described(TAG, Stored, errors=ENGINE)
def stored() -> Response:
    """Exactly what is stored of this user: counts, profile, places, and who receives it."""
    return jsonify(workspace().privacy().inventory.stored(member_of_request().user).as_data())


@blueprint.delete("/conversation")
@described(TAG, ErasedValues, query=ConversationQuery, errors=ENGINE)
def forget_conversation() -> Response:
    """Delete a conversation of this user for good.

    The answer says how much it was, and what the search of the data folder for it came to.
    """
    given = read_query(ConversationQuery)
    return _forget("conversation", given.id, given.repo or None)


@blueprint.delete("/profile")
@described(TAG, ErasedValues, errors=ENGINE)
def forget_profile() -> Response:
    """Delete what this user told of themselves; conversations stay."""
    return _forget("profile")


@blueprint.delete("/everything")
@described(TAG, ErasedValues, errors=ENGINE)
def forget_everything() -> Response:
    """Delete all conversations of this user, the profile, thumbs, vectors and cached values."""
    return _forget("everything")


def _forget(scope: str, conversation: str = "", repository: str | None = None) -> Response:
    space, user = workspace(), member_of_request().user
    if scope != "profile":
        space.abandon(user, conversation)
    erased = space.privacy().delete(scope, user, conversation, repository)
    return jsonify(erased.as_data())
