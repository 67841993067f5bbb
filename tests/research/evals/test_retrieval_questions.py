"""The questions that the search is measured with, and how their trees are laid out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from conftest import ROOT

from research.benchmarks.retrieval import trees
from research.evals.search.questions import Question, Target, load_questions
from tests.kit.repositories import git, write


def test_every_question_is_about_a_pinned_repository() -> None:
    for name, count in (("development", 182), ("tuning", 360)):
        questions = load_questions(trees.SETS[name])
        known = {one["name"]: one for one in trees.repositories() if one["questions"] == name}
        assert len(questions) == count
        assert {question.repo for question in questions} == set(known)
        assert all(len(one["commit"]) == 40 and one["licence"] for one in known.values())


def test_the_tuning_questions_are_of_repositories_that_trained_nothing() -> None:
    listed = json.loads(
        (ROOT / "research" / "training" / "tuning_repositories.json").read_text("utf-8")
    )
    commits = {one["repository"]: one["commit"] for one in listed["repositories"]}
    tuning = [one for one in trees.repositories() if one["questions"] == "tuning"]
    assert {one["repository"]: one["commit"] for one in tuning} == commits


def mirror(folder: Path, files: Mapping[str, str | bytes]) -> str:
    """Make a git repository with one commit; return its hash."""
    write(folder, files)
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        git(folder, *arguments)
    head = ["git", "-C", folder, "rev-parse", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


def test_a_tree_is_laid_out_with_its_comments_emptied_line_for_line(tmp_path: Path) -> None:
    text = "# one\r\n# two\r\nthree\r\n"
    commit = mirror(tmp_path / "mirrors" / "o+n", {"src/a.py": text, "b.py": "x = 1\n"})
    wanted = {"name": "n", "repository": "o/n", "commit": commit, "emptied": [["src/a.py", 1, 2]]}
    out = tmp_path / "out"
    assert trees.lay_out(wanted, tmp_path / "mirrors", out) == ""
    assert (out / "n" / "src" / "a.py").read_bytes() == b"\r\n\r\nthree\r\n"
    assert (out / "n" / "b.py").read_bytes() == b"x = 1\n"
    assert not (out / "n" / ".git").exists()
    lost = {**wanted, "commit": "0" * 40}
    assert "lacks 000000000000" in trees.lay_out(lost, tmp_path / "mirrors", tmp_path / "other")
    assert "no mirror of o/n" in trees.lay_out(lost, tmp_path / "none", tmp_path / "other")
    # What is there is left alone.
    (out / "n" / "b.py").write_text("mine")
    assert trees.lay_out(wanted, tmp_path / "mirrors", out) == ""
    assert (out / "n" / "b.py").read_text() == "mine"


def test_targets_that_are_not_there_are_listed(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "a.py").write_text("one\ntwo\n")
    targets = (Target("a.py", 2, 1, 3), Target("a.py", 1, 4, 9), Target("b.py", 1))
    wrong = trees.wrong_targets([Question("q", "n", "x", targets)], tmp_path)
    assert wrong == ["q: a.py ends before line 9", "q: b.py is missing"]
