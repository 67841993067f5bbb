"""Collected drafts, told again as a model would."""

from __future__ import annotations

import json
from pathlib import Path

from codeqa.search.by_model import prompted
from research.evals.replay import answer_for, load

QUESTION = "how are visitors kept from asking too often?"
RECORDED = {
    "id": "q1",
    "question": QUESTION,
    "first": "class TokenBucket:\n    def take(self, amount)",
    "second": "TokenBucket.take",
}


def test_each_request_is_answered_with_what_was_recorded_for_its_question(tmp_path: Path) -> None:
    path = tmp_path / "drafts.jsonl"
    path.write_text(json.dumps(RECORDED) + "\n", encoding="utf-8")
    known = load([path])
    assert answer_for(prompted("hyde", query=QUESTION), known) == RECORDED["first"]
    second = prompted("hyde_v2", query=QUESTION, hyde_query="draft", context="[CONTEXT]")
    assert answer_for(second, known) == RECORDED["second"]
    assert answer_for(prompted("hyde", query="another question"), known) is None
