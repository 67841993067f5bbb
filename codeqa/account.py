"""Count what is stored of a user, name who receives it, and delete it from state and cache.

Deleting is final: a state file is rewritten, so that no free page of it holds deleted text.
The page, the HTTP API and the terminal use the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from codeqa.embeddings.registry import PROVIDERS, local_model
from codeqa.errors import CodeQAError, NotFoundError, StorageError, UsageError
from codeqa.hosts import is_loopback
from codeqa.llm.models import Models
from codeqa.routing.followup import cache_prefix
from codeqa.routing.personal import CONFIRMATIONS, kind_of_fact
from codeqa.search.rerank_models import RERANK_URLS
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import Cache, RedisCache, context_key
from codeqa.state.database import ASIDE
from codeqa.state.records import Conversation, DataCounts
from codeqa.text import counted
from codeqa.text.markdown import code_span, escape

SCOPES = tuple(CONFIRMATIONS)
REPORT = Path(__file__).with_name("privacy_report.md")
NOT_UNCACHED = "The Redis server does not answer: it deletes its data by itself within 24 hours."


@dataclass(frozen=True, slots=True)
class Receiver:
    """A part (`model`, `embedding` or `reranker`) that sends something to a host."""

    part: str
    name: str
    host: str
    """'' when only its provider's package knows."""
    local: bool
    """It is on this machine."""


@dataclass(frozen=True, slots=True)
class StoredData(DataCounts):
    """All that is stored of one user, in numbers and locations."""

    user: str
    shared: bool
    """The server has several users."""
    profile: Mapping[str, str]
    cached: int | None
    """Contexts in the cache; None when it does not answer."""
    folder: str
    state: str
    """Place of the conversations of all users; their size is `state_bytes`."""
    state_bytes: int
    redis: str
    """Address without name and password; '' for a cache in the state file."""
    receivers: tuple[Receiver, ...]
    plugins: bool
    """Hooks of the user's own run, which see questions and answers."""
    keys_file: str
    """Path of the file with keys of models, '' for none; nothing here deletes it."""


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """A deletion: what it covered, how much was deleted, and what failed."""

    scope: str
    counts: Mapping[str, int]
    """`conversations`, `turns`, `thumbs`, `vectors`, `facts` and `cached` values."""
    problems: tuple[str, ...] = ()
    """Failures, one sentence each."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """Counts and deletes what is stored of each user."""

    settings: Settings
    state: State
    cache: Cache
    models: Models = field(repr=False)

    def stored(self, user: str) -> StoredData:
        """Count what is stored of `user`. Raises StorageError."""
        keys_file = self.settings.data_dir / "models.json"
        cached = [cache.keys(_prefix_of(user)) for cache in self._caches()]
        return StoredData(
            user=user,
            shared=bool(self.settings.tokens or self.settings.auth),
            **asdict(self.state.user_data.counts(user)),
            profile=self.state.profile.facts(user),
            cached=None if None in cached else sum(len(keys or ()) for keys in cached),
            folder=str(self.settings.data_dir),
            state=self.state.place,
            state_bytes=self.state.size(),
            redis=self.cache.address if isinstance(self.cache, RedisCache) else "",
            receivers=tuple(self._receivers()),
            plugins=bool(self.settings.plugins),
            keys_file=str(keys_file) if keys_file.exists() else "",
        )

    def delete(
        self, scope: str, user: str, conversation: str = "", repository: str | None = None
    ) -> DeletionResult:
        """Delete a conversation, the profile or everything of `user`, in state and cache.

        The space is given back. Raises NotFoundError for an unknown conversation, UsageError for
        another scope, StorageError when nothing can be deleted.
        """
        if scope not in SCOPES:
            raise UsageError("This cannot be deleted.", f"Choose one: {', '.join(SCOPES)}.")
        if scope == "conversation" and not conversation:
            raise UsageError("No conversation was given.", "Give its id, or choose another scope.")
        before = asdict(self.state.user_data.counts(user))
        if scope == "conversation":
            details = self.conversation(conversation, user, repository)
            self.state.conversations.delete(conversation, user, details.repository)
        elif scope == "profile":
            self.state.profile.clear(user)
        else:
            self.state.user_data.delete(user)
        cached, problems = 0, []
        if scope != "profile":
            prefix = _prefix_of(user, conversation if scope == "conversation" else "")
            for cache in self._caches():
                number = cache.delete_prefix(prefix)
                cache.delete_prefix(cache_prefix(user))
                cached += number or 0
                if number is None:
                    problems.append(NOT_UNCACHED)
        problems += self._traces()
        after = asdict(self.state.user_data.counts(user))
        deleted = {name: max(0, number - after[name]) for name, number in before.items()}
        del deleted["repositories"]
        return DeletionResult(scope, {**deleted, "cached": cached}, tuple(problems))

    def _caches(self) -> set[Cache]:
        """Return the caches with values of users; without Redis they are one, the state's."""
        return {self.cache, self.state.values}

    def _traces(self) -> Iterator[str]:
        """Write the state anew, and yield a sentence on each file that may hold deleted values."""
        try:
            if problem := self.state.compact():
                yield problem
        except StorageError as error:
            yield str(error)
        path = self.state.path
        for old in sorted(path.parent.glob(f"{path.name}{'' if self.state.address else ASIDE}*")):
            yield f"{old} is an old copy and may still contain the data: delete it."

    def conversation(
        self, conversation: str, user: str, repository: str | None = None
    ) -> Conversation:
        """Return the conversation with this id about `repository`, or that continued last.

        Raises NotFoundError.
        """
        if record := self.state.conversations.get(conversation, user, repository):
            return record
        raise NotFoundError("There is no such conversation.", "It may be gone already.")

    def _receivers(self) -> Iterator[Receiver]:
        settings = self.settings
        with suppress(CodeQAError):  # a setting that names no model: nothing can be sent
            if model := self.models.current():
                yield _receiver("model", str(model), self.models.base_url(model))
        if settings.embedding and not local_model(settings.embedding):
            urls = {alias: provider.url for alias, provider in PROVIDERS.items()}
            yield _receiver("embedding", settings.embedding, self._url(settings.embedding, urls))
        reranker = settings.reranker.strip()
        if url := self._url(reranker, RERANK_URLS):
            yield _receiver("reranker", reranker, url)

    def _url(self, name: str, urls: Mapping[str, str]) -> str:
        """Return the address of the provider that `name` begins with; '' for another."""
        alias = name.partition("/")[0]
        return (getattr(self.settings, f"{alias}_base_url") or urls[alias]) if alias in urls else ""


def _receiver(part: str, name: str, url: str) -> Receiver:
    address = urlsplit(url)
    return Receiver(part, name, address.netloc, is_loopback(address.hostname or ""))


def _prefix_of(user: str, conversation: str = "") -> str:
    """Return the beginning of the keys of all cached values of a user or of one conversation."""
    return context_key(user, conversation).removesuffix("chat_context")


_RECEIVES = {
    "model": "gets each question, the code found for it, the earlier questions and answers that go "
    "with it, and your profile",
    "embedding": "gets each question that is searched for, and the code as it is indexed",
    "reranker": "gets each question that is reranked, and up to 50 pieces of code",
}
_SCOPES = {
    "conversation": ("This conversation", "Your profile and your other conversations stay."),
    "profile": ("Your profile", "The conversations that it comes from stay."),
    "everything": (
        "Everything that is stored about you",
        "Indices of repositories and keys of models stay: none of them holds what you said.",
    ),
}
"""Texts that say what is deleted and what is not."""
_COUNTED = {
    "conversations": "conversation", "turns": "question", "thumbs": "thumb", "vectors": "vector",
    "facts": "profile line", "cached": "cached context",
}  # fmt: skip


def privacy_report(stored: StoredData) -> str:
    """Tell all that is stored, where, how long, and who receives it, as Markdown."""
    seen = "everybody who uses CodeQA on this machine: without tokens all are one user."
    cookies = "there are no cookies."
    if stored.shared:
        seen = "you and no other user. Whoever runs the server can read its files."
        cookies = "if you gave a token here, a cookie keeps you signed in for 30 days."
    cached, silent = "contexts", " in a Redis server that does not answer"
    if stored.cached is not None:
        cached, silent = counted(stored.cached, "context"), ""
    return REPORT.read_text("utf-8").rstrip("\n").format(
        receivers="; ".join(_receivers(stored)),
        conversations=counted(stored.conversations, "conversation"),
        repositories=counted(stored.repositories, "repository", "repositories"),
        turns=counted(stored.turns, "question"),
        thumbs=counted(stored.thumbs, "thumb"),
        vectors=counted(stored.vectors, "vector"),
        cached=cached, silent=silent, seen=seen, cookies=cookies,
        lines=counted(len(stored.profile), "line"),
        facts="".join(
            f"\n    - {escape(kind_of_fact(key))}: {escape(fact)}"
            for key, fact in stored.profile.items()
        ),
        folder=code_span(stored.folder),
        redis=f" and the Redis server at {code_span(stored.redis)}" if stored.redis else "",
        state=code_span(stored.state), kilobytes=stored.state_bytes / 1000,
        keys=f" in {code_span(stored.keys_file)}" if stored.keys_file else "",
    )  # fmt: skip


def _receivers(stored: StoredData) -> Iterator[str]:
    if not any(one.part == "model" for one in stored.receivers):
        yield "no language model is chosen, so questions are sent to none"
    for one in stored.receivers:
        local = ", on this machine," if one.local else ""
        at = f" at {code_span(one.host)}{local}" if one.host else ", wherever its package runs,"
        yield f"the {one.part} {code_span(one.name)}{at} {_RECEIVES[one.part]}"
    if stored.plugins:
        yield "your own hooks (CODEQA_PLUGINS) see questions and answers"
    elif all(one.local for one in stored.receivers):
        yield "nothing leaves this machine"


def deletion_preview(scope: str, stored: StoredData) -> str:
    """Tell what a deletion would take away and what stays; '' when there is nothing."""
    name, stays = _SCOPES[scope]
    if scope == "conversation":
        return f"{name} would be deleted for good. {stays}" if stored.turns else ""
    numbers = _counted({"facts": stored.facts} if scope == "profile" else asdict(stored))
    return f"{name} would be deleted for good: {numbers}. {stays}" if numbers else ""


def deletion_question(scope: str, stored: StoredData) -> str:
    """Tell what a deletion would take away, and how it is confirmed."""
    preview = deletion_preview(scope, stored)
    if not preview:
        return "Nothing of that is stored, so there is nothing to delete."
    how = f"Nothing has been deleted yet. To do it, send exactly:\n\n`{CONFIRMATIONS[scope]}`"
    return f"{preview}\n\n{how}"


def deletion_report(result: DeletionResult) -> str:
    """Tell what was deleted, and what could not be done."""
    numbers = _counted(result.counts)
    numbers = f": {numbers}" if numbers else "; there was nothing"
    problems = "".join(f"\n\n- {escape(problem)}" for problem in result.problems)
    return f"{_SCOPES[result.scope][0]} is deleted{numbers}.{problems}\n"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(
        counted(counts[name], noun) for name, noun in _COUNTED.items() if counts.get(name)
    )
