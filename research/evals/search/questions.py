"""Questions about repositories, with the places that answer them.

A file of questions has one JSON object a line::

    {"id": "gin-002", "repo": "gin", "question": "radix tree path matching",
     "category": "semantic", "language": "go", "source": "semble",
     "relevant": [{"path": "tree.go", "grade": 2, "start": 130, "end": 260, "symbol": "node"}]}

`grade` is 2 for a main target, which answers the question by itself, 1 for a secondary one.
Lines are 1-based, both ends included; a target without them is its whole file. Without `grade` a
target is a main one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from codeqa.errors import UsageError

MAIN: Literal[2] = 2
SECONDARY: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class Target:
    """A place that answers a question."""

    path: str
    grade: Literal[1, 2] = MAIN
    start: int = 0
    """First line; 0 where the whole file is meant."""
    end: int = 0
    symbol: str = ""

    @property
    def lines(self) -> int:
        """How many lines it has; 0 where the whole file is meant."""
        return self.end - self.start + 1 if self.start else 0


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one repository."""

    id: str
    repo: str
    question: str
    relevant: tuple[Target, ...]
    category: str = ""
    language: str = ""
    source: str = ""

    @property
    def main_files(self) -> frozenset[str]:
        return frozenset(target.path for target in self.relevant if target.grade == MAIN)

    @property
    def main_lines(self) -> tuple[Target, ...]:
        """Main targets that name lines."""
        return tuple(t for t in self.relevant if t.grade == MAIN and t.start)


def load_questions(path: Path) -> list[Question]:
    """All questions of a file, in its order.

    Raises UsageError that names the line for what cannot be read, OSError as reading does.
    """
    form = TypeAdapter(Question)
    found: dict[str, Question] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            question = form.validate_json(line)
            _check(question)
        except ValueError as error:
            raise UsageError(
                f"{path}, line {number}: {problem_in(error)}.",
                "Each line is an object with id, repo, question and relevant.",
            ) from None
        if question.id in found:
            raise UsageError(f"{path}, line {number}: the id {question.id} stands twice.")
        found[question.id] = question
    if not found:
        raise UsageError(f"{path} holds no question.")
    return list(found.values())


def save_questions(path: Path, questions: Iterable[Question]) -> None:
    """Write a file of questions that `load_questions` reads. Raises OSError as writing does."""
    lines = []
    for one in questions:
        content = asdict(one)
        content["relevant"] = [_without_defaults(target) for target in content["relevant"]]
        lines.append(json.dumps(_without_defaults(content), ensure_ascii=False) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def problem_in(error: Exception) -> str:
    """What is wrong with a line of a file, and where in it."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _without_defaults(values: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value}


def _check(question: Question) -> None:
    if not (question.id.strip() and question.repo.strip() and question.question.strip()):
        raise ValueError("id, repo and question are not to be empty")
    for target in question.relevant:
        if target.start and not 1 <= target.start <= target.end:
            raise ValueError(f"the lines of {target.path} are {target.start} to {target.end}")
    if not question.main_files:
        raise ValueError("no target has grade 2")
