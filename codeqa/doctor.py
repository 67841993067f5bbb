"""Checks of an installation, its state file and its indices, and the repair of these two.

Every check runs on its own: one that fails, whatever the reason, is reported and the
next one goes on. No check prints or returns a secret.
"""

from __future__ import annotations

import math
import os
import platform
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from codeqa.chat.hooks import ARGUMENTS, load_hooks
from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError
from codeqa.hosts import is_loopback
from codeqa.indexing.indexer import Indexer
from codeqa.indexing.lock import holder_of
from codeqa.languages import languages
from codeqa.llm import SOURCES, Models
from codeqa.parsing.grammar import grammar
from codeqa.repository.git import find_git, read_git
from codeqa.search import reranker_status
from codeqa.settings import Settings
from codeqa.state.cache import RedisCache
from codeqa.state.rescue import damage_of, set_aside
from codeqa.store import Location, Tables, list_locations, local_bytes
from codeqa.store.damage import damage
from codeqa.store.location import folder_bytes
from codeqa.store.meta import record_of

LITTLE_SPACE = 500_000_000
"""Bytes: an index of a million lines takes up to about this much."""
SECONDS_FOR_GIT = 10
CHECK_SECONDS = 10.0
"""Lifetime of the value that is written into Redis and read back."""

REPAIR = "Run 'codeqa doctor --repair'."

Result = tuple[bool, str, str]
"""Whether a check passed, what was found, and what to do when it failed."""


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

    def run_mending(name: str, check: Callable[[], Result], mend: Callable[[], str]) -> Check:
        found = run_check(name, check)
        if found.ok or not repair:
            return found
        done = run_check(name, lambda: (True, mend(), ""))
        if not done.ok:
            return replace(found, detail=f"{found.detail}; it stays: {done.detail}", hint=done.hint)
        return replace(run_check(name, check), repaired=f"{found.detail}; {done.detail}")

    yield run_check("Python", check_python)
    yield run_check("git", check_git)
    yield run_check("settings", partial(check_choices, settings))
    yield run_check("data", partial(check_data, settings))
    state = settings.data_dir / "state.sqlite"
    yield run_mending("state", partial(check_state, state), partial(_rescue, state))
    yield run_check("languages", check_grammars)
    yield run_check("LanceDB", check_tables)
    yield run_check("embedding", check_embedding)
    yield run_check("port", partial(check_port, settings))
    yield run_check("model", partial(check_model, settings))
    yield run_check("reranker", partial(reranker_status, settings))
    if settings.plugins:
        yield run_check("hooks", partial(check_hooks, settings))
    if settings.redis_url:
        yield run_check("Redis", partial(check_redis, settings))
    yield run_check("repositories", partial(check_repositories, settings))
    for location in list_locations(settings):
        if only is None or location.root == only:
            check, rebuild = partial(check_index, location), partial(_rebuild, settings, location)
            yield run_mending(f"index of {location.name}", check, rebuild)


def run_check(name: str, check: Callable[[], Result]) -> Check:
    """The outcome of `check`, also when it raises."""
    try:
        return Check(name, *check())
    except CodeQAError as error:
        return Check(name, False, error.message, error.hint)
    except Exception as error:
        # A doctor must survive what it diagnoses, and other packages raise anything.
        return Check(name, False, f"{type(error).__name__}: {error}")


def check_python() -> Result:
    return True, f"{platform.python_version()} ({sys.executable})", ""


def check_git() -> Result:
    """Git, which lists the files of a repository; never one that lies in the current folder."""
    path = find_git()
    printed = read_git(path, Path(path).parent, ["--version"], SECONDS_FOR_GIT)
    version = "fails" if printed is None else printed.decode(errors="replace").strip()
    found = f"{version} ({path})"
    return printed is not None, found, "Run 'git --version' to see why it fails."


def check_choices(settings: Settings) -> Result:
    """What decides who may connect and what leaves the machine; a key shows as set only."""
    parts = [f"page on {settings.host}:{settings.port}"]
    parts.append("token set" if settings.tokens else "no token")
    parts.append(f"embedding {settings.embedding}" if settings.embedding else "no embedding chosen")
    for name in type(settings).model_fields:
        if name.endswith("_api_key") and settings.provider_key(name):
            parts.append(f"{name.upper()} set")
    # As the server judges: commas alone are no token, and it then does not start at all.
    meant = bool(settings.token.get_secret_value())
    ok = bool(settings.tokens) if meant else is_loopback(settings.host)
    return ok, ", ".join(parts), "Set CODEQA_TOKEN: any address but this machine's own needs one."


def check_data(settings: Settings) -> Result:
    """Whether the data folder can be written and has room."""
    folder = settings.data_dir
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    used = folder_bytes(folder) if folder.exists() else 0
    detail = f"{folder}, {used / 1e6:,.1f} MB used, {free / 1e9:,.1f} GB free"
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError:
        return False, f"{detail}, not writable", "Set CODEQA_DATA to a folder you may write to."
    return free >= LITTLE_SPACE, detail, "Free some space, or set CODEQA_DATA to another disk."


def check_repositories(settings: Settings) -> Result:
    """Whether every index names its repository: one that does not is in no list."""
    known = [location.folder.name for location in list_locations(settings)]
    every = settings.data_dir / "repos"
    if os.path.lexists(every) and not every.is_dir():
        return False, f"{every} is no folder", "Run 'codeqa index' on a repository, which mends it."
    folders = sorted(every.glob("*"))
    if lost := [one.name for one in folders if one.is_dir() and one.name not in known]:
        hint = "Run 'codeqa index' on the repository, which mends it, or delete the folder."
        return False, f"repository.json is missing or damaged in {', '.join(lost)}", hint
    return True, f"{len(known):,} indexed", ""


def check_state(path: Path) -> Result:
    """Whether the file that holds the conversations can be read whole."""
    if damage := damage_of(path):
        return False, f"{path} is damaged: {damage}", REPAIR
    return True, f"{path} holds the conversations" if path.exists() else "no conversations yet", ""


def _rescue(path: Path) -> str:
    damage_of(path)  # raises for a file that is locked, or of a newer version: that one stays
    aside, turns = set_aside(path)
    return f"{turns:,} questions could be read and are kept; the damaged file is now {aside}"


def check_grammars() -> Result:
    """Whether every grammar loads."""
    keys = [language.key for language in languages().values() if language.grammar]
    broken = []
    for key in keys:
        try:
            grammar(key)
        except Exception as error:
            # A grammar of another version fails in its own ways; all mean the same here.
            broken.append(f"{key} ({error})")
    if broken:
        detail = f"{len(broken)} of {len(keys)} grammars fail: {'; '.join(broken)}"
        return False, detail, "Install the versions that requirements.txt names."
    return True, f"{len(keys)} grammars load, {len(languages())} languages known", ""


def check_tables() -> Result:
    """Whether LanceDB writes and reads a table."""
    import lancedb

    with tempfile.TemporaryDirectory() as folder:
        table = lancedb.connect(folder).create_table("check", [{"text": "a"}])
        found = table.count_rows()
    return found == 1, f"{lancedb.__version__} writes and reads", "Install it again."


def check_embedding() -> Result:
    """Whether the fast embedding loads and encodes."""
    start = time.perf_counter()
    fast = fast_embedding()
    if fast is None:
        return True, "none installed; text and symbols are searched", ""
    milliseconds = (time.perf_counter() - start) * 1000
    length = math.hypot(*fast.embed_query("read the configuration file").tolist())
    detail = f"{fast.name} version {fast.version}, {fast.dimension} dimensions"
    detail += f", ready in {milliseconds:.0f} ms"
    return length > 0, detail, "Install CodeQA again: its embedding knows no plain English word."


def check_port(settings: Settings) -> Result:
    """Whether the page's port is free."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            detail = f"{settings.port} on {settings.host}: {error.strerror}"
            return False, detail, "Stop what uses it, or set CODEQA_PORT to another one."
    return True, f"{settings.port} on {settings.host} is free", ""


def check_model(settings: Settings) -> Result:
    """The model that answers, its host and where the key comes from; nothing is sent."""
    models = Models(settings)
    if problem := models.problem():
        return False, problem.removesuffix("."), "Pick the model and enter its key again."
    choice = models.current()
    if choice is None:
        return True, "none chosen; answers are put together from the code that is found", ""
    # Raises what would keep a question from being sent, such as a missing key.
    endpoint = models.endpoint(choice)
    named = str(choice) if choice.model else f"{choice}, the first of its models,"
    key, source = models.key_state(choice), SOURCES[models.source()]
    return True, f"{named} at {endpoint.host}, key {key}, {source}", ""


def check_hooks(settings: Settings) -> Result:
    """The user's own hooks, in the order in which they are called, and plugins that are none."""
    hooks = load_hooks(settings)
    called = (f"{name} {', '.join(hooks.names(name)) or '-'}" for name in ARGUMENTS)
    return not hooks.skipped, "; ".join((*called, *hooks.skipped)), "Correct or remove the plugin."


def check_redis(settings: Settings) -> Result:
    """Whether the Redis server keeps a value and gives it back."""
    cache = RedisCache(settings.redis_url)
    key, value = f"codeqa:doctor:{secrets.token_hex(8)}", secrets.token_hex(8)
    start = time.perf_counter()
    cache.set(key, value, CHECK_SECONDS)
    found = cache.get(key)
    milliseconds = (time.perf_counter() - start) * 1000
    cache.delete(key)
    if problem := cache.problem():
        hint = "Start it, or correct REDIS_URL; until then follow-ups find no earlier context."
        return False, problem.removesuffix("."), hint
    detail = f"{cache.address} writes and reads in {milliseconds:.1f} ms"
    return found == value, detail, "See which program answers there: it gave another value back."


def check_index(location: Location) -> Result:
    """Files as they were written, rows that are read, and vectors of the embedding in use."""
    if holder_of(location):
        return True, "a run is writing it", ""
    if not location.root.is_dir():
        gone = f"the repository {location.root} is gone"
        return False, gone, f"Run 'codeqa repos remove {location.id}'."
    refill = f"Run 'codeqa index {location.root}', which makes it anew from the files."
    if found := damage(location):
        return False, found, refill
    tables = Tables.open(location)
    counts, record = tables.counts(), tables.meta().vector
    size = f"{local_bytes(location) / 1e6:,.1f} MB in {location.folder}"
    detail = f"{counts.files:,} files, {counts.units:,} units, {size}"
    if record != (fast := record_of(fast_embedding())):
        used = f"its vectors are of {record or 'no embedding'}, in use is {fast or 'none'}"
        return False, f"{detail}; {used}", refill
    return True, detail, ""


def _rebuild(settings: Settings, location: Location) -> str:
    """What the chosen embedding costs is left to `codeqa index`."""
    files = Indexer(settings, location).run(refine=False, wait=False).files
    return f"{files:,} files are indexed; `codeqa index` makes what was paid for again"
