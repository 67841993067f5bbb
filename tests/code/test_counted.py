"""Questions that are counted from the index and git, over a repository of several languages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chat_kit
import pytest
from chat_kit import Script
from openai_server import openai_server
from repositories import git

from codeqa.code.counted import counted_question
from codeqa.engine import Engine
from codeqa.text.markdown import MOST_NODES, flowchart

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

FILES = {
    "shop/base.py": "import os\n\n\nclass Store:\n    def save(self):\n"
    "        return self.write_row()\n\n"
    "    def write_row(self):\n        return os.environ.get('SHOP_ROWS')  # TODO: batches\n\n\n"
    "class DiskStore(Store):\n    pass\n\n\nclass FastStore(DiskStore, Mapping):\n    pass\n",
    "shop/app.py": "import click\nfrom flask import Flask\n\nfrom shop.base import DiskStore\n\n"
    "app = Flask(__name__)\n\n\n@app.route('/orders')\ndef orders():\n"
    "    '''As in @app.route(\"/not-one\").'''\n    return keep_order(DiskStore())\n\n\n"
    "def keep_order(store: DiskStore):\n    return store.save()\n\n\n"
    "@click.command('import-orders')\ndef import_orders():\n    return orders()\n",
    "tests/test_app.py": "from shop.app import orders\n\n\ndef test_orders():\n"
    "    assert orders()\n\n\ndef helper():\n    def test_in(): pass\n\n    return 1\n",
    "web/server.js": "function handler(request) { return process.env.WEB_PORT; }\n"
    "app.get('/items', handler);\nclient.get('/elsewhere', {retry: 1});\n"
    "// app.get('/no', handler)\n"
    "it('works', () => {});\n",
    "go/reader.go": "package main\n\n"
    "type Reader interface {\n\tRead(p []byte) int\n\tClose() error\n}\n\n"
    "type File struct{}\n\nfunc (f *File) Read(p []byte) int { return 0 }\n"
    "func (f *File) Close() error { return nil }\n\ntype Half struct{}\n\n"
    "func (h *Half) Close() error { return nil }\n",
    "rust/lib.rs": "pub trait Layer {\n    fn wrap(&self);\n}\n\npub struct Trace;\n\n"
    "impl Layer for Trace {\n    fn wrap(&self) {}\n}\n\n"
    "#[test]\nfn wraps_twice() {\n    Trace.wrap();\n}\n\n"
    "mod tests {\n    struct Inner;\n    impl super::Layer for Inner {}\n"
    "    impl super::Layer for Vec {}\n    impl super::Layer for Box {}\n"
    "    impl other::Trace for Inner {}\n}\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("exact")
    made = chat_kit.index(folder, FILES)
    git(made.repository, "init", "-q")
    git(made.repository, "add", ".")
    git(made.repository, "commit", "-qm", "Orders are kept")
    engine = made.open(folder / "said")
    yield engine
    engine.close()


def ask(engine: Engine, question: str, conversation: str = "", **options: Any) -> str:
    """The answer; all that it cites has been verified, and its diagram can be read."""
    talk = conversation or uuid.uuid4().hex
    events = chat_kit.ask(engine, f"@codebase {question}", conversation=talk, **options)
    assert all(citation["verified"] for citation in events[-1].data["citations"])
    text = chat_kit.answer(events)
    for drawn in re.findall(r"```mermaid\n(.*?)\n```", text, re.DOTALL):
        assert read_flowchart(drawn)
    return text


def read_flowchart(text: str) -> list[tuple[str, str]]:
    """The arrows of a diagram by the labels of their ends. Strict: a line of any other form, a node
    that is not there, or a character that ends a label, fails."""
    first, *lines = text.split("\n")
    assert first == "flowchart LR"
    nodes: dict[str, str] = {}
    arrows: list[tuple[str, str]] = []
    for line in lines:
        if node := re.fullmatch(r'(n\d+)\["([^"<>`&\n]+)"\]', line):
            assert not re.search(r"#(?!quot;)", node[2])
            nodes[node[1]] = node[2]
        else:
            arrow = re.fullmatch(r'(n\d+) -->(?:\|[^|"\n]+\|)? (n\d+)', line)
            assert arrow, line
            arrows.append((nodes[arrow[1]], nodes[arrow[2]]))
    assert len(nodes) <= MOST_NODES
    return arrows


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("who calls keep_order?",
         ["**keep_order is called in 1 place.** All certain.",
          "- [shop/app.py:12] in `orders`"]),
        ("who calls nothing_of_that_name?", ["**Nothing here is called nothing_of_that_name.**"]),
        ("list all subclasses of Store",
         ["**Store has 2 subclasses or implementations.** 1 directly, 1 through these.",
          "- [shop/base.py:12] `DiskStore`", "- [shop/base.py:16] `FastStore`, through DiskStore"]),
        ("which exceptions extend Mapping?",
         ["**Mapping has 1 subclass or", "Mapping is not defined here", "`FastStore`"]),
        ("what implements the Reader interface?",
         ["**Reader has 1 subclass or implementation.**", "`File`", "has all methods"]),
        ("which types implement Layer", ["**Layer has 4 subclasses or", "4 directly",
         "`Trace`", "Inner`", "`Vec`", "`Box`"]),
        ("what breaks if I change Store.save?",
         ["may break 3 definitions and 1 test.**", "`keep_order`", "`orders`, through keep_order",
          "`test_orders`, through orders"]),
        ("path from orders to Store.write_row",
         ["**orders leads to Store.write_row in 3 calls.**", "n1 -->|line 12| n2"]),
        ("list all routes",
         ["**2 routes in 2 files.**", "[shop/app.py:9] `/orders`", "[web/server.js:2] `/items`"]),
        ("how many tests are there?",
         ["**3 tests in 3 files.**", "`test_orders`", "`wraps_twice`", "`works`"]),
        ("which environment variables are read?",
         ["**2 environment variables read in 2 places", "`SHOP_ROWS`", "`WEB_PORT`"]),
        ("how many todos are there?", ["**1 line in 1 file.** 1 TODO."]),
        ("what changed in app.py lately and why, by whom?",
         ["**History of shop/app.py: 1 commit.**", ": Orders are kept"]),
    ],
)  # fmt: skip
def test_it_is_counted_and_cited(engine: Engine, question: str, says: list[str]) -> None:
    text = ask(engine, question)
    assert text.rstrip().endswith("*Counted, without a language model.*")
    assert [part for part in says if part not in text] == []


def test_the_command_for_what_is_not_listed_can_be_given(tmp_path: Path) -> None:
    lines = "".join(f"# TODO: batch {number}\n" for number in range(41))
    with chat_kit.index(tmp_path, {"shop/a.py": lines}).open(tmp_path / "said") as engine:
        assert "and 1 more: `codeqa list-all todos --json`" in ask(engine, "list all todos")
        told = ask(engine, "list all todos in shop/")
        assert "`codeqa list-all todos --path shop/ --json`" in told


def test_asked_again_with_chosen_code_it_is_still_counted_first(engine: Engine) -> None:
    talk, question = uuid.uuid4().hex, "who calls keep_order?"
    first = chat_kit.ask(engine, f"@codebase {question}", conversation=talk)[-1].data["turn"]
    text = ask(engine, question, talk, replaces=first, pin=("shop/base.py:4-6",))
    counted, _, code = text.partition("def save")
    assert "**keep_order is called in 1 place.**" in counted and code


def test_a_follow_up_means_what_was_found_before(engine: Engine) -> None:
    talk = uuid.uuid4().hex
    ask(engine, "who calls keep_order?", talk)
    assert "**orders is called in 2 places.**" in ask(engine, "and who calls that?", talk)
    assert " is called in " in ask(engine, "list its callers", talk)


def test_other_questions_and_words_that_nothing_is_called_are_searched_for(engine: Engine) -> None:
    for question in (
        "how does orders call keep_order?", "who calls the shots when two stores disagree?",
        "what changed between the two versions of the wire format?", "tests",
        "list all the steps from request to response", "what implements retries and backoff",
        "how many tests does it take to trust a release?", "what breaks when the disk is full?",
        "which routes are protected by the login check?", "where is the session used up?",
    ):  # fmt: skip
        assert counted_question(question) is None, question
    for question in ("what uses memory?", "what changed in 3.0?", '"no such order of 3"'):
        assert "Counted from" not in ask(engine, question)


@pytest.mark.parametrize("effort", ["normal", "deep"])
def test_a_model_is_asked_only_where_more_is_wanted(effort: str, engine: Engine) -> None:
    """And is then sent what was counted."""
    script = Script()
    with openai_server(script) as script.server:
        made = chat_kit.Indexed(Path(engine.settings.tables), engine.location.root)
        again = made.open(engine.settings.data_dir / effort, **script.settings)
        talk = {"conversation": uuid.uuid4().hex, "effort": effort}
        events = chat_kit.ask(again, "@codebase who calls keep_order?", **talk)
        sent = [part for body in script.bodies for part in map(str, body["messages"])]
        assert any("[COUNTED]" in part for part in sent) == (effort == "deep")
        assert bool(events[-1].data["model"]) == (effort == "deep")
        if effort == "normal":
            assert script.bodies == []
            chat_kit.ask(again, "@codebase who calls keep_order, and why does it?", **talk)
            assert "keep_order is called in 1 place" in str(script.sent[-1])
        again.close()


NAMES = ['a"b', "end", "graph", "x[y](z){w}", "a|b", "`c`", "#quot;", "名前", "A<T>&", "", "a\nb;c"]


def test_a_diagram_can_be_read_whatever_the_names_are() -> None:
    arrows = read_flowchart(flowchart((one, two, "line 3|") for one in NAMES for two in NAMES))
    assert len(arrows) == len(NAMES) ** 2
    assert len(read_flowchart(flowchart((f"f{n}", "g" * 500, "") for n in range(99)))) == 29
    assert flowchart([]) == ""
