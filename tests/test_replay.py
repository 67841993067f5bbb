"""Collected drafts and orders, served again as a model would, and measured with by the command."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from indexed import write

from codeqa.search.by_model import prompted
from evals.replay import answer_for, load, serve
from evals.search.__main__ import main

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

QUESTION = "how are visitors kept from asking too often?"
FILES = {
    "gate.py": 'def admit(visitor):\n    """Let a visitor in."""\n    return visitor.name\n',
    "bucket.py": "class TokenBucket:\n    def take(self, amount):\n        return self.level\n",
    "log.py": 'def count(log):\n    """Visitors who asked often."""\n    return len(log)\n',
}
RECORDED = {
    "id": "q1",
    "question": QUESTION,
    "first": "class TokenBucket:\n    def take(self, amount)",
    "second": "TokenBucket.take",
    "order": ["bucket.py", "nowhere.py", "gate.py"],
}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "drafts.jsonl"
    path.write_text(json.dumps(RECORDED) + "\n", encoding="utf-8")
    return path


def test_each_request_is_answered_with_what_was_recorded_for_its_question(recorded: Path) -> None:
    known = load([recorded])
    assert answer_for(prompted("hyde", query=QUESTION), known) == RECORDED["first"]
    second = prompted("hyde_v2", query=QUESTION, hyde_query="draft", context="[CONTEXT]")
    assert answer_for(second, known) == RECORDED["second"]
    shown = "[1] log.py\n...\n\n[2] gate.py\n...\n\n[3] bucket.py\n..."
    assert answer_for(prompted("order", query=QUESTION, candidates=shown), known) == "3, 2"
    assert answer_for(prompted("hyde", query="another question"), known) is None


def test_eval_asks_a_replayed_model_and_says_what_would_be_sent(
    recorded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path / "trees" / "shop", FILES)
    target = {"path": "bucket.py", "start": 2, "end": 3}
    question = {"id": "q1", "repo": "shop", "question": QUESTION, "relevant": [target]}
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    questions.write_text(json.dumps(question) + "\n", encoding="utf-8")
    server = serve(load([recorded]), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("CODEQA_MODEL", "custom/replay")
    monkeypatch.setenv("CODEQA_MODEL_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
    try:
        arguments = ["--questions", str(questions), "--trees", str(tmp_path / "trees")]
        arguments += ["--out", str(out), "--list", "files", "--hyde", "one", "--order"]
        assert main([*arguments, "--context", "normal"]) == 0
    finally:
        server.shutdown()
        server.server_close()
    (row,) = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    assert row["results"][0]["path"] == "bucket.py"
    assert any(
        c["path"] == "bucket.py" and c["start"] <= 2 <= 3 <= c["end"] for c in row["context"]
    )
    assert 0 < row["tokens"] <= 8_000
    assert "answer in context" in capsys.readouterr().out
    assert main(["--questions", str(questions), "--out", str(out)]) == 0
    assert "answer in context" in capsys.readouterr().out
