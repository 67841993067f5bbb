"""Filters in a question: what they let through, whatever is written in them."""

from __future__ import annotations

import pytest
from indexed import indexed

from codeqa.search.hybrid import Search
from codeqa.settings import Settings
from codeqa.store import Filter, Tables
from codeqa.store.schema import MOST_WILDCARDS

PYTHON = "def pay_order(card):\n    return card\n\n\nclass Order:\n    pass\n"
FILES = {
    "src/pay.py": PYTHON,
    "src/pay.go": "package src\n\nfunc PayOrder(card string) string {\n\treturn card\n}\n",
    "src/it's/pay.py": PYTHON,
    "src/100%/pay.py": PYTHON,
    "src/a_b/pay.py": PYTHON,
    "src/aXb/pay.py": PYTHON,
    "src/größe 注文/pay.py": PYTHON,
    "src/[id]/pay.py": PYTHON,
    "tests/test_pay.py": PYTHON,
}
ALL = set(FILES)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return indexed(tmp_path_factory.mktemp("filters"), FILES)


@pytest.fixture
def search(tables: Tables, settings: Settings) -> Search:
    return Search(lambda: tables, settings)


def paths(search: Search, filters: str) -> set[str]:
    return {hit.unit.path for hit in search.search(f"pay order {filters}", top=50).units}


def test_filters_let_through_what_they_say(search: Search) -> None:
    expected: dict[str, set[str]] = {
        "LANG:Go": {"src/pay.go"},
        "-lang:python": {"src/pay.go"},
        "-lang:python -lang:go": set(),
        "lang:python -path:src": {"tests/test_pay.py"},
        "path:tests path:src/a_b": {"tests/test_pay.py", "src/a_b/pay.py"},
        "path:src/a?b": set(),
        "path:src/a?b/*": {"src/a_b/pay.py", "src/aXb/pay.py"},
        "path:src/a_b/": {"src/a_b/pay.py"},
        "path:src/100%/": {"src/100%/pay.py"},
        "path:_": set(),
        "path:it's/*.py": {"src/it's/pay.py"},
        "path:src/[id]/": {"src/[id]/pay.py"},
        'path:"größe 注文"': {"src/größe 注文/pay.py"},
        "kind:class -kind:class": set(),
        "path:../../": set(),
    }
    assert {filters: paths(search, filters) for filters in expected} == expected


INJECTIONS = (
    "x' OR '1'='1", "x') OR (1=1", "'; DROP TABLE methods; --", "\\'", "x\\' OR 1=1 --", "%",
    "$1 {} {0} :name ?", "a{1000}{1000}", "?*" * 1_900, "'" * 3_900,
)  # fmt: skip


def test_no_value_breaks_out_of_a_filter(search: Search) -> None:
    for value in INJECTIONS:
        assert paths(search, f'path:"{value}" -lang:"{value}"') <= ALL, value
    assert paths(search, f'lang:"{INJECTIONS[0]}"') == set()


def test_wildcards_beyond_the_first_are_letters(tables: Tables) -> None:
    most = "*" + "?" * (MOST_WILDCARDS - 1)
    assert not tables.holds(Filter(paths=(most + "*",)))
    assert tables.holds(Filter(paths=("src/pay.p?",)))
    assert tables.holds(Filter(paths=("*/" + "*" * 3 + "pay.py",)))


def test_filters_that_let_nothing_through_say_why(search: Search) -> None:
    for filters, warning in {
        "lang:pythn": "No indexed code is lang:pythn; did you mean python?",
        "lang:cobol": "No indexed code is lang:cobol; there is go, python.",
        "path:srk/": "No indexed file's path matches path:srk/. Did you mean src?",
        "path:zzzzzzzz": "No indexed file's path matches path:zzzzzzzz. Use another or leave it "
        "out.",
        "lang:go path:tests": "No indexed code meets all filters of the question; use fewer of "
        "them.",
        "-path:nowhere": "",
    }.items():
        result = search.search(f"pay order {filters}")
        assert " ".join(result.warnings) == warning
        assert (result.units == ()) == bool(warning)
