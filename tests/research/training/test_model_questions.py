"""Asking written questions through CodeQA: the vectors alone, and the whole search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codeqa.embeddings.pieces import UNKNOWN
from research.training.evaluate import main
from research.training.table_files import save_weights
from tests.kit.repositories import write

FILES = {
    "gate.py": "def admit(visitor):\n    return visitor.badge in ALLOWED\n",
    "jar.py": "def keep(biscuit):\n    SHELF.append(biscuit)\n",
    "tests/test_gate.py": "def test_admit():\n    assert admit(visitor)\n",
}
pytestmark = pytest.mark.slow
SYNONYMS = {"entrance": "admit", "cookie": "biscuit"}


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Two questions, a repository, and a table that knows two synonyms."""
    write(tmp_path / "trees" / "house", FILES)
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


def test_a_table_answers_what_text_alone_cannot(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(world, "none", "--name", "text") == 0
    assert ask(world, str(world / "export"), "--name", "table", "--versus", "text") == 0
    text, table = figures(world, "text"), figures(world, "table")
    assert "vectors" not in text and text["files"]["hit@1"] < 1
    assert table["vectors"]["hit@1"] == table["files"]["hit@1"] == 1
    difference, low, high = table["files"]["versus"]["hit@1"]
    assert low <= difference <= high and difference == pytest.approx(1 - text["files"]["hit@1"])
    assert f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]" in capsys.readouterr().err
    # A test counts half in the vectors alone.
    lines = (world / "evaluation" / "table.vectors.jsonl").read_text("utf-8").splitlines()
    results = json.loads(lines[0])["results"]
    paths = [result["path"] for result in results]
    assert paths.index("gate.py") < paths.index("tests/test_gate.py")
    assert (results[0]["start"], results[0]["end"]) == (1, 2)


def test_what_is_not_there_is_one_sentence(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(world, "nowhere/nothing") == 1
    assert "nowhere/nothing is not on this machine" in capsys.readouterr().err
    assert main(["questions", "--out", str(world)]) == 2
    assert "--questions and --trees" in capsys.readouterr().err
