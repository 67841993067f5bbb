"""Checks of the indices."""

from __future__ import annotations

from codeqa.doctor.check import Result
from codeqa.embeddings import fast_embedding
from codeqa.store import Filter, Location, Tables, local_bytes
from codeqa.store.meta import record_of
from codeqa.text.tokens import name_key, search_tokens
from codeqa.types import METHOD_KINDS, TEXT_KINDS

SELF_TEST_DEPTH = 50
"""Hits in which the self-test must find the unit that it looks for, in its own file."""


def index(location: Location) -> Result:
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
