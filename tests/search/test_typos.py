"""Names that are misspelt, and the nearest ones that there are."""

from __future__ import annotations

import pytest

from codeqa.search.hybrid import Search
from codeqa.settings import Settings
from codeqa.store import Tables, TextSearch
from codeqa.store.catalogue import nearest

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

FILES = {
    "src/app.py": "class Flask:\n"
    "    def full_dispatch_request(self):\n        return self.handle()\n\n"
    "    def handle(self):\n        return CONFIGURED_ONLY\n",
    "src/query.py": "class QuerySet:\n"
    "    def bulk_create(self, rows):\n        return rows\n\n"
    "    def get_or_create(self, row):\n        return row\n",
    "src/users.py": "def get_user_a(x):\n    return x\n\n\ndef get_user_b(x):\n    return x\n\n\n"
    "def get_user_c(x):\n    return x\n\n\ndef get_user_d(x):\n    return x\n",
    "src/catch.py": "def catching(ball):\n    return ball\n",
    "src/cache.py": "def cache(value):\n    return value\n",
    "docs/words.md": "# Words\n\nAn authorisation is given by the office.\n",
    "src/office.py": "def authorization(office):\n    return office\n",
    "locale/django.po": 'msgid "hadle"\nmsgstr "handel"\n',
}


@pytest.fixture
def search(tables: Tables, settings: Settings) -> Search:
    return Search(lambda: tables, settings)


def test_a_misspelt_name_finds_the_nearest(search: Search, tables: Tables) -> None:
    assert tables.find(TextSearch("classes", "hadle", 1)), "it stands in a translation"
    for question, written, name in (
        ("full_dispach_request", "full_dispach_request", "full_dispatch_request"),
        ("Flask.full_dispach_request", "full_dispach_request", "full_dispatch_request"),
        ("bulkCraete", "bulkCraete", "bulk_create"),
        ("what is `hanlde`", "hanlde", "handle"),
        ("qeuryset", "qeuryset", "QuerySet"),
        ("hadle", "hadle", "handle"),
    ):
        result = search.search(question)
        assert result.units[0].unit.name == name
        assert result.warnings == (
            f"Nothing is called {written}; searched for the nearest name {name}.",
        )
        assert name in result.query.text


def test_what_is_there_or_not_surely_a_name_stays_as_it_was(search: Search) -> None:
    for question in (
        "bulk_create",
        "CONFIGURED_ONLY",  # written in a text
        "authorisation",  # in a document
        "caching",  # another form of a word that is there
        "what is the hadle of the dispach in the qeury",
        "xyzzy_nothing_like_it",
        "chae",  # short, and two edits off
        "get_user_x",  # too many are as near,
    ):
        result = search.search(question)
        assert result.warnings == ()
        assert result.query.text == question


def test_a_filter_does_not_make_a_name_unknown(search: Search) -> None:
    result = search.search("bulk_create lang:javascript")
    assert "nearest" not in " ".join(result.warnings)


def test_names_that_begin_alike_come_first() -> None:
    names = {name: [name] for name in ("rant", "cart", "cast", "can", "")}
    assert nearest(names, "cant", 1) == ["can", "cart", "cast", "rant"]
    assert nearest(names, "other", 1) == nearest({}, "cant", 1) == []
