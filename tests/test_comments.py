from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codeqa.errors import ContextLengthError, ModelError
from codeqa.indexing import Indexer
from codeqa.indexing.comments import MAX_CHARACTERS, describe, worth_describing
from codeqa.llm import Choice, Endpoint, Message, Model, Models
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import Tables, locate
from codeqa.types import Progress, Unit
from tests.openai_server import Reply, completion, openai_server, silent


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


def test_a_description_is_paid_for_once_until_the_source_changes(tmp_path: Path) -> None:
    asked: list[str] = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(messages[1]["content"])
        return "d"

    cache = State(tmp_path)
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

    cache = State(tmp_path)
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
        described = describe([method("f")], model.complete, model="m", cache=State(tmp_path))
        assert [text for _, text in described] == ["half ? of a sign"]


def test_no_more_requests_than_allowed_run_at_once() -> None:
    running = most = 0
    lock = threading.Lock()
    gate = threading.Barrier(4, timeout=5)

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


def test_a_description_is_searched_with_its_method(
    tmp_path: Path,
    settings: Settings,
    write_files: Callable[[Path, Mapping[str, str]], Path],
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    body = "def f(x):\n    a = x\n    b = a\n    return b\n"
    repo = write_files(tmp_path / "repo", {"a.py": body, "b.py": body.replace("f(", "g(")})
    location = locate(settings, repo)
    Indexer(settings, location).run()
    assert Tables.open(location).full_text("methods", "zebra", 5) == []

    def script(path: str, request: dict[str, Any]) -> Reply:
        zebra = "def f(" in request["messages"][1]["content"]
        return completion("Counts the zebra stripes." if zebra else "Does something else.")

    with openai_server(script) as server:
        arguments = ("llm_comments.py", repo, "--model", "custom/m", "--yes")
        environment = {"CODEQA_MODEL_URL": server.base_url, "CODEQA_DATA": str(settings.data)}
        first = run_python(*arguments, env=environment)
        second = run_python(*arguments, env=environment)
    assert first.returncode == 0, first.stderr
    assert "2 descriptions written" in first.stdout
    assert "to custom/m at 127.0.0.1" in first.stdout
    assert "0 descriptions written" in second.stdout
    assert len(server.requests) == 2

    tables = Tables.open(location)
    (unit, _), *others = tables.full_text("methods", "zebra", 5)
    assert unit.name == "f" and others == []
    assert tables.counts().methods == 2


def test_without_a_terminal_nothing_is_sent_unasked(
    tmp_path: Path,
    settings: Settings,
    write_files: Callable[[Path, Mapping[str, str]], Path],
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    repo = write_files(
        tmp_path / "repo", {"a.py": "def f(x):\n    a = x\n    b = a\n    return b\n"}
    )
    Indexer(settings, locate(settings, repo)).run()
    with openai_server(lambda path, body: completion("d")) as server:
        environment = {"CODEQA_MODEL_URL": server.base_url, "CODEQA_DATA": str(settings.data)}
        result = run_python("llm_comments.py", repo, "--model", "custom/m", env=environment)
    assert result.returncode == 2
    assert "--yes" in result.stderr
    assert server.requests == []


def test_the_chosen_model_is_asked_unless_another_is_named(
    tmp_path: Path,
    settings: Settings,
    write_files: Callable[[Path, Mapping[str, str]], Path],
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    body = "def f(x):\n    a = x\n    b = a\n    return b\n"
    repo = write_files(tmp_path / "repo", {"a.py": body})
    Indexer(settings, locate(settings, repo)).run()
    environment = {"CODEQA_DATA": str(settings.data)}
    arguments = ("llm_comments.py", repo, "--yes")
    none = run_python(*arguments, env={**environment, "OPENAI_API_KEY": "sk-exported"})
    assert none.returncode == 2
    assert "No language model is chosen" in none.stderr
    with openai_server(lambda path, body: completion(f"From {body['model']}.")) as server:
        Models(settings).choose(Choice("custom", "picked", server.base_url), "key-of-the-page")
        picked = run_python(*arguments, env=environment)
        assert "custom/picked at 127.0.0.1" in picked.stdout, picked.stderr
        assert server.headers[0]["authorization"] == "Bearer key-of-the-page"
        unknown = run_python(*arguments, "--model", "gpt-4o", env=environment)
        assert unknown.returncode == 2 and "no model provider" in unknown.stderr
    down = run_python(*arguments, "--model", "custom/other", env={
        **environment, "CODEQA_MODEL_URL": server.base_url})  # fmt: skip
    assert down.returncode == 1 and "Nothing answers at" in down.stderr
    assert "Traceback" not in down.stderr


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
        return completion("d") if "f0(" in body["messages"][1]["content"] else silent(30)

    before = threading.active_count()
    units = [method(f"f{n}") for n in range(6)]
    with openai_server(script) as server, Model(Endpoint(server.base_url, "m")) as model:
        described = describe(units, model.complete, model="m", concurrency=3, stop=model.close)
        assert next(described)[0].name == "f0"
        began = time.monotonic()
        described.close()
        assert time.monotonic() - began < 5
        assert server.wait_for_disconnects(2)
    assert threading.active_count() <= before
