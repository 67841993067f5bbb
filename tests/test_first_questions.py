"""What an empty page offers to ask: about this repository, by its names, and answered well."""

from __future__ import annotations

from pathlib import Path

from codeqa.code.first_questions import first_questions
from codeqa.settings import load_settings
from codeqa.web.app import create_app
from tests.indexed import emptied, indexed

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
    overview, till, flow = first_questions(tables)
    assert overview == f"What is {tables.location.name}, and how is it organised?"
    assert till == "How does `Till` work?"
    assert flow == "What happens when `Till.close_day` is called?"
    assert first_questions(tables) is first_questions(tables)  # as long as nothing changes


def test_what_can_be_set_comes_before_what_can_be_extended(tmp_path: Path) -> None:
    base = {"shop/way.py": TILL.replace("Till", "Way").replace("close_day", "open_day")}
    heirs = {
        f"shop/{n}.py": f"from shop.way import Way\n\n\nclass Heir{n}(Way):\n    pass\n"
        for n in range(3)
    }
    extended = first_questions(indexed(tmp_path / "a", FILES | base | heirs))
    assert "What inherits from `Way`?" in extended
    used = {
        "shop/options.py": OPTIONS,
        "shop/main.py": "from shop.options import ShopOptions\n\nShopOptions()\n",
    }
    settings = first_questions(indexed(tmp_path / "b", FILES | base | heirs | used))
    assert settings[-1] == "What can be set in `ShopOptions`?"
    assert len(settings) == 4


def test_where_there_is_little_there_are_fewer(tmp_path: Path) -> None:
    assert (
        len(first_questions(indexed(tmp_path / "a", {"notes.md": "# Notes\n\nBuy books.\n"}))) == 1
    )
    assert first_questions(emptied(tmp_path / "b")) == ()


def test_a_server_tells_them(tmp_path: Path) -> None:
    tables = indexed(tmp_path, FILES)
    app = create_app(load_settings(data=tmp_path / "data"), tmp_path / "repo")
    reply = app.test_client().get("/api/first-questions")
    app.extensions["codeqa"].close()
    assert reply.json == {"questions": [*first_questions(tables)]}
