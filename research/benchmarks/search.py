"""How long a search takes: `python -m research.benchmarks.search FOLDER … [--json FILE]`.

The folders are indexed together as one repository (a copy, by links where that is possible), so
that several trees make a large one. Asked are the texts of the development questions, and as many
names drawn from the index; those of the first seconds, while tables are opened and units are
read into memory, are not counted. *Context* is from the question to the block that a model would be
sent, at the efforts fast and normal. No language model takes part.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codeqa.context.block import ContextBlock
from codeqa.indexing import Indexer
from codeqa.search.hybrid import Search, open_search
from codeqa.selection import UNITS_RANKED, Budget, budget_of, build_context
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, Tables, locate, open_once
from research.benchmarks.machine import conditions
from research.benchmarks.retrieval.sets import SETS
from research.evals.search.questions import load_questions

WARM = 4.0
"""Seconds of searching before what counts: a server has its tables open and its units in memory."""
RUNS: dict[str, dict[str, Any]] = {
    "search": {},
    "with rerank": {"rerank": True},
    "without vectors": {"vectors": False},
    "context, fast": {"effort": "fast"},
    "context, normal": {"effort": "normal"},
}


def joined(folders: Sequence[Path], target: Path) -> Path:
    """All `folders` side by side in `target`; a single one stays where it is."""
    if len(folders) == 1:
        return folders[0]
    for number, folder in enumerate(folders):
        shutil.copytree(
            folder,
            target / f"{number}-{folder.name}",
            symlinks=True,
            ignore=shutil.ignore_patterns(".git"),
            copy_function=_link,
        )
    return target


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another disk
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def texts(tables: Tables, names: int) -> list[str]:
    """Questions in words, and `names` names of definitions; the same in every run."""
    questions = [question.question for question in load_questions(SETS["development"])]
    files = [record.path for record in tables.files() if record.status == "indexed"]
    drawn = random.Random(7)
    found: list[str] = []
    for path in drawn.sample(files, min(len(files), 4 * names)):
        own = [unit.qualified_name for unit in tables.in_file(path) if unit.is_method]
        found += drawn.sample(own, min(len(own), 1))
        if len(found) >= names:
            break
    asked = questions + found
    drawn.shuffle(asked)
    return asked


def measure(settings: Any, location: Location, asked: Sequence[str]) -> dict[str, Any]:
    """Milliseconds of every way to search: median, 95th percentile, the slowest, and the mean of
    the processor's time in all threads, which a busy machine does not stretch."""
    found = {}
    for name, options in RUNS.items():
        tables = open_once(location)
        search = open_search(settings, tables, vectors=options.get("vectors", True))
        if effort := options.get("effort"):
            budget = budget_of(effort, settings)
            ask: Callable[[str], Any] = partial(_context, search, tables, settings, budget)
        else:
            ask = partial(search.search, rerank=options.get("rerank", False))
        warm = time.monotonic() + WARM
        for text in itertools.cycle(asked):
            if time.monotonic() > warm:
                break
            ask(text)
        times = []
        processor = time.process_time()
        for text in asked:
            started = time.perf_counter()
            ask(text)
            times.append((time.perf_counter() - started) * 1000)
        processor = (time.process_time() - processor) * 1000 / len(times)
        cuts = statistics.quantiles(times, n=20, method="inclusive")
        found[name] = {
            "median": round(statistics.median(times), 1),
            "p95": round(cuts[-1], 1),
            "slowest": round(max(times), 1),
            "processor": round(processor, 1),
        }
    return found


def _context(
    search: Search, tables: Callable[[], Tables], settings: Settings, budget: Budget, text: str
) -> ContextBlock:
    return build_context(tables(), search.search(text, top=UNITS_RANKED), settings, budget)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--names", type=int, default=100, help="names asked for; default 100")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        root = joined([folder.resolve() for folder in given.folder], Path(work) / "trees")
        settings = load_settings(data=Path(work) / "data")
        location = locate(settings, root)
        summary = Indexer(settings, location).run(refine=False)
        tables = Tables(location)
        counts = tables.counts()
        asked = texts(tables, given.names)
        result = {
            **conditions(
                ["python", "-m", "research.benchmarks.search", *(f.name for f in given.folder)]
            ),
            "files": counts.files,
            "units": counts.units,
            "questions": len(asked),
            "index_seconds": round(summary.seconds, 1),
            "milliseconds": measure(settings, location, asked),
        }
    print(f"{result['units']:,} units in {result['files']:,} files, {len(asked)} searches each")
    for name, times in result["milliseconds"].items():
        print(
            f"  {name:<18} median {times['median']:7.1f} ms   95 % below {times['p95']:7.1f} ms   "
            f"processor {times['processor']:7.1f} ms"
        )
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
