"""What is stored of a user and who receives it: counted, not remembered, whenever it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from codeqa.embeddings.hosted import PROVIDERS
from codeqa.embeddings.local import local_model
from codeqa.errors import CodeQAError
from codeqa.hosts import is_loopback
from codeqa.llm import Models
from codeqa.search import parse_reranker
from codeqa.search.rerank.hosted import RERANK_PROVIDERS
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import Cache, RedisCache, context_key

STATE_ENDINGS = ("", "-wal", "-shm")


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
class StoredData:
    """All that is stored of one user, in numbers and places."""

    user: str
    shared: bool
    """The server has several users, each with a token."""
    conversations: int
    repositories: int
    """Indexed repositories that the conversations are about."""
    turns: int
    thumbs: int
    vectors: int
    profile: Mapping[str, str]
    cached: int | None
    """Contexts in the cache; None when it does not answer."""
    folder: str
    state_bytes: int
    """Of the file with the conversations of all users, and its log."""
    redis: str
    """Address without name and password; '' for a cache in the state file."""
    recent: int
    """Repositories opened recently, a list of the whole installation."""
    receivers: tuple[Receiver, ...]
    plugins: bool
    """Hooks of the user's own run, which see questions and answers."""
    keys_file: str
    """Where keys of models are kept, '' when none is; nothing here deletes them."""
    here: int = 0
    """Turns of the conversation that the question was asked in."""


@dataclass(frozen=True, slots=True)
class DataInventory:
    """Finds out what is stored, and where."""

    settings: Settings
    state: State
    cache: Cache
    models: Models = field(repr=False)

    def stored(self, user: str, conversation: str = "", repository: str = "") -> StoredData:
        """What is stored of `user`, who asks in `conversation`. Raises StorageError."""
        data = self.state.user_data
        owned = data.counts(user)
        keys = self.settings.data_dir / "models.json"
        cached = [cache.keys(prefix_of(user)) for cache in self.caches()]
        return StoredData(
            user=user,
            shared=bool(self.settings.tokens),
            conversations=owned.conversations,
            repositories=owned.repositories,
            turns=owned.turns,
            thumbs=owned.thumbs,
            vectors=owned.vectors,
            profile=self.state.profile.facts(user),
            cached=None if None in cached else sum(len(found or ()) for found in cached),
            folder=str(self.settings.data_dir),
            state_bytes=sum(p.stat().st_size for p in self.state_files() if p.exists()),
            redis=self.cache.address if isinstance(self.cache, RedisCache) else "",
            recent=len(self.state.repositories.latest()),
            receivers=tuple(self._receivers()),
            plugins=bool(self.settings.plugins),
            keys_file=str(keys) if keys.exists() else "",
            here=data.turns_in(user, conversation, repository) if conversation else 0,
        )

    def state_files(self) -> list[Path]:
        """The file with all that was said, and what SQLite keeps beside it."""
        return [Path(f"{self.state.path}{ending}") for ending in STATE_ENDINGS]

    def caches(self) -> list[Cache]:
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
