from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import llm_comments
from codeqa.errors import ContextLengthError, ModelError, RateLimitError
from codeqa.indexing import Indexer
from codeqa.indexing.comments import (
    CONCURRENT,
    FIRST_PAUSE,
    MAX_CHARACTERS,
    PATIENCE,
    Pace,
    describe,
    worth_describing,
)
from codeqa.llm import Endpoint, Message, Model, ModelChoice, Models
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import locate
from codeqa.types import Progress, Unit
from tests.openai_server import Reply, completion, openai_server, rate_limited, silent


def method(name: str, lines: int = 6) -> Unit:
    source = "\n".join([f"def {name}():", *["    work()"] * (lines - 1)])
    return Unit("a.py", "python", "function", name, name, source, 1, lines, id=name)


def test_a_model_over_http_describes_each_method() -> None:
    def script(path: str, body: dict[str, Any]) -> Reply:
        text = str(body["messages"][1]["content"])
        return completion(f"About  {text.split('def ')[1].split('(')[0]}\nin two lines.")

    units = [method(f"f{n}") for n in range(20)]
    with openai_server(script) as server, Model(Endpoint(server.base_url, "m", "k")) as model:
        texts = {unit.name: text for unit, text in describe(units, model.complete, model="m")}
    assert texts == {f"f{n}": f"About f{n} in two lines." for n in range(20)}
    system = server.requests[0][1]["messages"][0]
    assert system["role"] == "system" and "python" in system["content"]
    assert "in two or three lines" in " ".join(system["content"].split())


def test_a_description_is_paid_for_once_until_the_source_changes(tmp_path: Path) -> None:
    asked: list[str] = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(messages[1]["content"])
        return "d"

    cache = State(tmp_path).values
    list(describe([method("f")], complete, model="m", cache=cache))
    list(describe([method("f")], complete, model="m", cache=cache))
    assert len(asked) == 1
    list(describe([method("f", 7)], complete, model="m", cache=cache))
    list(describe([method("f")], complete, model="other", cache=cache))
    assert len(asked) == 3


def test_what_was_described_before_a_failure_is_kept(tmp_path: Path) -> None:
    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        if "def f3(" in messages[1]["content"]:
            raise ModelError("the host is down.", "Try again.")
        return "d"

    cache = State(tmp_path).values
    got: list[str] = []
    with pytest.raises(ModelError, match="down"):
        for unit, _ in describe(
            [method(f"f{n}") for n in range(4)], complete, model="m", cache=cache, concurrency=4
        ):
            got.append(unit.name)
    assert sorted(got) == ["f0", "f1", "f2"]
    again = describe([method("f0")], complete, model="m", cache=cache)
    assert next(again)[1] == "d"


def test_a_description_that_is_no_text_is_kept_with_marks_for_it(tmp_path: Path) -> None:
    reply = completion("half \ud83d of a sign")
    with (
        openai_server(lambda path, body: reply) as server,
        Model(Endpoint(server.base_url, "m")) as model,
    ):
        described = describe([method("f")], model.complete, model="m", cache=State(tmp_path).values)
        assert [text for _, text in described] == ["half ? of a sign"]


def test_no_more_requests_than_allowed_run_at_once() -> None:
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
    list(describe(units, complete, model="m", concurrency=4, progress=seen.append))
    assert most == 4
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 12, 12)


def test_a_long_method_is_sent_by_its_beginning_cut_at_a_line() -> None:
    sent: list[str] = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        sent.append(messages[1]["content"])
        return "d"

    list(describe([method("f", 5_000)], complete, model="m"))
    assert len(sent[0]) <= MAX_CHARACTERS + 20
    assert sent[0].endswith("    work()")


def test_short_methods_and_classes_are_left_alone() -> None:
    long, short = method("long"), method("short", 2)
    klass = Unit("a.py", "python", "class", "C", "C", "class C: ...", 1, 50)
    assert worth_describing([long, short, klass]) == [long]


def test_the_chosen_model_is_asked_unless_another_is_named(
    tmp_path: Path,
    settings: Settings,
    write_files: Callable[[Path, Mapping[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = "def f(x):\n    a = x\n    b = a\n    return b\n"
    repo = write_files(tmp_path / "repo", {"a.py": body})
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
    assert "Nothing answers at" in told and "Traceback" not in told


def test_a_method_too_long_for_the_model_is_described_by_its_first_half() -> None:
    sent: list[str] = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        sent.append(messages[1]["content"])
        if len(messages[1]["content"]) > 600:
            raise ContextLengthError("too long.", "Send less.")
        return "d"

    assert [text for _, text in describe([method("f", 80)], complete, model="m")] == ["d"]
    assert len(sent) == 2 and sent[0].startswith(sent[1])
    with pytest.raises(ContextLengthError):
        list(describe([method("f", 800)], complete, model="m"))


def test_a_caller_that_stops_does_not_wait_for_what_is_under_way() -> None:
    """Ctrl-C: the requests are ended, nothing of them is kept, no thread is left."""

    def script(path: str, body: dict[str, Any]) -> Reply:
        return completion("d") if "f0(" in body["messages"][1]["content"] else silent(600)

    units = [method(f"f{n}") for n in range(6)]
    with openai_server(script) as server, Model(Endpoint(server.base_url, "m")) as model:
        described = describe(units, model.complete, model="m", concurrency=3, stop=model.close)
        assert next(described)[0].name == "f0"
        assert server.wait_for_requests(3)  # else there is nothing to end
        described.close()
        assert server.wait_for_disconnects(2)
    pool = [one.name for one in threading.enumerate() if one.name.startswith("ThreadPool")]
    assert pool == []


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_refusal_halves_what_may_run_and_answers_raise_it_again() -> None:
    clock = Clock()
    pace = Pace(8, clock)
    assert (pace.allowed, pace.left()) == (8, 0)
    assert pace.refused(30)
    assert (pace.allowed, pace.left()) == (4, 30)
    assert pace.refused(10)  # was under way when the pause began
    assert (pace.allowed, pace.left()) == (4, 30)
    clock.now += 31
    assert pace.left() == 0
    for _ in range(4 + 5 + 6 + 7 + 100):
        pace.answered()
    assert pace.allowed == 8


def test_pauses_grow_while_nothing_is_answered_and_end_after_a_while() -> None:
    clock = Clock()
    pace = Pace(2, clock)
    pauses = []
    while pace.refused():
        pauses.append(pace.left())
        clock.now += pace.left()
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert len(pauses) == PATIENCE
    assert pace.allowed == 1
    pace.answered()
    assert pace.refused()
    assert pace.left() == FIRST_PAUSE


def test_a_host_that_never_answers_again_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeqa.indexing.comments.FIRST_PAUSE", 0.01)
    asked = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(1)
        raise RateLimitError("too fast.", "Wait.")

    with pytest.raises(RateLimitError):
        list(describe([method(f"f{n}") for n in range(9)], complete, model="m", concurrency=2))
    assert PATIENCE < len(asked) <= 2 * PATIENCE + 2


def test_the_same_code_is_described_once_wherever_it_stands(tmp_path: Path) -> None:
    asked: list[str] = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(messages[1]["content"])
        return "d"

    here, there = method("f"), replace(method("f"), path="moved/b.py", id="other")
    cache = State(tmp_path).values
    assert len(list(describe([here, there], complete, model="m", cache=cache))) == 2
    assert len(asked) == 1
    moved = replace(here, path="c.py", id="third")
    assert list(describe([moved], complete, model="m", cache=cache)) == [(moved, "d")]
    assert len(asked) == 1


def test_rate_limits_over_http_are_respected(tmp_path: Path) -> None:
    """While the server asks to wait nothing new is sent, and nothing is lost."""
    refused: list[float] = []
    lock = threading.Lock()

    def script(path: str, body: dict[str, Any]) -> Reply:
        with lock:
            if len(refused) < CONCURRENT:
                refused.append(time.monotonic())
                return rate_limited(1)
        return completion("d")

    units = [method(f"f{n}") for n in range(40)]
    with openai_server(script) as server, Model(Endpoint(server.base_url, "m")) as model:
        described = list(describe(units, model.complete, model="m", cache=State(tmp_path).values))
        later = [one.asked for one in server.exchanges if one.asked > refused[-1]]
    assert len(described) == 40
    assert len(server.requests) == 40 + CONCURRENT
    assert min(later) - refused[0] >= 0.9
