"""What is stored of a user and who receives it, counted whenever it is asked; and its deletion from
state and cache, for good: the state file is written anew, so that no free page of it holds what was
said."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from codeqa.account.facts import LEARNT, kind_of
from codeqa.embeddings.hosted import PROVIDERS
from codeqa.embeddings.local import local_model
from codeqa.errors import CodeQAError, NotFoundError, StorageError, UsageError
from codeqa.hosts import is_loopback
from codeqa.intents import cache_prefix
from codeqa.llm import Models
from codeqa.search import parse_reranker
from codeqa.search.rerank.hosted import RERANK_PROVIDERS
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import Cache, RedisCache, context_key
from codeqa.state.database import BESIDE
from codeqa.state.records import Conversation, DataCounts
from codeqa.state.rescue import set_aside_before

SCOPES = ("conversation", "profile", "everything")
NOT_UNCACHED = (
    "The Redis server could not be asked to delete what it holds: code that was found goes there "
    "by itself within 24 hours, what kind a question was within 30 minutes."
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Receiver:
    """A part that sends something to a host."""

    part: str
    """`model`, `embedding` or `reranker`."""
    name: str
    host: str
    """'' when it runs in this process, or when only its provider's package knows."""
    local: bool
    """It is on this machine."""


@dataclass(frozen=True, slots=True)
class StoredData(DataCounts):
    """All that is stored of one user, in numbers and places."""

    user: str
    shared: bool
    """The server has several users, each with a token."""
    profile: Mapping[str, str]
    cached: int | None
    """Contexts in the cache; None when it does not answer."""
    folder: str
    state_bytes: int
    """Of the file with the conversations of all users, and its log."""
    redis: str
    """Address without name and password; '' for a cache in the state file."""
    receivers: tuple[Receiver, ...]
    plugins: bool
    """Hooks of the user's own run, which see questions and answers."""
    keys_file: str
    """Where keys of models are kept, '' when none is; nothing here deletes them."""
    here: int = 0
    """Turns of the conversation that the question was asked in."""


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
    """What is stored of each user, and how it is deleted for good."""

    settings: Settings
    state: State
    cache: Cache
    models: Models = field(repr=False)

    def stored(self, user: str, conversation: str = "", repository: str = "") -> StoredData:
        """What is stored of `user`, who asks in `conversation`. Raises StorageError."""
        data = self.state.user_data
        keys = self.settings.data_dir / "models.json"
        files = [Path(f"{self.state.path}{ending}") for ending in BESIDE]
        cached = [cache.keys(prefix_of(user)) for cache in self._caches()]
        return StoredData(
            user=user,
            shared=bool(self.settings.tokens),
            **asdict(data.counts(user)),
            profile=self.state.profile.facts(user),
            cached=None if None in cached else sum(len(found or ()) for found in cached),
            folder=str(self.settings.data_dir),
            state_bytes=sum(file.stat().st_size for file in files if file.exists()),
            redis=self.cache.address if isinstance(self.cache, RedisCache) else "",
            receivers=tuple(self._receivers()),
            plugins=bool(self.settings.plugins),
            keys_file=str(keys) if keys.exists() else "",
            here=data.turns_in(user, conversation, repository) if conversation else 0,
        )

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
            for cache in self._caches():
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

    def _caches(self) -> list[Cache]:
        """Where cached values may be; the state file held them before a Redis server was set."""
        state: Cache = self.state.values
        return [self.cache] if self.cache is state else [self.cache, state]

    def _receivers(self) -> Iterator[Receiver]:
        try:
            if (model := self.models.current()) is not None:
                yield _receiver("model", str(model), self.models.address(model))
        except CodeQAError:  # a setting that names none: nothing can be sent
            pass
        reranker = parse_reranker(self.settings.reranker)
        embedding = self.settings.embedding
        hosted = (
            ("embedding", "" if local_model(embedding) else embedding, PROVIDERS),
            ("reranker", reranker.name if reranker and reranker.provider else "", RERANK_PROVIDERS),
        )
        for part, name, providers in hosted:
            alias = (name or "").partition("/")[0]
            if known := providers.get(alias):
                address = getattr(self.settings, f"{alias}_base_url") or known.url
                yield _receiver(part, str(name), address)
            elif name:
                yield _receiver(part, name, "")


def prefix_of(user: str, conversation: str = "") -> str:
    """How the keys of all cached values of a user, or of one conversation, begin."""
    return context_key(user, conversation).removesuffix("chat_context")


def _receiver(part: str, name: str, address: str) -> Receiver:
    host = urlsplit(address)
    return Receiver(part, name, host.netloc, is_loopback(host.hostname or ""))
