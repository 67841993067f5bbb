"""Everything that a repository holds, file by file, without an index: as values or as files.

The files are `files.jsonl`, one line for each file of the repository, and two tables,
`methods.csv` and `classes.csv`: the columns of the source system but for its embeddings, then ours.
References are `file:line:col` joined by `; `: places whose file decides that the unit is meant,
then those that merely bear its name, up to `MAX_REFERENCES`, with the full count beside them.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codeqa.parsing.pool import FileResult, parse_many
from codeqa.repository.walk import walk
from codeqa.settings import Settings, load_settings
from codeqa.text.unit_text import unit_text
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Progress, Skipped, Unit

MAX_REFERENCES = 50
"""Places that a row names; a common name such as `get` has thousands."""

_OURS = ("reference_count", "language", "kind", "qualified_name")
METHOD_COLUMNS = (
    "code", "file_path", "class_name", "name", "doc_comment", "source_code", "references",
    *_OURS, "signature", "start_line", "end_line", "role", "id",
)  # fmt: skip
CLASS_COLUMNS = (
    "source_code", "file_path", "class_name", "constructor_declaration", "method_declarations",
    "references", *_OURS, "doc_comment", "start_line", "end_line", "role", "id",
)  # fmt: skip


def preprocess(
    repo: Path | str,
    settings: Settings | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    skipped: list[Skipped] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield what each file of `repo` holds, as the fields of a `ParsedFile`, by path.

    Files are parsed in worker processes and reach the caller one by one, so that memory does
    not grow with the repository. What is left out is added to `skipped`, with its reason.
    Raises UsageError when `repo` is no folder, RepositoryError when it cannot be read.
    """
    settings = settings or load_settings(Path(repo))
    largest = settings.max_file_bytes
    found = walk(Path(repo), max_file_bytes=largest, own=[settings.data_dir])
    left_out = [] if skipped is None else skipped
    left_out += found.skipped
    workers = settings.worker_count
    results = parse_many(found.root, found.files, workers=workers, max_file_bytes=largest)
    early: dict[str, FileResult] = {}  # workers take files in order: little ever waits
    for done, entry in enumerate(found.files, 1):
        while entry.path not in early:
            result = next(results)
            early[result.path] = result
        result = early.pop(entry.path)
        if progress is not None:
            progress(Progress("parsing", done, len(found.files), result.path))
        if result.reason:
            left_out.append(Skipped(result.path, result.reason))
        else:
            yield result.packed


def json_line(file: dict[str, Any]) -> str:
    """One file as one line of JSON, `\\n` included: its units and references as objects."""
    return json.dumps(file, ensure_ascii=False, separators=(",", ":")) + "\n"


def write_files(files: Iterable[dict[str, Any]], folder: Path) -> None:
    """Write the lines and both tables into `folder`, all or none; git leaves a new one alone.

    A unit's references are known only when every file has been read, so the tables are made
    of the lines; in memory are the references alone. Raises OSError.
    """
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")
    places: defaultdict[str, list[str]] = defaultdict(list)
    with TemporaryDirectory(prefix="part-", dir=folder) as part:
        with Path(part, "files.jsonl").open("w", encoding="utf-8", newline="\n") as lines:
            for file in files:
                lines.write(json_line(file))
                for one in file["references"]:
                    place = f"{one['path']}:{one['line']}:{one['column']}"
                    places[one["target"] or one["name"]].append(place)
        _write_tables(Path(part), places)
        for path in Path(part).iterdir():
            path.replace(folder / path.name)


def _write_tables(folder: Path, places: dict[str, list[str]]) -> None:
    """Make the tables of the lines in `folder`; `places` are by the id of a definition, or by the
    name that no file decides."""
    with (
        (folder / "files.jsonl").open(encoding="utf-8", newline="\n") as lines,
        (folder / "methods.csv").open("w", encoding="utf-8", newline="") as methods,
        (folder / "classes.csv").open("w", encoding="utf-8", newline="") as classes,
    ):
        tables = [
            csv.DictWriter(file, columns, extrasaction="ignore")
            for file, columns in ((classes, CLASS_COLUMNS), (methods, METHOD_COLUMNS))
        ]
        for table in tables:
            table.writeheader()
        for line in lines:
            for unit in json.loads(line)["units"]:
                tables[unit["kind"] in METHOD_KINDS].writerow(_row(unit, places))


def _row(unit: dict[str, Any], places: dict[str, list[str]]) -> dict[str, Any]:
    # A section's title may be a name of the code without meaning it.
    keys = () if unit["kind"] in TEXT_KINDS else (unit["id"], unit["name"])
    found = [place for key in keys for place in places.get(key, ())]
    row = {**unit, "file_path": unit["path"], "reference_count": len(found)}
    row["references"] = "; ".join(found[:MAX_REFERENCES])
    if unit["kind"] in METHOD_KINDS:
        return {**row, "code": unit_text(Unit(**unit))}
    declarations = "\n-----\n".join(unit["method_declarations"])
    return {**row, "class_name": unit["name"], "method_declarations": declarations}
