"""Ranked lists as text, to be read: `python -m research.benchmarks.retrieval.golden TREES`.

Writes research/benchmarks/results/golden/<repo>.txt: each question with its best ten units, a line
`path:first-last symbol` each, main targets marked. There are no scores in it, so that only a
change of the ranking is a difference, and one that can be read. With --check nothing is written:
the differences are shown, and the status is 1 when there are any.

Asked are, of each repository and category of the development questions, the first few.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from codeqa.indexing import Indexer
from codeqa.search.hybrid import Search, open_search
from codeqa.settings import load_settings
from codeqa.store import locate, open_once
from codeqa.types import Unit
from research.benchmarks.retrieval.sets import questions_of
from research.evals.search.questions import Question

GOLDEN = Path(__file__).resolve().parent.parent / "results" / "golden"
PER_CATEGORY = 5
"""Questions of each category of a repository: 83 in all."""
LISTED = 10


def chosen(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """Repository → its golden questions, in the order of the file."""
    taken: dict[tuple[str, str], int] = {}
    found: dict[str, list[Question]] = {}
    for question in questions:
        key = (question.repo, question.category)
        taken[key] = taken.get(key, 0) + 1
        if taken[key] <= PER_CATEGORY:
            found.setdefault(question.repo, []).append(question)
    return found


def text_of(questions: Sequence[Question], search: Search) -> str:
    """The lists of one repository."""
    blocks = []
    for question in questions:
        lines = [f"{question.id} ({question.category}): {question.question}"]
        lines += [
            f"  {'*' if _answers(hit.unit, question) else ' '} {hit.unit.span} "
            f"{hit.unit.qualified_name}".rstrip()
            for hit in search.search(question.question, top=LISTED).units
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _answers(unit: Unit, question: Question) -> bool:
    """Whether a unit lies in a main target, or holds one."""
    return any(
        unit.path == target.path
        and (not target.start or (unit.start_line <= target.end and unit.end_line >= target.start))
        for target in question.relevant
        if target.grade == 2
    )


def difference(old: str, new: str, name: str) -> str:
    """A unified diff; '' for the same text."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{name} (written)", f"{name} (now)", lineterm="", n=2
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when --check finds differences, 2 when trees are missing."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.retrieval.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trees", type=Path, help="folder with the development repositories")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--out", type=Path, default=GOLDEN, help="folder of the lists")
    given = parser.parse_args(arguments)
    questions, missing = questions_of("development", given.trees)
    if missing:
        print(f"golden: no tree of {', '.join(missing)} in the folder", file=sys.stderr)
        if not questions:
            return 2
    changed = 0
    with tempfile.TemporaryDirectory() as data:
        settings = load_settings(data=Path(data))
        for repository, asked in chosen(questions).items():
            location = locate(settings, given.trees / repository)
            Indexer(settings, location).run(refine=False)
            text = text_of(asked, open_search(settings, open_once(location)))
            path = given.out / f"{repository}.txt"
            old = path.read_text("utf-8") if path.exists() else ""
            if given.check:
                found = difference(old, text, path.name)
                changed += bool(found)
                print(found or f"{path.name}: {len(asked)} lists as written")
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
                print(f"{path.name}: {len(asked)} lists")
    return 1 if changed or (given.check and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
