"""Questions that may come next: from names that stand in the context, never the one asked."""

from __future__ import annotations

import time

import pytest

from codeqa.chat.suggestions import LONGEST, MOST, suggest
from codeqa.context.blocks import chunk_id
from codeqa.types import Chunk


def chunk(path: str, content: str, start: int = 1, why: str = "", language: str = "") -> Chunk:
    return Chunk(
        id=chunk_id(path, "", content),
        path=path,
        start_line=start,
        end_line=start + content.count("\n"),
        language=language or "python",
        content=content,
        why=why,
    )


ORDER = chunk(
    "shop/orders.py",
    "class Order(Base):\n    def add_book(self, isbn):\n        raise OutOfStockError(isbn)",
)
RESERVE = chunk("shop/stock.py", "def reserve_copies(isbn):\n    return 1", 10)


def test_questions_are_about_what_the_answer_cites_first() -> None:
    answer = "It takes copies off the shelf [shop/stock.py:10-11]."
    assert suggest("How are copies taken?", [ORDER, RESERVE], answer) == (
        "Where is `reserve_copies` used?",
        "What does `Order` do?",
        "When is `OutOfStockError` raised?",
    )
    assert suggest("How are copies taken?", [ORDER, RESERVE], "")[0] == "Where is `Order` used?"


def test_a_name_that_the_answer_shows_as_code_comes_before_one_that_it_does_not() -> None:
    found = suggest("How are copies taken?", [ORDER, RESERVE], "By `reserve_copies(isbn)`.")
    assert found[0] == "Where is `reserve_copies` used?"


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Where is `reserve_copies` used?", "Where is `reserve_copies` used?"),
        ("who calls reserve_copies", "Where is `reserve_copies` used?"),
        ("Which tests cover reserve_copies?", "Are there tests for `reserve_copies`?"),
        ("are there tests for reserve_copies", "Are there tests for `reserve_copies`?"),
        ("When is OutOfStockError raised?", "When is `OutOfStockError` raised?"),
        ("What does Order do?", "What does `Order` do?"),
        ("what does `order` do", "What does `Order` do?"),
    ],
)
def test_what_was_asked_is_not_asked_again(question: str, missing: str) -> None:
    answer = "See [shop/stock.py:10-11]."
    usual = {
        text
        for other in ("x", "Who uses it?", "Where is reserve_copies used, tests too?")
        for text in suggest(other, [ORDER, RESERVE], answer)
    }
    usual |= set(suggest("x", [RESERVE], answer))
    found = suggest(question, [ORDER, RESERVE], answer)
    assert missing in usual
    assert missing not in found
    assert found


def test_a_name_that_is_asked_about_may_be_short_and_keeps_its_owner() -> None:
    run = chunk("shop/app.py", "def run(self):\n    pass")
    answer = "By [shop/app.py:1-2]."
    assert suggest("How does @Shop.run work?", [run], answer) == (
        "Where is `Shop.run` used?",
        "Are there tests for `Shop.run`?",
    )
    assert suggest("How does run work?", [run], answer)[0] == "Where is `run` used?"
    assert suggest("How does it start?", [run], answer) == ()


def test_a_class_that_another_one_inherits_from_is_asked_about_so() -> None:
    base = chunk("shop/base.py", "class Base:\n    pass")
    found = suggest("What is Base?", [base, ORDER], "`Base` [shop/base.py:1-2]")
    assert "Which classes inherit from `Base`?" in found
    assert "Which classes inherit from `Order`?" not in found


@pytest.mark.parametrize(
    ("language", "content", "name"),
    [
        ("go", "func (s *Server) Listen(a string) error {\n}", "Listen"),
        ("rust", "pub(crate) async fn read_all(path: &Path) -> Result<()> {\n}", "read_all"),
        ("typescript", "export default class OrderForm extends Form {\n}", "OrderForm"),
        ("javascript", "export async function* pages(url) {\n}", "pages"),
        ("java", "/** Ships it. */\npublic Order shipOrder(Long id) throws E {\n}", "shipOrder"),
        ("cpp", "std::vector<int> collectRows(const Table &t) {\n}", "collectRows"),
        ("ruby", "def self.from_rows(rows)\nend", "from_rows"),
        ("kotlin", "data class Basket(val id: Long)", "Basket"),
        ("php", "public static function makeBasket() {\n}", "makeBasket"),
        ("python", "@cached\nasync def 加载订单(编号):\n    pass", "加载订单"),
    ],
)
def test_names_are_found_in_every_kind_of_language(language: str, content: str, name: str) -> None:
    found = suggest("How?", [chunk("src/a", content, language=language)], "")
    assert found[0] == f"Where is `{name}` used?"


def test_tests_documents_call_sites_and_private_names_give_rise_to_nothing() -> None:
    chunks = [
        chunk("tests/test_orders.py", "def test_an_order():\n    pass"),
        chunk("docs/guide.md", "class Nothing of the kind", language="markdown"),
        chunk("shop/orders.py", "def caller():\n    pass", why="uses reserve_copies"),
        chunk("shop/orders.py", "def _hidden():\n    pass"),
        chunk("shop/orders.py", "def __init__(self):\n    pass"),
        chunk("shop/orders.py", "def get(self):\n    pass"),
        chunk("shop/orders.py", f"def {'a' * (LONGEST + 1)}(self):\n    pass"),
    ]
    assert suggest("What is this?", chunks, "`_hidden`") == ()
    assert suggest("What is this?", [], "nothing") == ()


def test_there_are_never_more_than_three_and_never_two_alike() -> None:
    chunks = [chunk(f"src/a{n}.py", f"def function_{n}():\n    raise Error{n}") for n in range(20)]
    for question in ("x", "used", "tests", "function_0"):
        found = suggest(question, [*chunks, *chunks], "")
        assert len(set(found)) == len(found) == MOST


def test_chunks_made_to_be_slow_are_not() -> None:
    hostile = ["class " * 20_000, "a " * 50_000 + "(", "class A(" * 9_000, "class A" + "[" * 90_000]
    chunks = [chunk("src/a.c", text, language="c") for text in hostile]
    started = time.perf_counter()
    suggest("x" * 20_000, chunks, "`" * 20_000)
    assert time.perf_counter() - started < 1
