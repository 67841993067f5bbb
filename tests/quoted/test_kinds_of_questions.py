"""Questions that have an answer of their own kind, over a small repository."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import chat_kit
import pytest
from indexed import indexed, write

from codeqa.code.descriptions import overview_of
from codeqa.engine import Engine
from codeqa.repositories.files import Files
from codeqa.search.mentions import Frame, frames_here, take_traceback
from codeqa.search.query import parse_query
from codeqa.store import INDEXED, FileRecord, Tables

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

FILES = {
    "pyproject.toml": '[project]\nname = "shop"\nrequires-python = ">=3.10"\n',
    "README.md": "# Shop\n\nA small shop that sells teapots over the network to everyone.\n",
    "src/shop/hooks.py": "class Hooks:\n    close_callbacks = []\n\n"
    "    def on_close(self, f):\n"
    '        """Keep a callback for the end."""\n'
    "        self.close_callbacks.append(f)\n        return f\n\n"
    "    def close(self):\n"
    '        """Call the callbacks."""\n'
    "        for f in self.close_callbacks:\n            f()\n",
    "src/shop/app.py": "from shop.cart.basket import Basket\n\n\n"
    "def main(hooks):\n    hooks.on_close(print)\n    hooks.close()\n    return Basket()\n",
    "src/shop/cart/__init__.py": '"""What is bought."""\n',
    "src/shop/cart/basket.py": "from shop.cart.price import price_of\n\n\n"
    "class Basket:\n    def add(self, article):\n"
    "        # TODO: more than one\n        return price_of(article)  # todo later\n",
    "src/shop/cart/price.py": "def price_of(article):\n    return article.price\n",
    "src/shop/store/shelf.py": "from shop.cart.basket import Basket\n"
    "from shop.cart.price import price_of\n\n\n"
    "def stock(articles):\n    return [price_of(one) for one in articles], Basket\n",
    "src/shop/scales.py": "class Scale:\n    def weigh(self):\n        return 1\n\n\n"
    "class Bridge:\n    def weigh(self):\n        return 2\n\n\n"
    "def one(scale: Scale):\n    return scale.weigh()\n\n\n"
    "def other(bridge: Bridge):\n    return bridge.weigh()\n",
    **{f"src/shop/pages/page{n}.py": f"PAGE = {n}\n" for n in range(9)},
    "src/cart.rs": "struct Cart;\n\nimpl Cart {\n"
    '    fn add(&self) {\n        panic!("full")\n    }\n}\n',
    "src/shop/counter.py": '"""Where teapots are sold."""\n\nMOST_TEAPOTS = 12\n\n\n'
    'class Counter:\n    """Sells."""\n\n    patience = 90  # seconds\n\n'
    '    def sell(self, teapots):\n        """Sell them."""\n'
    "        if len(teapots) > MOST_TEAPOTS:\n"
    '            raise ValueError("one customer may have 12 teapots")\n        return teapots\n',
    "web/router.ts": "export function handle(request) {\n  return request.user.name;\n}\n",
    "java/com/shop/Till.java": "package com.shop;\n\nclass Till {\n    int sum() {\n"
    "        return add(1);\n    }\n}\n",
    "go/server.go": "package main\n\nfunc (s *Server) Serve() {\n\ts.list[5]()\n}\n",
    "tests/test_basket.py": "from shop.cart.basket import Basket\n"
    "from shop.cart.price import price_of\n\n\ndef test_an_article_is_added():\n"
    "    def article():\n        return price_of(1)\n\n"
    "    assert Basket().add(article)\n",
    "tests/test_hooks.py": "def test_hooks(hooks):\n" + "    hooks.on_close(print)\n" * 4,
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("kinds")
    engine = chat_kit.index(folder, FILES).open(folder / "said")
    yield engine
    engine.close()


def ask(engine: Engine, question: str) -> str:
    """The answer; all that it cites has been verified."""
    events = chat_kit.ask(engine, f"@codebase {question}", conversation=uuid.uuid4().hex)
    cited = events[-1].data["citations"]
    assert all(citation["verified"] for citation in cited)
    return chat_kit.answer(events)


def test_what_calls_it_is_told_in_a_line_and_tests_are_counted(engine: Engine) -> None:
    text = ask(engine, "what does on_close do with the callbacks?")
    assert "Called by `main` [src/shop/app.py:5], 1 test." in text


PYTHON = """Traceback (most recent call last):
  File "/usr/lib/python3.13/runpy.py", line 198, in _run_module_as_main
    return _run_code(code, main_globals, None,
  File "/home/ada/venv/lib/python3.13/site-packages/shop/app.py", line 7, in main
    return Basket()
  File "C:\\shop\\cart\\basket.py", line 7, in add
    return price_of(article)
           ^^^^^^^^^^^^^^^^^
AttributeError: 'str' object has no attribute 'price'
"""
SCRIPT = """TypeError: Cannot read properties of undefined (reading 'name')
    at Layer.handle [as handle_request] (file:///srv/shop/web/router.ts:2:23)
    at node:internal/process/task_queues:95:5
    at next (/srv/node_modules/express/lib/router/route.js:149:13)
"""
JAVA = """java.lang.IllegalStateException: closed
\tat com.other.Main.main(Main.java:9)
Caused by: java.lang.NullPointerException: no article
\tat com.shop.Till.sum(Till.java:5)
\t... 1 more
"""
GO = """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.(*Server).Serve(0xc000012345, {0x1, 0x2})
\t/home/ada/go/server.go:4 +0x1d
"""
RUST = """thread 'main' panicked at src/cart.rs:5:9:
full
stack backtrace:
   0: rust_begin_unwind
             at /rustc/abc/library/std/src/panicking.rs:645:5
   1: shop::Cart::add
             at ./src/cart.rs:5:9
"""


@pytest.mark.parametrize(
    ("traceback", "error", "places"),
    [
        (
            PYTHON,
            "AttributeError: 'str' object has no attribute 'price'",
            ["[src/shop/cart/basket.py:7] in `Basket.add`: `return price_of(article)",
             "[src/shop/app.py:7] in `main`: `return Basket()`"],
        ),
        (SCRIPT, "TypeError: Cannot read", ["[web/router.ts:2] in `handle`: `return request.user"]),
        (JAVA, "Caused by: java.lang.Null", ["[java/com/shop/Till.java:5] in `Till.sum`: `return"]),
        (GO, "panic: runtime error: index", ["[go/server.go:4] in `Server.Serve`: `s.list[5]()`"]),
        (RUST, "panicked at src/cart.rs:5:9: full", ["[src/cart.rs:5] in `Cart::add`: `panic!("]),
    ],
)  # fmt: skip
def test_a_traceback_is_read_as_one(
    engine: Engine, traceback: str, error: str, places: list[str]
) -> None:
    """Without a tag and with words around it: the innermost frame of the repository first."""
    question = f"why do I get this?\n\n{traceback}\nany idea?"
    events = chat_kit.ask(engine, question, conversation=uuid.uuid4().hex)
    text = chat_kit.answer(events)
    found = [text.index(one) for one in (error, *places)]
    assert found == sorted(found)
    assert "express" not in text and "runpy" not in text and "Main.java" not in text
    if traceback is PYTHON:  # for a model the code of the frames stands in the context
        sent = engine.chat.gatherer.context_for(question).chunks[: len(places)]
        assert {one[1:].partition(":")[0] for one in places} == {chunk.path for chunk in sent}
    searched = parse_query(question).text
    assert "any idea?" in searched and " ".join(error.split()) in searched
    assert "handle_request" not in searched and "Traceback" not in searched


def test_who_calls_a_name_means_all_that_is_called_so(engine: Engine) -> None:
    both = ask(engine, "who calls weigh?")
    assert "**weigh is called in 2 places.**" in both and "in `one`" in both
    assert "`other`" in both and "Scale.weigh [src/shop/scales.py:2-3] 1" in both
    named = ask(engine, "who calls Bridge.weigh?")
    assert "**Bridge.weigh is called in 1 place.**" in named and "in `other`" in named


def test_a_sentence_that_names_a_line_is_no_traceback() -> None:
    asked = 'What does File "app.py", line 10 do and why is it slow?'
    assert take_traceback(asked) == (asked, None)
    assert take_traceback(f"{asked}\nValueError: no")[1] is not None


def test_a_traceback_from_elsewhere_is_said_to_be(engine: Engine) -> None:
    raised = 'File "/opt/other/lib.py", line 3, in work\nValueError: too few baskets'
    assert "None of its frames is in this repository." in ask(engine, raised)


@pytest.mark.parametrize(
    ("question", "says", "says_not"),
    [
        (
            "search TODO",
            ["**Grep “TODO”: 1 line in 1 of ", "- [src/shop/cart/basket.py:6] `Basket.add`: `"],
            "later",
        ),
        ("find all FIXMEs", ["**Grep “FIXME”: 0 lines in "], "** · "),
        ('"price_of(one) for one"', ["[src/shop/store/shelf.py:6] `stock`: `return ["], "** · "),
        (
            "which tests cover Basket.add?",
            ["**1 test** in 1 file", "- [tests/test_basket.py:5-9] `test_an_article_is_added`"],
            "** · method",
        ),
        ("which tests cover kubernetes volumes?", ["**No test was found**"], "`test_hooks`"),
        (
            "what is the default patience of the counter?",
            ["patience = 90  # seconds\n"],
            "comes nearest",
        ),
        (
            "what happens when a customer has too many teapots?",
            ["**`Counter.sell`**", 'raise ValueError("one customer may have 12 teapots")\n'],
            "evidence is weak",
        ),
        (
            "which versions of Python are supported?",
            ["**The manifest says:**\n\n- [pyproject.toml:3]: `requires-python = \">=3.10\"`"],
            "evidence is weak",
        ),
        (
            "explain src/shop/hooks.py",
            ["**`src/shop/hooks.py`** holds 2 methods, 1 class:\n\n- `Hooks` [src/shop/hooks.py:1-",
             "\n  - `Hooks.on_close` [src/shop/hooks.py:4-7]: Keep a callback for the end.",
             "**`Hooks`** · class"],
            "Also relevant",
        ),
        (
            "what is the difference between Scale and Bridge?",
            ["**`Scale`** · class", "**`Bridge`** · class"],
            "difference",
        ),
        (
            "overview of the architecture",
            ["- `src/shop/store/`: 1 file, mostly python\n  - imports from `src/shop/cart/` (1)",
             "- `price_of` [src/shop/cart/price.py:1-2] Used in 2 files.", "What is bought."],
            "Also relevant",
        ),
    ],
)  # fmt: skip
def test_questions_of_a_kind(engine: Engine, question: str, says: list[str], says_not: str) -> None:
    text = ask(engine, question)
    assert [part for part in says if part not in text] == []
    assert says_not not in text


def test_other_questions_are_answered_as_always(engine: Engine) -> None:
    for question in (
        "what is the call chain in the test function that checks prices?",
        "find all places where a price is computed",
    ):
        text = ask(engine, question)
        assert "### `" in text or "**The evidence is weak.**" in text


def test_the_overview_of_many_files_is_there_in_bounded_time() -> None:
    paths = [f"p{n // 200}/parts/c{n % 200}/index.ts" for n in range(20_000)]
    files = [FileRecord(path=path, status=INDEXED, role="source") for path in paths]
    imports = {(path, "Part", "../parts/index") for path in paths[::200]}
    nothing = dict.fromkeys(("units", "named", "in_file"), lambda *_: [])
    tables = SimpleNamespace(files=lambda: files, imported=lambda _: imports, **nothing)
    assert "- `p0/`: 200 files" in overview_of(cast(Tables, tables))


def test_what_most_of_it_uses_is_the_class_and_not_the_file_that_is_called_like_it(
    tmp_path: Path,
) -> None:
    using = "package a;\n\nimport shop.b.Till;\n\nclass {} {{\n    Till till;\n}}\n"
    till = "package shop.b;\n\nimport java.util.List;\n\npublic class Till {\n    List sums;\n}\n"
    users = {f"a/{name}.java": using.format(name) for name in ("One", "Two", "Three")}
    text = overview_of(indexed(tmp_path, {"shop/b/Till.java": till, **users}))
    assert "- `Till` [shop/b/Till.java:5-7] Used in 3 files." in text


def test_a_literal_text_is_found_in_a_file_that_has_grown(tmp_path: Path) -> None:
    tables = indexed(tmp_path, {"a.py": "A = 1\n"})
    write(tmp_path / "repo", {"a.py": "A = 1\n" * 50 + "# TODO: less\n"})
    files = Files(lambda: tables)
    assert files.find_lines("TODO", files.matching()).lines == {"a.py": [(51, "# TODO: less")]}


def test_hostile_text_is_read_in_bounded_time() -> None:
    for part in ("panicked at ", "at ", " at (", 'File "', "at a(b.js:1\n", "Traceback (most "):
        take_traceback('File "a.py", line 1\n' + part * (400_000 // len(part)))


@pytest.mark.parametrize("frames", [[f"/usr/lib/a/b/c/d/e/f/x{n}/b.py" for n in range(100)],
                                    ["/".join(["a"] * 5_000) + "/b.py"]])  # fmt: skip
def test_frames_are_looked_for_among_many_files_in_bounded_time(frames: list[str]) -> None:
    named = {"b.py": [f"a/{n % 300}/{n}/b.py" for n in range(3_000)]}
    tables = SimpleNamespace(catalogue=lambda: SimpleNamespace(by_file_name=named))
    assert frames_here(cast(Tables, tables), [Frame(path, 1, "f") for path in frames]) == []
