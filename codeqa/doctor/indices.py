"""Checks of the indices, and what each one holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codeqa.doctor.check import Result
from codeqa.embeddings import fast_embedding
from codeqa.settings import Settings
from codeqa.store import Filter, Location, Tables, list_locations, local_bytes
from codeqa.store.meta import record_of
from codeqa.text.tokens import name_key, search_tokens
from codeqa.types import METHOD_KINDS, TEXT_KINDS

SELF_TEST_DEPTH = 50
"""Hits in which the self-test must find the unit that it looks for, in its own file."""


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


def report_repositories(settings: Settings) -> list[RepositoryReport]:
    """What every index holds, by name; an unreadable one is reported, not raised."""
    return [_report(location) for location in list_locations(settings)]


def check(location: Location) -> Callable[[], Result]:
    """The check of the index at `location`."""
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
    if problem := _vectors(tables):
        return False, f"{detail}; {problem}", f"Run 'codeqa index {location.root}'."
    missing = _self_test(tables, [record.path for record in manifest if record.units])
    if missing:
        return False, f"{detail}; a search does not find {missing}", hint
    return True, f"{detail}, self-test passed", ""


def _vectors(tables: Tables) -> str:
    """What is wrong with the fast embedding's vectors; '' when every unit has one in use."""
    fast, record, counts = record_of(fast_embedding()), tables.meta().vector, tables.counts()
    if record != fast:
        return f"its vectors are of {record or 'no embedding'}, in use is {fast or 'none'}"
    if record is not None and counts.embedded != counts.units:
        return f"{counts.units - counts.embedded:,} units have no vector"
    return ""


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
