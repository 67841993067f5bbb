"""Questions that may come next: from names that stand in the context, never the one asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codeqa.chat.check import MOST_SUGGESTIONS, suggest
from codeqa.context.block import unit_chunk
from codeqa.types import Chunk, Unit


def chunk(
    path: str, name: str, source: str, *, why: str = "", kind: str = "function", **unit: Any
) -> Chunk:
    """The chunk of a unit that stands at the lines 1 and following."""
    made = Unit(path, "python", kind, name, name, source, 1, 1 + source.count("\n"), **unit)
    made = replace(made, id=f"{path}:{name}", signature=source.split("\n")[0])
    return replace(unit_chunk(made), why=why)


ORDER = chunk(
    "shop/orders.py",
    "Order",
    "class Order(Base):\n    def add_book(self, isbn):\n        raise OutOfStockError(isbn)",
    kind="class",
)
RESERVE = chunk("shop/stock.py", "reserve_copies", "def reserve_copies(isbn):\n    return 1")


def test_questions_are_about_what_the_answer_cites_first() -> None:
    answer = "It takes copies off the shelf [shop/stock.py:1-2]."
    assert suggest("How are copies taken?", [ORDER, RESERVE], answer) == (
        "Where is `reserve_copies` used?",
        "What does `Order` do?",
        "Are there tests for `reserve_copies`?",
    )
    assert suggest("How are copies taken?", [ORDER, RESERVE], "")[0] == "Where is `Order` used?"
    found = suggest("How are copies taken?", [ORDER, RESERVE], "By `reserve_copies(isbn)`.")
    assert found[0] == "Where is `reserve_copies` used?", "what it shows as code"


def test_what_was_asked_is_not_asked_again() -> None:
    for question, missing in (
        ("who calls reserve_copies", "Where is `reserve_copies` used?"),
        ("Which tests cover reserve_copies?", "Are there tests for `reserve_copies`?"),
        ("what does `order` do", "What does `Order` do?"),
    ):
        answer = "See [shop/stock.py:1-2]."
        assert missing in suggest("x", [ORDER, RESERVE], answer)
        found = suggest(question, [ORDER, RESERVE], answer)
        assert found and missing not in found


def test_tests_documents_call_sites_and_private_names_give_rise_to_nothing() -> None:
    chunks = [
        chunk("tests/test_orders.py", "test_an_order", "def test_an_order(): ...", role="test"),
        chunk("docs/guide.md", "Ordering", "# Ordering", kind="document"),
        chunk("shop/orders.py", "caller", "def caller(): ...", why="uses reserve_copies"),
        chunk("shop/orders.py", "__init__", "def __init__(self): ...", kind="constructor"),
        chunk("shop/orders.py", "a" * (61), "def a(self): ..."),
        chunk("shop/orders.py", "operator==", "bool operator==(const Order&)"),
    ]
    assert suggest("What is this?", chunks, "`__init__`") == ()


def test_there_are_never_more_than_three_and_never_two_alike() -> None:
    chunks = [
        chunk(f"src/a{n}.py", f"function_{n}", f"def function_{n}():\n    raise Error{n}")
        for n in range(20)
    ]
    for question in ("x", "used", "tests", "function_0"):
        found = suggest(question, [*chunks, *chunks], "")
        assert len(set(found)) == len(found) == MOST_SUGGESTIONS
