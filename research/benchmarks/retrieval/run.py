"""The search beside others: `python -m research.benchmarks.retrieval.run TREES [--json FILE]`.

TREES holds a folder for each repository of the questions, as `trees.py` beside this
lays them out. Asked are the development questions, and of the tuning questions those of the split
`tune` whose trees are there; the split `check` only with --check. In the same run stand BM25 over
functions, ripgrep with keywords and semble's BM25 (where they are installed); the lists in
`baselines/` are scored as they are. Differences are ours minus theirs, question by question.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeqa.indexing import Indexer
from codeqa.search.hybrid import open_search
from codeqa.settings import Settings, load_settings
from codeqa.store import Tables, locate, open_once
from research.benchmarks.machine import conditions
from research.benchmarks.retrieval.peers import (
    Bm25Functions,
    PeerMissingError,
    Ripgrep,
    asked,
    semble_lists,
    stored_lists,
)
from research.benchmarks.retrieval.report import document, save
from research.benchmarks.retrieval.sets import SPLITS, questions_of
from research.evals.search.questions import Question
from research.evals.search.ranked import Answered, Ranked, ask_all, load_ranked
from research.evals.search.scores import Report, score

OURS = "CodeQA"
VARIANTS = {OURS: {}, "CodeQA, rerank": {"rerank": True}, "CodeQA, no vectors": {"vectors": False}}
SEMBLE = "semble, BM25"

Say = Callable[[str], None]


@dataclass(slots=True)
class Lists:
    """What every system gave for a set of questions."""

    files: dict[str, list[Ranked]] = field(default_factory=dict)
    units: dict[str, list[Ranked]] = field(default_factory=dict)
    """Of systems whose lines are another list than their files."""
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, system: str, ranked: Iterable[Ranked]) -> None:
        self.files.setdefault(system, []).extend(ranked)

    def add_own(self, system: str, answers: Iterable[Answered]) -> None:
        for answered in answers:
            self.files.setdefault(system, []).append(answered.files)
            self.units.setdefault(system, []).append(answered.units)

    def reports(self, questions: Sequence[Question]) -> dict[str, Report]:
        """The figures of every system."""
        return {
            name: score(questions, ranked, self.units.get(name))
            for name, ranked in self.files.items()
        }


def run_set(
    questions: Sequence[Question],
    trees: Path,
    data: Path,
    systems: Sequence[str],
    semble: Path | None,
    say: Say,
) -> Lists:
    """Ask every system in `systems` the questions; each repository is indexed once."""
    settings = load_settings(data=data)
    lists = Lists()
    for repository in dict.fromkeys(question.repo for question in questions):
        own = [question for question in questions if question.repo == repository]
        say(f"{repository}: {len(own)} questions")
        _ours(settings, own, trees / repository, systems, lists)
    if "semble" in systems:
        try:
            lists.add(SEMBLE, semble_lists(questions, trees, semble))
        except PeerMissingError as missing:
            lists.left_out[SEMBLE] = str(missing)
    for reason in lists.left_out.values():
        say(f"left out: {reason}")
    return lists


def _ours(
    settings: Settings,
    questions: Sequence[Question],
    tree: Path,
    systems: Sequence[str],
    lists: Lists,
) -> None:
    location = locate(settings, tree)
    Indexer(settings, location).run(refine=False)
    for name, options in VARIANTS.items():
        if name == OURS or "variants" in systems:
            search = open_search(
                settings, open_once(location), vectors=options.get("vectors", True)
            )
            lists.add_own(name, ask_all(questions, search, rerank=options.get("rerank", False)))
    if "bm25" in systems:
        with tempfile.TemporaryDirectory() as folder:
            peer = Bm25Functions(Tables(location), tree, Path(folder))
            lists.add(Bm25Functions.name, asked(questions, peer.search))
    if "ripgrep" in systems:
        try:
            lists.add(Ripgrep.name, asked(questions, Ripgrep(tree).search))
        except PeerMissingError as missing:
            lists.left_out[Ripgrep.name] = str(missing)


def add_stored(lists: Lists) -> None:
    """The lists that are kept beside the development questions."""
    for name, path in stored_lists().items():
        lists.add(f"{name} (stored)", load_ranked(path))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.retrieval.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trees", type=Path, help="folder with the development repositories")
    parser.add_argument(
        "--tuning-trees", type=Path, help="where those of `tune` lie; default TREES"
    )
    parser.add_argument(
        "--check", action="store_true", help="also the split that is looked at once"
    )
    parser.add_argument(
        "--systems", nargs="*", default=["variants", "bm25", "ripgrep", "semble", "stored"],
        choices=["variants", "bm25", "ripgrep", "semble", "stored"], help="beside CodeQA",
    )  # fmt: skip
    parser.add_argument("--semble", type=Path, help="Python of an environment that has semble")
    parser.add_argument("--json", type=Path, help="write all figures here, and a table beside it")
    given = parser.parse_args(arguments)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    sets: dict[str, dict[str, Any]] = {}
    for split in SPLITS if given.check else SPLITS[:-1]:
        trees = given.trees if split == "development" else given.tuning_trees or given.trees
        questions, missing = questions_of(split, trees)
        if missing:
            say(f"{split}: no tree of {', '.join(missing)} in the folder; left out")
        if not questions:
            continue
        with tempfile.TemporaryDirectory() as data:
            lists = run_set(questions, trees, Path(data), given.systems, given.semble, say)
        if split == "development" and "stored" in given.systems and not missing:
            add_stored(lists)
        sets[split] = document(questions, lists.reports(questions), OURS, lists.left_out)
    if not sets:
        say("no tree is there: see `python -m research.benchmarks.retrieval.trees --help`")
        return 2
    command = ["python", "-m", "research.benchmarks.retrieval.run", "TREES"]
    command += ["--check"] if given.check else []
    print(save({**conditions(command), "sets": sets}, given.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
