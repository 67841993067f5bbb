"""How long a question over several repositories takes:
`python -m benchmarks.multi_repo TREES --work FOLDER [--json FILE]`.

The trees (folders of source) are copied in turn until there are 50, and each copy is indexed,
which a second run with the same `--work` need not do again. Then the same questions are asked of
one, of ten and of all: *search* alone, and the whole *answer*, quoted, without a language model.
Recorded are the median, and the processor's time in all threads, which a busy machine stretches
less. What a first question waits for, while 50 indices are opened, is told apart (`opening`).

With `--quality` also how often the file that answers a question is the first, and among the first
five, when its repository is asked alone and when all TREES that have development questions are:
those alone are indexed and asked then.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import conditions, memory_mb
from benchmarks.retrieval.sets import questions_of
from codeqa.chat.values import AskOptions
from codeqa.engine import Engine, open_engine, open_multi_repo
from codeqa.indexing import Indexer
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, locate
from evals.search.questions import Question

TOGETHER = (1, 10, 50)
ROUNDS = 3
WARM = 5.0
"""Seconds between the questions that are asked before those that count: units that are searched
again after `lookups.KEEP_AFTER` are copied into memory meanwhile."""
QUESTIONS = (
    "how are blueprints registered?", "where is the session cookie opened?",
    "how does the router match a path?", "how is a task retried after a failure?",
    "what happens when the request body is too large?", "how is json parsed into objects?",
    "where are log lines written?", "how does middleware wrap a handler?",
)  # fmt: skip


def copies(trees: Path, work: Path, number: int) -> list[Path]:
    """`number` folders, copies of those in `trees` in turn."""
    originals = sorted(folder for folder in trees.iterdir() if folder.is_dir())
    found = []
    for count, original in zip(range(number), itertools.cycle(originals)):
        copy = work / "copies" / f"{original.name}-{1 + count // len(originals)}"
        if not copy.exists():
            shutil.copytree(original, copy, symlinks=True)
        found.append(copy)
    return found


def indexed(settings: Settings, folders: Sequence[Path]) -> list[Location]:
    """The indices of `folders`, made where they are not there."""
    places = [locate(settings, folder) for folder in folders]
    for place in places:
        if not Path(place.tables).exists():
            Indexer(settings, place).run(refine=False)
    return places


def timed(ask: Callable[[str], object]) -> dict[str, float]:
    """Milliseconds of a question: the median, and the mean of processor time."""
    times, processor = [], time.process_time()
    for question in QUESTIONS * ROUNDS:
        started = time.perf_counter()
        ask(question)
        times.append((time.perf_counter() - started) * 1000)
    spent = (time.process_time() - processor) * 1000 / len(times)
    return {"median_ms": round(statistics.median(times), 1), "processor_ms": round(spent, 1)}


def measure(settings: Settings, places: Sequence[Location]) -> dict[str, Any]:
    """What asking all of `places` together takes."""
    started = time.perf_counter()
    alone = len(places) == 1
    engine = open_engine(settings, places[0].root) if alone else open_multi_repo(settings, places)
    engine.search.search(QUESTIONS[0])
    opening = time.perf_counter() - started

    def answer(question: str) -> None:
        options = AskOptions(f"@codebase {question}", use_model=False, keep=False)
        for _ in engine.chat.ask(options):
            pass

    for _ in range(ROUNDS):  # each repository that they search has its units in memory then
        for question in QUESTIONS:
            answer(question)
        time.sleep(WARM / ROUNDS)
    found = {
        "repositories": len(places),
        "units": engine.tables().counts().units,
        "opening_seconds": round(opening, 1),
        "search": timed(engine.search.search),
        "answer": timed(answer),
        "memory_mb": round(memory_mb()),
    }
    engine.close()
    return found


def quality(settings: Settings, trees: Path) -> dict[str, Any]:
    """hit@1 and hits within five of the files that answer the development questions."""
    questions, _ = questions_of("development", trees)
    places = {name: locate(settings, trees / name) for name in {one.repo for one in questions}}
    indexed(settings, [place.root for place in places.values()])
    together = open_multi_repo(settings, list(places.values()))
    engines = {name: open_engine(settings, place.root) for name, place in places.items()}
    alone = [_rank(engines[one.repo], one, "") for one in questions]
    joint = [_rank(together, one, f"{one.repo}/") for one in questions]
    return {
        "repositories": sorted(places),
        "questions": len(questions),
        "alone": {f"within {most}": _share(alone, most) for most in (1, 5)},
        "together": {f"within {most}": _share(joint, most) for most in (1, 5)},
    }


def _rank(engine: Engine, question: Question, prefix: str) -> int:
    """The place of the first file that answers it, from 0; a large number where none is found."""
    wanted = {prefix + path for path in question.main_files}
    files = engine.search.search(question.question, top=10).files
    return next((place for place, file in enumerate(files) if file.path in wanted), sys.maxsize)


def _share(ranks: Sequence[int], most: int) -> float:
    return round(sum(rank < most for rank in ranks) / len(ranks), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    settings = load_settings(data=given.work / "data")
    found: dict[str, Any] = conditions([*sys.orig_argv])
    if given.quality:
        found["quality"] = quality(settings, given.trees)
    else:
        places = indexed(settings, copies(given.trees, given.work, TOGETHER[-1]))
        found["times"] = [measure(settings, places[:number]) for number in TOGETHER]
    print(json.dumps(found, indent=2))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
