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
from pathlib import Path
from typing import IO, Any

from codeqa.parsing.pool import parse_many
from codeqa.parsing.worker import FileResult, unpack_parsed
from codeqa.repository.walk import walk
from codeqa.settings import Settings, load_settings
from codeqa.text.unit_text import unit_text
from codeqa.types import METHOD_KINDS, TEXT_KINDS, ParsedFile, Progress, Reference, Skipped, Unit

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

_FILES_AT_ONCE = 200
"""Whose rows are made and written together."""

_UNIT_FIELDS = [field.name for field in fields(Unit) if field.name != "path"]
_REFERENCE_FIELDS = [field.name for field in fields(Reference) if field.name != "path"]


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
    early: dict[str, FileResult] = {}  # workers take files in order: little ever waits
    for done, entry in enumerate(found.files, 1):
        while entry.path not in early:
            result = next(results)
            early[result.path] = result
        result = early.pop(entry.path)
        if progress is not None:
            progress(Progress("parsing", done, total, result.path))
        if result.reason:
            left_out.append(Skipped(result.path, result.reason))
        else:
            yield unpack_parsed(result.packed)


def json_line(parsed: ParsedFile) -> str:
    """One file as one line of JSON, `\\n` included: its units and references as objects."""
    content: dict[str, Any] = {
        "path": parsed.path,
        "language": parsed.language,
        "has_errors": parsed.has_errors,
        "replaced_bytes": parsed.replaced_bytes,
        "units": [{name: getattr(unit, name) for name in _UNIT_FIELDS} for unit in parsed.units],
        "references": [
            {name: getattr(reference, name) for name in _REFERENCE_FIELDS}
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
    with whole_file(folder / LINES_FILE) as lines:
        for parsed in files:
            mentions.add(parsed)
            lines.write(json_line(parsed))
    with (
        (folder / LINES_FILE).open(encoding="utf-8", newline="\n") as lines,
        whole_file(folder / METHODS_FILE) as methods,
        whole_file(folder / CLASSES_FILE) as classes,
    ):
        _write_tables(lines, mentions, methods, classes)


@contextmanager
def whole_file(target: Path) -> Iterator[IO[str]]:
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


def _write_tables(lines: IO[str], mentions: _Mentions, methods: IO[str], classes: IO[str]) -> None:
    import pandas

    tables = (methods, METHOD_COLUMNS, True), (classes, CLASS_COLUMNS, False)
    for table, columns, _ in tables:
        pandas.DataFrame(columns=list(columns)).to_csv(table, index=False)
    while batch := list(islice(lines, _FILES_AT_ONCE)):
        contents = [json.loads(line) for line in batch]
        rows = [_row(one["path"], unit, mentions) for one in contents for unit in one["units"]]
        for table, columns, of_methods in tables:
            part = [row for row in rows if (row["kind"] in METHOD_KINDS) is of_methods]
            data = pandas.DataFrame(part, columns=list(columns))
            data.to_csv(table, index=False, header=False)


def _row(path: str, values: dict[str, Any], mentions: _Mentions) -> dict[str, Any]:
    # A section's title may be a name of the code without meaning it.
    defines = values["kind"] not in TEXT_KINDS
    references, count = mentions.of(values["id"], values["name"]) if defines else ("", 0)
    row = {**values, "file_path": path, "references": references, "reference_count": count}
    if values["kind"] in METHOD_KINDS:
        row["code"] = unit_text(Unit(path=path, **values))
    else:
        row["class_name"] = values["name"]
        row["method_declarations"] = DECLARATION_SEPARATOR.join(values["method_declarations"])
    return row
