"""Everything that a repository holds, file by file, without an index: as values or as files.

The files are `files.jsonl`, one line for each file of the repository, and the two tables
`methods.csv` and `classes.csv`: first the columns of the source system without its
embeddings, then ours. References are the places where a unit's name is called or used,
`file:line:col` joined by `; `: those whose file decides the target, then those that merely
bear the name, up to `MAX_REFERENCES`, with the full count beside them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from codeqa.parsing.pool import parse_many
from codeqa.parsing.worker import FileResult, unpack_parsed
from codeqa.repository.walk import walk
from codeqa.settings import Settings, load_settings
from codeqa.text.unit_text import unit_text
from codeqa.types import (
    METHOD_KINDS,
    TEXT_KINDS,
    ParsedFile,
    Progress,
    Reference,
    Skipped,
    Unit,
)

LINES_FILE, METHODS_FILE, CLASSES_FILE = "files.jsonl", "methods.csv", "classes.csv"

REFERENCE_SEPARATOR = "; "
DECLARATION_SEPARATOR = "\n-----\n"

MAX_REFERENCES = 50
"""Places that a row names; a common name such as `get` has thousands."""

METHOD_COLUMNS = (
    "code", "file_path", "class_name", "name", "doc_comment", "source_code", "references",
    "reference_count", "language", "kind", "qualified_name", "signature", "start_line",
    "end_line", "role", "id",
)  # fmt: skip

CLASS_COLUMNS = (
    "source_code", "file_path", "class_name", "constructor_declaration", "method_declarations",
    "references", "reference_count", "language", "kind", "qualified_name", "doc_comment",
    "start_line", "end_line", "role", "id",
)  # fmt: skip

_ROWS_AT_ONCE = 2_000

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
        if result.reason:
            left_out.append(Skipped(result.path, result.reason))
        else:
            yield unpack_parsed(result.packed)


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


def write_files(files: Iterable[ParsedFile], folder: Path) -> None:
    """Write the lines and both tables into `folder`; git leaves a new one alone.

    A unit's references are known only when every file has been read, so the tables are made
    of the lines; in memory are the references alone. Each file appears under its name once it
    is whole. Raises OSError.
    """
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")
    mentions = _Mentions()
    with _whole_file(folder / LINES_FILE) as lines:
        for parsed in files:
            mentions.add(parsed)
            lines.write(json_line(parsed))
    with (folder / LINES_FILE).open(encoding="utf-8", newline="\n") as lines:
        _write_table(folder / METHODS_FILE, METHOD_COLUMNS, _rows(lines, mentions, methods=True))
        lines.seek(0)
        _write_table(folder / CLASSES_FILE, CLASS_COLUMNS, _rows(lines, mentions, methods=False))


@contextmanager
def _whole_file(target: Path) -> Iterator[IO[str]]:
    """A file that appears under its name only when all of it is written."""
    partial = target.with_name(target.name + ".part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


class _Mentions:
    """Where each definition, or each name that no file decides, is referred to."""

    def __init__(self) -> None:
        self._by_target: defaultdict[str, list[str]] = defaultdict(list)
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, parsed: ParsedFile) -> None:
        for reference in parsed.references:
            mention = f"{reference.path}:{reference.line}:{reference.column}"
            if reference.target:
                self._by_target[reference.target].append(mention)
            else:
                self._by_name[reference.name].append(mention)

    def of(self, identity: str, name: str) -> tuple[str, int]:
        """The places as text, and how many there are."""
        decided = self._by_target.get(identity, [])
        named = self._by_name.get(name, [])
        shown = [*decided[:MAX_REFERENCES], *named[: max(0, MAX_REFERENCES - len(decided))]]
        return REFERENCE_SEPARATOR.join(shown), len(decided) + len(named)


def _write_table(target: Path, columns: tuple[str, ...], rows: Iterator[dict[str, Any]]) -> None:
    import pandas

    with _whole_file(target) as file:
        pandas.DataFrame(columns=list(columns)).to_csv(file, index=False)
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            pandas.DataFrame(batch, columns=list(columns)).to_csv(file, index=False, header=False)


def _rows(lines: IO[str], mentions: _Mentions, *, methods: bool) -> Iterator[dict[str, Any]]:
    for line in lines:
        content = json.loads(line)
        for values in content["units"]:
            if (values["kind"] in METHOD_KINDS) is not methods:
                continue
            # A section's title may be a name of the code without meaning it.
            defines = values["kind"] not in TEXT_KINDS
            references, count = mentions.of(values["id"], values["name"]) if defines else ("", 0)
            row = {
                **values,
                "file_path": content["path"],
                "references": references,
                "reference_count": count,
            }
            if methods:
                row["code"] = unit_text(Unit(path=content["path"], **values))
            else:
                row["class_name"] = values["name"]
                row["method_declarations"] = DECLARATION_SEPARATOR.join(
                    values["method_declarations"]
                )
            yield row
