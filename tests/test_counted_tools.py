"""Counts that the tools tell are of all, listed or not, and what is not sure is said to be so."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexed import write
from repositories import git

from codeqa.code.counted import ExactQuestion, exact_answer
from codeqa.code.tools import TOOLS, ToolResult
from codeqa.engine import Engine, open_engine
from codeqa.errors import NotFoundError
from codeqa.quoted.evidence import _absent
from codeqa.search.query import parse_query
from codeqa.settings import load_settings

FILES = {
    "many.py": "def many():\n" + "".join(f"    step_{n}()\n" for n in range(30))
    + "".join(f"\n\ndef step_{n}():\n    return {n}\n" for n in range(30)),
    "notes.py": "".join(f"# TODO: number {n}\n" for n in range(150)),
    "more.py": "# TODO: one more\n",
    "twins.py": "class One:\n    def fetch_all(self):\n        return 1\n\n\n"
    "class Two:\n    def fetch_all(self):\n        return 2\n\n\n"
    "def use(given):\n    return given.fetch_all()\n",
    "core.py": "def merge_all():\n    return finish()\n\n\ndef finish():\n    return 0\n",
    "entry.py": "from core import merge_all\n\n\ndef begin(found):\n"
    "    found.merge_all()\n    return enter()\n\n\ndef enter():\n    return merge_all()\n\n\n"
    "def other(found):\n    return found.merge_all()\n",
    "a_test/test_core.py": "from core import merge_all\n\n\ndef test_merge():\n"
    "    merge_all()\n    merge_all()\n\n    merge_all()\n",
    "sessions.py": "class Sessions:\n    def save_session(self):\n"
    "        raise NotImplementedError\n\n\nclass Cookies(Sessions):\n    def save_session(self):\n"
    "        return 1\n\n\nclass Nulls(Sessions):\n    def close(self):\n"
    "        self.save_session()\n",
    "web.py": "from sessions import Cookies\n\n\nclass Web:\n    sessions = Cookies()\n\n"
    "    def respond(self):\n        self.sessions.save_session()\n",
    "a_test/test_sessions.py": "def test_saved(web):\n    web.sessions.save_session()\n",
    "client.py": "from connect import Connector\n\n\nclass Client:\n"
    "    def __init__(self, connector: Connector):\n        self.connector = connector\n\n"
    "    def fetch(self):\n        return self.send()\n\n"
    "    def send(self):\n        def made():\n            return self.connector.connect()\n\n"
    "        return run_later(made)\n",
    "connect.py": "class Connector:\n    def connect(self):\n        return self.create_link()\n\n"
    "    def create_link(self):\n        raise NotImplementedError\n\n\n"
    "class TCPConnector(Connector):\n    def create_link(self):\n        return 1\n",
    "src/test/java/MarkTest.java": "class MarkTest {\n  @Test\n  public void testOne() {}\n\n"
    "  private void testHelper() {}\n}\n",
    "codec.py": "".join(
        f"def encode_json_{n}(json, encoder):\n    return encoder(json)\n\n\n" for n in range(5)
    ),
    "gone.py": "def gone():\n"
    + "".join(f"    was_{n} = once_{n}()\n" for n in range(60))
    + "    return 'JSONEncoder'\n",
}  # fmt: skip
KEY = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    base = tmp_path_factory.mktemp("counted")
    root = write(base / "repo", FILES)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", f"All of it\n\nTried with {KEY} at first.")
    engine = open_engine(load_settings(data=base / "data", workers=1), root)
    engine.index.run()
    yield engine
    engine.close()


def call(engine: Engine, tool: str, /, **values: str) -> ToolResult:
    return TOOLS[tool].call(engine.toolbox, values)


def test_what_is_not_listed_is_counted(engine: Engine) -> None:
    found = call(engine, "callees", name="many")
    assert (found.summary, found.total) == ("many calls 30 functions", 30)
    assert len(found.places) == 30 and "  step_9 [many.py:" in found.text
    assert call(engine, "list_all", kind="todos").summary == "151 lines in 2 files"
    told = exact_answer(engine.toolbox, ExactQuestion("list_all", {"kind": "todos"}), ())
    assert "150 of them" in told and " more:" not in told, "a file stands for all of its lines"
    assert call(engine, "list_all", kind="routes").summary == "no routes found"
    tests = call(engine, "list_all", kind="tests", of="src/test/")
    assert [place.name for place in tests.places] == ["MarkTest.testOne"]


def test_calls_are_told_by_the_function_that_makes_them_source_first(engine: Engine) -> None:
    found = call(engine, "find_references", name="core.merge_all", kind="call")
    assert [(p.location, p.name, p.note) for p in found.places if "possible" not in p.note] == [
        ("entry.py:10", "enter", ""),
        ("a_test/test_core.py:5", "test_merge", "also lines 6, 8"),
    ]
    assert sum(place.times for place in found.places) == found.total
    assert "3 of these in tests." in found.completeness


def test_a_place_is_not_given_to_one_of_two_that_it_may_mean(engine: Engine) -> None:
    known = call(engine, "find_references", name="fetch_all").completeness
    assert "One.fetch_all [twins.py:2-3] 0" in known and "Two.fetch_all [twins.py:7-8] 0" in known
    assert "1 may mean any of them." in known


def test_a_way_of_calls_is_sure_where_there_is_one_and_else_said_not_to_be(engine: Engine) -> None:
    sure = call(engine, "call_path", start="begin", end="finish")
    assert [place.name for place in sure.places] == ["begin", "enter", "merge_all"]
    assert "only the name" not in sure.completeness
    by_name = call(engine, "call_path", start="other", end="finish")
    assert by_name.total == 2 and "only the name is the same" in by_name.completeness
    assert "(possible: only the name" in call(engine, "callees", name="other").text


def test_a_method_counts_together_with_its_base_and_what_overrides_it(engine: Engine) -> None:
    def found(name: str) -> dict[str, str]:
        result = call(engine, "find_references", name=name, kind="call")
        return {place.location: place.note for place in result.places}

    base, override = found("Sessions.save_session"), found("Cookies.save_session")
    assert base.pop("sessions.py:13") == "", "on an heir that has none of its own"
    assert base.keys() == override.keys() == {"web.py:8", "a_test/test_sessions.py:2"}
    assert base["web.py:8"] == "through Cookies.save_session, likely"
    assert override["a_test/test_sessions.py:2"] == "through Sessions.save_session, likely"
    asked = ExactQuestion("find_references", {"kind": "call", "name": "that"})
    told = exact_answer(engine.toolbox, asked, ["Sessions.save_session"])
    assert "`Web.respond`, through Cookies.save_session, likely" in told


def test_a_way_of_calls_goes_through_the_method_of_a_base(engine: Engine) -> None:
    way = call(engine, "call_path", start="Client.fetch", end="TCPConnector.create_link")
    names = [place.name for place in way.places]
    assert names == ["Client.fetch", "Client.send", "Client.send.made", "Connector.connect"]
    assert "the method of a base or interface" in way.completeness
    own = call(engine, "call_path", start="Connector.connect", end="Connector.create_link")
    assert own.total == 1 and "overrides" not in own.completeness


def test_a_commit_is_shown_without_its_secrets_and_a_tag_as_what_it_marks(engine: Engine) -> None:
    git(engine.location.root, "tag", "-a", "v1", "-m", "first")
    shown = call(engine, "git_show", commit="v1")
    assert shown.commits[0].subject == "All of it" and "Tried with *" in shown.text
    assert KEY not in shown.text and f"{len(FILES)} files changed" in shown.summary
    with pytest.raises(NotFoundError):
        call(engine, "git_show", commit=_tree_of(engine.location.root))


def test_nothing_is_said_to_be_nowhere_that_stands_somewhere(engine: Engine) -> None:
    for name, nowhere in (("JSONEncoder", False), ("XMLEncoder", True)):
        asked = parse_query(f"how does it use {name}?")
        told = _absent(engine.tables(), asked, (name.lower(),))
        assert told.startswith("**Nothing in this code") == nowhere, told


def _tree_of(root: Path) -> str:
    return subprocess.check_output(["git", "rev-parse", "HEAD^{tree}"], cwd=root, text=True).strip()
