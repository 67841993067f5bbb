"""Which questions are asked: the sets, their splits, and those whose trees are at hand."""

from __future__ import annotations

import json
from pathlib import Path

from research.evals.search.questions import Question, load_questions

HERE = Path(__file__).resolve().parent
SETS = {"development": HERE / "development.jsonl", "tuning": HERE / "tuning.jsonl"}
SPLITS = ("development", "tune", "check")


def questions_of(split: str, trees: Path) -> tuple[list[Question], list[str]]:
    """Questions of a split whose repository lies in `trees`, and the repositories that do not."""
    name = "development" if split == "development" else "tuning"
    questions = load_questions(SETS[name])
    if name == "tuning":
        lines = SETS[name].read_text("utf-8").splitlines()
        chosen = {one["id"] for one in map(json.loads, lines) if one["split"] == split}
        questions = [question for question in questions if question.id in chosen]
    repositories = dict.fromkeys(question.repo for question in questions)
    missing = [name for name in repositories if not (trees / name).is_dir()]
    return [question for question in questions if question.repo not in missing], missing
