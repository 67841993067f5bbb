"""What a model is shown: three and three, or the ranked list with what it stands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeqa.quoted import gather_evidence
from codeqa.search.hybrid import open_search
from codeqa.selection import UNITS_RANKED, budget_of, build_context
from codeqa.settings import Settings, load_settings
from codeqa.store import Tables
from codeqa.types import Chunk
from tests.kit.indexed import indexed

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

APP = '''def serve(request):
    """Dispatch a request: how a request is dispatched."""
    try:
        sharpen(request)
        return polish(hem(request))
    except ValueError as error:
        return mend(error)


def sharpen(thing):
    return thing.first


def polish(thing):
    return thing.last


def mend(error):
    return str(error)
'''
FILES = {
    "app.py": "from sewing import hem\n\n\n" + APP,
    "sewing.py": "def hem(cloth):\n    return cloth\n",
    **{
        f"words{number}.py": f"def handle_{number}(request):\n"
        f'    """A request that is handled, number {number}."""\n'
        + "".join(f"    request.note({line}, 'request')\n" for line in range(40))
        for number in range(20)
    },
}  # fmt: skip
QUESTION = "how is a request dispatched?"


def test_what_the_best_hit_calls_is_shown_though_no_word_of_the_question_says_it(
    tables: Tables, settings: Settings
) -> None:
    result = open_search(settings, lambda: tables).search(QUESTION, top=UNITS_RANKED)
    assert result.units[0].unit.name == "serve"
    block = build_context(tables, result, settings, budget_of("normal", settings))
    names = [chunk.name for chunk in block.chunks]
    assert {"serve", "sharpen", "hem", "polish", "mend"} <= set(names)
    hem = next(chunk for chunk in block.chunks if chunk.name == "hem")
    assert (hem.path, hem.why) == ("sewing.py", "called by serve")


def test_fast_begins_with_three_methods_and_three_classes(
    tables: Tables, settings: Settings
) -> None:
    result = open_search(settings, lambda: tables).search(QUESTION, top=UNITS_RANKED)
    budget = budget_of("fast", settings)
    block, few = (build_context(tables, result, settings, budget, most=most) for most in (None, 6))
    best = {hit.unit.id for hit in (*result.methods[:3], *result.classes[:3])}
    files = {hit.unit.path for hit in result.classes[:3]}  # heads of files stand for the files
    assert few.chunks == block.chunks[: len(few.chunks)] != block.chunks
    assert all(chunk.unit_id in best or chunk.path in files for chunk in few.chunks)
    assert len(block.text) <= 28_000


LONG = "".join(f"    def step_{number}(self):\n        return {number}\n\n" for number in range(40))
CLASSES = {
    "loom.py": "import os\nimport sys\n\n\nclass Loom:\n" + LONG,
    "press.py": "PRESSURE = 3\n\n\nclass Press:\n    force = 1\n\n" + LONG,
    "many.py": "".join(f"def other_{n}(x):\n    return x + {n}\n\n\n" for n in range(900)),
}


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return indexed(tmp_path_factory.mktemp("classes"), CLASSES)


def shown_of(tables: Tables, settings: Settings, question: str, effort: str) -> list[Chunk]:
    result = open_search(settings, lambda: tables).search(question, top=UNITS_RANKED)
    budget = budget_of(effort, settings)
    return list(build_context(tables, result, settings, budget).chunks)


def test_a_class_that_is_named_is_shown_with_its_members(
    classes: Tables, settings: Settings
) -> None:
    for effort in ("fast", "normal"):
        loom = shown_of(classes, settings, "Loom", effort)[0]
        assert (loom.name, loom.start_line) == ("Loom", 5)
        assert loom.content.count("def step_") == 40


def test_empty_heads_give_way_to_members_unless_imports_are_asked_for(
    classes: Tables, settings: Settings
) -> None:
    for effort in ("fast", "normal"):
        shown = shown_of(classes, settings, "which step_7 of a press or a loom", effort)
        heads = {(chunk.path, chunk.content.split("\n")[0]) for chunk in shown}
        assert ("press.py", "class Press:") in heads, "it has a field"
        assert not {("loom.py", "class Loom:"), ("loom.py", "import os")} & heads
        assert any(chunk.name == "step_7" and chunk.path == "loom.py" for chunk in shown)
        asked = shown_of(classes, settings, "what does loom.py import", effort)
        assert any(chunk.content.startswith("import os") for chunk in asked)


def test_a_name_in_a_file_that_cannot_be_parsed_is_shown_where_it_stands(
    tmp_path: Path, settings: Settings
) -> None:
    broken = "import os\n\n\ndef weave_9(value):\n    return weave_8(value\n\ndef added(): pass\n"
    tables = indexed(tmp_path, {"broken.py": broken, **CLASSES})
    for effort in ("fast", "normal"):
        shown = shown_of(tables, settings, "where is weave_9?", effort)
        assert any("def weave_9" in chunk.content for chunk in shown)
    found = open_search(settings, lambda: tables).search("where is weave_9?")
    first = gather_evidence(tables, found).findings[0]
    assert "def weave_9" in first.hit.unit.source_code


def test_a_budget_is_never_more_than_half_of_the_window(
    tmp_path: Path,
) -> None:
    for effort, tokens, window, characters in (
        ("fast", 0, 0, 28_000),
        ("normal", 0, 0, 12_250),
        ("normal", 2_000, 0, 7_000),
        ("normal", 0, 4_096, 7_168),
        ("deep", 0, 128_000, 12_250),
        ("fast", 0, 4_096, 7_168),
        ("normal", 0, 600, 2_000),
        ("normal", 100_000, 8_192, 14_336),
        ("deep", 100_000, 0, 204_800),
    ):
        settings = load_settings(data=tmp_path, context_tokens=tokens)
        assert budget_of(effort, settings, window).characters == characters


def test_a_block_keeps_its_budget_and_a_place_for_what_was_found_earlier(
    tables: Tables, settings: Settings
) -> None:
    result = open_search(settings, lambda: tables).search(QUESTION, top=UNITS_RANKED)
    lengths = []
    chunk = Chunk("ctx_00000000", "before.py", 1, 1, "python", "BEFORE = 1")
    for effort in ("fast", "normal", "deep"):
        budget = budget_of(effort, settings)
        block = build_context(tables, result, settings, budget, earlier=[chunk])
        assert len(block.text) <= budget.characters
        lengths.append(len(block.text))
        assert "BEFORE = 1" in block.text
        assert next(c.why for c in block.chunks if c.path == "before.py").startswith("found for an")
    assert lengths[0] > lengths[1] == lengths[2]
    nothing = open_search(settings, lambda: tables, vectors=False).search("zzyzx qqxyz")
    assert build_context(tables, nothing, settings, budget_of("normal", settings)).text == ""
