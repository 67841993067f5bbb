"""Yield what a repository holds, file by file and without an index, or write it as files.

The files are `files.jsonl`, one line for each file of the repository, and two tables, `methods` and
`classes`, as CSV or Parquet, written through frames of pandas: the columns of the source system but
for its embeddings, then ours.
References are `file:line:col` joined by `; `: places whose file decides that the unit is meant,
then those that merely bear its name, up to `MAX_REFERENCES`, with the full count beside them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from codeqa.parsing.pool import FileResult, parse_many
from codeqa.repository.walk import walk
from codeqa.settings import Settings, load_settings
from codeqa.text.unit_text import unit_text
from codeqa.types import METHOD_KINDS, TEXT_KINDS, Progress, Skipped, Unit

if TYPE_CHECKING:
    from pandas import DataFrame

FORMATS = ("csv", "parquet")
FRAME_ROWS = 2_000
"""Rows of a table that are in memory at once."""
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
    listing = walk(Path(repo), max_file_bytes=largest, own=[settings.data_dir])
    left_out = [] if skipped is None else skipped
    left_out += listing.skipped
    workers = settings.worker_count
    results = parse_many(listing.root, listing.files, workers=workers, max_file_bytes=largest)
    early: dict[str, FileResult] = {}  # workers take files in order: little ever waits
    for done, entry in enumerate(listing.files, 1):
        while entry.path not in early:
            result = next(results)
            early[result.path] = result
        result = early.pop(entry.path)
        if progress is not None:
            progress(Progress("parsing", done, len(listing.files), result.path))
        if result.reason:
            left_out.append(Skipped(result.path, result.reason))
        else:
            yield result.packed


def json_line(file: dict[str, Any]) -> str:
    """Write one file as one line of JSON, `\n` included: its units and references as objects."""
    return json.dumps(file, ensure_ascii=False, separators=(",", ":")) + "\n"


def write_files(files: Iterable[dict[str, Any]], folder: Path, table_format: str = "csv") -> None:
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
                for edge in file["references"]:
                    place = f"{edge['path']}:{edge['line']}:{edge['column']}"
                    places[edge["target"] or edge["name"]].append(place)
        for name, columns in (("methods", METHOD_COLUMNS), ("classes", CLASS_COLUMNS)):
            frames = _frames(Path(part, "files.jsonl"), name == "methods", columns, places)
            _write_table(Path(part, f"{name}.{table_format}"), frames)
        for path in Path(part).iterdir():
            path.replace(folder / path.name)


def _frames(
    lines: Path, methods: bool, columns: Sequence[str], places: dict[str, list[str]]
) -> Iterator[DataFrame]:
    """Yield the table of the methods, or of all other units, in one part or more.

    `places` are by the id of a definition, or by a name that no file resolves.
    """
    from pandas import DataFrame

    with lines.open(encoding="utf-8", newline="\n") as file:
        units = (unit for line in file for unit in json.loads(line)["units"])
        rows = (_row(unit, places) for unit in units if (unit["kind"] in METHOD_KINDS) == methods)
        batch = list(islice(rows, FRAME_ROWS))
        yield DataFrame(batch, columns=list(columns))
        while batch := list(islice(rows, FRAME_ROWS)):
            yield DataFrame(batch, columns=list(columns))


def _write_table(path: Path, frames: Iterator[DataFrame]) -> None:
    """Write `frames`, parts of one table, in the format that the name of `path` ends with."""
    first = next(frames)
    if path.suffix == ".csv":
        first.to_csv(path, index=False)
        for frame in frames:
            frame.to_csv(path, index=False, header=False, mode="a")
        return
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    table = pa.Table.from_pandas(first, preserve_index=False)
    with ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        for frame in frames:
            writer.write_table(pa.Table.from_pandas(frame, table.schema, preserve_index=False))


def _row(unit: dict[str, Any], places: dict[str, list[str]]) -> dict[str, Any]:
    # A section's title may be a name of the code without meaning it.
    keys = () if unit["kind"] in TEXT_KINDS else (unit["id"], unit["name"])
    own_places = list(chain.from_iterable(places.get(key, ()) for key in keys))
    row = {**unit, "file_path": unit["path"], "reference_count": len(own_places)}
    row["references"] = "; ".join(own_places[:MAX_REFERENCES])
    if unit["kind"] in METHOD_KINDS:
        return {**row, "code": unit_text(Unit(**unit))}
    declarations = "\n-----\n".join(unit["method_declarations"])
    return {**row, "class_name": unit["name"], "method_declarations": declarations}
