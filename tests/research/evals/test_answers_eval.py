"""Evaluation of answers: the cases are sound, each rule can fail, and a run goes through it all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.chat.events import Citation
from research.benchmarks.retrieval.sets import HERE, questions_of
from research.evals.answers.cases import Case, Place, commits, load_cases, problems
from research.evals.answers.judge import judge

of_shop = partial(Case, repository="shop", commit="1")
CASES = (
    of_shop(
        id="shop-1",
        kind="how",
        question="How is the total of a cart computed?",
        lines=(Place("shop/cart.py:4-6"), Place("shop/cart.py:8-9", necessary=False)),
        must_cite=(("shop/cart.py:4-6",),),
        must_mention=(("discount", "price"), ("total",)),
        must_not_say=("tax",),
    ),
    of_shop(
        id="shop-2",
        kind="callers",
        question="Who calls total?",
        lines=(Place("shop/mail.py:1-2"),),
        must_cite=(("shop/mail.py",),),
        must_mention=(("send_invoice",),),
    ),
    of_shop(
        id="shop-3",
        kind="trap",
        question="How are zeppelins refuelled over Greenland?",
    ),
)
RIGHT = "`Cart.total` sums the prices, less the discount [shop/cart.py:4-6]."
CITED = [Citation("shop/cart.py", 5, 5, verified=True)]


def test_the_cases_are_sound_and_balanced_and_none_is_of_a_set_held_out() -> None:
    cases = load_cases()
    assert [f"{c.id}: {one}" for c in cases for one in problems(c)] == []
    assert len({case.id for case in cases}) == len({case.question for case in cases}) == len(cases)
    assert len(cases) >= 80
    assert min(Counter(case.kind for case in cases).values()) >= 4
    known = commits(HERE / "repositories.jsonl")
    assert {c.repository for c in cases if known.get(c.repository) != c.commit} == {"tokio"}
    _, checked = questions_of("check", Path("nowhere"))
    assert not {case.repository for case in cases} & set(checked)


def test_each_rule_can_fail() -> None:
    for case, answer, citations, passed in (
        (CASES[0], RIGHT, CITED, True),
        (CASES[0], RIGHT, [], False),
        (CASES[0], RIGHT, [replace(CITED[0], verified=False)], False),
        (CASES[0], RIGHT, [replace(CITED[0], start=7, end=9)], False),
        (CASES[0], "The total is totally discounted.", CITED, False),
        (CASES[0], f"{RIGHT} Then tax is added.", CITED, False),
        (CASES[2], "There is no such thing in this repository.", [], True),
        (CASES[2], "Zeppelins are refuelled by `Zeppelin.refuel`.", [], False),
        (CASES[2], "**refuel is called in 2 places.** Computed names are not seen.", [], False),
        (CASES[2], "```\n# does not exist\n```\n> There is no such thing\n", [], False),
    ):
        assert judge(case, answer, citations).passed is passed
