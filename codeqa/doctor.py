"""Check an installation, and check and repair its state file and indices.

A check that raises has failed, and the next one runs. No check prints a secret. A damaged index is
built again from the files; of a damaged state file all that can be read is kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from codeqa.chat.hooks import ARGUMENTS, load_hooks
from codeqa.errors import CodeQAError, IndexMissingError, StorageError
from codeqa.folders import OTHERS, make_private
from codeqa.indexing.indexer import Indexer
from codeqa.indexing.runs import hold, holder_of
from codeqa.llm.models import SOURCES, Models
from codeqa.repositories import trusted_git
from codeqa.repositories.collection import Collection, collections
from codeqa.search.rerank_models import reranker_status
from codeqa.settings import Settings
from codeqa.state import open_state
from codeqa.state.database import ASIDE, FILE_ENDINGS, PRIMARY_CODE, SqliteDatabase
from codeqa.store import Location, Tables, damage, list_locations

LITTLE_SPACE = 500_000_000
"""Bytes; about what an index of a million lines takes."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check; `hint` says what to do when it failed."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    repaired: str = ""
    """The fault and its repair."""


Outcome = tuple[bool, str, str]
"""(True if the check passed, its details, a hint for when it did not)."""


def examine(
    settings: Settings, only: Path | None = None, *, repair: bool = False
) -> Iterator[Check]:
    """Run all checks; `only` is the root of the one index to check.

    `repair` mends the rights of the data folder, the state and the indices.
    """

    def close() -> str:
        return f"{make_private(settings.data_dir):,} are now private to this user"

    def run(
        name: str, check: Callable[[], Outcome], mend: Callable[[], str] | None = None
    ) -> Check:
        return _run(name, check, mend if repair else None)

    state = settings.data_dir / "state.sqlite"
    yield run("git", lambda: (True, trusted_git(settings).program, ""))
    yield run("data", partial(_data, settings))
    yield run("rights", partial(_rights, settings), close)
    rescue = None if settings.state else partial(_rescue, state)
    yield run("state", partial(_state, settings, state), rescue)
    yield run("model", partial(_model, settings))
    status = reranker_status(settings)
    yield run("reranker", lambda: (status.usable, status.text, status.hint))
    if settings.plugins:
        yield run("hooks", partial(_hooks, settings))
    yield run("repositories", partial(check_repositories, settings))
    for location in list_locations(settings, "repos", "revs/*"):
        if only is None or location.root == only:
            rebuild = partial(_rebuild, settings, location)
            yield run(f"index of {location.name}", partial(check_index, location), rebuild)
    if only is None:
        for collection in collections(settings):
            check, empty = partial(_collection, collection.location), partial(_empty, collection)
            yield run(f"collection {collection.name}", check, empty)


def _run(name: str, check: Callable[[], Outcome], mend: Callable[[], str] | None) -> Check:
    """Run `check`; if it fails, `mend` and run it again."""
    try:
        ok, detail, hint = check()
        if ok or mend is None:
            return Check(name, ok, detail, "" if ok else hint)
        repaired = f"{detail} {mend()}"
        return replace(_run(name, check, None), repaired=repaired)
    except CodeQAError as error:
        return Check(name, False, error.message, error.hint)
    except Exception as error:  # a doctor must survive what it diagnoses
        return Check(name, False, f"{type(error).__name__}: {error}")


def _data(settings: Settings) -> Outcome:
    folder = settings.data_dir
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    hint = "Free some space, or set CODEQA_DATA to a folder that you may write to."
    usable = free > LITTLE_SPACE and existing.is_dir() and os.access(existing, os.W_OK)
    return usable, f"{folder}, {free / 1e9:,.1f} GB free", hint


def _rights(settings: Settings) -> Outcome:
    """Check that nobody else may read the stored files."""
    paths = list(settings.data_dir.rglob("*"))
    public = [path for path in paths if not path.is_symlink() and path.lstat().st_mode & OTHERS]
    example = f", such as {public[0]}" if public else ""
    detail = f"{len(public):,} of {len(paths):,} files and folders are open to others{example}"
    return not public, detail, "Run 'codeqa doctor --repair'."


def _model(settings: Settings) -> Outcome:
    """Check the model, its host and where its key comes from; nothing is sent."""
    models = Models(settings)
    if problem := models.problem():
        return False, problem, "Pick the model and enter its key again."
    if (choice := models.current()) is None:
        return True, "none chosen; answers quote the code", ""
    # Raises the error that would prevent a question, such as a missing key.
    host, key = models.address(choice).host, models.key_state(choice)
    return True, f"{choice} at {host}, key {key}, {SOURCES[models.source()]}", ""


def _hooks(settings: Settings) -> Outcome:
    hooks = load_hooks(settings)
    order = [f"{name} {', '.join(hooks.names(name)) or '-'}" for name in ARGUMENTS]
    return not hooks.skipped, "; ".join(hooks.skipped or order), "Correct or remove the plugin."


def check_repositories(settings: Settings) -> Outcome:
    """Check that every index names its repository: otherwise no list shows it."""
    folder = settings.data_dir / "repos"
    names = {location.folder.name for location in list_locations(settings, "repos", "revs/*")}
    # A folder with nothing but a lock is left of a question before anything was indexed.
    files = (path for path in folder.glob("*/**/*") if path.is_file() and path.name != "lock")
    lost = {path.relative_to(folder).parts[0] for path in files} - names
    if lost or (os.path.lexists(folder) and not folder.is_dir()):
        hint = "Run 'codeqa index' on the repository, which repairs it, or delete the folder."
        return False, f"{folder / min(lost, default='')} is not an index.", hint
    return True, f"{len(names):,} indexed", ""


def check_index(location: Location) -> Outcome:
    """Check that the index of a repository can be read and that nothing else wrote into it."""
    if holder_of(location):
        return True, "a run is writing it", ""
    if not location.root.is_dir():  # nothing to build it from
        hint = f"Delete its index with 'codeqa repos remove {location.id}'."
        raise StorageError(f"The repository {location.root} is gone.", hint)
    hint = f"Run 'codeqa index {location.root}', which builds it again."
    if problem := damage(location):
        return False, problem, hint
    try:
        tables = Tables(location)
        counts, embedding = tables.counts(), tables.meta().vector
    except IndexMissingError as error:
        return False, error.message, error.hint
    if embedding and "vector" not in dict(tables.vector_columns()):
        return False, f"its search by meaning was made with {embedding}, which is not here", hint
    return True, f"{counts.files:,} files, {counts.units:,} pieces in {location.tables}", ""


def _rebuild(settings: Settings, location: Location) -> str:
    """Index the files again; vectors of the chosen embedding are left to `codeqa index`."""
    files = Indexer(settings, location).run(refine=False, wait=False).files
    return f"{files:,} files are indexed; `codeqa index` computes paid vectors again"


def _collection(location: Location) -> Outcome:
    """Check that the copy of several repositories, for questions about all of them, is readable."""
    problem = "" if holder_of(location) else damage(location)
    return (
        not problem,
        problem or f"in {location.folder}",
        "Ask a question about all of them: that builds it again.",
    )


def _empty(collection: Collection) -> str:
    with hold(collection.location, wait=False):
        collection.mend()
    return "the next question about several repositories builds it again"


# The conversations


def _state(settings: Settings, path: Path) -> Outcome:
    """Check that the file of the conversations can be read as a whole.

    Raises StorageError if it is not damaged but cannot be opened: it is locked, or another version
    wrote it.
    """
    if settings.state:
        server = open_state(settings)
        return server.size() > 0, f"{server.place} holds the conversations", ""
    if not os.path.lexists(path):
        return True, "no conversations yet", ""
    try:
        row = SqliteDatabase(path).row("PRAGMA integrity_check(1)") or ["no answer"]
        problem = str(row[0]).splitlines()[-1]  # below the heading of a list
    except StorageError as error:
        code = getattr(error.__cause__, "sqlite_errorcode", 0) & PRIMARY_CODE
        if path.is_file() and code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        problem = str(error.__cause__)
    if problem != "ok":
        return False, f"{path} is damaged: {problem}.", "Run 'codeqa doctor --repair'."
    return True, f"{path} holds the conversations", ""


def _rescue(path: Path) -> str:
    """Move the damaged state file aside, and make a new one from what can be read of it."""
    aside = path.with_name(f"{path.name}{ASIDE}{time.strftime('%Y%m%d-%H%M%S')}")
    for ending in FILE_ENDINGS:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{ending}").rename(f"{aside}{ending}")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # reading changes the log
        copy = Path(folder) / path.name
        for ending in FILE_ENDINGS:
            with contextlib.suppress(OSError):
                shutil.copyfile(f"{aside}{ending}", f"{copy}{ending}")
        with SqliteDatabase(path).writing() as connection:
            if copy.exists():
                _copy_rows(copy, connection)
            (turns,) = connection.execute("SELECT count(*) FROM turn").fetchone()
    return f"{turns:,} questions could be read and are kept; the damaged file is now {aside}"


def _copy_rows(damaged: Path, connection: sqlite3.Connection) -> None:
    """Copy every row that can be read from the file `damaged`."""
    with damaged.open("r+b") as file, contextlib.suppress(OSError):  # the head is garbled as well
        # SQLite reads nothing of a file that is shorter than its head says.
        head = file.read(32)
        size = int.from_bytes(head[16:18]) * int.from_bytes(head[28:32])
        file.truncate(max(size, damaged.stat().st_size))
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    with contextlib.closing(sqlite3.connect(damaged, isolation_level=None)) as old:
        old.text_factory = lambda text: text.decode(errors="replace")
        for (table,) in tables:
            for order in ("", "DESC"):  # up to the damage from both ends
                with contextlib.suppress(sqlite3.DatabaseError):
                    for row in old.execute(f"SELECT * FROM {table} ORDER BY rowid {order}"):
                        marks = ", ".join("?" * len(row))
                        with contextlib.suppress(sqlite3.DatabaseError):  # a value of none of ours
                            insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"
                            connection.execute(insert, row)
    for statement in _JOIN.split(";"):
        connection.execute(statement)


_JOIN = """
    INSERT OR IGNORE INTO conversation (user, repository, id, title, created, updated, leaf)
        SELECT user, repository, conversation, question, created, max(created), id FROM turn
        WHERE conversation != '' GROUP BY user, repository, conversation;
    UPDATE turn SET parent = coalesce((
        SELECT id FROM turn AS one WHERE (user, repository, conversation) =
            (turn.user, turn.repository, turn.conversation) AND created < turn.created
        ORDER BY created DESC LIMIT 1), '')
        WHERE parent != '' AND parent NOT IN (SELECT id FROM turn)"""
"""Unreadable turns leave no gap: the remaining turns follow each other."""
