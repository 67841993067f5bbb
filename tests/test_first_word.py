"""The benchmark of the first word: what it counts of the calls of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import first_word
from tests.repositories import Write

FILES = {
    "gate.py": "def open_gate(badge):\n    return find_guard(badge).knows\n",
    "guard.py": "def find_guard(badge):\n    return badge.guard\n",
}


@pytest.mark.slow
def test_calls_and_tokens_before_the_first_word_are_counted(
    write_files: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_word, "DRAFT_SECONDS", 6_000.0)  # none is late on a busy machine
    tree, asked = write_files(tmp_path / "tree", FILES), tmp_path / "questions"
    asked.write_text("how is the gate opened for a visitor?\n")
    report = tmp_path / "report.json"
    given = ["--tree", str(tree), "--questions", str(asked), "--speed", "50"]
    given += ["--kinds", "hosted fast", "--effort", "deep", "--asks", "1", "--hyde", "one"]
    assert first_word.main([*given, "--json", str(report)]) == 0
    assert "| hosted fast | " in capsys.readouterr().out
    (one,) = json.loads(report.read_text())["kinds"]["hosted fast"]["asked"]
    calls = [call["purpose"] for call in one["calls"]]
    assert calls[0] == "draft" and calls[-2:] == ["answer", "answer"]
    assert one["calls_before"] == len(calls)
    drafted, *_, answered = one["calls"]
    assert drafted["completion"] >= first_word.DRAFT_TOKENS
    assert 0.5 * answered["prompt"] < answered["cached"] < answered["prompt"]
    assert not one["problem"]
