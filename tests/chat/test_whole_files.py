"""Files sent whole: named ones, small repositories, `/files` and `/all`."""

from __future__ import annotations

from pathlib import Path

import pytest
from block_grammar import parse_block
from chat_kit import Open, Script, answer, ask, parts, told
from indexed import indexed
from openai_server import context_length, stream

from codeqa.context.block import ContextBlock
from codeqa.engine import Engine
from codeqa.repositories.files import Files
from codeqa.routing.mode import read_whole
from codeqa.search.hybrid import open_search
from codeqa.search.query import parse_query
from codeqa.search.result import SearchResult
from codeqa.selection import UNITS_RANKED, budget_of, build_context
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.whole_files import CANDIDATE_UNITS, best_files, every_file

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

TOKEN = "ghp_" + "aB3" * 12


def long_text(kilobytes: float, name: str) -> str:
    """So many KB of lines about `name`."""
    line = f"The kettle of {name} is heated by its base. "
    return (line.ljust(63, ".") + "\n") * int(kilobytes * 16)


def functions(name: str, count: int) -> str:
    return f'"""The {name} of kettles."""\n\n' + "\n\n".join(
        f"def {name}_{number}(kettle):\n    kettle.note('{name}')\n    return kettle.base\n"
        for number in range(count)
    )


LARGE = {
    "pour.py": functions("pour", 3) + f"\nKEY = '{TOKEN}'\n",
    "boil.py": functions("boil", 4),
    "whistle.py": functions("whistle", 400),
    "empty.py": "",
    "sizes/a60.txt": long_text(60, "a"),
    "sizes/b60.txt": long_text(60, "b"),
    "sizes/c70.txt": long_text(70, "c"),
    "sizes/d90.txt": long_text(90, "d"),
    "sizes/e8.txt": long_text(8, "e"),
    "exact/a100.txt": long_text(100, "a"),
    "exact/b100.txt": long_text(100, "b"),
    "exact/c.txt": "one more line\n",
    "mixed/data.json": '{"boils": [\n' + "1000,\n" * 25_000 + "1]}\n",
    "mixed/kettle.toml": "boils = 1\n",
    "mixed/notes.md": "# Notes\n",
    "mixed/open.py": "# It is opened by its lid.\n" * 4_000,
    "vendor/kettle.py": functions("vendored", 2),
}
SMALL = {
    "README.md": "# Kettles\n\nThey boil water.\n",
    "kettle/pour.py": functions("pour", 2) + f"\nKEY = '{TOKEN}'\n",
    "kettle/boil.py": functions("boil", 2),
    "tests/test_boil.py": "from kettle.boil import boil_0\n\n\ndef test_it():\n    boil_0(1)\n",
    "vendor/other.py": functions("vendored", 2),
    "poetry.lock": "[[package]]\nname = 'kettle'\n",
    "logo.png": "\x89PNG\r\n\x1a\n\0\0\0",
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return indexed(tmp_path_factory.mktemp("large"), LARGE)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return indexed(tmp_path_factory.mktemp("small"), SMALL)


def found(
    tables: Tables, settings: Settings, question: str, top: int = UNITS_RANKED
) -> SearchResult:
    return open_search(settings, lambda: tables).search(question, top=top)


def block_for(
    tables: Tables, settings: Settings, question: str, effort: str = "normal"
) -> ContextBlock:
    budget = budget_of(effort, settings)
    block = build_context(tables, found(tables, settings, question), settings, budget)
    assert len(block.text) <= budget.characters
    assert parse_block(block.text)
    return block


def whole_of(block: ContextBlock) -> list[str]:
    """Paths of the files that are in `block` from the first line to the last."""
    return [chunk.path for chunk in block.chunks if chunk.why.startswith("whole file")]


# Files that are named.


def test_a_file_that_the_question_points_at_is_sent_whole(
    large: Tables, settings: Settings
) -> None:
    for question, effort, whole in (
        ("how does @boil.py heat?", "fast", ["boil.py"]),
        ("compare @whistle.py and @boil.py", "normal", ["boil.py"]),
        ("how does boil.py heat?", "normal", []),
        ("what does @boil_1 do?", "normal", []),
    ):
        block = block_for(large, settings, question, effort)
        assert whole_of(block) == whole
        boil = LARGE["boil.py"].removesuffix("\n")
        assert (boil in block.text) == ("boil.py" in whole)
        if "boil.py" in whole:
            (chunk,) = (chunk for chunk in block.chunks if chunk.path == "boil.py")
            assert (chunk.start_line, chunk.end_line) == (1, boil.count("\n") + 1)


def test_a_named_file_that_is_too_long_is_sent_as_its_beginning_and_its_best_units(
    large: Tables, settings: Settings
) -> None:
    block = block_for(large, settings, "what does whistle_77 of @whistle.py note?")
    assert len(LARGE["whistle.py"]) > len(block.text)
    own = [chunk for chunk in block.chunks if chunk.path == "whistle.py"]
    assert own[0].name == "whistle_77"
    (head,) = (chunk for chunk in own if chunk.start_line == 1)
    assert head.content.startswith('"""The whistle of kettles."""')
    lines = LARGE["whistle.py"].split("\n")
    assert all(
        chunk.content == "\n".join(lines[chunk.start_line - 1 : chunk.end_line]) for chunk in own
    )


# Small repositories.


def test_a_small_repository_is_sent_whole_the_best_files_first(
    small: Tables, settings: Settings
) -> None:
    block = block_for(small, settings, "where is water poured?", "deep")
    whole = whole_of(block)
    assert set(whole) == {"README.md", "kettle/pour.py", "kettle/boil.py", "tests/test_boil.py"}
    assert whole[0] == "kettle/pour.py"
    assert block.note == "Sent whole: 4 of 4 files, 1 KB."
    assert TOKEN not in block.text and "KEY = '****" in block.text


def test_what_a_filter_leaves_out_is_not_sent_and_what_is_large_or_fast_is_searched(
    small: Tables, large: Tables, settings: Settings
) -> None:
    filtered = block_for(small, settings, "where is water poured? @kettle/")
    assert set(whole_of(filtered)) == {"kettle/pour.py", "kettle/boil.py"}
    assert filtered.note == "Sent whole: 2 of 2 files, 1 KB."
    assert block_for(small, settings, "where is water poured? kind:function").note == ""
    for tables, effort in ((small, "fast"), (large, "normal")):
        block = block_for(tables, settings, "where is water poured?", effort)
        assert (whole_of(block), block.note) == ([], "")


def test_a_file_that_is_gone_is_said_to_be_unreadable(tmp_path: Path, settings: Settings) -> None:
    tables = indexed(tmp_path / "gone", {"a.py": functions("a", 1), "b.py": functions("b", 1)})
    gone = tables.location.root / "b.py"
    gone.unlink()
    gone.symlink_to("/etc/passwd")
    block = block_for(tables, settings, "what does a_0 do?")
    assert "a.py" in whole_of(block) and "root:" not in block.text
    assert "Left out: b.py (could not be read)." in block.note


# /files and /all.


def test_what_is_asked_for_in_whole_files() -> None:
    for typed, whole, mask, left in (
        ("/all where is it?", "all", "", "where is it?"),
        ("/ALL src/**/*.py where is it?", "all", "src/**/*.py", "where is it?"),
        ("/all read/write locks how?", "all", "", "read/write locks how?"),
        ("/review /all *.py any bugs?", "all", "*.py", "/review any bugs?"),
        ("/all /review any bugs?", "all", "", "/review any bugs?"),
        ("/all path:src/ where?", "all", "", "path:src/ where?"),
        ("/allow me", "", "", "/allow me"),
        ("all of /all", "", "", "all of /all"),
    ):
        assert read_whole(typed) == (whole, mask, left)


@pytest.mark.parametrize(
    ("mask", "room", "sent", "left_out"),
    [
        # 60 + 60 + 70 KB: d90 would burst the hard limit, e8 behind it does not.
        ("sizes/*.txt", 10**9, ["a60.txt", "b60.txt", "c70.txt", "e8.txt"], ["d90.txt (90 KB)"]),
        # Of exactly 200 KB nothing exceeds the limit; a line more does.
        ("exact/*.txt", 10**9, ["a100.txt", "b100.txt"], ["c.txt (1 KB)"]),
        # Settings and data come as far as source leaves room.
        ("mixed/", 10**9, ["open.py", "notes.md", "kettle.toml"], ["data.json ("]),
        # Half of a small model's window, in characters.
        ("sizes/*.txt", 30_000, ["e8.txt"], ["a60.txt", "b60.txt", "c70.txt", "d90.txt"]),
    ],
)
def test_files_of_a_mask_are_sent_up_to_the_limit_and_others_listed(
    large: Tables, settings: Settings, mask: str, room: int, sent: list[str], left_out: list[str]
) -> None:
    query = parse_query("what is heated?", path=mask)
    files = Files(lambda: large, settings.max_file_bytes)
    block = every_file(large, files, query, room)
    folder = mask.split("/")[0]
    assert [chunk.path for chunk in block.chunks] == [f"{folder}/{name}" for name in sent]
    assert len(block.text) <= room
    for name in left_out:
        assert f"{folder}/{name}" in block.note.split("Left out:")[1]


def test_the_best_files_are_sent_whole_until_the_soft_limit_is_exceeded(
    large: Tables, settings: Settings
) -> None:
    result = found(
        large, settings, "how is a kettle heated by its base? path:sizes", CANDIDATE_UNITS
    )
    ranked = list(dict.fromkeys(hit.unit.path for hit in result.units))
    assert len(ranked) == 5
    files = Files(lambda: large, settings.max_file_bytes)
    block = best_files(large, files, result, 10**9)
    size, expected = 0, []
    for path in ranked:
        if size > 100 * 1024:
            break
        if size + len(LARGE[path]) <= 200 * 1024:
            size += len(LARGE[path])
            expected.append(path)
    assert [chunk.path for chunk in block.chunks] == expected
    assert "".join(f"{chunk.content}\n" for chunk in block.chunks) == "".join(
        LARGE[path] for path in expected
    )


def test_the_headings_of_many_small_files_do_not_burst_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.whole_files.BLOCK_CHARACTERS", 4_000)
    tables = indexed(tmp_path, {f"p/{number}.py": f"X = {number}\n" for number in range(48)})
    block = every_file(tables, Files(lambda: tables), parse_query("why?"), 10**9)
    assert 3_000 < len(block.text) <= 4_000 and "48 files" in block.note


def test_all_is_sent_to_the_model_without_a_search(engine: Engine, script: Script) -> None:
    events = ask(engine, "/all shop/s*.py who counts teapots?")
    instruction, block = parts(script.sent[-1])
    assert instruction.startswith("[MODE: explain]\n[INSTRUCTION]\nwho counts teapots?\n")
    chunks = parse_block(block)
    assert [chunk.path for chunk in chunks] == ["shop/session.py", "shop/stock.py"]
    assert chunks[1].content.startswith("def count_teapots(shelf):\n")
    done = told(events, "done")
    assert done["notice"] == "Sent whole: 2 of 2 files, 1 KB."
    assert done["coverage"] == "" and done["retrieval_info"]["num_docs"] == 2
    assert [citation["verified"] for citation in done["citations"]] == [True]
    ask(engine, "and who calls that?")  # goes on from the same files
    assert parts(script.sent[-1])[1] == block


def test_the_best_files_are_sent_to_the_model_whole(engine: Engine, script: Script) -> None:
    events = ask(engine, "/files @shop/ when is a session expired?")
    chunks = parse_block(parts(script.sent[-1])[1])
    assert "shop/session.py" in [chunk.path for chunk in chunks[:2]]
    assert all(chunk.start_line == 1 for chunk in chunks)
    assert "legacy/stock.py" not in {chunk.path for chunk in chunks}
    done = told(events, "done")
    assert done["notice"].startswith("Sent whole: ") and done["coverage"]
    turn = engine.conversations.turn(done["turn"])
    assert all(hit["sent"] for hit in turn.hits_as_json())


def test_a_small_repository_reaches_the_model_whole_and_the_answer_says_so(
    opened: Open, script: Script
) -> None:
    engine = opened(**script.settings, effort="normal", context_tokens=8_000)
    script.replies = [stream(["1"]), stream(["It is told in [README.md:1-3]."])]
    events = ask(engine, "@codebase what is sold?")
    paths = {chunk.path for chunk in parse_block(parts(script.sent[-1])[1])}
    assert {"README.md", "shop/session.py", "shop/Basket.cs", "legacy/stock.py"} <= paths
    assert told(events, "done")["notice"] == "Sent whole: 12 of 12 files, 14 KB."
    script.replies = [context_length(), stream(["It is told in [README.md:1-3]."])]
    notice = told(ask(engine, "@codebase what is sold?"), "done")["notice"]
    assert "part of the code was sent" in notice and "Sent whole" not in notice


def test_whole_files_take_at_most_half_of_the_models_window(engine: Engine, script: Script) -> None:
    error = told(ask(engine, "/all src/*.cobol what?"), "error")
    assert "No indexed file matches" in error["message"] and not script.bodies
    script.window = 4_000
    for question in ("/all how is a warehouse part moved?", "/files move a warehouse part"):
        notice = told(ask(engine, question), "done")["notice"]
        block = parts(script.sent[-1])[1]
        assert 2_000 < len(block) <= 4_000 * 0.5 * 3.5
        assert "Left out: " in notice and "shop/part4.py (3 KB)" in notice


def test_without_a_model_only_the_whole_files_are_quoted(
    quoting: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = ask(quoting, "/all legacy/*.py how are teapots counted?")
    assert "old_count" in answer(events) and "count_teapots" not in answer(events)
    assert told(events, "done")["notice"] == "Sent whole: 1 of 1 files, 1 KB."
    monkeypatch.setattr("codeqa.whole_files.HARD_BYTES", 60)
    events = ask(quoting, "/all shop/ how are teapots counted?")
    assert "shop/stock.py (1 KB)" in told(events, "done")["notice"]
    assert "count_teapots" in answer(events) and "old_count" not in answer(events)
