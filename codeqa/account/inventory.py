"""What is stored of a user and who receives it: counted, not remembered, whenever it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codeqa.embeddings.hosted import PROVIDERS
from codeqa.errors import CodeQAError
from codeqa.hosts import is_loopback
from codeqa.llm import Models
from codeqa.search import parse_reranker, reranker_status
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import Cache, RedisCache, context_key

STATE_ENDINGS = ("", "-wal", "-shm")
MASKED = "a password or key"
ASKED_CHARACTERS = 2_000
"""Only so much of a question is read for what it asks after."""


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
class Mentioned:
    """How often something that was asked after is in what is stored."""

    what: str
    facts: int
    questions: int


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
    asked: Mentioned | None = None

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @property
    def senders(self) -> tuple[Receiver, ...]:
        """The parts that send something off this machine, as far as is known."""
        return tuple(one for one in self.receivers if not one.local)


@dataclass(frozen=True, slots=True)
class DataInventory:
    """Finds out what is stored, and where."""

    settings: Settings
    state: State
    cache: Cache
    models: Models = field(repr=False)

    def stored(
        self, user: str, text: str = "", conversation: str = "", repository: str | None = None
    ) -> StoredData:
        """What is stored of `user`; `text` is the question after it, which may name something,
        and the rest is where it was asked. Raises StorageError.
        """
        owned = self.state.user_data.counts(user)
        places = self.state.user_data.conversations(user)
        profile = {key: fact.value for key, fact in self.state.profile.facts(user).items()}
        keys = self.settings.data_dir / "models.json"
        return StoredData(
            user=user,
            shared=bool(self.settings.tokens),
            conversations=owned.conversations,
            repositories=len({repository for repository, _ in places}),
            turns=owned.turns,
            thumbs=owned.thumbs,
            vectors=owned.questions,
            profile=profile,
            cached=self._cached(user),
            folder=str(self.settings.data_dir),
            state_bytes=sum(_size(path) for path in self.state_files()),
            redis=self.cache.address if isinstance(self.cache, RedisCache) else "",
            recent=len(self.state.repositories.latest()),
            receivers=tuple(self._receivers()),
            plugins=bool(self.settings.plugins),
            keys_file=str(keys) if keys.exists() else "",
            here=self._here(user, conversation, repository),
            asked=self._asked(text, user, profile),
        )

    def state_files(self) -> list[Path]:
        """The file with all that was said, and what SQLite keeps beside it."""
        return [Path(f"{self.state.path}{ending}") for ending in STATE_ENDINGS]

    def caches(self) -> list[Cache]:
        """Where cached values may be; the state file held them before a Redis server was set."""
        state: Cache = self.state.values
        return [self.cache] if self.cache is state else [self.cache, state]

    def _here(self, user: str, conversation: str, repository: str | None) -> int:
        if not conversation:
            return 0
        return sum(1 for _ in self.state.user_data.turns(user, conversation, repository))

    def _cached(self, user: str) -> int | None:
        total = 0
        for cache in self.caches():
            keys = cache.keys(prefix_of(user))
            if keys is None:
                return None
            total += len(keys)
        return total

    def _receivers(self) -> list[Receiver]:
        found = []
        if model := self._model():
            found.append(model)
        if self.settings.embedding:
            found.append(self._embedding())
        wish = parse_reranker(self.settings.reranker)
        if wish is not None and wish.provider:
            told = reranker_status(self.settings)[1]
            local = "on this machine" in told
            found.append(Receiver("reranker", wish.name, _host_in(told), local))
        return found

    def _model(self) -> Receiver | None:
        try:
            choice = self.models.current()
        except CodeQAError:  # a setting that names none: nothing can be sent
            return None
        if choice is None:
            return None
        try:
            host = urlsplit(self.models.address(choice)).netloc
        except CodeQAError:
            host = ""
        return Receiver("model", str(choice), host, is_loopback(_name(host)))

    def _embedding(self) -> Receiver:
        name = self.settings.embedding
        alias = name.partition("/")[0]
        if alias not in PROVIDERS:
            return Receiver("embedding", name, "", False)
        chosen = {"openai": self.settings.openai_base_url, "jina": self.settings.jina_base_url}
        host = urlsplit(chosen.get(alias) or PROVIDERS[alias].url).netloc
        return Receiver("embedding", name, host, is_loopback(_name(host)))

    def _asked(self, text: str, user: str, profile: Mapping[str, str]) -> Mentioned | None:
        """What `text` asks after, looked for in the facts and the stored questions."""
        text = text[:ASKED_CHARACTERS]
        for what, words, pattern in _THINGS:
            if words.search(text) and _DO_YOU_HAVE.search(text):
                return self._count(what, pattern, user, profile.values())
        return None

    def _count(
        self, what: str, pattern: re.Pattern[str], user: str, values: Sequence[str] | Any
    ) -> Mentioned:
        facts = sum(bool(pattern.search(value)) for value in values)
        questions = sum(
            bool(pattern.search(question)) and not _DO_YOU_HAVE.search(question)
            for question in self.state.user_data.questions(user)
        )
        return Mentioned(what, facts, questions)


def prefix_of(user: str, conversation: str = "") -> str:
    """How the keys of all cached values of a user, or of one conversation, begin."""
    return context_key(user, conversation).removesuffix("chat_context")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _name(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _host_in(told: str) -> str:
    found = re.search(r" at ([^\s,;]+)", told)
    return found[1] if found else ""


_DO_YOU_HAVE = re.compile(
    r"\b(?:do|does|did|have|has|is|are|was|what|which|where|can|know|how\s+much|hast|habt|weißt|"
    r"as-tu|avez|tienes|tiene)\b.{0,60}\b(?:you|app|codeqa|this|stored|saved|kept|my|du|ihr|tu|vous)"
    r"\b",
    re.IGNORECASE,
)


def _thing(
    what: str, words: str, pattern: str = ""
) -> tuple[str, re.Pattern[str], re.Pattern[str]]:
    named = re.compile(rf"\bmy\s+(?:\w+\s+)?(?:{words})\b", re.IGNORECASE)
    return what, named, re.compile(pattern or rf"\b(?:{words})\b", re.IGNORECASE)


_THINGS = (
    _thing("an e-mail address", r"e-?mail(?:\s+address)?(?:es)?",
           r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"),
    _thing("a telephone number", r"(?:tele)?phone(?:\s+number)?|mobile(?:\s+number)?",
           r"(?<![\w.])\+?\d(?:[ ()/-]?\d){8,14}(?![\w.])"),
    _thing(MASKED, r"passwords?|api\s+keys?|keys?|secrets?|tokens?|credentials?", r"\*{8,}"),
    _thing("an IP address", r"ip(?:\s+address)?", r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"),
    _thing("a birthday", r"birthday|date\s+of\s+birth|age"),
    _thing("an address", r"(?:home\s+|postal\s+)?address|location"),
    _thing("an employer", r"employer|company|workplace"),
)  # fmt: skip
"""What people ask after, by what words, and how it looks in what was stored."""
