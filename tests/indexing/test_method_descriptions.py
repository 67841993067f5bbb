"""Descriptions that a model is asked for: what is sent, what they cost, paid once, waited for; that
they are found in an index, and that they stay."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import llm_comments
from codeqa.embeddings.registry import Embedding
from codeqa.errors import ModelError, RateLimitError
from codeqa.indexing import Indexer
from codeqa.indexing.method_descriptions import (
    CONCURRENT,
    MAX_CHARACTERS,
    PAUSES,
    add_descriptions,
    describe,
    plan_descriptions,
)
from codeqa.llm.client import Model
from codeqa.llm.models import Models
from codeqa.llm.providers import ModelAddress, ModelChoice
from codeqa.llm.values import Message
from codeqa.search.hybrid import Search
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import ValueStore
from codeqa.store import Location, Tables, TextSearch, locate
from codeqa.types import Progress, Unit
from tests.kit.index_rows import rows
from tests.kit.indexed import copied, indexed, write
from tests.kit.openai_server import Reply, ScriptedServer, completion, openai_server, silent
from tests.kit.waiting import PATIENCE, Clock

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop", "chat_fixtures")
pytestmark = pytest.mark.usefixtures("clock")


def method(name: str, lines: int = 6) -> Unit:
    source = "\n".join([f"def {name}():", *["    work()"] * (lines - 1)])
    return Unit("a.py", "python", "function", name, name, source, 1, lines, id=name)


@pytest.fixture
def values(tmp_path: Path) -> ValueStore:
    """Where descriptions are kept."""
    return State(tmp_path).values


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
    asked: list[str] = []

    def model(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(messages[1]["content"])
        return "d"

    here = method("f")
    there = replace(here, path="moved/b.py", id="other")
    assert len(list(describe([here, there], model, "m", values))) == 2
    assert list(describe([there], model, "m", values)) == [(there, "d")]
    assert len(asked) == 1
    list(describe([method("f", 5_000)], model, "m", values))
    list(describe([here], model, "another", values))
    assert len(asked) == 3
    # A long method is sent by its beginning, cut at a line.
    assert len(asked[1]) <= MAX_CHARACTERS + 20 and asked[1].endswith("    work()")


def test_no_more_requests_than_allowed_run_at_once(
    values: ValueStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.indexing.method_descriptions.CONCURRENT", 4)
    running = most = 0
    lock = threading.Lock()
    gate = threading.Barrier(4, timeout=PATIENCE)

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


def test_the_chosen_model_is_asked_unless_another_is_named(
    settings: Settings,
    location: Location,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = (str(location.root), "--yes")
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
        return completion("d") if "f0(" in body["messages"][1]["content"] else silent()

    units = [method(f"f{n}") for n in range(6)]
    with openai_server(script) as server, Model(ModelAddress(server.base_url, "m")) as model:
        described = describe(units, model.complete, "m", values, stop=model.close)
        assert next(described)[0].name == "f0"
        assert server.wait_for_requests(6)  # else there is nothing to end
        described.close()
        assert server.wait_for_disconnects(5)
    assert not [one for one in threading.enumerate() if one.name.startswith("ThreadPool")]


@pytest.fixture
def host_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Passes while the host asks to wait."""
    clock = Clock()
    monkeypatch.setattr("codeqa.indexing.method_descriptions.time", clock)
    return clock


@pytest.mark.parametrize("seconds", [0.0, 60.0, 3_600.0])
def test_a_host_that_never_answers_again_ends_the_run(
    seconds: float, values: ValueStore, host_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = host_clock.now
    monkeypatch.setattr("codeqa.indexing.method_descriptions.CONCURRENT", 2)
    asked = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(1)
        raise RateLimitError("too fast.", "Wait.", seconds)

    with pytest.raises(RateLimitError):
        list(describe([method(f"f{n}") for n in range(9)], complete, "m", values))
    most = 1 if seconds > 900 else len(PAUSES) + 1
    assert most <= len(asked) <= 2 * most
    waited = 0.0 if most == 1 else len(PAUSES) * seconds or sum(PAUSES)
    assert host_clock.now == pytest.approx(begun + waited, abs=0.01)


def test_a_host_that_asks_to_wait_is_sent_nothing_meanwhile_and_nothing_is_lost(
    values: ValueStore, host_clock: Clock
) -> None:
    refusals = iter([RateLimitError("too fast.", "Wait.", 60)] * CONCURRENT)
    asked_at: list[float] = []

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        asked_at.append(host_clock.now)
        if refusal := next(refusals, None):
            raise refusal
        return "d"

    units, begun = [method(f"f{n}") for n in range(40)], host_clock.now
    assert len(list(describe(units, complete, "m", values))) == 40
    refused, answered = asked_at[:CONCURRENT], asked_at[CONCURRENT:]
    assert set(refused) == {begun} and len(answered) == 40 and min(answered) >= begun + 60


# In an index


def python(*names: str) -> str:
    return "\n\n".join(
        f"def {name}(x):\n    {name}_a = x\n    {name}_b = {name}_a\n    return {name}_b\n"
        for name in names
    )


FILES = {"a.py": python("first", "second"), "b.py": python("third"), "c.py": python("fourth")}
WORDS = {"first": "zebra", "second": "walrus", "third": "ocelot", "fourth": "badger"}


def complete(messages: Sequence[Message], max_tokens: int = 0) -> str:
    """The description that a model gives: a word that the code does not have."""
    name = str(messages[1]["content"]).split("def ")[1].split("(")[0]
    return f"Counts the {WORDS.get(name, 'wombat')} stripes."


def script(path: str, body: dict[str, Any]) -> Reply:
    return completion(complete(body["messages"]))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Location:
    return indexed(tmp_path_factory.mktemp("made"), FILES).location


@pytest.fixture
def location(made: Location, settings: Settings, tmp_path: Path) -> Location:
    return copied(made, settings, tmp_path / "repo")


def comment(settings: Settings, location: Location) -> int:
    units = plan_descriptions(settings, location, "m").units
    return add_descriptions(settings, location, units, complete, "m")


def comments(location: Location) -> dict[str, str]:
    """Name of each method → its description."""
    return {row["name"]: row["llm_comment"] for row in rows(location)["methods"]}


def found_by(location: Location, word: str) -> list[str]:
    return [unit.name for unit, _ in Tables(location).find(TextSearch("methods", word, 5))]


# What it costs


def test_the_plan_counts_what_is_sent_and_what_is_free(
    settings: Settings, location: Location
) -> None:
    plan = plan_descriptions(settings, location, "m")
    assert (plan.requests, plan.stored, len(plan.units)) == (4, 0, 4)
    sent = sum(len(text) for text in FILES.values())
    assert sent / 4 < plan.tokens_sent < sent * 5
    assert plan_descriptions(settings, location, "m", limit=1).requests == 1
    comment(settings, location)
    after = plan_descriptions(settings, location, "m")
    assert (after.requests, after.stored, after.tokens_sent) == (0, 4, 0)
    assert plan_descriptions(settings, location, "another").requests == 4


def test_short_methods_classes_and_code_that_nobody_wrote_here_are_not_described(
    tmp_path: Path, settings: Settings
) -> None:
    files = {
        "src/a.py": python("own") + "\n\ndef short():\n    return 1\n",
        "src/c.py": "class C:\n    a = 1\n    b = 2\n    c = 3\n    d = 4\n",
        "vendor/b.py": python("theirs"),
        "tests/t.py": python("t"),
    }
    location = indexed(tmp_path, files).location
    assert [u.name for u in plan_descriptions(settings, location, "m").units] == ["own", "t"]


# That they are found


class Animals:
    """An embedding's function that knows what `felid` means."""

    def compute_source_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        return [[0.1 + text.count("ocelot") + text.count("felid"), 1.0] for text in texts]

    def compute_query_embeddings(self, text: str) -> list[list[float]]:
        return self.compute_source_embeddings([text])


def test_a_method_is_found_by_the_meaning_of_its_description(
    settings: Settings, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    animals = Embedding("zoo/animals", "1", 2, 8_000, Animals(), "the zoo")
    monkeypatch.setattr("codeqa.indexing.indexer.chosen_embedding", lambda _: animals)
    indexer = Indexer(settings, location)
    indexer.run()
    comment(settings, location)
    indexer.run()
    tables = Tables(location)
    assert tables.counts().units == tables.counts().refined
    search = Search(
        lambda: tables, settings, lambda name: animals if name == animals.name else None
    )
    first = search.search("any felid?").units[0]
    assert first.unit.name == "third"
    assert first.channels["vector_refined"] == 1
    assert "text" not in first.channels


# That they stay


def test_a_method_keeps_its_description_until_its_own_source_changes(
    settings: Settings, location: Location
) -> None:
    comment(settings, location)
    before = {row["name"]: row for row in rows(location)["methods"]}
    changed = FILES["a.py"].replace("second_b = second_a", "second_b = second_a + 1")
    (location.root / "a.py").write_text(changed)
    (location.root / "b.py").write_text(FILES["b.py"] + "\n\nAFTER = 1\n")
    Indexer(settings, location).run()
    after = {row["name"]: row for row in rows(location)["methods"]}
    assert after["fourth"] == before["fourth"]
    for name in ("first", "third"):
        for column in ("llm_comment", "code", "search_text", "vector"):
            assert after[name][column] == before[name][column]
    assert after["second"]["llm_comment"] == ""
    assert "walrus" not in after["second"]["code"] + after["second"]["search_text"]
    assert found_by(location, "zebra") == ["first"]
    assert found_by(location, "walrus") == []


def test_a_rebuild_keeps_the_descriptions(settings: Settings, location: Location) -> None:
    comment(settings, location)
    before = {row["name"]: row for row in rows(location)["methods"]}
    (location.root / "a.py").write_text(FILES["a.py"].replace("first_b = first_a", "first_b = 0"))
    Indexer(settings, location).run(full=True)
    after = {row["name"]: row for row in rows(location)["methods"]}
    assert after["first"]["llm_comment"] == ""
    for name in ("second", "third", "fourth"):
        assert {**after[name], "file_hash": ""} == {**before[name], "file_hash": ""}  # vectors too
    # What is known costs nothing: only the changed method is asked for.
    assert plan_descriptions(settings, location, "m").requests == 1


def test_indexing_goes_on_while_a_model_is_asked(settings: Settings, location: Location) -> None:
    summaries = []

    def indexing(messages: Sequence[Message], max_tokens: int) -> str:
        if "def third" in messages[1]["content"]:
            (location.root / "b.py").write_text(FILES["b.py"].replace("third_a = x", "third_a = 1"))
            summaries.append(Indexer(settings, location).run(wait=False))
        return complete(messages)

    units = plan_descriptions(settings, location, "m").units
    written = add_descriptions(settings, location, units, indexing, "m")
    assert (summaries[0].changed, written, comments(location)["third"]) == (1, 3, "")


def test_a_failure_keeps_what_was_described(settings: Settings, location: Location) -> None:
    asked: list[str] = []

    def failing(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(messages[1]["content"])
        if "def third" in messages[1]["content"]:
            raise ModelError("the host is down.", "Try again.")
        return complete(messages)

    units = plan_descriptions(settings, location, "m").units
    with pytest.raises(ModelError, match="down"):
        add_descriptions(settings, location, units, failing, "m")
    described = {name for name, text in comments(location).items() if text}
    assert described == {"first", "second", "fourth"}
    assert comment(settings, location) == 1
    assert len(asked) == 4


def test_ctrl_c_ends_what_is_under_way_and_the_next_run_goes_on(
    settings: Settings, location: Location
) -> None:
    def interrupt(step: Progress) -> None:
        if step.done == 2:
            raise KeyboardInterrupt

    ended: list[int] = []
    units = plan_descriptions(settings, location, "m").units
    with pytest.raises(KeyboardInterrupt):
        add_descriptions(
            settings, location, units, complete, "m", interrupt, lambda: ended.append(1)
        )
    assert ended
    assert plan_descriptions(settings, location, "m").stored == 2
    comment(settings, location)
    assert all(comments(location).values())


# Through the doors


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A server of descriptions, at the address that the environment gives for models."""
    with openai_server(script) as server:
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        yield server


def test_index_with_comments_describes_over_http_what_was_agreed_to(
    location: Location, codeqa: Command, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(text: str) -> None:
        """What somebody types at a terminal."""
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n"))
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    command = ("index", location.root, "--comments", "--model", "custom/m")
    says("n")
    refused = codeqa(*command).out
    assert "4 methods, ≈ " in refused and "Send them to 127.0.0.1? [y/N]" in refused
    assert "Nothing was sent." in refused and scripted.requests == []
    says("y")
    first = codeqa(*command)
    assert first.status == 0, first.err
    assert "tokens to custom/m at 127.0.0.1" in first.out
    assert "4 descriptions written." in first.out
    assert "comments: 4 of 4 (100%)\n" in first.err
    assert len(scripted.requests) == 4
    second = codeqa(*command, "--yes")
    assert len(scripted.requests) == 4
    assert "4 described before. No other method needs a description." in second.out
    assert found_by(location, "walrus") == ["second"]


def test_index_with_comments_asks_before_anything_is_done(
    tmp_path: Path, settings: Settings, codeqa: Command, scripted: ScriptedServer
) -> None:
    repository = write(tmp_path / "repo", FILES)
    command = ("index", repository, "--comments")
    unasked = codeqa(*command, "--model", "custom/m")
    without = codeqa(*command, "--yes")
    alone = codeqa("index", repository, "--yes")
    assert unasked.status == without.status == alone.status == 2
    assert "Add --yes" in unasked.error
    assert "No language model is chosen" in without.error
    assert "need --comments" in alone.error
    assert scripted.requests == []
    assert not Path(locate(settings, repository).tables).exists()


def test_no_source_is_told_in_messages(
    location: Location, codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = (500, {}, {"error": {"message": json.dumps("def third(x): third_a = x")}})
    with openai_server(lambda path, body: refused) as server:
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        result = codeqa("index", location.root, "--comments", "--model", "custom/m", "--yes")
    assert result.status == 1 and server.requests
    assert "Traceback" not in result.err and "third_a = x\n" not in result.err
