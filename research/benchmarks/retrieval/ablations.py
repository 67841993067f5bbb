"""What each signal is worth.

    python -m research.benchmarks.retrieval.ablations TREES [--tuning-trees DIR]

The candidates of every development and `tune` question are gathered once; then they are ranked
with one constant changed at a time. Written are the figures of each variant, its difference from
the search as it is, and in how many repositories it is better or worse by more than .001 in the
mean of the figures. It is not a search for the best constants: they were chosen on `tune` alone,
among changes that did not lose on the development questions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from codeqa.embeddings.registry import query_embedding
from codeqa.indexing import Indexer
from codeqa.search import channels as channel_module
from codeqa.search import ranking as ranking_module
from codeqa.search import rerank as rerank_module
from codeqa.search.channels import Candidates, gather, resolve_query
from codeqa.search.query import Query, parse_query
from codeqa.search.ranking import rank, rank_files
from codeqa.settings import load_settings
from codeqa.store import Tables, locate
from codeqa.types import Hit, Unit
from research.benchmarks.machine import conditions
from research.benchmarks.retrieval.sets import questions_of
from research.evals.search.questions import Question
from research.evals.search.ranked import Ranked
from research.evals.search.scores import score

FIGURES = ("ndcg@10", "hit@1", "recall@10", "line ndcg@10", "cover@500")
BETTER = 0.001
MODULES = {
    "ranking": ranking_module,
    "fusion": ranking_module,
    "channels": channel_module,
    "built_in": rerank_module,
}
Change = dict[tuple[str, str], Any]
CONSTANTS: dict[str, Change] = {
    "no full text": {("fusion", "WEIGHTS"): {"text": 0.0}},
    "full text as heavy as vectors": {("fusion", "WEIGHTS"): {"text": 1.0}},
    "no word coverage": {("ranking", "COVERAGE_WEIGHT"): 0.0},
    "word coverage 0.5": {("ranking", "COVERAGE_WEIGHT"): 0.5},
    "no symbol": {("ranking", "SYMBOL_WEIGHT"): 0.0},
    "no quoted text": {("ranking", "PHRASE_WEIGHT"): 0.0},
    "no files named by the question": {("ranking", "PATH_WEIGHT"): 0.0},
    "classes as methods": {("ranking", "TYPE_PENALTY"): 0.0},
    "tests and the like not pushed back": {
        ("ranking", "ROLE_FACTOR"): 1.0,
        ("ranking", "ASKED_ROLE_FACTOR"): 1.0,
    },
    "tests and the like by half": {("ranking", "ROLE_FACTOR"): 0.5},
    "not pushed back when asked for": {("ranking", "ASKED_ROLE_FACTOR"): 1.0},
    "files not lifted by several hits": {("ranking", "FILE_LIFT"): 0.0},
    "files lifted by half as much": {("ranking", "FILE_LIFT"): 0.1},
}
PARTS: dict[str, Change] = {
    "rerank without passages": {("built_in", "PASSAGE_WEIGHT"): 0.0},
    "rerank without late interaction": {("built_in", "LATE_WEIGHT"): 0.0},
    "rerank without uses": {("built_in", "USED_WEIGHT"): 0.0},
}


@dataclass(slots=True)
class Case:
    """A question, how it was understood, and what was found for it."""

    question: Question
    query: Query
    found: Candidates


Row = dict[str, float]
Ranking = Callable[[Case], list[Hit]]


def ranked(case: Case) -> list[Hit]:
    """As a search ranks."""
    return rank(case.found, case.query)


def reranked(case: Case) -> list[Hit]:
    """As a search ranks that is asked to rerank; files keep their order there and here."""
    return rerank_module.rerank_built_in(ranked(case), case.query).hits


def judged(cases: Sequence[Case], ranking: Ranking) -> list[Row]:
    """The figures of each question: of lines as `ranking` has them, of files as a search has."""

    def lists(found: Iterable[list[dict[str, Any]]]) -> list[Ranked]:
        asked = [case.question for case in cases]
        pairs = zip(asked, found, strict=True)
        return [Ranked(one.id, one.repo, one.question, tuple(hits)) for one, hits in pairs]

    files = lists([{"path": one.path} for one in rank_files(ranked(case))[:50]] for case in cases)
    units = lists([place(hit.unit) for hit in ranking(case)[:50]] for case in cases)
    report = score([case.question for case in cases], files, units)
    return [{name: row[name] for name in FIGURES if name in row} for row in report.per_question]


def place(unit: Unit) -> dict[str, Any]:
    return {"path": unit.path, "start": unit.start_line, "end": unit.end_line}


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """Constants replaced for a while; a mapping is merged into the one that is there."""
    before = {place: getattr(MODULES[place[0]], place[1]) for place in change}
    for (module, name), value in change.items():
        old = before[module, name]
        setattr(MODULES[module], name, {**old, **value} if isinstance(value, dict) else value)
    try:
        yield
    finally:
        for (module, name), value in before.items():
            setattr(MODULES[module], name, value)


def without_vectors(case: Case) -> Case:
    others = {name: scores for name, scores in case.found.channels.items() if name != "vector"}
    kept = {key for scores in others.values() for key in scores}
    units = {key: unit for key, unit in case.found.units.items() if key in kept}
    return replace(case, found=Candidates(units, others))


def measure(
    questions: Sequence[Question], trees: Path, data: Path, say: Callable[[str], None]
) -> dict[str, list[Row]]:
    """Variant → figures of each question, in one order."""
    settings = load_settings(data=data)
    finder = cache(partial(query_embedding, settings))
    rows: dict[str, list[Row]] = {}
    for repository in dict.fromkeys(question.repo for question in questions):
        say(repository)
        location = locate(settings, trees / repository)
        Indexer(settings, location).run(refine=False)
        tables = Tables(location)
        encoders = {
            column: encoder
            for column, record in tables.vector_columns()
            if (encoder := finder(record.name))
        }
        cases = []
        for question in (one for one in questions if one.repo == repository):
            query, _ = resolve_query(tables, parse_query(question.question))
            found = gather(tables, query, encoders)
            cases.append(Case(question, query, found))

        def add(name: str, some: Sequence[Case], ranking: Ranking = ranked) -> None:
            rows.setdefault(name, []).extend(judged(some, ranking))

        add("as it is", cases)
        add("no vectors", list(map(without_vectors, cases)))
        for name, change in CONSTANTS.items():
            with changed(change):
                add(name, cases)
        add("rerank", cases, reranked)
        for name, change in PARTS.items():
            with changed(change):
                add(name, cases, reranked)
    return rows


def table(rows: Mapping[str, list[Row]], repositories: Sequence[str]) -> list[dict[str, Any]]:
    """Each variant with its means, differences, and the repositories it is better and worse in."""
    base = rows["as it is"]
    found = []
    for name, own in rows.items():
        means = {key: statistics.fmean(row[key] for row in own if key in row) for key in FIGURES}
        before = {key: statistics.fmean(row[key] for row in base if key in row) for key in FIGURES}
        by_repository: dict[str, list[float]] = {}
        for repository, row, old in zip(repositories, own, base, strict=True):
            gain = statistics.fmean(row[key] - old[key] for key in row)
            by_repository.setdefault(repository, []).append(gain)
        gains = [statistics.fmean(values) for values in by_repository.values()]
        found.append(
            {
                "variant": name,
                "figures": {key: round(value, 4) for key, value in means.items()},
                "difference": {key: round(means[key] - before[key], 4) for key in FIGURES},
                "better_in": sum(gain > BETTER for gain in gains),
                "worse_in": sum(gain < -BETTER for gain in gains),
            }
        )
    return found


def markdown(sets: Mapping[str, list[dict[str, Any]]]) -> str:
    """The tables for readers."""
    lines = ["# What each signal is worth", "", *__doc__.split("\n")[4:]]
    for name, variants in sets.items():
        lines += ["", f"## {name}", "", f"| | {' | '.join(FIGURES)} | better / worse in |"]
        lines.append("|---" * (len(FIGURES) + 2) + "|")
        for one in variants:
            shown = one["figures"] if one["variant"] == "as it is" else one["difference"]
            form = "{:.3f}" if one["variant"] == "as it is" else "{:+.3f}"
            cells = " | ".join(form.format(shown[key]) for key in FIGURES)
            lines.append(f"| {one['variant']} | {cells} | {one['better_in']} / {one['worse_in']} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.retrieval.ablations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trees", type=Path, help="folder with the development repositories")
    parser.add_argument("--tuning-trees", type=Path, help="where those of `tune` lie")
    parser.add_argument("--json", type=Path, help="write all figures here, and tables beside it")
    given = parser.parse_args(arguments)
    sets = {}
    for split in ("tune", "development"):
        trees = given.trees if split == "development" else given.tuning_trees or given.trees
        questions, _ = questions_of(split, trees)
        if not questions:
            continue
        order = [
            question
            for repository in dict.fromkeys(question.repo for question in questions)
            for question in questions
            if question.repo == repository
        ]
        with tempfile.TemporaryDirectory() as data:
            rows = measure(
                order, trees, Path(data), lambda text: print(text, file=sys.stderr, flush=True)
            )
        sets[split] = table(rows, [question.repo for question in order])
    text = markdown(sets)
    if given.json:
        found = {**conditions(["python", "-m", "research.benchmarks.retrieval.ablations", "TREES"])}
        given.json.write_text(json.dumps({**found, "sets": sets}, indent=2) + "\n", "utf-8")
        given.json.with_suffix(".md").write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
