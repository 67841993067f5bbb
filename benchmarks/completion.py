"""What a completion behind `@` takes: `python -m benchmarks.completion FOLDER … [--json FILE]`.

Each folder is an indexed repository. Its names are asked for as people type them: letter by
letter, by the first letters of their words, with an owner before them, by paths. With
`--symbols 100000` its definitions are repeated in further folders, under names of their own,
until there are so many. The times are those of `MentionIndex.complete` alone: by the clock and,
of all, in time of the processor, which a busy machine does not stretch.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE = 150
"""Definitions and files that are asked for, in each of the ways."""
LIMIT = 12
"""As many as the page asks for."""
ENDINGS = ("copy", "Impl", "async", "Base", "legacy", "Proxy", "v", "Local")


class Repeated:
    """The catalogue of an index, its definitions repeated until there are `count`."""

    def __init__(self, catalogue: Any, count: int) -> None:
        self._catalogue = catalogue
        self._count = count

    def definitions(self) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = self._catalogue.definitions()
        tables = [rows]
        while sum(map(len, tables)) < self._count:
            number = len(tables)
            ending = f"_{ENDINGS[number % len(ENDINGS)]}{number}"
            more = rows.set_column(
                0, "path", pc.binary_join_element_wise(f"p{number}", rows["path"], "/")
            )
            for column in ("name", "qualified_name"):
                at = more.schema.get_field_index(column)
                ended = pc.binary_join_element_wise(rows[column], ending, "")
                more = more.set_column(at, column, ended)
            tables.append(more)
        return pa.concat_tables([table.cast(rows.schema) for table in tables])[: self._count]

    def roles(self) -> Mapping[str, str]:
        known: dict[str, str] = self._catalogue.roles()
        paths = self.definitions()["path"].unique().to_pylist()
        return known | {path: known[path.partition("/")[2]] for path in paths if path not in known}


def typed(catalogue: Any) -> dict[str, list[str]]:
    """What is typed, by the way it is: the same in every run."""
    rows = catalogue.definitions().select(["name", "qualified_name"]).to_pylist()
    chosen = random.Random(7)
    names = chosen.choices(rows, k=SAMPLE)
    paths = chosen.choices(sorted(catalogue.roles()), k=SAMPLE)
    found: dict[str, list[str]] = {
        "letter by letter": [row["name"][:end] for row in names for end in (1, 2, 3, 5, 8, 13)],
        "whole name": [row["name"] for row in names],
        "inside": [row["name"][len(row["name"]) // 2 :] for row in names],
        "first letters": [_initials(row["name"]) for row in names],
        "owner and name": [row["qualified_name"] for row in names],
        "two words": [
            f"{path.split('/')[0]} {row['name'][:4]}"
            for path, row in zip(paths, names, strict=True)
        ],
        "path": [path[:end] for path in paths for end in (4, 12, 30)],
        "nothing like it": [row["name"][::-1] + "qx" for row in names],
    }  # fmt: skip
    return found


def _initials(name: str) -> str:
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)
    return "".join(word[0].lower() for word in words)


def measure(folder: Path, count: int) -> dict[str, Any]:
    """Milliseconds of each way, and of all; what the names take in memory and to be read."""
    import pyarrow as pa

    from codeqa.settings import load_settings
    from codeqa.store import Tables, locate
    from codeqa.symbols.mention_index import KINDS, MentionIndex

    catalogue: Any = Tables.open(locate(load_settings(), folder)).catalogue()
    if count:
        catalogue = Repeated(catalogue, count)
    ways = typed(catalogue)
    before = _resident()
    started = time.perf_counter()
    places = MentionIndex(catalogue)
    seconds = time.perf_counter() - started
    pa.default_memory_pool().release_unused()  # as the completer does
    grown = _resident() - before
    times: dict[str, list[float]] = {}
    worked: list[float] = []
    places.complete("warm", KINDS, LIMIT)
    for way, texts in ways.items():
        for text in texts:
            started, busy = time.perf_counter(), time.thread_time()
            places.complete(text, KINDS, LIMIT)
            times.setdefault(way, []).append((time.perf_counter() - started) * 1000)
            worked.append((time.thread_time() - busy) * 1000)
    times["all"] = [one for taken in times.values() for one in taken]
    times["all, of the processor"] = worked
    return {
        "repository": folder.name,
        "symbols": len(places.definitions),
        "files": len(catalogue.roles()),
        "read_seconds": round(seconds, 2),
        "grown_mb": round(grown / 1e6, 1),
        "milliseconds": {way: _figures(taken) for way, taken in times.items()},
    }


def _figures(taken: Sequence[float]) -> dict[str, float]:
    ordered = sorted(taken)
    return {
        "median": round(statistics.median(ordered), 1),
        "p95": round(ordered[int(len(ordered) * 0.95)], 1),
        "most": round(ordered[-1], 1),
    }


def _resident() -> int:
    import gc

    gc.collect()
    line = next(
        line
        for line in Path("/proc/self/status").read_text("ascii").splitlines()
        if line.startswith("VmRSS:")
    )
    return int(line.split()[1]) * 1024


def main(arguments: Sequence[str]) -> int:
    from benchmarks.machine import conditions

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--symbols", type=int, default=0, help="repeat definitions up to so many")
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args(arguments)
    results = [measure(folder.resolve(), given.symbols) for folder in given.folders]
    for result in results:
        print(f"{result['repository']}: {result['symbols']:,} symbols, {result['files']:,} files, "
              f"read in {result['read_seconds']} s, "
              f"process grown by {result['grown_mb']} MB")  # fmt: skip
        for way, figures in result["milliseconds"].items():
            print(f"  {way:22} {figures['median']:6} {figures['p95']:6} {figures['most']:6}")
    if given.json:
        names = [folder.name for folder in given.folders]
        command = ["python", "-m", "benchmarks.completion", *names]
        command += ["--symbols", str(given.symbols)] if given.symbols else []
        told = {**conditions(command), "results": results}
        given.json.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
