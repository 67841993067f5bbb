"""What is stored of the user who asks, and its deletion for good."""

from __future__ import annotations

from codeqa.account.privacy import DeletionResult, StoredData
from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import FilledId, Id, Schema
from codeqa.web.security import member_of_request
from codeqa.web.workspace import workspace

endpoints = Endpoints("privacy", "Privacy", "/api/privacy")


class ConversationQuery(Schema):
    id: FilledId
    """Id of the conversation."""
    repo: Id = ""
    """Id of the repository that it is about; empty for the one it was last continued in."""


@endpoints.route("GET", "", StoredData)
def stored() -> StoredData:
    """Exactly what is stored of this user: counts, profile, places, and who receives it."""
    return workspace().privacy().stored(member_of_request().user)


@endpoints.route("DELETE", "/conversation", DeletionResult)
def forget_conversation(query: ConversationQuery) -> DeletionResult:
    """Delete a conversation of this user for good."""
    return _forget("conversation", query.id, query.repo or None)


@endpoints.route("DELETE", "/profile", DeletionResult)
def forget_profile() -> DeletionResult:
    """Delete what this user told of themselves; conversations stay."""
    return _forget("profile")


@endpoints.route("DELETE", "/everything", DeletionResult)
def forget_everything() -> DeletionResult:
    """Delete all conversations of this user, the profile, thumbs, vectors and cached values."""
    return _forget("everything")


def _forget(scope: str, conversation: str = "", repository: str | None = None) -> DeletionResult:
    space, user = workspace(), member_of_request().user
    if scope != "profile":
        space.answers.stop("", user, conversation)
    return space.privacy().delete(scope, user, conversation, repository)
