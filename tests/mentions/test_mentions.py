"""`@file`, `@folder/` and `@symbol` in a question: what they point at is in the answer."""

from __future__ import annotations

import pytest

from codeqa.search.hybrid import Search
from codeqa.search.mentions import (
    GUARANTEED,
    readings,
    resolve_mentions,
    take_mentions,
)
from codeqa.search.result import SearchResult
from codeqa.selection import budget_of, build_context
from codeqa.settings import Settings
from codeqa.store import Tables

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

BODY = "    first = {0}\n    second = first\n    return second\n"


def python(*names: str, indent: str = "") -> str:
    return "\n\n".join(
        f"{indent}def {name}(value):\n" + BODY.format(name).replace("    ", indent + "    ")
        for name in names
    )


FILES = {
    "src/shop/app.py": "class App:\n" + python("route", "start", indent="    "),
    "src/shop/basket.py": python("add_article", "total", "empty", "weigh", "wrap"),
    "src/shop/payment.py": python("pay", "refund"),
    "src/plugins/app.py": python("load_plugin"),
    "path with spaces/x y.py": python("spaced"),
    "web/[id]/page.py": python("page"),
    "文档/説明.py": python("explain_it"),
    "tests/test_basket.py": python("test_total"),
    "Makefile": "all:\n\techo all\n",
    # What the words of the questions below find: everything but what is pointed at.
    **{f"src/noise/n{n}.py": f"def refund_money_{n}(customer):\n"
       "    # refund the money of the customer with the receipt\n"
       "    money = customer.receipt\n    return money\n" for n in range(20)},
}  # fmt: skip
NOISE = "how is the money of the customer refunded with the receipt"


@pytest.fixture
def search(tables: Tables, settings: Settings) -> Search:
    return Search(lambda: tables, settings)


def paths(result: SearchResult) -> set[str]:
    return {hit.unit.path for hit in result.units}


def test_what_stands_behind_an_at_sign() -> None:
    for text, left, pointed in (
        ("what does @src/app.py do", "what does src/app.py do", ("src/app.py",)),
        ('see @"a b/x.py" too', "see a b/x.py too", ("a b/x.py",)),
        ("(@app.py)", "(app.py)", ("app.py)",)),
        ("说明@app.py的作用", "说明app.py的作用", ("app.py的作用",)),
        ("a.b+c@example.org and HEAD@{1}", "a.b+c@example.org and HEAD@{1}", ()),
        ("lonely @ sign, @@double", "lonely @ sign, @@double", ()),
        ("@one @two @one", "one two one", ("one", "two")),
        ("@a\n```\n@app.get\n```\n@b", "a\n```\n@app.get\n```\nb", ("a", "b")),
        ("````\n```\n@x\n````", "````\n```\n@x\n````", ()),
        ("```py\n@x", "```py\nx", ("x",)),
    ):
        assert take_mentions(text) == (left, pointed)


def test_what_follows_a_mention_is_not_part_of_it() -> None:
    for written, meant in (
        ("app.py.", "app.py"),
        ("App.route(", "App.route"),
        ("App's", "App"),
        ("./src/shop/app.py", "src/shop/app.py"),
        ("app.py的作用", "app.py"),
    ):
        assert meant in readings(written)


def test_files_are_found_by_the_end_of_their_path_and_folders_with_a_slash(tables: Tables) -> None:
    for written, files in (
        ("src/shop/app.py", ["src/shop/app.py"]),
        ("basket.py", ["src/shop/basket.py"]),
        ("Basket.PY", ["src/shop/basket.py"]),
        ("app.py", ["src/plugins/app.py", "src/shop/app.py"]),
        ("path with spaces/x y.py", ["path with spaces/x y.py"]),
        ("文档/説明.py", ["文档/説明.py"]),
        ("Makefile", ["Makefile"]),
    ):
        (mention,), unknown = resolve_mentions(tables, [written])
        assert list(mention.files) == files
        assert not unknown
    for written, folder in (
        ("src/shop/", "src/shop/"),
        ("shop/", "src/shop/"),
        ("/src/", "src/"),
        ("path with spaces/", "path with spaces/"),
    ):
        (mention,), _ = resolve_mentions(tables, [written])
        assert mention.folders == (folder,)


def test_symbols_are_found_by_name_owner_and_module(tables: Tables) -> None:
    for written, name in (
        ("App.route", "App.route"),
        ("app.App.route", "App.route"),
        ("App::route", "App.route"),
        ("app.route", "App.route"),
        ("basket.total", "total"),
        ("App", "App"),
    ):
        (mention,), _ = resolve_mentions(tables, [written])
        assert {unit.qualified_name for unit in tables.by_ids(mention.units)} == {name}


def test_what_is_not_in_the_index_is_no_mention(tables: Tables) -> None:
    for written in ("nothing", "nope.py", "no/such/folder/", "app", "%", "_", "''", __file__):
        assert resolve_mentions(tables, [written]) == ([], [written])


def test_mentioned_code_is_returned_in_place_of_the_last_hits(
    search: Search, tables: Tables, settings: Settings
) -> None:
    plain = search.search(NOISE, top=5)
    assert all(hit.unit.path.startswith("src/noise/") for hit in plain.units)
    for mentioned, path, names in (
        ("weigh", "src/shop/basket.py", {"weigh"}),
        ("src/shop/payment.py", "src/shop/payment.py", {"pay", "refund"}),
    ):
        result = search.search(f"{NOISE} @{mentioned}", top=5)
        pointed = [hit for hit in result.units if hit.unit.path == path]
        assert names <= {hit.unit.name for hit in pointed} and "mentioned" in pointed[0].why
        more = search.search(f"{NOISE} @{mentioned}", top=20).units
        others = [hit.unit.id for hit in result.units if hit.unit.path != path]
        best = [hit.unit.id for hit in more if hit.unit.path != path]
        assert len(result.units) == 5 and others == best[: len(others)]
        block = build_context(tables, result, settings, budget_of("fast", settings))
        assert path in {chunk.path for chunk in block.chunks}
    (only,) = search.search(f"{NOISE} @weigh", top=1).units
    assert only.unit.name == "weigh"


def test_of_a_long_file_only_some_units_are_guaranteed(search: Search) -> None:
    result = search.search(f"{NOISE} @basket.py", top=20)
    assert len(result.mentioned) == GUARANTEED
    best = search.search("empty and weigh @basket.py", top=20).mentioned
    assert {"empty", "weigh"} <= {hit.unit.name for hit in best}


def test_a_mentioned_folder_restricts_all_but_other_mentions(search: Search) -> None:
    result = search.search(f"{NOISE} @src/shop/", top=20)
    assert result.units
    assert all(path.startswith("src/shop/") for path in paths(result))
    result = search.search(f"{NOISE} @src/shop/ @load_plugin", top=20)
    others = {path for path in paths(result) if not path.startswith("src/shop/")}
    assert others == {"src/plugins/app.py"}


def test_a_mentioned_test_is_not_pushed_back(search: Search) -> None:
    result = search.search(f"{NOISE} @tests/test_basket.py", top=3)
    first = result.mentioned[0]
    assert first.unit.role == "test"
    assert not any(why.startswith("behind") for why in first.why)


def test_lines_of_a_mentioned_file_choose_its_units(search: Search) -> None:
    for suffix in (":13-15", ":13", "#L13-L15"):
        result = search.search(f"{NOISE} @src/shop/basket.py{suffix}", top=5)
        assert result.mentioned[0].unit.name == "empty"


def test_of_mentioned_lines_the_method_of_just_those_comes_before_the_class_around_it(
    search: Search,
) -> None:
    unit = next(
        hit.unit
        for hit in search.search("@src/shop/basket.py", top=20).units
        if hit.unit.kind == "method"
    )
    result = search.search(f"class Basket @{unit.path}:{unit.start_line}-{unit.end_line}")
    assert result.mentioned[0].unit.id == unit.id
    assert any(hit.unit.kind == "class" for hit in result.mentioned)


def test_a_name_of_several_files_names_them_all_and_says_so(search: Search) -> None:
    result = search.search("what starts in @app.py")
    assert {"src/plugins/app.py", "src/shop/app.py"} <= paths(result)
    assert "@app.py is 2 places" in " ".join(result.warnings)


def test_an_at_sign_that_points_at_nothing_breaks_no_search(search: Search) -> None:
    for question in (
        '@app.get("/") decorates what',
        "why @pytest.fixture, @property and @click.command(name='x')",
        "who is @someone, me@example.org?",
        '@@ @, @. @/ @* @% @" @',
        "@" + "x" * 5_000,
        "@" + "../" * 50 + "etc/passwd",
        "@' OR 1=1 --",
        "@\ud800 @\0 @é",
    ):
        result = search.search(f"total of the basket {question}")
        assert result.mentioned == ()
        assert "total" in {hit.unit.name for hit in result.units}


def test_a_path_that_is_not_there_is_said_with_the_nearest(search: Search) -> None:
    (warning,) = search.search("@src/shop/baskt.py total").warnings
    assert "did you mean @src/shop/basket.py?" in warning
    (warning,) = search.search("total @src/shap/").warnings
    assert "did you mean @src/shop/?" in warning
    assert search.search("total @nothing").warnings == ()
