"""What an empty page offers to ask: about this repository, by its names, and answered well."""

from __future__ import annotations

from pathlib import Path

from codeqa.code.first_questions import first_questions
from codeqa.indexing import Indexer
from codeqa.settings import load_settings
from codeqa.store import Tables
from codeqa.web.app import create_app
from tests.kit.indexed import emptied, indexed
from tests.kit.repositories import write

TILL = """class Till:
    \"\"\"Takes the money.\"\"\"

    def close_day(self, day):
        begin(day)
        count(day)
        compare(day)
        report(day)
        finish(day)
        return day

    def get_version(self):
        return first(second(third(fourth(fifth(6)))))
"""
PAYING = """from shop.till import Till


class Way{0}(Till):
    def pay(self):
        return self.close_day({0})
"""
OPTIONS = "class ShopOptions:\n" + "".join(f"    option_{n} = {n}\n" for n in range(20))
FILES = {
    "README.md": "# Shop\n\nSells books by its `Till`.\n",
    "shop/till.py": TILL,
    **{f"shop/way{n}.py": PAYING.format(n) for n in range(4)},
    "tests/test_till.py": "def test_all(till):\n    till.close_day(1)\n",
}


def test_each_is_about_what_most_of_the_code_uses_and_of_another_kind(tmp_path: Path) -> None:
    tables = indexed(tmp_path, FILES)
    settings = load_settings(data=tmp_path / "data", workers=1)
    overview, till, flow = first_questions(tables)
    assert overview == f"What is {tables.location.name}, and how is it organised?"
    assert till == "How does `Till` work?"
    assert flow == "What happens when `Till.close_day` is called?"
    assert first_questions(tables) is first_questions(tables)  # as long as nothing changes
    app = create_app(settings, tables.location.root)
    reply = app.test_client().get("/api/first-questions")
    app.extensions["codeqa"].close()
    assert reply.json == {"questions": [overview, till, flow]}

    def with_more(files: dict[str, str]) -> tuple[str, ...]:
        write(tables.location.root, files)
        Indexer(settings, tables.location).run()
        return first_questions(Tables(tables.location))

    base = {"shop/way.py": TILL.replace("Till", "Way").replace("close_day", "open_day")}
    heirs = {
        f"shop/{n}.py": f"from shop.way import Way\n\n\nclass Heir{n}(Way):\n    pass\n"
        for n in range(3)
    }
    assert "What inherits from `Way`?" in with_more(base | heirs)
    used = {
        "shop/options.py": OPTIONS,
        "shop/main.py": "from shop.options import ShopOptions\n\nShopOptions()\n",
    }
    found = with_more(used)
    assert len(found) == 4
    assert found[-1] == "What can be set in `ShopOptions`?", "before what can be extended"


def test_where_there_is_little_there_are_fewer(tmp_path: Path) -> None:
    few = indexed(tmp_path / "a", {"notes.md": "# Notes\n\nBuy books.\n"})
    assert len(first_questions(few)) == 1
    assert first_questions(emptied(tmp_path / "b")) == ()
