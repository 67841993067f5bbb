"""Descriptions that a model is asked for: what is sent, paid once, and waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import llm_comments
from codeqa.errors import ModelError, RateLimitError
from codeqa.indexing import Indexer
from codeqa.indexing.comments import CONCURRENT, MAX_CHARACTERS, PAUSES, describe
from codeqa.llm.client import Message, Model
from codeqa.llm.models import Models
from codeqa.llm.providers import ModelAddress, ModelChoice
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import ValueStore
from codeqa.store import locate
from codeqa.types import Progress, Unit
from tests.indexed import write
from tests.openai_server import Reply, completion, openai_server, rate_limited, silent


def method(name: str, lines: int = 6) -> Unit:
    source = "\n".join([f"def {name}():", *["    work()"] * (lines - 1)])
    return Unit("a.py", "python", "function", name, name, source, 1, lines, id=name)


@pytest.fixture
def values(tmp_path: Path) -> ValueStore:
    """Where descriptions are kept."""
    return State(tmp_path).values


class FakeModel:
    """Keeps what it is asked, and describes everything as `d`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        self.asked.append(messages[1]["content"])
        if "def broken(" in self.asked[-1]:
            raise ModelError("the host is down.", "Try again.")
        return "d"


def test_a_model_over_http_describes_each_method(values: ValueStore) -> None:
    def script(path: str, body: dict[str, Any]) -> Reply:
        text = str(body["messages"][1]["content"])
        return completion(f"About  {text.split('def ')[1].split('(')[0]}\nin two lines \ud83d.")

    units = [method(f"f{n}") for n in range(20)]
    with openai_server(script) as server, Model(ModelAddress(server.base_url, "m", "k")) as model:
        texts = {unit.name: text for unit, text in describe(units, model.complete, "m", values)}
    # What is no text is kept with a mark for it.
    assert texts == {f"f{n}": f"About f{n} in two lines ?." for n in range(20)}
    system = server.requests[0][1]["messages"][0]
    assert system["role"] == "system" and "python" in system["content"]
    assert "in two or three lines" in " ".join(system["content"].split())


def test_a_description_is_paid_for_once_wherever_the_code_stands_until_it_changes(
    values: ValueStore,
) -> None:
    model = FakeModel()
    here = method("f")
    there = replace(here, path="moved/b.py", id="other")
    assert len(list(describe([here, there], model, "m", values))) == 2
    assert list(describe([there], model, "m", values)) == [(there, "d")]
    assert len(model.asked) == 1
    list(describe([method("f", 7)], model, "m", values))
    list(describe([here], model, "another", values))
    assert len(model.asked) == 3


def test_what_was_described_before_a_failure_is_kept(values: ValueStore) -> None:
    model = FakeModel()
    got: list[str] = []
    units = [method(name) for name in ("a", "b", "c", "broken")]
    with pytest.raises(ModelError, match="down"):
        for unit, _ in describe(units, model, "m", values):
            got.append(unit.name)
    assert sorted(got) == ["a", "b", "c"]
    assert len(list(describe(units[:3], model, "m", values))) == 3
    assert len(model.asked) == 4


def test_no_more_requests_than_allowed_run_at_once(
    values: ValueStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.indexing.comments.CONCURRENT", 4)
    running = most = 0
    lock = threading.Lock()
    gate = threading.Barrier(4, timeout=30)

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait()
        with lock:
            running -= 1
        return "d"

    seen: list[Progress] = []
    units = [method(f"f{n}") for n in range(12)]
    list(describe(units, complete, "m", values, progress=seen.append))
    assert most == 4
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 12, 12)


def test_a_long_method_is_sent_by_its_beginning_cut_at_a_line(values: ValueStore) -> None:
    model = FakeModel()
    list(describe([method("f", 5_000)], model, "m", values))
    assert len(model.asked[0]) <= MAX_CHARACTERS + 20
    assert model.asked[0].endswith("    work()")


def test_the_chosen_model_is_asked_unless_another_is_named(
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = "def f(x):\n    a = x\n    b = a\n    return b\n"
    repo = write(tmp_path / "repo", {"a.py": body})
    Indexer(settings, locate(settings, repo)).run()
    arguments = (str(repo), "--yes")
    with monkeypatch.context() as exported:
        exported.setenv("OPENAI_API_KEY", "sk-exported")
        assert llm_comments.main(arguments) == 2
    assert "No language model is chosen" in capsys.readouterr().err
    with openai_server(lambda path, body: completion(f"From {body['model']}.")) as server:
        Models(settings).choose(ModelChoice("custom", "picked", server.base_url), "key-of-the-page")
        assert llm_comments.main(arguments) == 0
        assert "custom/picked at 127.0.0.1" in capsys.readouterr().out
        assert server.headers[0]["authorization"] == "Bearer key-of-the-page"
        assert llm_comments.main((*arguments, "--model", "gpt-4o")) == 2
        assert "no model provider" in capsys.readouterr().err
    monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
    assert llm_comments.main((*arguments, "--model", "custom/other")) == 1
    told = capsys.readouterr().err
    assert "cannot be reached" in told and "Traceback" not in told


def test_a_caller_that_stops_does_not_wait_for_what_is_under_way(values: ValueStore) -> None:
    """Ctrl-C: the requests are ended, nothing of them is kept, no thread is left."""

    def script(path: str, body: dict[str, Any]) -> Reply:
        return completion("d") if "f0(" in body["messages"][1]["content"] else silent(600)

    units = [method(f"f{n}") for n in range(6)]
    with openai_server(script) as server, Model(ModelAddress(server.base_url, "m")) as model:
        described = describe(units, model.complete, "m", values, stop=model.close)
        assert next(described)[0].name == "f0"
        assert server.wait_for_requests(6)  # else there is nothing to end
        described.close()
        assert server.wait_for_disconnects(5)
    pool = [one.name for one in threading.enumerate() if one.name.startswith("ThreadPool")]
    assert pool == []


@pytest.mark.parametrize("seconds", [0.0, 0.01, 3_600.0])
def test_a_host_that_never_answers_again_ends_the_run(
    seconds: float, values: ValueStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.indexing.comments.PAUSES", (0.01,) * len(PAUSES))
    monkeypatch.setattr("codeqa.indexing.comments.CONCURRENT", 2)
    asked = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(1)
        raise RateLimitError("too fast.", "Wait.", seconds)

    with pytest.raises(RateLimitError):
        list(describe([method(f"f{n}") for n in range(9)], complete, "m", values))
    most = 1 if seconds > 900 else len(PAUSES) + 1
    assert most <= len(asked) <= 2 * most


def test_a_host_that_asks_to_wait_is_sent_nothing_meanwhile_and_nothing_is_lost(
    values: ValueStore,
) -> None:
    refused: list[float] = []
    lock = threading.Lock()

    def script(path: str, body: dict[str, Any]) -> Reply:
        with lock:
            if len(refused) < CONCURRENT:
                refused.append(time.monotonic())
                return rate_limited(1)
        return completion("d")

    units = [method(f"f{n}") for n in range(40)]
    with openai_server(script) as server, Model(ModelAddress(server.base_url, "m")) as model:
        described = list(describe(units, model.complete, "m", values))
        later = [one.asked for one in server.exchanges if one.asked > refused[-1]]
    assert len(described) == 40
    assert len(server.requests) == 40 + CONCURRENT
    assert min(later) - refused[0] >= 0.9
