"""Joins the parts for one repository and does nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codeqa.answering import Chat, Generator
from codeqa.embeddings import chosen_embedding, fast_embedding
from codeqa.errors import NotFoundError
from codeqa.files import Files, FileText
from codeqa.indexing import Indexer
from codeqa.retrieval import QueryEncoder, parse_rerank
from codeqa.search import FileHit, Search, SearchResult
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import Location, Tables, list_locations, local_bytes, locate, remove

__all__ = [
    "Engine",
    "FileHit",
    "FileText",
    "Location",
    "SearchResult",
    "list_repositories",
    "local_bytes",
    "open_engine",
    "parse_rerank",
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
    tables: Callable[[], Tables]
    """Opens the index on first use. Raises IndexMissingError before there is one."""

    def close(self) -> None:
        """Stop what runs in the background."""
        self.index.stop()


def open_engine(
    settings: Settings, repository: Path, *, generator: Generator | None = None
) -> Engine:
    """Join the parts for `repository`; nothing is read or indexed yet.

    Raises RepositoryError when it is no folder.
    """
    location = locate(settings, repository)
    state = State(settings.data_dir)
    state.remember_repository(location.root)
    tables = opener(location)
    files = Files(tables, settings.max_file_bytes)
    search = Search(tables, settings, encoder_finder(settings))
    chat = Chat(
        search,
        tables,
        state,
        settings,
        repository=location.id,
        line_count=files.line_count,
        generator=generator,
    )
    return Engine(settings, location, Indexer(settings, location), search, chat, files, tables)


def recent_repositories(settings: Settings) -> list[Path]:
    """Repositories opened, the latest first, those that still exist."""
    return [path for path in State(settings.data_dir).recent_repositories() if path.is_dir()]


def list_repositories(settings: Settings) -> list[Location]:
    """Repositories with an index here, by name."""
    return list_locations(settings)


def remove_repository(settings: Settings, name: str | Path) -> Location:
    """Delete the index of the repository with this id, name or path; its files stay.

    Raises NotFoundError when there is none, or when a name fits several.
    """
    given = str(name)
    real = Path(given).expanduser().resolve()
    locations = list_locations(settings)
    found = [one for one in locations if one.id == given or one.root in (Path(given), real)]
    found = found or [one for one in locations if one.name == given]
    if len(found) != 1:
        problem = f"{len(found)} repositories are called" if found else "There is no index of"
        raise NotFoundError(f"{problem} {given}.", "`codeqa repos list` shows what there is.")
    remove(settings, found[0])
    State(settings.data_dir).forget_repository(found[0].root)
    return found[0]


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
            offered = (fast_embedding(), chosen_embedding(settings))
            made[name] = next((e for e in offered if e is not None and e.name == name), None)
        return made[name]

    return find
