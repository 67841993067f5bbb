"""The two tables as CSV files, `methods.csv` and `classes.csv`, with S0's columns.

Columns of ours follow S0's. References are the places where a unit's name is called or
used, `file:line:col` joined by `; `: those whose file decides the target, then those that
merely bear the name, up to `MAX_REFERENCES`, with the full count beside them.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from codeqa.parsing.preprocess import json_line
from codeqa.text.unit_text import unit_text
from codeqa.types import METHOD_KINDS, TEXT_KINDS, ParsedFile, Unit

METHODS_FILE, CLASSES_FILE = "methods.csv", "classes.csv"

REFERENCE_SEPARATOR = "; "
"""Between places (S0.11)."""
DECLARATION_SEPARATOR = "\n-----\n"
"""Between method declarations (S0.12)."""

MAX_REFERENCES = 50
"""Places that a row names; a common name such as `get` has thousands."""

METHOD_COLUMNS = (
    "code", "file_path", "class_name", "name", "doc_comment", "source_code", "references",
    "reference_count", "language", "kind", "qualified_name", "signature", "start_line",
    "end_line", "role", "id",
)  # fmt: skip
"""S0.06 without its embeddings, then ours."""

CLASS_COLUMNS = (
    "source_code", "file_path", "class_name", "constructor_declaration", "method_declarations",
    "references", "reference_count", "language", "kind", "qualified_name", "doc_comment",
    "start_line", "end_line", "role", "id",
)  # fmt: skip
"""S0.07 without its embeddings, then ours."""

_ROWS_AT_ONCE = 2_000


def write_csv(files: Iterable[ParsedFile], folder: Path) -> tuple[int, int]:
    """Write both tables into `folder` and return their numbers of rows.

    A unit's references are known only when every file has been read, so the units wait in
    a temporary file; in memory are the references alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = _Places()
    with tempfile.TemporaryFile("w+", encoding="utf-8", dir=folder) as spool:
        for parsed in files:
            places.add(parsed)
            spool.write(json_line(parsed))
        methods = _write_table(spool, folder / METHODS_FILE, METHOD_COLUMNS, places, True)
        classes = _write_table(spool, folder / CLASSES_FILE, CLASS_COLUMNS, places, False)
    return methods, classes


class _Places:
    """Where each definition, or each name that no file decides, is referred to."""

    def __init__(self) -> None:
        self._by_target: defaultdict[str, list[str]] = defaultdict(list)
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, parsed: ParsedFile) -> None:
        for reference in parsed.references:
            place = f"{reference.path}:{reference.line}:{reference.column}"
            if reference.target:
                self._by_target[reference.target].append(place)
            else:
                self._by_name[reference.name].append(place)

    def of(self, identity: str, name: str) -> tuple[str, int]:
        """The places as text, and how many there are."""
        decided = self._by_target.get(identity, [])
        named = self._by_name.get(name, [])
        shown = [*decided[:MAX_REFERENCES], *named[: max(0, MAX_REFERENCES - len(decided))]]
        return REFERENCE_SEPARATOR.join(shown), len(decided) + len(named)


def _write_table(
    spool: IO[str], target: Path, columns: tuple[str, ...], places: _Places, methods: bool
) -> int:
    import pandas

    spool.seek(0)
    rows = _rows(spool, places, methods)
    partial = target.with_name(target.name + ".part")
    count = 0
    with partial.open("w", encoding="utf-8", newline="") as file:
        pandas.DataFrame(columns=list(columns)).to_csv(file, index=False)
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            pandas.DataFrame(batch, columns=list(columns)).to_csv(file, index=False, header=False)
            count += len(batch)
    partial.replace(target)  # an interrupted run leaves no half table under the name
    return count


def _rows(spool: IO[str], places: _Places, methods: bool) -> Iterator[dict[str, Any]]:
    for line in spool:
        content = json.loads(line)
        for values in content["units"]:
            if (values["kind"] in METHOD_KINDS) is not methods:
                continue
            # A section's title may be a name of the code without meaning it.
            defines = values["kind"] not in TEXT_KINDS
            references, count = places.of(values["id"], values["name"]) if defines else ("", 0)
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
