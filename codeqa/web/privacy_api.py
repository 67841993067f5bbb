"""What is stored of the user who asks, and its deletion for good."""

from __future__ import annotations

from codeqa.account.privacy import DeletionResult, StoredData
from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import FilledId, Id
from codeqa.web.workspace import workspace

endpoints = Endpoints("privacy", "Privacy", "/api/privacy")


@endpoints.route("GET", "", StoredData)
def stored(user: str) -> StoredData:
    """Exactly what is stored of this user: counts, profile, places, and who receives it."""
    return workspace().privacy().stored(user)


@endpoints.route("DELETE", "/conversation", DeletionResult)
def forget_conversation(user: str, id: FilledId, repo: Id = "") -> DeletionResult:
    """Delete the conversation `id` of this user for good, about the repository `repo` or the one
    that it was last continued in."""
    return _forget("conversation", user, id, repo or None)


@endpoints.route("DELETE", "/profile", DeletionResult)
def forget_profile(user: str) -> DeletionResult:
    """Delete what this user told of themselves; conversations stay."""
    return _forget("profile", user)


@endpoints.route("DELETE", "/everything", DeletionResult)
def forget_everything(user: str) -> DeletionResult:
    """Delete all conversations of this user, the profile, thumbs, vectors and cached values."""
    return _forget("everything", user)


def _forget(
    scope: str, user: str, conversation: str = "", repository: str | None = None
) -> DeletionResult:
    space = workspace()
    if scope != "profile":
        space.answers.stop("", user, conversation)
    return space.privacy().delete(scope, user, conversation, repository)
