"""Checks of an installation and its indices, and what each index holds.

Every check runs on its own: one that fails, whatever the reason, is reported and the
next one goes on. No check prints or returns a secret.
"""

from __future__ import annotations

import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codeqa.errors import CodeQAError
from codeqa.languages import languages
from codeqa.settings import Settings
from codeqa.store import Filter, Location, Tables, list_locations, local_bytes
from codeqa.store.location import folder_bytes
from codeqa.tokens import name_key, search_tokens
from codeqa.types import METHOD_KINDS, TEXT_KINDS

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE = 500_000_000
"""Bytes: an index of a million lines takes up to about this much."""
SECONDS_FOR_GIT = 10
SELF_TEST_DEPTH = 50
"""Hits in which the self-test must find the unit that it looks for, in its own file."""

Result = tuple[bool, str, str]
"""Whether a check passed, what was found, and what to do when it failed."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check; `hint` says what to do when it failed."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RepositoryReport:
    """What there is of one repository; `problem` says why the numbers are 0."""

    name: str
    path: str
    state: str
    """`ready` · `incomplete` · `folder gone` · `unreadable`."""
    files: int = 0
    units: int = 0
    references: int = 0
    bytes_on_disk: int = 0
    updated_at: float = 0.0
    """Seconds since the epoch of the last completed run; 0 for none."""
    problem: str = ""


def examine(settings: Settings, only: Path | None = None) -> Iterator[Check]:
    """Run all checks; `only` is the root of the one index to look at."""
    yield _run("Python", _python)
    yield _run("git", _git)
    yield _run("settings", lambda: _settings(settings))
    yield _run("data", lambda: _data(settings))
    yield _run("languages", _languages)
    yield _run("LanceDB", _lancedb)
    yield _run("port", lambda: _port(settings))
    for location in list_locations(settings):
        if only is None or location.root == only:
            yield _run(f"index of {location.name}", _index_check(location))


def report_repositories(settings: Settings) -> list[RepositoryReport]:
    """What every index holds, by name; an unreadable one is reported, not raised."""
    return [_report(location) for location in list_locations(settings)]


def _run(name: str, check: Callable[[], Result]) -> Check:
    try:
        return Check(name, *check())
    except CodeQAError as error:
        return Check(name, False, error.message, error.hint)
    except Exception as error:
        # A doctor must survive what it diagnoses, and other packages raise anything.
        return Check(name, False, f"{type(error).__name__}: {error}")


def _python() -> Result:
    found = f"{platform.python_version()} ({sys.executable})"
    return sys.version_info >= OLDEST_PYTHON, found, "Install Python 3.11 or newer."


def _git() -> Result:
    path = shutil.which("git")
    if path is None:
        # Without git the ignore files are read by CodeQA itself.
        return True, "not found; ignore files are read without it", ""
    done = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=SECONDS_FOR_GIT
    )
    hint = "Run 'git --version' to see why it fails."
    return done.returncode == 0, (done.stdout or done.stderr).strip(), hint


def _settings(settings: Settings) -> Result:
    """What decides who may connect and what leaves the machine; a key shows as set only."""
    parts = [f"page on {settings.host}:{settings.port}"]
    parts.append("token set" if settings.token.get_secret_value() else "no token")
    parts.append(f"embedding {settings.embedding}" if settings.embedding else "no embedding chosen")
    if settings.openai_api_key.get_secret_value():
        parts.append("OpenAI key set")
    if settings.jina_api_key.get_secret_value():
        parts.append("Jina key set")
    open_host = settings.host not in ("127.0.0.1", "localhost", "::1")
    ok = not open_host or bool(settings.token.get_secret_value())
    return ok, ", ".join(parts), "Set CODEQA_TOKEN: any address but this machine's own needs one."


def _data(settings: Settings) -> Result:
    folder = settings.data_dir
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    used = folder_bytes(folder) if folder.exists() else 0
    detail = f"{folder}, {used / 1e6:,.1f} MB used, {free / 1e9:,.1f} GB free"
    if not existing.is_dir() or not _writable(existing):
        return False, f"{detail}, not writable", "Set CODEQA_DATA to a folder you may write to."
    return free >= LITTLE_SPACE, detail, "Free some space, or set CODEQA_DATA to another disk."


def _writable(folder: Path) -> bool:
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _languages() -> Result:
    from codeqa.parsing.grammar import grammar

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


def _lancedb() -> Result:
    import tempfile

    import lancedb

    with tempfile.TemporaryDirectory() as folder:
        table = lancedb.connect(folder).create_table("check", [{"text": "a"}])
        found = table.count_rows()
    return found == 1, f"{lancedb.__version__} writes and reads", "Install it again."


def _port(settings: Settings) -> Result:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            detail = f"{settings.port} on {settings.host}: {error.strerror}"
            return False, detail, "Stop what uses it, or set CODEQA_PORT to another one."
    return True, f"{settings.port} on {settings.host} is free", ""


def _index_check(location: Location) -> Callable[[], Result]:
    return lambda: _index(location)


def _index(location: Location) -> Result:
    """Format, rows against the manifest, and one unit that must be found again."""
    hint = f"Run 'codeqa index --full {location.root}'."
    tables = Tables.open(location)
    counts, manifest = tables.counts(), tables.files()
    size = f"{local_bytes(location) / 1e6:,.1f} MB in {location.folder}"
    detail = f"{counts.files:,} files, {counts.units:,} units, {size}"
    if not location.root.is_dir():
        gone = f"{detail}; the repository {location.root} is gone"
        return False, gone, f"Run 'codeqa repos remove {location.id}'."
    units = sum(record.units for record in manifest)
    references = sum(record.references for record in manifest)
    if units != counts.units:
        return False, f"{detail}; the manifest counts {units:,} units", hint
    if references != counts.references:
        problem = f"{counts.references:,} references, the manifest counts {references:,}"
        return False, f"{detail}; {problem}", hint
    missing = _self_test(tables, [record.path for record in manifest if record.units])
    if missing:
        return False, f"{detail}; a search does not find {missing}", hint
    return True, f"{detail}, self-test passed", ""


def _self_test(tables: Tables, paths: list[str]) -> str:
    """Search for a definition that is in the index; its place when it is not found, else ''."""
    for path in paths:
        for unit in tables.in_file(path):
            if unit.kind in TEXT_KINDS or len(unit.name) < 3:
                continue
            table = "methods" if unit.kind in METHOD_KINDS else "classes"
            query = " ".join(search_tokens(unit.name))
            found = tables.full_text(table, query, SELF_TEST_DEPTH, Filter(paths=(path,)))
            by_text = any(hit.id == unit.id for hit, _ in found)
            by_name = any(hit.name == unit.name for hit in tables.named([name_key(unit.name)]))
            return "" if by_text and by_name else unit.location
    return ""


def _report(location: Location) -> RepositoryReport:
    path, size = str(location.root), local_bytes(location)
    try:
        tables = Tables.open(location)
        counts, meta = tables.counts(), tables.meta()
    except Exception as error:
        # An index that cannot be opened must still be listed, or it could not be removed.
        return RepositoryReport(
            location.name, path, "unreadable", bytes_on_disk=size, problem=str(error)
        )
    state = "ready" if meta.complete and not meta.dirty else "incomplete"
    return RepositoryReport(
        name=location.name,
        path=path,
        state=state if location.root.is_dir() else "folder gone",
        files=counts.files,
        units=counts.units,
        references=counts.references,
        bytes_on_disk=size,
        updated_at=meta.updated_at,
    )
