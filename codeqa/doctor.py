"""Checks of an installation, its state file and its indices, and the repair of these two.

A check that raises something has failed, and the next one goes on. None tells a secret. An index is
made anew from the files; of a damaged state file all that can be read is kept.
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
from codeqa.search.rerank import reranker_status
from codeqa.settings import Settings
from codeqa.state import open_state
from codeqa.state.database import ASIDE, BESIDE, PRIMARY_CODE, SqliteDatabase
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
    """What was wrong before, and what was done about it."""


Found = tuple[bool, str, str]
"""Whether it is sound, what was found, and what to do when it is not."""


def examine(
    settings: Settings, only: Path | None = None, *, repair: bool = False
) -> Iterator[Check]:
    """Run all checks; `only` is the root of the one index to look at. `repair` mends the state and
    the indices."""
    state = settings.data_dir / "state.sqlite"
    yield run_check("git", lambda: (True, trusted_git(settings).program, ""))
    yield run_check("data", partial(_data, settings))
    mend = repair and (lambda: f"{make_private(settings.data_dir):,} are this user's alone now")
    yield run_check("rights", partial(_rights, settings), mend)
    mend = repair and not settings.state and partial(_rescue, state)
    yield run_check("state", partial(_state, settings, state), mend)
    yield run_check("model", partial(_model, settings))
    status = reranker_status(settings)
    yield run_check("reranker", lambda: (status.usable, status.text, status.hint))
    if settings.plugins:
        yield run_check("hooks", partial(_hooks, settings))
    yield run_check("repositories", partial(check_repositories, settings))
    for location in list_locations(settings, "repos", "revs/*"):
        if only is None or location.root == only:
            mend = repair and partial(_rebuild, settings, location)
            yield run_check(f"index of {location.name}", partial(check_index, location), mend)
    for together in () if only else collections(settings):
        name, mend = f"collection {together.name}", repair and partial(_empty, together)
        yield run_check(name, partial(_collection, together.location), mend)


def run_check(
    name: str, check: Callable[[], Found], mend: Callable[[], str] | bool = False
) -> Check:
    """The outcome of `check`, after `mend` where that is given and it fails."""
    try:
        ok, detail, hint = check()
        found = Check(name, ok, detail, "" if ok else hint)
        if not found.ok and callable(mend):
            done = mend()
            return replace(run_check(name, check), repaired=f"{found.detail} {done}")
    except CodeQAError as error:
        return Check(name, False, error.message, error.hint)
    except Exception as error:  # a doctor must survive what it diagnoses
        return Check(name, False, f"{type(error).__name__}: {error}")
    return found


def _data(settings: Settings) -> Found:
    folder = settings.data_dir
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    hint = "Free some space, or set CODEQA_DATA to a folder that you may write to."
    usable = free > LITTLE_SPACE and existing.is_dir() and os.access(existing, os.W_OK)
    return usable, f"{folder}, {free / 1e9:,.1f} GB free", hint


def _rights(settings: Settings) -> Found:
    """Whether what is kept is its user's alone."""
    every = [*settings.data_dir.rglob("*")]
    opened = [path for path in every if not path.is_symlink() and path.lstat().st_mode & OTHERS]
    first = f", such as {opened[0]}" if opened else ""
    told = f"{len(opened):,} of {len(every):,} files and folders are open to others{first}"
    return not opened, told, "Run 'codeqa doctor --repair'."


def _model(settings: Settings) -> Found:
    """The model that answers, its host and where the key comes from; nothing is sent."""
    models = Models(settings)
    if problem := models.problem():
        return False, problem, "Pick the model and enter its key again."
    if (choice := models.current()) is None:
        return True, "none chosen; answers are put together from the code that is found", ""
    # Raises what would keep a question from being sent, such as a missing key.
    host, key = models.address(choice).host, models.key_state(choice)
    return True, f"{choice} at {host}, key {key}, {SOURCES[models.source()]}", ""


def _hooks(settings: Settings) -> Found:
    hooks = load_hooks(settings)
    order = [f"{name} {', '.join(hooks.names(name)) or '-'}" for name in ARGUMENTS]
    return not hooks.skipped, "; ".join(hooks.skipped or order), "Correct or remove the plugin."


def check_repositories(settings: Settings) -> Found:
    """Whether every index names its repository: one that does not is in no list."""
    every = settings.data_dir / "repos"
    known = {one.folder.name for one in list_locations(settings, "repos", "revs/*")}
    # One without a file but a lock was left by a question about what was not indexed.
    files = (one for one in every.glob("*/**/*") if one.is_file() and one.name != "lock")
    lost = {one.relative_to(every).parts[0] for one in files} - known
    if lost or (os.path.lexists(every) and not every.is_dir()):
        hint = "Run 'codeqa index' on the repository, which mends it, or delete the folder."
        return False, f"{every / min(lost, default='')} is no index.", hint
    return True, f"{len(known):,} indexed", ""


def check_index(location: Location) -> Found:
    if holder_of(location):
        return True, "a run is writing it", ""
    if not location.root.is_dir():  # nothing to make it anew from
        hint = f"Run 'codeqa repos remove {location.id}'."
        raise StorageError(f"The repository {location.root} is gone.", hint)
    anew = f"Run 'codeqa index {location.root}', which makes it anew."
    if found := damage(location):
        return False, found, anew
    try:
        tables = Tables(location)
        counts, made = tables.counts(), tables.meta().vector
    except IndexMissingError as error:
        return False, error.message, error.hint
    if made and "vector" not in dict(tables.vector_columns()):
        return False, f"its search by meaning was made with {made}, which is not here", anew
    return True, f"{counts.files:,} files, {counts.units:,} pieces in {location.tables}", ""


def _rebuild(settings: Settings, location: Location) -> str:
    """What the chosen embedding costs is left to `codeqa index`."""
    files = Indexer(settings, location).run(refine=False, wait=False).files
    return f"{files:,} files are indexed; `codeqa index` makes what was paid for again"


def _collection(location: Location) -> Found:
    """Whether what was copied of several repositories, to ask them together, can be read."""
    found = "" if holder_of(location) else damage(location)
    return not found, found or f"in {location.folder}", "Ask all of them: it is then made anew."


def _empty(together: Collection) -> str:
    with hold(together.location, wait=False):
        together.mend()
    return "the next question over several repositories makes it anew"


# The conversations


def _state(settings: Settings, path: Path) -> Found:
    """Whether the file that holds the conversations can be read whole. Raises StorageError when it
    cannot be opened though it is not damaged: it is locked, say, or another version wrote it."""
    if settings.state:
        server = open_state(settings)
        return server.size() > 0, f"{server.place} holds the conversations", ""
    if not os.path.lexists(path):
        return True, "no conversations yet", ""
    try:
        row = SqliteDatabase(path).row("PRAGMA integrity_check(1)") or ["no answer"]
        found = str(row[0]).splitlines()[-1]  # what the heading of a list is about
    except StorageError as error:
        code = getattr(error.__cause__, "sqlite_errorcode", 0) & PRIMARY_CODE
        if path.is_file() and code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        found = str(error.__cause__)
    if found != "ok":
        return False, f"{path} is damaged: {found}.", "Run 'codeqa doctor --repair'."
    return True, f"{path} holds the conversations", ""


def _rescue(path: Path) -> str:
    """Move the damaged state file away, whole, and make a new one of what can be read of it."""
    aside = path.with_name(f"{path.name}{ASIDE}{time.strftime('%Y%m%d-%H%M%S')}")
    for ending in BESIDE:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{ending}").rename(f"{aside}{ending}")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # reading changes the log
        copy = Path(folder) / path.name
        for ending in BESIDE:
            with contextlib.suppress(OSError):
                shutil.copyfile(f"{aside}{ending}", f"{copy}{ending}")
        with SqliteDatabase(path).writing() as connection:
            if copy.exists():
                _take_over(copy, connection)
            (turns,) = connection.execute("SELECT count(*) FROM turn").fetchone()
    return f"{turns:,} questions could be read and are kept; the damaged file is now {aside}"


def _take_over(copy: Path, connection: sqlite3.Connection) -> None:
    with copy.open("r+b") as file, contextlib.suppress(OSError):  # the head is garbled as well
        # SQLite reads nothing of a file that is shorter than its head says.
        head = file.read(32)
        said = int.from_bytes(head[16:18]) * int.from_bytes(head[28:32])
        file.truncate(max(said, copy.stat().st_size))
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as old:
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
"""What could not be read leaves no gap: the turns that are left follow each other."""
