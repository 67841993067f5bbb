"""Citations in an answer: the shapes that models write become one, and wrong ones are found out."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chat_kit import ASK, Script, ask, index, told
from chat_kit import FILES as SHOP
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from openai_server import stream

from codeqa.chat.citations import (
    CitationChecker,
    CitationWriter,
    CitedCode,
    files_in,
    find_citations,
    verify_all,
)
from codeqa.engine import Engine
from codeqa.repositories.files import Files
from codeqa.store import Tables
from codeqa.types import Chunk

pytest_plugins = ("chat_fixtures",)

SENT = Chunk("ctx_0000000a", "src/app.py", 3, 9, "python", "")
CHUNKS = (
    SENT,
    Chunk("ctx_0000000b", "app/[id]/page.tsx", 1, 1, "tsx", ""),
    Chunk("ctx_0000000c", "odd]name.py", 1, 2, "python", ""),
)
FILES = {
    "src/app.py": (
        "class App:\n    def __call__(self):\n        return self.run()\n\n"
        "    def run(self):\n        handle()\n        return 1\n\n\n"
        "def handle():\n    return None\n"
    ),
    "app/[id]/page.tsx": "export const x = 1;\n",
    "odd]name.py": "a = 1\nb = 2\n",
    "lib/other.py": "def other():\n    return 2\n",
    "one/twice.py": "def twice():\n    return 1\n",
    "two/twice.py": "def twice():\n    return 2\n",
}


def code_of(tables: Tables, chunks: tuple[Chunk, ...] = CHUNKS) -> CitedCode:
    return CitedCode(Files(lambda: tables), tables, chunks)


@pytest.fixture(scope="module")
def written(tables: Tables) -> Callable[..., str]:
    """What becomes of an answer that comes in these pieces."""
    code = code_of(tables)

    def write(*pieces: str) -> str:
        writer = CitationWriter(CHUNKS, code)
        return "".join([*map(writer.feed, pieces), writer.close()])

    return write


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See [Chunk 1].", "See [src/app.py:3-9]."),
        ("[ctx_0000000a]", "[src/app.py:3-9]"),
        ("[Chunk 1, Id: ctx_0000000a]", "[src/app.py:3-9]"),
        ("[CHUNKS #1 and 2]", "[src/app.py:3-9], [app/[id]/page.tsx:1-1]"),
        ("(Chunk 1; Chunk 2)", "([src/app.py:3-9], [app/[id]/page.tsx:1-1])"),
        ("**[Chunk 1]**\n\n- [Chunk 1]\n", "**[src/app.py:3-9]**\n\n- [src/app.py:3-9]\n"),
        ("It runs [1].", "It runs [src/app.py:3-9]."),
        ("[src/app.py:1-2, lib/other.py:1-2]", "[src/app.py:1-2], [lib/other.py:1-2]"),
        ("[src/app.py:1-2, 5-7]", "[src/app.py:1-2], [src/app.py:5-7]"),
        ("[app.py:L5-L7]", "[src/app.py:5-7]"),
        ("in app.py:5, then", "in [src/app.py:5], then"),
        ("in src/app.py#L5-L7.", "in [src/app.py:5-7]."),
        ("(see src/app.py:5–7)", "(see [src/app.py:5-7])"),
        ("in `src/app.py#L5`", "in [src/app.py:5]"),
        ("Chunk 1 calls it", "[src/app.py:3-9] calls it"),
        ("see ctx_0000000a.", "see [src/app.py:3-9]."),
        ("Chunks 1 and 2, too", "[src/app.py:3-9], [app/[id]/page.tsx:1-1], too"),
        ("as **chunk #1** says", "as **[src/app.py:3-9]** says"),
        ("(see Chunk 1)", "(see [src/app.py:3-9])"),
        ("by [run](src/app.py#L5-L7).", "by run [src/app.py:5-7]."),
        ("by [`run`](src/app.py#L5) and [x](app/[id]/page.tsx:1)",
         "by `run` [src/app.py:5] and x [app/[id]/page.tsx:1]"),
        ("[src/app.py:5-7](src/app.py#L5-L7)", "[src/app.py:5-7]"),
        ("[`app.py`](src/app.py#L5-L7)", "[src/app.py:5-7]"),
        ("[lines 5-7](./src/app.py:5-7 \"there\")", "[src/app.py:5-7]"),
        ("as 【F:src/app.py†L5-L7】 says", "as [src/app.py:5-7] says"),
        ("【src/app.py†L5】", "[src/app.py:5]"),
        ("at src/app.py:5:9", "at [src/app.py:5]"),
        ("at `app.py#L5C1-L7C9`", "at [src/app.py:5-7]"),
        ("(src/app.py, lines 5-7)", "([src/app.py:5-7])"),
        ("[src/app.py, line 5]", "[src/app.py:5]"),
        ("(app.py lines 5–7, 9)", "([src/app.py:5-7], [src/app.py:9])"),
        ("in src\\app.py:5-7", "in [src/app.py:5-7]"),
        ("[src\\app.py:5]", "[src/app.py:5]"),
        ("[{root}/src/app.py:5-7]", "[src/app.py:5-7]"),
        ("[run](file://{root}/src/app.py#L5)", "run [src/app.py:5]"),
        ("in {root}/src/app.py:5.", "in [src/app.py:5]."),
    ],
)  # fmt: skip
def test_every_shape_that_models_write_becomes_a_citation(
    written: Callable[..., str], tables: Tables, said: str, shown: str
) -> None:
    said = said.replace("{root}", str(tables.location.root))
    assert written(said) == written(*said) == shown
    assert find_citations(shown)
    code: Any = None
    in_a_block = f"~~~~\n{shown}\n~~~~"
    assert not find_citations(in_a_block) and not verify_all(in_a_block, code)


def test_everything_else_stays_as_the_model_said_it(written: Callable[..., str]) -> None:
    for said in (
        "[Chunk 4]", "[Chunk 0]", "[Chunk 1, Chunk 4]", "[ctx_ffffffff]", "[Chunk 3]",
        "Chunks 1 and 9", "ctx_0000000ab", "(chunks of 50 lines)", "Chunk 12a", "`Chunk 1`",
        "[src/app.py:5-7]", "x[1] = y[2]",
        "an open [Chunk 1", "[1](https://example.com/a.py:1)",
        "http://localhost:8080 and localhost:5001", "at 10:30, 3:2", "twice.py:1",
        "[nowhere.py:3-4]", "【3†source】", "[twice.py:1]",
        "x[0:5] of [0:5], [::1], [::2], [16:9], d[key:1] and [key:1]", "[10.0.0.1:80]",
        "[the guide](docs/guide.md)", "[x](https://example.com/src/app.py#L5)", "[x](gone.py#L5)",
        "![x](src/app.py#L5)", "app.py: 3 functions", "src/app.py:5: error",
        "```python\nx = [1]  # app.py:5\n```", "`items[1]` and ``a `app.py` b``",
        "~~~\n[Chunk 1]\n~~~\n", "version 1.2.3:4", "`app.py`",
    ):  # fmt: skip
        assert written(said) == written(*said) == said


def test_only_what_may_become_a_citation_waits(tables: Tables) -> None:
    writer = CitationWriter(CHUNKS, code_of(tables))
    assert writer.feed("It is called once in [Chu") == "It is called once in "
    assert writer.feed("nk 1] ") == "[src/app.py:3-9] "
    assert writer.feed("and [c") == "and "
    assert writer.feed("all it] ") == "[call it] "
    assert writer.feed("app.py:") == ""
    assert writer.close() == "app.py:"


def test_a_number_stays_the_chunk_that_it_was_when_more_are_shown(tables: Tables) -> None:
    more = (*CHUNKS, Chunk("ctx_0000000d", "lib/other.py", 1, 2, "python", ""))
    writer = CitationWriter(more, code_of(tables, more))
    told = writer.feed("Chunk 1 and chunk 4") + writer.close()
    assert told == "[src/app.py:3-9] and [lib/other.py:1-2]"


FRAGMENTS = [
    "[", "]", "(", ")", "Chunk", "Chunks", " ", "1", "2", "9", ", ", " and ", "ctx_", "0000000a",
    "[Chunk 1]", "(Chunk 2)", "[ctx_0000000b]", "`", "```", "\n", "c", "Id: ", "text ", "#",
    "app.py", "](", "【F:", "†", "】", ", lines ",
    ":5", "-7", "#L3", "`App.run`", "src/", ". ", "handle", "\n```\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30))
def test_how_an_answer_is_cut_into_pieces_changes_nothing(
    written: Callable[..., str], fragments: list[str]
) -> None:
    whole = "".join(fragments)
    assert written(*fragments) == written(whole) == written(*whole)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("`twice` and everything else [src/app.py:3-5]", ""),
        ("It starts above what was sent [src/app.py:1-3].", ""),
        ("It ends below the last line [lib/other.py:1-9].", ""),
        ("Gezeigt von einem Werkzeug, 由工具显示 [lib/other.py:2]", ""),
        ("Elsewhere in the same file [src/app.py:10-11].", ""),
        ("[one/twice.py:1]", "no line of this file was sent or shown"),
        ("[src/app.py:5-3]", "these line numbers are not possible"),
        ("[src/app.py:0-3]", "these line numbers are not possible"),
        ("[nowhere.py:1] and [src/nowhere:2]", "no indexed file has this path"),
        ("[src/app.py:90-99]", "the file has only 11 lines"),
        ("as in `src/app.py:900`", "the file has only 11 lines"),
    ],
)
def test_a_citation_is_struck_for_its_file_and_lines_and_for_what_was_never_shown(
    tables: Tables, text: str, problem: str
) -> None:
    code = CitedCode(Files(lambda: tables), tables, CHUNKS, lambda: ["lib/other.py"])
    for checked in verify_all(text, code):
        assert checked.verified == (not problem) and checked.problem.startswith(problem)
        assert checked.exists == (not problem or problem.startswith("no line"))
    assert verify_all(text, code)


def test_what_is_no_citation_is_not_checked(tables: Tables) -> None:
    for text in ("x[0:5] and [16:9], [::1]", "[twice.py:1]", "on `localhost:8080` or `a.py:1`"):
        assert verify_all(text, code_of(tables)) == []


def test_a_citation_is_told_once_its_line_is_complete(tables: Tables) -> None:
    checker = CitationChecker(code_of(tables))
    assert checker.feed("It runs [src/app.py:5-7]") == []
    (checked,) = checker.feed(", twice [src/app.py:5-7].\n")
    assert checked.verified
    assert checker.feed("And again [src/app.py:5-7].\n") == []


def test_lines_that_have_changed_since_they_were_sent_stay_right_and_are_told(
    tables: Tables,
) -> None:
    sent = Chunk("ctx_1", "lib/other.py", 1, 2, "python", "def other():\n    return 3")
    gone = Chunk("ctx_2", "lib/gone.py", 1, 2, "python", "a = 1\nb = 2")
    text = "[lib/other.py:1], [lib/other.py:1-2] and [lib/gone.py:2]"
    first, last, deleted = verify_all(text, code_of(tables, (sent, gone)))
    assert first.verified and last.verified and deleted.verified
    assert (first.changed, last.changed, deleted.changed) == (False, True, True)
    assert last.exists and not deleted.exists


def test_what_a_tool_printed_was_shown() -> None:
    printed = (
        "--- src/app.py (lines 5-7, relevance: 0.80) ---\n    def run(self):\n"
        "Calls: handle [10-11]\nCalled by: App.__call__ [2], main [app/[id]/page.tsx:1]\n\n"
        "lib/other.py\ntests/test_app.py:12 in test_run: app()\n"
    )
    assert [*files_in(printed)] == ["src/app.py", "app/[id]/page.tsx", "tests/test_app.py"]


def test_what_an_earlier_turn_has_shown_may_be_cited_on_every_later_one(
    engine: Engine, script: Script
) -> None:
    ask(engine, "@codebase path:shop/session.py when does expire_session forget the visitor?")
    says = "As said, it ends [shop/session.py:8-9]. Not so [shop/stock.py:1].\n"
    script.replies = [stream([says])]
    about = "@codebase path:legacy how does old_count count the teapots?"
    first, second = told(ask(engine, about), "done")["citations"]
    assert first["verified"] and not second["verified"]
    (apart, _) = told(ask(engine, about, conversation="another"), "done")["citations"]
    assert not apart["verified"], "nothing of that was shown there"


def test_an_answer_in_any_language_keeps_its_right_citations(
    engine: Engine, script: Script
) -> None:
    for says in (
        "Der Besucher wird vergessen, sobald der Keks zu alt ist [shop/session.py:8-9].\n",
        "Le visiteur est oublié quand le biscuit est trop vieux [shop/session.py:6-10].\n",
        "当 Cookie 太旧时，访客会被遗忘 [shop/session.py:8-9]。\n",
        "`OrderCache.get` keeps `count_teapots` [shop/session.py:8-9].\n",
    ):
        script.replies = [stream([says])]
        done = told(ask(engine, ASK), "done")
        assert [one["verified"] for one in done["citations"]] == [True]
        assert done["notice"] in ("", "Sent whole: 12 of 12 files, 14 KB.")


def test_turns_that_an_earlier_version_judged_by_words_open_without_its_verdicts(
    tmp_path: Path,
) -> None:
    """Written by 2517e08c: a citation that it moved, one that it struck, a notice of doubt."""
    files = {path: SHOP[path] for path in SHOP if path.startswith(("shop/s", "shop/v", "legacy"))}
    shop = index(tmp_path, files)
    with shop.open(tmp_path / "before") as before:
        here = before.location.id
    dump = gzip.decompress((ROOT / "tests" / "fixtures/state-2517e08c.sql.gz").read_bytes())
    (tmp_path / "kept").mkdir()
    with closing(sqlite3.connect(tmp_path / "kept/state.sqlite")) as database:
        database.executescript(dump.decode().replace("shop-aef0503f", here))
    engine = shop.open(tmp_path / "kept")
    turns = engine.conversations.turns("kept")
    places = [[(c.path, c.start, c.verified) for c in turn.citations] for turn in turns]
    assert places == [
        [("shop/session.py", 6, True)],
        [("shop/session.py", 1, True)],
        [("shop/session.py", 8, True), ("shop/gone.py", 1, False)],
    ]
    assert {turn.notice for turn in turns} == {"Sent whole: 5 of 5 files, 1 KB."}
    assert all("grounding" not in turn.public() for turn in turns)
    engine.close()
