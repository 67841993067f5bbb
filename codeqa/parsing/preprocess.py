"""Everything that a repository holds, file by file, without an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from codeqa.parsing.pool import FileResult, parse_many
from codeqa.repository.walk import walk
from codeqa.settings import Settings, load_settings
from codeqa.types import ParsedFile, Progress, Reference, Skipped, Unit

_UNIT_FIELDS = tuple(field.name for field in fields(Unit) if field.name != "path")
_REFERENCE_FIELDS = tuple(field.name for field in fields(Reference) if field.name != "path")
_unit_values = attrgetter(*_UNIT_FIELDS)
_reference_values = attrgetter(*_REFERENCE_FIELDS)


def preprocess(
    repo: Path | str,
    settings: Settings | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    skipped: list[Skipped] | None = None,
) -> Iterator[ParsedFile]:
    """Yield what each file of `repo` holds, in the order of the paths.

    Files are parsed in worker processes and reach the caller one by one, so that memory does
    not grow with the repository. What is left out is added to `skipped`, with its reason.
    Raises UsageError when `repo` is no folder, RepositoryError when it cannot be read.
    """
    root = Path(repo)
    settings = settings or load_settings(root)
    found = walk(root, max_file_bytes=settings.max_file_bytes, own=[settings.data_dir])
    left_out = skipped if skipped is not None else []
    left_out.extend(found.skipped)
    total = len(found.files)
    results = parse_many(
        found.root,
        found.files,
        workers=settings.worker_count,
        max_file_bytes=settings.max_file_bytes,
    )
    paths = [entry.path for entry in found.files]
    for done, result in enumerate(_in_order(paths, results), 1):
        if progress is not None:
            progress(Progress("parsing", done, total, result.path))
        if result.parsed is not None:
            yield result.parsed
        elif result.skipped is not None:
            left_out.append(result.skipped)


def _in_order(paths: list[str], results: Iterator[FileResult]) -> Iterator[FileResult]:
    """Hold back what comes early; workers take files in order, so that little ever waits."""
    early: dict[str, FileResult] = {}
    expected = iter(paths)
    path = next(expected, None)
    for result in results:
        early[result.path] = result
        while path is not None and path in early:
            yield early.pop(path)
            path = next(expected, None)


def json_line(parsed: ParsedFile) -> str:
    """One file as one line of JSON, `\\n` included: its units and references as objects."""
    content: dict[str, Any] = {
        "path": parsed.path,
        "language": parsed.language,
        "has_errors": parsed.has_errors,
        "replaced_bytes": parsed.replaced_bytes,
        "units": [
            dict(zip(_UNIT_FIELDS, _unit_values(unit), strict=True)) for unit in parsed.units
        ],
        "references": [
            dict(zip(_REFERENCE_FIELDS, _reference_values(reference), strict=True))
            for reference in parsed.references
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
