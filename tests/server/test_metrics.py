"""What a server tells Prometheus, who may read it, and that nobody is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.fakes import FakeEngine
from chat_kit import ASK, Script
from conftest import ROOT
from flask.testing import FlaskClient
from openai_server import failure
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from serving import ask, client_of

from codeqa import metrics
from codeqa.engine import Engine
from codeqa.errors import SettingsError
from codeqa.settings import Settings

pytest_plugins = ("chat_fixtures", "web_kit")

OWNER, OTHER, SCRAPER = "the-owners-token", "another-token", "prometheus-token"


@pytest.fixture(autouse=True)
def measured_anew() -> Iterator[None]:
    yield
    metrics._metrics = None


@pytest.fixture
def guarded(engine: Engine) -> FlaskClient:
    tokens = {"token": SecretStr(f"{OWNER},{OTHER}"), "metrics_token": SecretStr(SCRAPER)}
    return client_of(engine.settings.model_copy(update={"metrics": True, **tokens}), engine)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def read(text: str) -> dict[tuple[str, ...], float]:
    """(name, value of each label in the order of their names) → value, of all but the buckets."""
    return {
        (
            sample.name.removeprefix("codeqa_"),
            *(text for _, text in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


def test_questions_searches_models_and_runs_are_measured_by_how_they_end(
    engine: Engine, script: Script
) -> None:
    settings = engine.settings.model_copy(update={"metrics": True})
    client = client_of(settings, engine)
    engine.index.run()
    ask(client, ASK)
    script.replies = [failure(400, "no")]
    client.post("/chat/stream", json={"question": ASK, "conversation": "other"}).get_data()
    stopped = engine.ask(ASK, cancelled=lambda: True)
    assert [event.kind for event in stopped][-1] == "stopped"
    text = client.get("/metrics").text
    values = read(text)
    assert values["questions_total",] == 3 and values["answers_open",] == 0
    ends = {end: values.get(("answer_seconds_count", end)) for end in ("done", "error", "stopped")}
    assert ends == {"done": 1, "error": 1, "stopped": 1}
    assert values["first_text_seconds_count",] == 1
    assert 0 < values["first_text_seconds_sum",] <= values["answer_seconds_sum", "done"]
    assert values["search_seconds_count",] >= 2
    assert values["model_call_seconds_count", "done", "openai"] == 1
    assert values["model_call_seconds_count", "error", "openai"] == 1
    assert values["index_run_seconds_count", "done"] == 1
    for name in ("shop", "expire_session", settings.data_dir.name, "local"):
        assert name not in text


def test_the_owner_or_a_token_of_its_own_reads_what_is_measured(guarded: FlaskClient) -> None:
    for token in (OWNER, SCRAPER):
        assert b"codeqa_questions_total" in guarded.get("/metrics", headers=bearer(token)).data
    assert guarded.get("/metrics", headers=bearer(OTHER)).status_code == 403
    assert guarded.get("/metrics").status_code == 401
    assert guarded.get("/api/status", headers=bearer(SCRAPER)).status_code == 401
    posted = guarded.post("/chat", json={"question": "x"}, headers=bearer(SCRAPER))
    assert posted.status_code == 401, "it lets in there alone"


def test_where_nothing_is_measured_the_address_says_so(client: FlaskClient) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 404 and "CODEQA_METRICS" in answer.json["error"]["hint"]


def test_measuring_without_prometheus_client_is_refused_at_the_start(
    settings: Settings, fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(SettingsError, match="not installed"):
        client_of(settings.model_copy(update={"metrics": True}), fake_engine)


FORKED = """
import os, sys
from codeqa import metrics
from codeqa.metrics import measure
measure("questions")
assert not [name for name in sys.modules if name.startswith("prometheus")]
metrics.start(processes=2)
for index in range(2):
    if not (process := os.fork()):
        measure("questions", 1 + index)
        measure("answers_open")
        measure("search_seconds", 0.1)
        os._exit(0)
    os.wait()
    metrics.started().process_ended(process)
measure("answers_open")
print(metrics.started().as_text().decode())
"""


def test_metrics_of_live_processes_add_up(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", FORKED]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    values = read(done.stdout)
    assert values["questions_total",] == 3
    assert values["search_seconds_count",] == 2
    assert values["answers_open",] == 1
    assert not list(tmp_path.glob("codeqa-metrics-*")), "its folder goes with it"
