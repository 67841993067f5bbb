"""Joins the parts for one repository and does nothing itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codeqa.account import (
    SCOPES,
    DataInventory,
    DeletionResult,
    Privacy,
    StoredData,
    deletion_report,
    privacy_report,
)
from codeqa.chat import Chat, Exchange, Generator, Sent, Trace, TurnView
from codeqa.chat.explain import Explained, explain_message, policy_rules
from codeqa.chat.hooks import HOOK_NAMES, load_hooks
from codeqa.chat.replies import Replies
from codeqa.chat.replying import Replying
from codeqa.embeddings import fast_embedding, query_embedding
from codeqa.errors import NotFoundError, UsageError
from codeqa.evaluation import COUNT, Kind, Own, Question, Ranked, prepared, rank_questions
from codeqa.files import Files, FileText
from codeqa.indexing import Indexer
from codeqa.indexing.comments import CommentPlan, add_comments, plan_comments
from codeqa.intents import MODES
from codeqa.llm import (
    CUSTOM,
    PROVIDERS,
    Model,
    ModelChoice,
    ModelProvider,
    Models,
    parse_choice,
    provider_named,
)
from codeqa.search import (
    FileHit,
    QueryEncoder,
    Search,
    SearchResult,
    choose_reranker,
    language_named,
    parse_hyde,
    parse_rerank,
)
from codeqa.settings import Settings, with_home
from codeqa.state import Conversation, State
from codeqa.state.cache import open_cache
from codeqa.store import Location, Tables, list_locations, local_bytes, locate, remove
from codeqa.symbols.completion import Completer
from codeqa.types import Progress

__all__ = [
    "CUSTOM",
    "HOOK_NAMES",
    "MODES",
    "PROVIDERS",
    "SCOPES",
    "CommentPlan",
    "Conversation",
    "DeletionResult",
    "Engine",
    "Exchange",
    "Explained",
    "FileHit",
    "FileText",
    "Location",
    "Model",
    "ModelChoice",
    "ModelProvider",
    "Models",
    "Privacy",
    "SearchResult",
    "Sent",
    "StoredData",
    "Trace",
    "TurnView",
    "add_comments",
    "deletion_report",
    "explain_message",
    "find_repositories",
    "find_repository",
    "language_named",
    "list_repositories",
    "load_hooks",
    "local_bytes",
    "open_engine",
    "open_privacy",
    "open_search",
    "own_questions",
    "parse_choice",
    "parse_hyde",
    "parse_rerank",
    "plan_comments",
    "policy_rules",
    "privacy_report",
    "provider_named",
    "rank_repositories",
    "recent_repositories",
    "remove_repository",
]


@dataclass(frozen=True, slots=True)
class Engine:
    """One repository, ready to be indexed, searched, asked and read."""

    settings: Settings
    location: Location
    index: Indexer
    search: Search
    chat: Chat
    files: Files
    models: Models
    """The language models that may be asked, and which one is."""
    tables: Callable[[], Tables]
    """Opens the index on first use. Raises IndexMissingError before there is one."""
    completion: Completer
    """What may be typed behind `@`, and the tree of files."""

    def close(self) -> None:
        """Stop what runs in the background once all answers are kept, and let go of
        connections to models."""
        self.chat.flush()
        self.index.stop()
        self.models.close()


def open_engine(
    settings: Settings, repository: Path, *, generator: Generator | None = None
) -> Engine:
    """Join the parts for `repository`; nothing is read or indexed yet.

    Raises UsageError when it is no folder, SettingsError for a setting that cannot be used.
    """
    location = locate(settings, repository)
    state = State(settings.data_dir)
    cache = open_cache(settings, state)
    models = Models(settings)
    state.remember_repository(location.root)
    tables = opener(location)
    files = Files(tables, settings.max_file_bytes)
    search = Search(
        tables,
        settings,
        encoder_finder(settings),
        reranker=choose_reranker(settings),
        connect=models.connect_small,
    )
    privacy = Privacy(DataInventory(settings, state, cache, models))
    chat = Chat(
        search,
        tables,
        state,
        cache,
        settings,
        repository=location.id,
        files=files,
        connect=models.connect,
        connect_small=models.connect_small,
        encoder=fast_embedding,
        hooks=load_hooks(settings, location.root),
        replying=Replying(privacy, Replies(location.name), location.id),
        generator=generator,
    )
    indexer, completion = Indexer(settings, location), Completer(tables)
    return Engine(settings, location, indexer, search, chat, files, models, tables, completion)


def open_privacy(settings: Settings, *, models: Models | None = None) -> Privacy:
    """What is stored of each user, in all repositories, and its deletion.

    `models` are those that questions go to, where some are open already. Raises SettingsError
    for a setting that cannot be used.
    """
    state = State(settings.data_dir)
    cache = open_cache(settings, state)
    return Privacy(DataInventory(settings, state, cache, models or Models(settings)))


def recent_repositories(settings: Settings) -> list[Path]:
    """Repositories opened, the latest first, those that still exist."""
    return [path for path in State(settings.data_dir).recent_repositories() if path.is_dir()]


def list_repositories(settings: Settings) -> list[Location]:
    """Repositories with an index here, by name."""
    return list_locations(settings)


def find_repositories(settings: Settings, given: str | Path) -> list[Location]:
    """Indexed repositories with this id or path, else with this name; they may be gone by now."""
    real = with_home(Path(given)).resolve()
    locations = list_locations(settings)
    found = [one for one in locations if one.id == str(given) or one.root in (Path(given), real)]
    return found or [one for one in locations if one.name == str(given)]


def find_repository(settings: Settings, given: str | Path) -> Location:
    """The one indexed repository with this id, path or name.

    Raises NotFoundError when there is none, or when a name fits several.
    """
    found = find_repositories(settings, given)
    if not found:
        raise NotFoundError(f"{given} is not indexed.", "`codeqa repos list` shows what is.")
    if len(found) > 1:
        raise NotFoundError(
            f"{len(found)} repositories are named {given}.", "Give the path or id of one."
        )
    return found[0]


def remove_repository(settings: Settings, given: str | Path) -> Location:
    """Delete the index of the repository with this id, path or name; its files stay.

    Raises NotFoundError as `find_repository` does.
    """
    location = find_repository(settings, given)
    remove(settings, location)
    State(settings.data_dir).forget_repository(location.root)
    return location


def rank_repositories(
    settings: Settings,
    questions: Sequence[Question],
    trees: Path,
    kind: Kind,
    progress: Callable[[Progress], None],
    *,
    rerank: bool = False,
    hyde: str = "off",
) -> Iterator[Ranked]:
    """Ask `questions` of the repositories in the folder `trees`, indexing each one first.

    Raises UsageError before anything is done when a repository is not there, or when drafts are
    asked for without a language model; later as the indexer and the search do.
    """
    missing = sorted({q.repo for q in questions if not (trees / q.repo).is_dir()})
    if missing:
        raise UsageError(
            f"{trees} lacks the folders {', '.join(missing)}.",
            "Each repository that a question names has a folder of that name there.",
        )

    models = Models(settings)
    if parse_hyde(hyde) != "off" and models.connect_small() is None:
        raise UsageError(
            "Drafts need a language model, and none is chosen.",
            "Choose one with `codeqa models use`, or leave --hyde out.",
        )

    def indexed(repository: str) -> Search:
        location = locate(settings, trees / repository)
        Indexer(settings, location).run(progress=progress)
        return open_search(settings, location, models=models)

    return rank_questions(questions, indexed, kind, rerank=rerank, hyde=hyde)


@contextlib.contextmanager
def own_questions(
    settings: Settings,
    repository: Path,
    progress: Callable[[Progress], None],
    *,
    count: int = COUNT,
    seed: int = 1,
) -> Iterator[Own]:
    """Questions made from `repository` and its thumbs up, and an indexed copy to ask them of.

    The copy is gone afterwards; the repository and its own index are not touched. Raises
    UsageError when there is nothing to ask.
    """
    location = locate(settings, repository)
    state = State(settings.data_dir)
    thumbs = state.feedback(location.id) if state.path.exists() else []
    with prepared(settings, location.root, progress, count=count, seed=seed, thumbs=thumbs) as own:
        yield own


def open_search(
    settings: Settings, location: Location, *, models: Models | None = None, vectors: bool = True
) -> Search:
    """The search of one index alone; `models` write drafts, without `vectors` none are used."""
    return Search(
        opener(location),
        settings,
        encoder_finder(settings) if vectors else None,
        reranker=choose_reranker(settings),
        connect=models.connect_small if models else None,
    )


def opener(location: Location) -> Callable[[], Tables]:
    """Give a function that opens the index once and hands out the same tables ever after."""
    opened: list[Tables] = []

    def tables() -> Tables:
        if not opened:
            opened.append(Tables.open(location))
        return opened[0]

    return tables


def encoder_finder(settings: Settings) -> Callable[[str], QueryEncoder | None]:
    """Give a function from the name of an embedding to its query side, None if not at hand.

    Each is built once, when an index first asks for it.
    """
    made: dict[str, QueryEncoder | None] = {}

    def find(name: str) -> QueryEncoder | None:
        if name not in made:
            made[name] = query_embedding(settings, name)
        return made[name]

    return find
