"""Questions about repositories, with the places that answer them.

A file of questions has one JSON object a line::

    {"id": "gin-002", "repo": "gin", "question": "radix tree path matching",
     "category": "semantic", "language": "go", "source": "semble",
     "relevant": [{"path": "tree.go", "grade": 2, "start": 130, "end": 260, "symbol": "node"}]}

`grade` is 2 for a main target, which answers the question by itself, 1 for a secondary one.
Lines are 1-based, both ends included; a target without them is its whole file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codeqa.errors import UsageError

MAIN, SECONDARY = 2, 1


@dataclass(frozen=True, slots=True)
class Target:
    """A place that answers a question."""

    path: str
    grade: int = MAIN
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
    found: dict[str, Question] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            question = _question(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise UsageError(
                f"{path}, line {number}: {reason}.",
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
        content = {"id": one.id, "repo": one.repo, "question": one.question}
        for key in ("category", "language", "source"):
            content |= {key: getattr(one, key)} if getattr(one, key) else {}
        targets = [
            {key: value for key, value in asdict(target).items() if value}
            for target in one.relevant
        ]
        lines.append(json.dumps({**content, "relevant": targets}, ensure_ascii=False) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def _question(content: Mapping[str, Any]) -> Question:
    if not isinstance(content, dict):
        raise ValueError("not an object")
    texts = {key: content[key] for key in ("id", "repo", "question")}
    for key, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{key} is not a text")
    if not isinstance(content["relevant"], list):
        raise ValueError("relevant is not a list")
    relevant = tuple(map(_target, content["relevant"]))
    if not any(target.grade == MAIN for target in relevant):
        raise ValueError("no target has grade 2")
    return Question(
        **texts,
        relevant=relevant,
        category=str(content.get("category", "")),
        language=str(content.get("language", "")),
        source=str(content.get("source", "")),
    )


def _target(content: Mapping[str, Any]) -> Target:
    if not isinstance(content, dict):
        raise ValueError("a target is not an object")
    target = Target(
        str(content["path"]),
        int(content["grade"]),
        int(content.get("start") or 0),
        int(content.get("end") or 0),
        str(content.get("symbol", "")),
    )
    if target.grade not in (MAIN, SECONDARY):
        raise ValueError(f"the grade of {target.path} is {target.grade}, not 1 or 2")
    if target.start and not 1 <= target.start <= target.end:
        raise ValueError(f"the lines of {target.path} are {target.start} to {target.end}")
    return target
