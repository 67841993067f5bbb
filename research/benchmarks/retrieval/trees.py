"""Trees of the questions: `python -m research.benchmarks.retrieval.trees MIRRORS OUT`.

MIRRORS is a folder of git repositories that are at hand, in any usual layout; nothing is
downloaded. OUT/<name> becomes the tree of each repository of `repositories.jsonl` at its pinned
commit, without git. Comments that became questions are emptied, line for line, so that a question
made from a comment is not answered by finding it. Then every target of the questions is looked up.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from research.benchmarks.retrieval.sets import SETS
from research.evals.search.questions import Question, load_questions
from research.training.mirrors import Mirror, MirrorError, find_mirror

HERE = Path(__file__).resolve().parent


def repositories() -> list[dict[str, Any]]:
    """The lines of `repositories.jsonl`."""
    lines = (HERE / "repositories.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def lay_out(repository: dict[str, Any], mirrors: Path, out: Path) -> str:
    """Write one tree; what is wrong with it, '' for nothing. A tree that is there is kept."""
    folder = out / repository["name"]
    if folder.is_dir() and any(folder.iterdir()):
        return ""
    directory = find_mirror(mirrors, repository["repository"])
    if directory is None:
        return f"no mirror of {repository['repository']} in {mirrors}"
    lacking = 0
    try:
        with Mirror(directory) as mirror:
            for entry in mirror.tree(mirror.commit(repository["commit"])):
                content = mirror.read(entry.blob)
                if content is None:
                    lacking += 1
                    continue
                for path, first, last in repository["emptied"]:
                    if path == entry.path:
                        content = emptied(content, first, last)
                target = folder / entry.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    except MirrorError:
        return f"the mirror of {repository['repository']} lacks {repository['commit'][:12]}"
    return f"the mirror lacks {lacking} files" if lacking else ""


def emptied(content: bytes, first: int, last: int) -> bytes:
    """`content` with the lines `first` to `last` (from 1) made empty, their ends kept."""
    lines = content.split(b"\n")
    for at in range(first - 1, min(last, len(lines))):
        lines[at] = b"\r" if lines[at].endswith(b"\r") else b""
    return b"\n".join(lines)


def wrong_targets(questions: Iterable[Question], out: Path) -> list[str]:
    """Targets whose file is not there or ends before their last line."""
    wrong = []
    for question in questions:
        for target in question.relevant:
            path = out / question.repo / target.path
            if not path.is_file():
                wrong.append(f"{question.id}: {target.path} is missing")
            elif target.end > path.read_bytes().count(b"\n") + 1:
                wrong.append(f"{question.id}: {target.path} ends before line {target.end}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when a tree or a target is not as it should be."""
    options = argparse.ArgumentParser(
        prog="python -m research.benchmarks.retrieval.trees",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("mirrors", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--only", choices=SETS, nargs="+", default=list(SETS))
    given = options.parse_args(arguments)
    trouble = []
    for repository in repositories():
        if repository["questions"] in given.only:
            problem = lay_out(repository, given.mirrors, given.out)
            print(f"{repository['name']}: {problem or repository['commit'][:12]}")
            trouble += [problem] if problem else []
    for name in given.only:
        questions = load_questions(SETS[name])
        wrong = wrong_targets(questions, given.out)
        print(f"{name}: {len(questions)} questions, {len(wrong)} targets wrong")
        print("\n".join(wrong), end="\n" if wrong else "")
        trouble += wrong
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
