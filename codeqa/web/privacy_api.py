"""What is stored of the user who asks, and its deletion for good."""

from __future__ import annotations

from typing import Literal

from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import FilledId, Id, Schema, Values
from codeqa.web.users import member_of_request
from codeqa.web.workspace import workspace

endpoints = Endpoints("privacy", "Privacy", "/api/privacy")


class ReceiverValues(Schema):
    part: Literal["model", "embedding", "reranker"]
    name: str
    host: str
    """Empty when only the package of its provider knows."""
    local: bool
    """It is on this machine."""


class Stored(Schema):
    user: str
    shared: bool
    """The server has several users, each with a token."""
    conversations: int
    repositories: int
    """That the conversations are about."""
    turns: int
    thumbs: int
    vectors: int
    """Questions that are also kept as vectors."""
    profile: dict[str, str]
    cached: int | None
    """Cached contexts; null when the cache does not answer."""
    folder: str
    state_bytes: int
    """Of the file that holds the conversations of all users."""
    redis: str
    """Address of the Redis server; empty without one."""
    recent: int
    """Repositories opened last, a list of the whole installation."""
    receivers: list[ReceiverValues]
    plugins: bool
    """Hooks run that see questions and answers."""
    keys_file: str
    """Where keys of models are kept; nothing here deletes them."""
    here: int


class ErasedValues(Schema):
    scope: Literal["conversation", "profile", "everything"]
    counts: dict[str, int]
    """How many were deleted, by kind."""
    searched_files: int
    searched_bytes: int
    searched_texts: int
    """Ids and pieces of text that were looked for in the data folder afterwards."""
    found: list[str]
    """What is left although it should be gone; empty when the deletion is confirmed."""
    kept: list[str]
    """What of it also stands in something that is kept on purpose."""
    problems: list[str]
    """What could not be done or seen."""


class ConversationQuery(Schema):
    id: FilledId
    """Id of the conversation."""
    repo: Id = ""
    """Id of the repository that it is about; empty for the one it was last continued in."""


@endpoints.get("", Stored)
def stored() -> Values:
    """Exactly what is stored of this user: counts, profile, places, and who receives it."""
    return workspace().privacy().inventory.stored(member_of_request().user).as_data()


@endpoints.delete("/conversation", ErasedValues)
def forget_conversation(query: ConversationQuery) -> Values:
    """Delete a conversation of this user for good.

    The answer says how much it was, and what the search of the data folder for it came to.
    """
    return _forget("conversation", query.id, query.repo or None)


@endpoints.delete("/profile", ErasedValues)
def forget_profile() -> Values:
    """Delete what this user told of themselves; conversations stay."""
    return _forget("profile")


@endpoints.delete("/everything", ErasedValues)
def forget_everything() -> Values:
    """Delete all conversations of this user, the profile, thumbs, vectors and cached values."""
    return _forget("everything")


def _forget(scope: str, conversation: str = "", repository: str | None = None) -> Values:
    space, user = workspace(), member_of_request().user
    if scope != "profile":
        space.abandon(user, conversation)
    return space.privacy().delete(scope, user, conversation, repository).as_data()
