"""What ten reviews of issues sent, and what the files would have cost that it is from:
`python -m research.evals.agent.issues --trees DIR --data DIR`, DIR with `celery` and `flask`.

The model is played by rule: it searches for the title and for the body, looks up what was found
beside, and answers; how much it is shown is what counts, not what it says.
"""

from __future__ import annotations

import argparse
import json
import re
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from codeqa.engine import open_engine
from codeqa.review.report import IssueReport
from codeqa.review.reviewer import Reviewer
from codeqa.settings import load_settings
from research.evals.agent.player import calls_reply
from tests.kit.openai_server import Reply, openai_server, stream

ISSUES = (
    ("celery", "Beat stops sending a task after one failure", "When the broker is away for a moment, apply_entry logs an error and the entry seems not to run again before the next restart."),
    ("celery", "Autoscaler never shrinks a pool that has not grown", "We start with the maximum of processes. scale_down does nothing because _last_scale_up is None."),
    ("celery", "Revoked tasks with stamps are still executed", "revoke_by_stamped_headers is called while the task waits for its eta; the worker executes it."),
    ("celery", "Chord is never finished when a header task is rejected", "With the Redis backend the counter of the chord is not increased for Reject."),
    ("celery", "Prefetch count stays low after reconnecting", "With worker_enable_prefetch_count_reduction the count is not restored when tasks are rejected."),
    ("flask", "Teardown functions see no request when streaming", "stream_with_context pops the context before the generator is closed."),
    ("flask", "Session cookie is not renewed with SESSION_REFRESH_EACH_REQUEST", "A permanent session that was not modified gets no Set-Cookie header."),
    ("flask", "Async error handlers are not awaited", "An error handler that is a coroutine function returns a coroutine as response."),
    ("flask", "flask run does not find an app factory with arguments", "FLASK_APP=app:create_app('dev') raises an error about the literal."),
    ("flask", "Nested blueprints lose their url_prefix", "A blueprint registered on another one with url_prefix='/' gives routes with two slashes."),
)  # fmt: skip
# ruff: noqa: E501

REVIEW = {
    "summary": "Played by rule.", "difficulty_score": 3, "recommended_level": "Mid",
    "concepts_required": [], "mentoring_advice": "None.",
}  # fmt: skip


def play(title: str, body: str, path: str, asked: dict[str, Any]) -> Reply:
    """The next step of a reviewer that searches twice and looks up one more definition."""
    messages = asked["messages"]
    if not any(m.get("tool_calls") for m in messages):
        return calls_reply([("search_code", {"query": one}) for one in (title, body)])
    shown = [str(m["content"]) for m in messages if m["role"] == "tool"]
    beside = re.search(r"Also found: (\S+) \[", shown[0])
    if len(shown) == 2 and beside:
        return calls_reply([("symbol", {"name": beside[1]})])
    return stream([json.dumps(REVIEW)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    sent = whole = likely = 0
    print(
        "| issue | tokens sent | whole files of these | the likely files whole |\n|---|---|---|---|"
    )
    for repository, title, body in ISSUES:
        root = given.trees / repository
        with openai_server(partial(play, title, body)) as server:
            settings = load_settings(
                data=given.data, model="openai/gpt-4o", model_url=server.base_url, model_key="none"
            )
            with closing(open_engine(settings, root)) as engine:
                reviewer = Reviewer(engine.toolbox, engine.models.answer_model())
                *_, report = reviewer.review(title, body)
        assert isinstance(report, IssueReport)
        files = sum((root / one.path).stat().st_size for one in report.files) // 4
        print(
            f"| {title} | {report.tokens_sent:,} | {report.tokens_of_whole_files:,} | {files:,} |"
        )
        sent, whole, likely = (
            sent + report.tokens_sent, whole + report.tokens_of_whole_files, likely + files
        )  # fmt: skip
    print(
        f"| all | {sent:,} | {whole:,} ({whole / sent:.1f}×) | {likely:,} ({likely / sent:.1f}×) |"
    )


if __name__ == "__main__":
    main()
