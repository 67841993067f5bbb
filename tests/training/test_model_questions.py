"""Asking written questions through CodeQA: the vectors alone, and the whole search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codeqa.embeddings.table.wordpiece import UNKNOWN
from codeqa.settings import Settings
from training.evaluate import main
from training.questions import open_embedding
from training.table_files import save_weights

FILES = {
    "gate.py": "def admit(visitor):\n    return visitor.badge in ALLOWED\n",
    "jar.py": "def keep(biscuit):\n    SHELF.append(biscuit)\n",
    "tests/test_gate.py": "def test_admit():\n    assert admit(visitor)\n",
}
SYNONYMS = {"entrance": "admit", "cookie": "biscuit"}


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Two questions, a repository, and a table that knows two synonyms."""
    for name, content in FILES.items():
        path = tmp_path / "trees" / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    questions = [
        {"id": "q1", "repo": "house", "question": "entrance",
         "relevant": [{"path": "gate.py", "grade": 2, "start": 1, "end": 2}]},
        {"id": "q2", "repo": "house", "question": "cookie",
         "relevant": [{"path": "jar.py", "grade": 2, "start": 1, "end": 2}]},
    ]  # fmt: skip
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    (tmp_path / "questions.jsonl").write_text(lines, "utf-8")
    words = ["entrance", "admit", "visitor", "cookie", "biscuit", "keep", "shelf", "gate", "jar"]
    table = np.random.default_rng(0).integers(-127, 128, (len(words) + 1, 64)).astype(np.int8)
    for word, meaning in SYNONYMS.items():
        table[1 + words.index(word)] = table[1 + words.index(meaning)]
    ones = np.ones(len(table), np.float32)
    save_weights(
        tmp_path / "export",
        pieces=[UNKNOWN, *words],
        table=table,
        scales=ones / 127,
        query_weights=ones,
        document_weights=ones,
        field_weights=np.zeros(4, np.float32),
        name="codeqa/code-table-1",
        version="test",
        card="A test.",
    )
    return tmp_path


def ask(world: Path, embedding: str, *more: str) -> int:
    return main(
        ["questions", "--out", str(world), "--questions", str(world / "questions.jsonl"),
         "--trees", str(world / "trees"),
         "--embedding", embedding, *more]
    )  # fmt: skip


def figures(world: Path, name: str) -> dict[str, dict[str, Any]]:
    path = world / "evaluation" / f"{name}.questions.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return found


def test_a_table_answers_what_text_alone_cannot(world: Path) -> None:
    assert ask(world, "none", "--name", "text") == 0
    assert ask(world, str(world / "export"), "--name", "table") == 0
    assert "vectors" not in figures(world, "text")
    assert figures(world, "text")["files"]["hit@1"] < 1
    table = figures(world, "table")
    assert table["vectors"]["hit@1"] == table["files"]["hit@1"] == 1


def test_tests_count_half_in_the_vectors_alone(world: Path) -> None:
    assert ask(world, str(world / "export"), "--name", "table") == 0
    lines = (world / "evaluation" / "table.vectors.jsonl").read_text("utf-8").splitlines()
    paths = list(dict.fromkeys(r["path"] for r in json.loads(lines[0])["results"]))
    assert paths.index("gate.py") < paths.index("tests/test_gate.py")
    first = json.loads(lines[0])["results"][0]
    assert (first["start"], first["end"]) == (1, 2)


def test_earlier_answers_are_compared_with(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(world, "none", "--name", "one") == 0
    assert ask(world, str(world / "export"), "--name", "two", "--versus", "one") == 0
    before, after = figures(world, "one")["files"], figures(world, "two")["files"]
    difference, low, high = after["versus"]["hit@1"]
    assert difference == pytest.approx(after["hit@1"] - before["hit@1"]) and difference > 0
    assert low <= difference <= high
    assert f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]" in capsys.readouterr().err


def test_questions_without_targets_are_named_with_their_line(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (world / "questions.jsonl").write_text('{"id": "q", "repo": "house", "question": "x y"}\n')
    assert ask(world, "none") == 1
    assert "line 1: relevant: Field required" in capsys.readouterr().err


def test_an_embedding_that_is_not_there_is_one_sentence(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(world, "nowhere/nothing") == 1
    assert "nowhere/nothing is not on this machine" in capsys.readouterr().err


def test_what_the_questions_need_is_said_when_it_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["questions", "--out", str(tmp_path)]) == 2
    assert "--questions and --trees" in capsys.readouterr().err


def test_no_embedding_is_an_embedding_too(settings: Settings) -> None:
    assert open_embedding("none", settings) is None
