"""The benchmark of the search: sets, peers, report, golden lists."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from research.benchmarks.retrieval import golden, peers, run, sets
from research.benchmarks.retrieval.report import markdown
from research.evals.search.ranked import Ranked, load_ranked, save_ranked
from research.evals.search.scores import score
from tests.kit.repositories import write

FILES = {
    "basket.py": "def total_price(basket):\n    return sum(basket.prices)\n\n\nLIMIT = 3\n",
    "gate.py": "def open_gate(badge):\n    guard = find_guard(badge)\n    return guard.knows\n",
    "README.md": "# Shop\n\nThe gate opens for a badge, the basket has a total price.\n",
}


def question(number: int, text: str, path: str, **more: Any) -> dict[str, Any]:
    target = {"path": path, "grade": 2, "start": 1, "end": 2}
    return {
        "id": f"shop-{number}", "repo": "shop", "question": text, "language": "python",
        "category": "symbol" if " " not in text else "behaviour", "relevant": [target], **more,
    }  # fmt: skip


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trees of a development and a tuning repository, and their questions in place of ours."""
    folder = tmp_path / "trees"
    for name in ("shop", "mill"):
        write(folder / name, FILES)
    development = [
        question(1, "where is the total price of a basket?", "basket.py"),
        question(2, "open_gate", "gate.py"),
    ]
    tuning = [
        {**question(3, "who opens the gate?", "gate.py", split="tune"), "repo": "mill"},
        {**question(4, "what does a basket cost?", "basket.py", split="check"), "repo": "yard"},
    ]
    for name, asked in (("development", development), ("tuning", tuning)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in asked), "utf-8")
        monkeypatch.setitem(sets.SETS, name, path)
    return folder


def test_a_split_is_asked_alone_and_missing_trees_are_named(trees: Path) -> None:
    assert [one.id for one in sets.questions_of("development", trees)[0]] == ["shop-1", "shop-2"]
    found, missing = sets.questions_of("tune", trees)
    assert [one.id for one in found] == ["shop-3"] and missing == []
    assert sets.questions_of("check", trees) == ([], ["yard"])


@pytest.mark.slow
def test_the_stored_lists_score_as_the_readme_says() -> None:
    """All of them, on the questions that they are for: a list or a scorer that changed shows."""
    questions, _ = sets.questions_of("development", Path())
    asked = sets.load_questions(sets.SETS["development"])
    assert questions == [] and len(asked) == 182
    found = {name: load_ranked(path) for name, path in peers.stored_lists().items()}
    reports = {name: score(asked, lists) for name, lists in found.items()}
    assert {name: report.missing for name, report in reports.items()} == dict.fromkeys(found, 0)
    rounded = {
        name: [round(report.figures[one].mean, 3) for one in ("ndcg@10", "hit@1", "cover@500")]
        for name, report in reports.items()
    }
    assert rounded["bm25-functions"] == [0.630, 0.390, 0.481]
    assert rounded["semble"] == [0.747, 0.588, 0.253]
    assert rounded["reference-hybrid"] == [0.740, 0.544, 0.612]
    assert rounded["prototype"] == [0.828, 0.714, 0.746]


@pytest.mark.slow
def test_a_run_scores_every_system_and_says_what_is_left_out(
    trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "stored"
    stored.mkdir()
    results = ({"path": "gate.py", "start": 1, "end": 3},)
    save_ranked(stored / "old.jsonl", [Ranked("shop-2", "shop", "open_gate", results)])
    packed = gzip.compress((stored / "old.jsonl").read_bytes())
    (stored / "old.jsonl.gz").write_bytes(packed)
    monkeypatch.setattr(peers, "STORED", stored)
    monkeypatch.setattr(peers, "SEMBLE_PYTHON", tmp_path / "none")
    (stored / "git").symlink_to(shutil.which("git") or "git")
    monkeypatch.setenv("PATH", str(stored))  # no ripgrep there
    out = tmp_path / "retrieval.json"
    assert run.main([str(trees), "--json", str(out)]) == 0
    content = json.loads(out.read_text("utf-8"))
    assert set(content["sets"]) == {"development", "tune"}  # `check` is not asked by itself
    found = content["sets"]["development"]
    assert found["questions"] == 2 and found["with_lines"] == 2
    assert {"CodeQA", "CodeQA, rerank", "CodeQA, no vectors", "BM25, functions", "old (stored)"} \
        == set(found["systems"])  # fmt: skip
    assert found["systems"]["CodeQA"]["figures"]["hit@1"]["mean"] == 1
    assert found["systems"]["old (stored)"]["missing"] == 1
    assert found["differences"]["old (stored)"]["hit@1"]["mean"] == 0.5
    assert set(found["systems"]["CodeQA"]["groups"]["category"]) == {"symbol", "behaviour"}
    assert set(found["left_out"]) == {"ripgrep, keywords", "semble, BM25"}
    assert content["machine"]["cores"] and content["command"].endswith("TREES")
    text = out.with_suffix(".md").read_text("utf-8")
    assert text == markdown(content)
    assert text in capsys.readouterr().out and "Left out: ripgrep is not installed" in text
    assert "| CodeQA minus | " in text and str(trees) not in text
    write(trees / "yard", FILES)
    assert run.main([str(trees), "--systems", "--check", "--json", str(out)]) == 0
    assert set(json.loads(out.read_text("utf-8"))["sets"]) == {"development", "tune", "check"}


@pytest.mark.slow
def test_a_change_of_golden_lists_is_a_diff(
    trees: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(trees), "--out", str(tmp_path / "golden")]
    assert golden.main(arguments) == 0
    path = tmp_path / "golden" / "shop.txt"
    text = path.read_text("utf-8")
    assert text.startswith("shop-1 (behaviour): where is the total price of a basket?\n")
    assert "\n  * basket.py:1-2 total_price\n" in text
    assert golden.main([*arguments, "--check"]) == 0
    path.write_text(text.replace("  * basket.py:1-2 total_price\n", ""), "utf-8")
    capsys.readouterr()
    assert golden.main([*arguments, "--check"]) == 1
    assert "+  * basket.py:1-2 total_price" in capsys.readouterr().out
    assert path.read_text("utf-8") != text  # nothing was written
