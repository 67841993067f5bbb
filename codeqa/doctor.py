"""Checks of an installation, its state file and its indices, and the repair of these two.

A check says what it found, or raises what is wrong with a hint what to do. Every check runs on its
own: one that fails is reported and the next one goes on. None tells a secret.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from codeqa.chat.hooks import ARGUMENTS, load_hooks
from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError, IndexFormatError, StorageError
from codeqa.indexing.indexer import Indexer
from codeqa.indexing.runs import holder_of
from codeqa.languages import languages
from codeqa.llm.models import SOURCES, Models
from codeqa.parsing.grammar import grammar
from codeqa.repository.git import find_git, read_git
from codeqa.search.rerank import reranker_status
from codeqa.settings import Settings
from codeqa.state.cache import RedisCache
from codeqa.state.rescue import damage_of, set_aside
from codeqa.store import Location, Tables, list_locations, local_bytes
from codeqa.store.damage import damage
from codeqa.store.location import folder_bytes
from codeqa.store.schema import record_of

LITTLE_SPACE = 500_000_000
"""Bytes: an index of a million lines takes up to about this much."""
SECONDS_FOR_GIT = 10
CHECK_SECONDS = 10.0
"""Lifetime of the value that is written into Redis and read back."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check; `hint` says what to do when it failed."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    repaired: str = ""
    """What was wrong before, and what was done about it."""


def examine(
    settings: Settings, only: Path | None = None, *, repair: bool = False
) -> Iterator[Check]:
    """Run all checks; `only` is the root of the one index to look at. `repair` mends the state and
    the indices, and looks at them once more."""
    state = settings.data_dir / "state.sqlite"
    yield run_check("git", check_git)
    yield run_check("languages", check_grammars)
    yield run_check("embedding", check_embedding)
    yield run_check("data", partial(check_data, settings))
    yield run_check("state", partial(check_state, state), repair and partial(_rescue, state))
    yield run_check("model", partial(check_model, settings))
    yield run_check("reranker", partial(check_reranker, settings))
    if settings.plugins:
        yield run_check("hooks", partial(check_hooks, settings))
    if settings.redis_url:
        yield run_check("Redis", partial(check_redis, settings))
    yield run_check("repositories", partial(check_repositories, settings))
    for location in list_locations(settings):
        if only is None or location.root == only:
            mend = repair and partial(_rebuild, settings, location)
            yield run_check(f"index of {location.name}", partial(check_index, location), mend)


def run_check(name: str, check: Callable[[], str], mend: Callable[[], str] | bool = False) -> Check:
    """The outcome of `check`, after `mend` where that is given and it fails."""
    try:
        return Check(name, True, check())
    except CodeQAError as error:
        found = Check(name, False, error.message, error.hint)
    except Exception as error:  # a doctor must survive what it diagnoses
        found = Check(name, False, f"{type(error).__name__}: {error}")
    if not callable(mend):
        return found
    done = run_check(name, mend)
    if not done.ok:
        return replace(found, detail=f"{found.detail} It stays: {done.detail}", hint=done.hint)
    return replace(run_check(name, check), repaired=f"{found.detail} {done.detail}")


def check_git() -> str:
    """Git, which lists the files of a repository; never one that lies in the current folder."""
    path = find_git()
    printed = read_git(path, Path(path).parent, ["--version"], SECONDS_FOR_GIT)
    if printed is None:
        raise StorageError(f"{path} fails.", "Run 'git --version' to see why.")
    return f"{printed.decode(errors='replace').strip()} ({path})"


def check_grammars() -> str:
    keys = [language.key for language in languages().values() if language.grammar]
    for key in keys:
        try:
            grammar(key)
        except Exception as error:  # one of another version fails in its own ways
            hint = "Install the versions that requirements.txt names."
            raise StorageError(f"The grammar {key} fails: {error}", hint) from error
    return f"{len(keys)} grammars load, {len(languages())} languages known"


def check_embedding() -> str:
    fast = fast_embedding()
    if fast is None:
        return "none installed; text and symbols are searched"
    fast.embed_query("read the configuration file")
    return f"{fast.name} version {fast.version}, {fast.dimension} dimensions"


def check_data(settings: Settings) -> str:
    """Whether the data folder can be written and has room."""
    folder = settings.data_dir
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    used = folder_bytes(folder) if folder.exists() else 0
    detail = f"{folder}, {used / 1e6:,.1f} MB used, {free / 1e9:,.1f} GB free"
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        hint = "Set CODEQA_DATA to a folder you may write to."
        raise StorageError(f"{detail}, not writable.", hint) from error
    if free < LITTLE_SPACE:
        raise StorageError(f"{detail}.", "Free some space, or set CODEQA_DATA to another disk.")
    return detail


def check_state(path: Path) -> str:
    """Whether the file that holds the conversations can be read whole."""
    if damaged := damage_of(path):
        raise StorageError(f"{path} is damaged: {damaged}.", "Run 'codeqa doctor --repair'.")
    return f"{path} holds the conversations" if path.exists() else "no conversations yet"


def _rescue(path: Path) -> str:
    damage_of(path)  # raises for a file that is locked, or of a newer version: that one stays
    aside, turns = set_aside(path)
    return f"{turns:,} questions could be read and are kept; the damaged file is now {aside}"


def check_model(settings: Settings) -> str:
    """The model that answers, its host and where the key comes from; nothing is sent."""
    models = Models(settings)
    if problem := models.problem():
        raise StorageError(problem, "Pick the model and enter its key again.")
    choice = models.current()
    if choice is None:
        return "none chosen; answers are put together from the code that is found"
    # Raises what would keep a question from being sent, such as a missing key.
    address = models.address(choice)
    named = str(choice) if choice.model else f"{choice}, the first of its models,"
    key, source = models.key_state(choice), SOURCES[models.source()]
    return f"{named} at {address.host}, key {key}, {source}"


def check_reranker(settings: Settings) -> str:
    status = reranker_status(settings)
    if not status.usable:
        raise StorageError(status.text, status.hint)
    return status.text


def check_hooks(settings: Settings) -> str:
    """The user's own hooks, in the order in which they are called."""
    hooks = load_hooks(settings)
    if hooks.skipped:
        raise StorageError("; ".join(hooks.skipped), "Correct or remove the plugin.")
    return "; ".join(f"{name} {', '.join(hooks.names(name)) or '-'}" for name in ARGUMENTS)


def check_redis(settings: Settings) -> str:
    """Whether the Redis server keeps a value and gives it back."""
    cache = RedisCache(settings.redis_url)
    key = value = f"codeqa:doctor:{secrets.token_hex(8)}"
    cache.set(key, value, CHECK_SECONDS)
    found = cache.get(key)
    cache.delete(key)
    hint = "Start it, or correct REDIS_URL; until then follow-ups find no earlier context."
    if found != value:
        raise StorageError(cache.problem() or "It gave another value back.", hint)
    return f"{cache.address} writes and reads"


def check_repositories(settings: Settings) -> str:
    """Whether every index names its repository: one that does not is in no list."""
    known = [location.folder.name for location in list_locations(settings)]
    every = settings.data_dir / "repos"
    hint = "Run 'codeqa index' on the repository, which mends it, or delete the folder."
    if os.path.lexists(every) and not every.is_dir():
        raise StorageError(f"{every} is no folder.", hint)
    lost = sorted(one.name for one in every.glob("*/") if one.name not in known)
    if lost:
        raise StorageError(f"repository.json is missing or damaged in {', '.join(lost)}.", hint)
    return f"{len(known):,} indexed"


def check_index(location: Location) -> str:
    """Files as they were written, rows that are read, and vectors of the embedding in use."""
    if holder_of(location):
        return "a run is writing it"
    if not location.root.is_dir():
        hint = f"Run 'codeqa repos remove {location.id}'."
        raise StorageError(f"The repository {location.root} is gone.", hint)
    refill = f"Run 'codeqa index {location.root}', which makes it anew from the files."
    if found := damage(location):
        raise IndexFormatError(found, refill)
    tables = Tables(location)
    counts, record = tables.counts(), tables.meta().vector
    if record != (fast := record_of(fast_embedding())):
        used = f"Its vectors are of {record or 'no embedding'}, in use is {fast or 'none'}."
        raise IndexFormatError(used, refill)
    size = f"{local_bytes(location) / 1e6:,.1f} MB in {location.folder}"
    return f"{counts.files:,} files, {counts.units:,} units, {size}"


def _rebuild(settings: Settings, location: Location) -> str:
    """What the chosen embedding costs is left to `codeqa index`."""
    files = Indexer(settings, location).run(refine=False, wait=False).files
    return f"{files:,} files are indexed; `codeqa index` makes what was paid for again"
