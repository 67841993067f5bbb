"""Deleting what is stored of a user, in the state and in the cache, for good: the state file is
written anew, so that no free page of it holds what was said."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from codeqa.account.facts import LEARNT, kind_of
from codeqa.account.inventory import DataInventory, prefix_of
from codeqa.errors import NotFoundError, StorageError, UsageError
from codeqa.intents import cache_prefix
from codeqa.state import State
from codeqa.state.records import Conversation
from codeqa.state.rescue import set_aside_before

SCOPES = ("conversation", "profile", "everything")

log = logging.getLogger(__name__)

NOT_UNCACHED = (
    "The Redis server could not be asked to delete what it holds: code that was found goes there "
    "by itself within 24 hours, what kind a question was within 30 minutes."
)


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """What was deleted."""

    scope: str
    counts: Mapping[str, int]
    """`conversations`, `turns`, `thumbs`, `vectors`, `facts` and `cached` values."""
    problems: tuple[str, ...] = ()
    """What could not be done, one sentence each."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """What is stored of each user (`inventory`), and how it is deleted for good."""

    inventory: DataInventory

    @property
    def state(self) -> State:
        return self.inventory.state

    def delete(
        self, scope: str, user: str, conversation: str = "", repository: str | None = None
    ) -> DeletionResult:
        """Delete a conversation, the profile or everything of `user`, in state and cache, and have
        the state file written anew.

        Raises NotFoundError for a conversation that is not there, UsageError for another scope,
        StorageError when nothing can be deleted.
        """
        if scope not in SCOPES:
            raise UsageError("There is nothing of that name.", f"Choose one: {', '.join(SCOPES)}.")
        if scope == "conversation" and not conversation:
            raise UsageError("No conversation is named.", "Name one, or choose another scope.")
        state, data = self.state, self.state.user_data
        before = data.counts(user)
        if scope == "conversation":
            place = self.conversation(conversation, user, repository).repository
            state.conversations.delete(conversation, user, place)
        elif scope == "profile":
            state.profile.clear(user)
        else:
            data.delete(user)
        problems: list[str] = []
        cached = 0
        if scope != "profile":
            name = conversation if scope == "conversation" else ""
            for cache in self.inventory.caches():
                deleted = cache.delete_prefix(prefix_of(user, name))
                cache.delete_prefix(cache_prefix(user))
                cached += deleted or 0
                if deleted is None:
                    problems.append(NOT_UNCACHED)
        try:
            state.compact()
        except StorageError as error:
            problems.append(str(error))
        for path in set_aside_before(state.path):
            problems.append(f"{path} was set aside by a repair and may hold it still: delete it.")
        after = asdict(data.counts(user))
        gone = {name: max(0, number - after[name]) for name, number in asdict(before).items()}
        gone.pop("repositories")
        return DeletionResult(scope, {**gone, "cached": cached}, tuple(problems))

    def conversation(
        self, conversation: str, user: str, repository: str | None = None
    ) -> Conversation:
        """The conversation of this id about `repository`, or the one that was continued last.

        Raises NotFoundError.
        """
        found = self.state.conversations.get(conversation, user, repository)
        if found is None:
            raise NotFoundError("There is no such conversation.", "It may be gone already.")
        return found

    def forget_facts(self, user: str, facts: Sequence[str]) -> int:
        """Delete single facts, each by its kind, its key or what was told (`facts_to_forget`),
        also from the bytes of the file; how many there were."""
        said = f" {' '.join(facts)} ".casefold()

        def named(key: str, value: str) -> bool:
            kind = kind_of(key)
            # Facts of earlier kinds are known by their value alone: "new to Rust".
            by_value = kind not in LEARNT and f" {value} ".casefold() in said
            return key in facts or kind in facts or by_value

        profile = self.state.profile
        keys = [key for key, value in profile.facts(user).items() if named(key, value)]
        deleted = sum(profile.delete(key, user) for key in keys)
        if deleted:
            try:
                self.state.compact()
            except StorageError as error:  # it is deleted; its bytes go with the next compacting
                log.warning("a deleted fact may still be in the file's bytes: %s", error)
        return deleted
