"""The tools: what each finds in a small repository, through every door that they are behind."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chat_kit import SlowClock
from indexed import write
from repositories import executable, git
from serving import client_of

from codeqa.cli import main
from codeqa.code.counted import CountedQuestion, counted_answer
from codeqa.code.tools import TOOLS, ToolResult
from codeqa.code.tools.references import name_at
from codeqa.code.tools.tool import LARGEST_TEXT
from codeqa.engine import Engine, open_engine
from codeqa.errors import NotFoundError, UsageError
from codeqa.quoted.evidence import _absent
from codeqa.review.reviewer import Reviewer
from codeqa.search.query import parse_query
from codeqa.settings import load_settings

if TYPE_CHECKING:
    from flask.testing import FlaskClient

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

FIRST = {
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
    "shop/basket.py": (
        '"""Baskets."""\n\nRATE = 2  # TODO: by country\n\n\n'
        "class Basket:\n"
        '    """Holds what a customer buys."""\n\n'
        "    def add(self, price):\n        self.prices.append(price)\n\n"
        "    def total(self):\n"
        '        """The sum of all prices. With tax."""\n'
        "        return taxed(sum(self.prices))\n\n\n"
        "def taxed(price):\n    return price * RATE\n"
    ),
    "long_module.py": "LIMIT = 3\n\n\nclass Till:\n    def add(self):\n"
    '        """Puts one in. And more."""\n' + "        self.count += 1\n" * 150
    + "\n\ndef last():\n    return 0\n",
    "shop/checkout.py": (
        "from shop.basket import Basket\n\n"
        "API_KEY = 'ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3'\n\n\n"
        "def pay(basket: Basket):\n    return charge(basket.total())\n\n\n"
        "def charge(amount):\n    return amount\n"
    ),
    "tests/test_basket.py": (
        "from shop.basket import Basket\n\n\n"
        "def test_total():\n    basket = Basket()\n    assert basket.total() == 0\n"
    ),
    "kinds.py": "from typing import overload\n\n\nclass Kiln:\n"
    + "".join(f"    @overload\n    def fire(self, n{n}: int) -> int: ...\n\n" for n in range(3))
    + "    def fire(self, *at):\n        return at\n\n\n"
    "class Oven:\n    def bake(self) -> int: ...\n\n\n"
    "class Grill:\n    def bake(self) -> int: ...\n",
    "tower.py": 'class Lighthouse:\n    """A lighthouse at the coast."""\n\n    height = 40\n\n'
    + "".join(f"    def turn_{n}(self):\n        return {n}\n\n" for n in range(30))
    + '    def signal_fog(self, horn):\n        """Signal fog with the horn."""\n'
    "        return horn.blow(self.height)\n",
    "huge.py": "def huge(x):\n" + "".join(f"    x.a_{n} = {n}\n" for n in range(700))
    + "    return finished(x)\n\n\ndef finished(x):\n    return x\n",
    "odd, named.py": "ODD = 1\n",
    "app/pay.py": "VALUE = 1\n",
    "app/long.py": f"x = '{'a' * 50_000}'\n",
    "app/many.py": "".join(f"value_{number} = {number}  # needle\n" for number in range(800)),
    "web/pay.py": "VALUE = 2\n",
    ".env": "PASSWORD=hunter2hunter2\n",
}  # fmt: skip
KEY = "AKIAIOSFODNN7EXAMPLE"

Call = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A repository with two commits, the second of which changes `taxed`, and its index."""
    base = tmp_path_factory.mktemp("tools")
    root = write(base / "repo", FIRST)
    git(root, "init", "-q")
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", f"Baskets and a till\n\nTried with {KEY} at first.")
    code = FIRST["shop/basket.py"].replace("price * RATE", f"price * RATE  # in cents {KEY}")
    write(root, {"shop/basket.py": code, ".env": "PASSWORD=changed2changed2\n"})
    git(root, "commit", "-qam", "Prices are in cents")
    engine = open_engine(load_settings(data=base / "data", workers=1, watch=False), root)
    engine.index.run()
    yield engine
    engine.close()


@pytest.fixture
def call(engine: Engine) -> Call:
    return lambda tool, /, **values: TOOLS[tool].call(engine.toolbox, values)


def test_each_tool_finds_what_it_is_for(call: Call) -> None:
    found = call("search_code", query="the sum of all prices of a basket")
    assert found.text.startswith("--- shop/basket.py (lines 12-14, relevance: 0.")
    assert found.places[0].name == "Basket.total"
    taxed = call("symbol", name="taxed").text
    head = "taxed has 1 definition:\n--- shop/basket.py (lines 17-18) ---\n17\tdef taxed(price):\n"
    assert taxed.startswith(head)
    assert "Called by: Basket.total [14]" in taxed and "RATE = 2  # TODO" in taxed
    references = call("symbol", name="total", want="references")
    assert [place.location for place in references.places] == [
        "shop/checkout.py:7", "tests/test_basket.py:6",
    ]  # fmt: skip
    assert references.places[0].name == "pay" and "charge(basket.total())" in references.text
    value = call("symbol", name="RATE")
    assert value.places[0].location == "shop/basket.py:3" and "RATE = 2" in value.text
    callees = call("symbol", name="pay", want="callees")
    assert [place.name for place in callees.places] == ["charge", "Basket.total"]
    assert "\n    → taxed" in callees.text
    assert call("list_all", kind="files", path="**/pay.py").paths == ("app/pay.py", "web/pay.py")
    opened = call("open_file", path="shop/basket.py", lines="12-14")
    assert opened.places[0].text.startswith("    def total(self):") and opened.total == 18
    assert "12\t    def total(self):" in opened.text


def test_code_has_the_numbers_of_its_lines(engine: Engine) -> None:
    for tool, asked, code, first in (
        ("search_code", {"query": "Basket.total"}, FIRST["shop/basket.py"].split("\n")[11:14], 12),
        ("symbol", {"name": "charge"}, ["def charge(amount):", "    return amount"], 10),
        ("symbol", {"name": "VALUE"}, ["VALUE = 1"], 1),
        ("symbol", {"name": "height"}, ["    height = 40"], 4),
    ):
        told = TOOLS[tool].call(engine.toolbox, asked)
        numbers = "".join(f"\n{n}\t{line}" for n, line in enumerate(code, first))
        assert f" ---{numbers}" in told.text
        assert told.places[0].text == "\n".join(code)


def test_of_a_definition_that_is_too_long_the_lines_are_shown_that_are_said_to_be(
    engine: Engine,
) -> None:
    told = TOOLS["symbol"].call(engine.toolbox, {"name": "huge"})
    (place,) = told.places
    assert f"(lines 1-{place.end_line}, of 1-702)" in told.text and place.end_line < 702
    last = place.text.split("\n")[-1]
    assert f"\n{place.end_line}\t{last}\nCalls: finished [705]" in told.text


def test_a_name_in_a_line_means_its_definitions_and_is_used_in_places(engine: Engine) -> None:
    for path, line, name, means, used in (
        ("shop/checkout.py", 7, "total", ["shop/basket.py:12-14"],
         ["checkout.py:7", "test_basket.py:6"]),
        ("shop/basket.py", 14, "taxed", ["shop/basket.py:17-18"], ["basket.py:14"]),
        ("shop/basket.py", 17, "taxed", ["shop/basket.py:17-18"], ["basket.py:14"]),
        ("twins.py", 2, "fetch_all", ["twins.py:2-3"], ["twins.py:12"]),
        ("twins.py", 12, "fetch_all", ["twins.py:2-3", "twins.py:7-8"], ["twins.py:12"]),
        ("shop/basket.py", 10, "append", [], []),
        ("nowhere.py", 1, "nothing", [], []),
    ):  # fmt: skip
        report = name_at(engine.toolbox, path, line, name)
        assert [place.location for place in report.definitions] == means
        assert [place.location.rpartition("/")[2] for place in report.uses] == used
        assert report.total == len(used)
        unsure = {place.note for place in report.definitions}
        assert unsure <= {"", "likely"} if len(means) < 2 else unsure == {"possible"}


def test_several_places_are_opened_at_once_and_a_wrong_one_costs_a_line(call: Call) -> None:
    for path, lines, opened, said in (
        ("shop/basket.py:17", "", ["shop/basket.py:17"], []),
        ("basket.py:12-14, checkout.py:7", "", ["shop/basket.py:12-14", "shop/checkout.py:7"], []),
        ("basket.py , app/pay.py:1,", "", ["shop/basket.py:1-18", "app/pay.py:1"], []),
        ("basket.py:17, notes.py", "3-4", ["shop/basket.py:17", "notes.py:3-4"], []),
        ("odd, named.py", "", ["odd, named.py:1"], []),
        (
            "pay.py:1, basket.py:90-99, basket.py:9-3, nothing.py:3, ../x.py, basket.py:18", "",
            ["shop/basket.py:18"],
            ["pay.py: Several files are called", "basket.py: There are no lines 90-99.",
             "basket.py: The lines 9-3 go backwards.", "nothing.py: No indexed file", "../x.py: "],
        ),
    ):  # fmt: skip
        found = call("open_file", path=path, lines=lines)
        assert [place.location for place in found.places] == opened
        for place in found.places:
            first, *_ = place.text.split("\n")
            assert f"\n{place.start_line}\t{first}" in found.text
        assert [one for one in said if f"\n\n{one}" not in f"\n\n{found.text}"] == []
    assert call("open_file", path="long_module.py, last.py").places[0].name == "LIMIT", "an outline"


def test_a_long_file_is_opened_as_what_it_defines(call: Call) -> None:
    outline = call("open_file", path="gone.py")
    assert outline.places[0].text, "61 lines are shown"
    outline = call("open_file", path="long_module.py")
    assert [place.name for place in outline.places] == ["LIMIT", "Till", "Till.add", "last"]
    assert "def add(self)  Puts one in. And more." in outline.text and "LIMIT = 3" in outline.text


def test_what_is_found_comes_whole_with_what_saves_the_next_call(call: Call) -> None:
    guess = "def how_much(basket):\n    return tax(sum(basket.prices), vat_rate())"
    found = call("search_code", query="sum of the prices with tax", guess=guess)
    assert "return taxed(sum(self.prices))" in found.text
    assert "Called by: pay [shop/checkout.py:7]; 1 test" in found.text
    assert "Found nowhere here: vat_rate." in found.text
    lines = call("search_code", query="Basket.total").text.split("\n")
    assert lines[0].startswith("--- shop/basket.py (lines 12-14, relevance: 0.")
    assert "--- shop/basket.py (lines 17-18, called in line 14) ---" in lines, "a short callee"
    asked = {"query": "when a parcel leaves", "tokens": 200}
    # A guess finds what the question alone does not.
    guess = "def charge(amount):\n    return amount"
    assert "charge" not in {place.name for place in call("search_code", **asked).places}
    found = call("search_code", **asked, guess=guess)
    assert "def charge(amount):" in found.text


def test_a_relevance_and_a_word_say_what_does_not_fit_the_question(call: Call) -> None:
    for query, fits in (
        ("Basket.total", True),
        ("how does the drone adjust its rotor speed", False),
    ):
        best = re.search(r"relevance: (\d\.\d\d)", call("search_code", query=query).text)
        assert best and (float(best[1]) > 0.4 if fits else float(best[1]) < 0.3)
    weak = call("search_code", query="throttle requests of kubernetes pods").text
    assert "Weak: none of this code contains throttle, requests, kubernetes, pods." in weak
    assert "Found nowhere here: " in weak and "kubernetes" in weak.split("nowhere here")[1]
    assert "Weak" not in call("search_code", query="sum of all prices").text


def test_grep_counts_every_line_literally_or_by_expression(call: Call) -> None:
    shop = {"path": "shop/"}
    assert [p.location for p in call("grep", pattern="TODO", **shop).places] == ["shop/basket.py:3"]
    assert call("grep", pattern="def t\\w+\\(", regex=True, **shop).total == 2
    assert call("grep", pattern="def t\\w+\\(").total == 0
    assert call("grep", pattern="todo", **shop).total == 0
    assert call("grep", pattern="(?i)todo", regex=True, **shop).total == 1
    assert call("grep", pattern="basket", path="tests/").total == 3
    assert call("grep", pattern="^def .*:$", regex=True, path="shop/").total == 3
    for pattern in ("class Basket|TODO", r"class Basket\|TODO"):
        hint = "2 lines match the regular expression class Basket|TODO (regex)"
        assert hint in call("grep", pattern=pattern, **shop).text
    for pattern in ("no such text", "no|such", "(no"):
        assert "regular" not in call("grep", pattern=pattern, **shop).text


def test_what_is_not_read_in_time_or_followed_is_told(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.code.tools.walk.MOST_FOLLOWED", 1)
    assert " at least " in call("symbol", name="taxed", want="impact").summary
    monkeypatch.setattr("codeqa.repositories.files.time", SlowClock())
    summary = call("grep", pattern="basket").summary
    assert "0 lines in the first 8 of 26 files, for reading takes too long" in summary


def test_git_tells_who_changed_what_and_when(engine: Engine, call: Call) -> None:
    assert [c.subject for c in call("history").commits] == [
        "Prices are in cents", "Baskets and a till",
    ]  # fmt: skip
    assert len(call("history", name="taxed").commits) == 2
    assert len(call("history", name="Basket.add").commits) == 1
    assert "app/pay.py, not web/pay.py: 1 commit" in call("history", path="pay.py").summary
    blamed = call("history", path="shop/basket.py", lines="16-18")
    assert [(c.lines, c.subject) for c in blamed.commits] == [
        ("16-17", "Baskets and a till"), ("18-18", "Prices are in cents"),
    ]  # fmt: skip
    shown = call("history", commit="HEAD")
    assert f"+    return price * RATE  # in cents {'*' * len(KEY)}\n" in shown.text
    merge = ["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-p", "HEAD~1", "-m", "Nothing new"]
    made = subprocess.run(
        ["git", *merge], cwd=engine.location.root, check=True, capture_output=True, text=True
    )
    merged = call("history", commit=made.stdout.strip())
    assert "Nothing new: 0 files changed" in merged.text, "against what it was merged into"
    before = call("history", commit="HEAD~1", path="shop/basket.py")
    assert "in cents" not in before.text and before.places[0].note == "at HEAD~1"


def test_no_tool_tells_a_secret_or_a_file_that_is_not_indexed(call: Call) -> None:
    key = "ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3"
    assert call("grep", pattern=key).total == 0 and call("grep", pattern="hunter2").total == 0
    assert key not in call("open_file", path="shop/checkout.py").text
    assert key not in call("history", commit="HEAD~1", path="shop/checkout.py").text
    assert key not in call("history", commit="HEAD~1").text
    for commit in ("HEAD", "HEAD~1"):
        shown = call("history", commit=commit)
        assert "hunter2" not in shown.text and "changed2" not in shown.text
        assert ".env" not in shown.paths
    for path in (".env", "../outside.py", "/etc/passwd"):
        with pytest.raises(NotFoundError):
            call("open_file", path=path)
        for asked in ({"commit": "HEAD"}, {"lines": "1"}, {}):
            with pytest.raises(NotFoundError):
                call("history", path=path, **asked)


def test_a_wrong_call_is_told_what_is_wrong(call: Call) -> None:
    for name, values, error, said in (
        ("grep", {"patern": "x"}, UsageError, 'Call grep(pattern, path="", regex=false).'),
        ("grep", {"pattern": None}, UsageError, "`pattern` is missing. Call grep(pattern"),
        ("grep", {"pattern": ["x", "y"]}, UsageError, "`pattern` cannot be used"),
        ("grep", {"pattern": "(a", "regex": True}, UsageError, "missing ): (a."),
        # What only an engine that goes back can read, and that takes for ever on some lines.
        ("grep", {"pattern": r"(a)\1", "regex": True}, UsageError, "1"),
        ("grep", {"pattern": ""}, UsageError, "`pattern` cannot be used"),
        ("search_code", {"query": "x", "tokens": 1}, UsageError, "`tokens` cannot be used"),
        ("open_file", {"path": "pay.py"}, UsageError, "app/pay.py, web/pay.py"),
        ("open_file", {"path": "nothing.py"}, NotFoundError, "nothing.py"),
        ("open_file", {"path": "basket.py", "lines": "90-99"}, NotFoundError, "18 lines"),
        ("open_file", {"path": "basket.py", "lines": "90-"}, NotFoundError, "18 lines"),
        ("open_file", {"path": "basket.py", "lines": "9-3"}, UsageError, "Ask for 3-9."),
        *(
            ("open_file", {"path": "basket.py", "lines": lines}, UsageError, "`lines` cannot be")
            for lines in (
                "x",
                "-9",
                "1;2",
                "1-2-3",
                "1,2,3",
                [1, 2, 3],
                True,
                "9" * 10,
                "l" * 4_000,
            )
        ),
        ("history", {"name": "nothing_here"}, NotFoundError, "nothing_here"),
        ("history", {"commit": "--output=/tmp/x"}, UsageError, "`commit` cannot be used"),
        ("history", {"commit": "0000000"}, NotFoundError, "git could not answer"),
        ("history", {"commit": "-"}, UsageError, "A commit, branch or tag"),
        ("symbol", {"name": "taxed", "want": "color"}, UsageError, "path to NAME"),
    ):
        with pytest.raises(error) as failed:
            call(name, **values)
        assert said in f"{failed.value.message} {failed.value.hint}"


LINES: dict[str, tuple[object, ...]] = {
    "17": (17, "17", 17.0, [17], " 17 ", "L17", "#L17", "line 17", "017"),
    "17-20": ("17-20", "L17-L20", "17-L20", "#L17-L20", "17:20", "17,20", [17, 20], ["17", "20"],
              "[17, 20]", "(17,20)", "17 - 20", "17–20", "17..20", "17 to 20", "lines 17-20",
              {"start": 17, "end": 20}, [17.0, 20.0]),
    "17-": ("17-", "17:", "17,-1", [17, -1], "17-end", {"start": 17, "end": None}, "17-999"),
    "1-20": ("0-20", [0, 20]),
}  # fmt: skip
"""Lines as `open_file` shows them → as agents write them."""


def test_lines_are_read_as_agents_write_them(call: Call) -> None:
    for shown, forms in LINES.items():
        expected = call("open_file", path=f"many.py:{shown}").summary
        assert "many.py 17-" in expected or shown == "1-20"
        for lines in forms:
            assert call("open_file", path="many.py", lines=lines).summary == expected, lines


def test_a_path_is_read_as_agents_editors_and_compilers_write_it(
    call: Call, engine: Engine, tmp_path: Path
) -> None:
    root = engine.location.root
    (link := tmp_path / "link").symlink_to(root)
    whole, line = call("open_file", path="shop/basket.py"), call("open_file", path="basket.py:9")
    for path, expected in (
        (f"{root}/shop/basket.py", whole),
        (f"file://{root}/shop/basket.py", whole),
        (f"file:{root}/sh%6Fp/basket.py", whole),
        (f"file://localhost{root}/shop/basket.py", whole),
        (f"{link}/shop/basket.py", whole),
        ("./shop/basket.py", whole),
        ("/shop/basket.py", whole),
        ("shop\\basket.py", whole),
        ("`shop/basket.py`", whole),
        (["shop/basket.py"], whole),
        ("shop/basket.py:9:4", line),
        ("shop/basket.py:9:", line),
        ("shop/basket.py#L9", line),
        ("shop/basket.py line 9", line),
        (f"file://{root}/shop/basket.py#L9-L9", line),
    ):
        assert call("open_file", path=path).text == expected.text, path
    everywhere, inside = call("grep", pattern="def "), call("grep", pattern="def ", path="shop/")
    for path, expected in (
        *((path, everywhere) for path in (root, f"{root}/", f"file://{root}", f"{link}", ".", "/")),
        *((f"{start}shop", inside) for start in (f"{root}/", f"file://{root}/", "./", ".\\", "/")),
    ):
        assert call("grep", pattern="def ", path=str(path)).text == expected.text, path
    blame = call("history", path="shop/basket.py", lines="9-9")
    assert call("history", path=f"{root}/shop/basket.py:9").text == blame.text


def test_an_argument_that_stands_for_nothing_counts_as_absent(call: Call) -> None:
    needed = {
        "search_code": {"query": "total price"}, "symbol": {"name": "taxed"},
        "grep": {"pattern": "def "}, "open_file": {"path": "basket.py"}, "list_all": {},
        "history": {},
    }  # fmt: skip
    for nothing in (None, "", " ", "null", "None", "undefined", [], {}, [None], "NULL"):
        for tool, values in needed.items():
            absent = dict.fromkeys(TOOLS[tool].arguments.model_fields, nothing) | values
            assert call(tool, **absent) == call(tool, **values), (tool, nothing)
    assert "“null”" in call("grep", pattern="null").summary, "a text that is needed is meant"


def test_numbers_and_truths_may_be_texts_and_texts_numbers(call: Call) -> None:
    for values, plain in (
        ({"pattern": "[d]ef ", "regex": "true"}, {"pattern": "[d]ef ", "regex": True}),
        ({"pattern": "def ", "regex": "False"}, {"pattern": "def "}),
        ({"pattern": 1}, {"pattern": "1"}),
        ({"pattern": ["def "]}, {"pattern": "def "}),
    ):
        assert call("grep", **values).text == call("grep", **plain).text
    assert call("search_code", query="total", tokens="500") == call(
        "search_code", query="total", tokens=500
    )
    names = call("symbol", name=["taxed", "charge"])
    assert names == call("symbol", name="taxed, charge")


def test_an_argument_that_a_tool_lacks_is_ignored_with_a_word(call: Call) -> None:
    plain = call("grep", pattern="def ")
    more = call("grep", pattern="def ", include="*.py", limit=5, tool=1, x=None)
    usage = 'Call grep(pattern, path="", regex=false).'
    assert more.text == f"{plain.text}\nIgnored: include, limit, tool. {usage}"
    with pytest.raises(NotFoundError) as failed:
        call("grep", pattern="x", path="nowhere/", glob="*.py")
    assert "Ignored: glob." in failed.value.hint
    assert len(call("grep", pattern="def ", **{"x" * 9_999: 1}).text) < len(plain.text) + 500


def test_a_name_that_is_not_there_is_an_answer_and_no_error(call: Call) -> None:
    for want in ("definition", "callers", "references", "callees", "impact", "path to taxed"):
        assert call("symbol", name="no_such_thing", want=want).total == 0
    assert "nearest name is checkout." in call("symbol", name="chekcout", want="callers").text


def test_several_names_are_looked_up_at_once_and_told_apart(call: Call) -> None:
    for names, want in (
        (["taxed", "Basket.total"], "definition"),
        (["taxed", "no_such_thing", "charge"], "callers"),
        (["fetch_all", "total"], "references"),
        (["pay", "begin"], "callees"),
        (["Sessions", "Connector"], "subclasses"),
        (["taxed", "charge"], "impact"),
        (["begin", "other"], "path to finish"),
    ):
        each = [call("symbol", name=name, want=want) for name in names]
        for joined in (", ", ","):
            found = call("symbol", name=joined.join(names), want=want)
            assert found.text == "\n\n".join(one.text for one in each)
            assert found.summary == "; ".join(one.summary for one in each)
            assert found.places == tuple(place for one in each for place in one.places)
            assert found.total == sum(one.total for one in each) > 1
    assert call("symbol", name="taxed,").places == call("symbol", name="taxed").places
    much = call("symbol", name="huge, many, huge")
    assert "… and 1 more: ask for fewer." in much.text
    assert [place.name for place in much.places] == ["huge", "many"]


def test_overloads_and_stubs_are_told_by_place_where_there_is_code(call: Call) -> None:
    for name, shown, also in (
        ("fire", ["kinds.py:14-15"], ["kinds.py:5-6", "kinds.py:8-9", "kinds.py:11-12"]),
        ("bake", ["kinds.py:19", "kinds.py:23"], []),
        ("fetch_all", ["twins.py:2-3", "twins.py:7-8"], []),
    ):
        found = call("symbol", name=name)
        assert [place.location for place in found.places] == shown
        assert found.text.startswith(f"{name} has {len(shown) + len(also)} definitions:")
        told = found.text.partition("\nAlso: ")[2]
        assert re.findall(r"\[(.+?)\]", told) == also


def test_a_member_that_a_search_hits_is_shown_beside_the_head_of_its_long_class(
    call: Call,
) -> None:
    for query, shown in (
        ("a lighthouse that can signal", ["tower.py:1-5", "tower.py:96-98"]),
        ("lighthouse coast", ["tower.py:1-5"]),
        ("signal fog horn", ["tower.py:96-98"]),  # it says all, whatever it lies in
        ("what a customer buys, a Basket", ["shop/basket.py:6-14"]),  # all of a short class
    ):
        found = call("search_code", query=query)
        assert [p.location for p in found.places if p.note.startswith("relevance")] == shown
    assert call("search_code", query="lighthouse coast").text.count("signal_fog [96-98]") == 1


PATHS = (
    "./shop/", "shop", "/shop", "basket.py", "**/basket.py", "shop\\basket.py",
    "{root}/shop/basket.py", "file://{root}/shop/", "shop/../shop//basket.py",
)  # fmt: skip


def test_a_path_means_the_same_in_every_tool_and_search(engine: Engine, call: Call) -> None:
    for path in PATHS:
        written = path.replace("{root}", str(engine.location.root))
        assert call("grep", pattern="def total", path=written).total == 1
        assert call("list_all", kind="todos", path=written).total == 1
        assert "shop/basket.py" in call("list_all", kind="files", path=written).paths
        found = call("search_code", query="sum of all prices", path=written)
        assert found.places[0].path == "shop/basket.py"
        result = engine.search.search(f'merge sum of all prices path:"{written}"')
        assert all(hit.unit.path.startswith("shop/") for hit in result.units) and result.units
    # And every way to write the root selects all.
    for path in (".", "/", "", "{root}", "**"):
        written = path.replace("{root}", str(engine.location.root))
        for tool, asked in (("grep", {"pattern": "merge_all"}), ("list_all", {"kind": "files"})):
            assert call(tool, path=written, **asked).total == call(tool, **asked).total > 1
        assert engine.search.search("merge all", path=written).units


def test_a_path_that_selects_nothing_says_so_and_names_the_nearest(
    engine: Engine, call: Call
) -> None:
    for path, near in (("shop/baskte.py", "shop/basket.py"), ("shpo", "shop")):
        for tool, arguments in (
            ("grep", {"pattern": "x"}), ("search_code", {"query": "x"}),
            ("list_all", {"kind": "files"}), ("list_all", {"kind": "tests"}),
        ):  # fmt: skip
            with pytest.raises(NotFoundError, match=f"No indexed file matches '{path}'") as caught:
                call(tool, **arguments, path=path)
            assert f"Did you mean {near}" in caught.value.hint
        (warning,) = engine.search.search("total", path=path).warnings
        assert f"matches path:{path}. Did you mean {near}" in warning


def test_a_result_is_never_larger_than_its_bound(call: Call) -> None:
    found = call("grep", pattern="needle")
    assert found.total == 800 and len(found.places) == 100 and "700 more" in found.text
    opened = call("open_file", path="app/many.py", lines="1-800")
    assert 300 < opened.places[0].end_line <= 400 and opened.total == 800
    for result in (found, opened, call("open_file", path="app/many.py")):
        assert len(result.text) < LARGEST_TEXT + 300


def test_what_is_not_listed_is_counted(engine: Engine, call: Call) -> None:
    found = call("symbol", name="many", want="callees")
    assert (found.summary, found.total) == ("many calls 30 functions", 30)
    assert len(found.places) == 30 and "  step_9 [many.py:" in found.text
    assert call("list_all", kind="todos").summary == "152 lines in 3 files"
    told = counted_answer(engine.toolbox, CountedQuestion("list_all", {"kind": "todos"}), ())
    assert "150 of them" in told and " more:" not in told, "a file stands for all of its lines"
    assert call("list_all", kind="routes").summary == "no routes found"
    tests = call("list_all", kind="tests", path="src/test/")
    assert [place.name for place in tests.places] == ["MarkTest.testOne"]


def test_calls_are_told_by_the_function_that_makes_them_source_first(call: Call) -> None:
    found = call("symbol", name="core.merge_all", want="callers")
    assert [(p.location, p.name, p.note) for p in found.places if "possible" not in p.note] == [
        ("entry.py:10", "enter", ""),
        ("a_test/test_core.py:5", "test_merge", "also lines 6, 8"),
    ]
    assert sum(place.times for place in found.places) == found.total
    assert "3 of these in tests." in found.completeness


def test_a_place_is_not_given_to_one_of_two_that_it_may_mean(call: Call) -> None:
    known = call("symbol", name="fetch_all", want="references").completeness
    assert "One.fetch_all [twins.py:2-3] 0" in known and "Two.fetch_all [twins.py:7-8] 0" in known
    assert "1 may mean any of them." in known


def test_a_way_of_calls_is_sure_where_there_is_one_and_else_said_not_to_be(call: Call) -> None:
    sure = call("symbol", name="begin", want="path to finish")
    assert [place.name for place in sure.places] == ["begin", "enter", "merge_all"]
    assert "name only" not in sure.completeness
    by_name = call("symbol", name="other", want="path to finish")
    assert by_name.total == 2 and "by name only" in by_name.completeness
    callees = call("symbol", name="other", want="callees")
    assert "Not listed: 1 call with only the same name." in callees.text and not callees.places


def test_a_method_counts_together_with_its_base_and_what_overrides_it(
    engine: Engine, call: Call
) -> None:
    def found(name: str) -> dict[str, str]:
        result = call("symbol", name=name, want="callers")
        return {place.location: place.note for place in result.places}

    base, override = found("Sessions.save_session"), found("Cookies.save_session")
    assert base.pop("sessions.py:13") == "", "on an heir that has none of its own"
    assert base.keys() == override.keys() == {"web.py:8", "a_test/test_sessions.py:2"}
    assert base["web.py:8"] == "through Cookies.save_session, likely"
    assert override["a_test/test_sessions.py:2"] == "through Sessions.save_session, likely"
    asked = CountedQuestion("symbol", {"name": "that", "want": "callers"})
    told = counted_answer(engine.toolbox, asked, ["Sessions.save_session"])
    assert "`Web.respond`, through Cookies.save_session, likely" in told


def test_a_way_of_calls_goes_through_the_method_of_a_base(call: Call) -> None:
    way = call("symbol", name="Client.fetch", want="path to TCPConnector.create_link")
    names = [place.name for place in way.places]
    assert names == ["Client.fetch", "Client.send", "Client.send.made", "Connector.connect"]
    assert "a method of a base class or interface" in way.completeness
    own = call("symbol", name="Connector.connect", want="path to Connector.create_link")
    assert own.total == 1 and "overrides" not in own.completeness


def test_a_commit_is_shown_without_its_secrets_and_a_tag_as_what_it_marks(
    engine: Engine, call: Call
) -> None:
    root = engine.location.root
    git(root, "tag", "-a", "v1", "-m", "first", "HEAD~1")
    shown = call("history", commit="v1")
    assert shown.commits[0].subject == "Baskets and a till" and "Tried with *" in shown.text
    assert KEY not in shown.text and f"{len(FIRST)} files changed" in shown.summary
    tree = subprocess.check_output(["git", "rev-parse", "HEAD^{tree}"], cwd=root, text=True)
    with pytest.raises(NotFoundError):
        call("history", commit=tree.strip())


def test_nothing_is_said_to_be_nowhere_that_stands_somewhere(engine: Engine) -> None:
    for name, nowhere in (("JSONEncoder", False), ("XMLEncoder", True)):
        asked = parse_query(f"how does it use {name}?")
        told = _absent(engine.tables(), asked, (name.lower(),))
        assert [bool(one) for one in told] == [nowhere, not nowhere], told


def test_a_review_without_a_model_names_tests_that_use_the_code_and_who_wrote_it(
    engine: Engine,
) -> None:
    report = Reviewer(engine.toolbox).report("Tax", "The total of a Basket is wrong.")
    test = report.tests[0]
    assert (test.path, test.symbol) == ("tests/test_basket.py", "test_total")
    assert test.why.startswith("uses `Basket")
    (owner,) = report.owners
    assert owner.lines > 5 and owner.latest >= "2024"
    assert f"{owner.lines} of these lines, the latest {owner.latest}" in report.text


def test_git_runs_nothing_that_the_repository_names(
    engine: Engine, call: Call, tmp_path: Path
) -> None:
    marker, root = tmp_path / "executed", engine.location.root
    attack = f'#!/bin/sh\necho "$0 $@" >> "{marker}"\nexit 1\n'
    program = executable(tmp_path / "attack.sh", attack)
    write(root, {".git/info/attributes": "* diff=evil filter=evil\n"})
    keys = ("diff.evil.textconv", "diff.evil.command", "diff.external", "filter.evil.clean",
            "filter.evil.smudge", "core.pager", "core.fsmonitor")  # fmt: skip
    for key in keys:
        git(root, "config", key, str(program))
    try:
        call("history", name="taxed")
        call("history", commit="HEAD")
        call("history", commit="HEAD~1", path="shop/basket.py")
        call("history", path="shop/basket.py", lines="1-18")
    finally:
        (root / ".git/info/attributes").unlink()
        for key in keys:
            git(root, "config", "--unset", key)
    assert not marker.exists(), marker.read_text()


@pytest.fixture
def client(engine: Engine) -> Iterator[FlaskClient]:
    with client_of(engine.settings, engine) as client:
        yield client


def test_every_door_leads_to_the_same_tools(
    engine: Engine,
    call: Call,
    client: FlaskClient,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CODEQA_DATA", str(engine.settings.data_dir))
    values: dict[str, dict[str, Any]] = {
        "search_code": {"query": "total price"},
        "symbol": {"name": "taxed", "want": "callers"},
        "grep": {"pattern": "taxed"},
        "open_file": {"path": "shop/basket.py", "lines": "1-3"},
        "list_all": {"kind": "tests"},
        "history": {"name": "taxed"},
    }
    told = {tool["name"]: tool for tool in client.get("/api/tools").get_json()["tools"]}
    assert list(told) == list(TOOLS)
    for name, tool in TOOLS.items():
        given = values[name]
        expected = call(name, **given).model_dump(mode="json")
        assert tool.description == told[name]["description"] and len(tool.description) < 600
        assert all("description" in one for one in tool.schema()["properties"].values())
        assert client.post(f"/api/tools/{name}", json=given).get_json() == expected
        if name in ("grep", "symbol", "open_file"):
            command = [name.replace("_", "-"), *map(str, given.values())]
            assert main([*command, "--repo", str(engine.location.root), "--json"]) == 0
            assert json.loads(capsys.readouterr().out) == expected


def test_a_wrong_call_over_http_or_on_the_command_line_is_a_clear_failure(
    engine: Engine,
    client: FlaskClient,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for given in ({}, {"pattern": {}}, {"pattern": [1, 2]}):
        answer = client.post("/api/tools/grep", json=given)
        assert answer.status_code == 400 and answer.get_json()["error"]["message"]
    assert client.post("/api/tools/nothing", json={}).status_code == 404
    assert main(["graep", "x"]) == 2
    assert "Did you mean one of: 'grep'" in capsys.readouterr().err
    monkeypatch.setenv("CODEQA_DATA", str(engine.settings.data_dir))
    at = ["--repo", str(engine.location.root)]
    assert main(["symbol", "no_such_thing", "callers", *at]) == 1
    assert "nothing here is called no_such_thing" in capsys.readouterr().out
    assert main(["open_file", "zzzzzzzzzzzzz", *at]) == 1
    assert "list-all(files) lists all files" in capsys.readouterr().err
    assert main(["open_file", "shop/baskte.py", *at]) == 1
    assert "Did you mean shop/basket.py?" in capsys.readouterr().err
