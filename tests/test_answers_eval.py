"""Evaluation of answers: the cases are sound, each rule can fail, and a run goes through it all."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from indexed import write

from benchmarks.retrieval.sets import HERE, questions_of
from evals.answers.__main__ import main
from evals.answers.cases import Case, Place, commits, load_cases, problems
from evals.answers.judge import judge
from evals.answers.run import answers_in, load_results

FILES = {
    "shop/cart.py": (
        "class Cart:\n"
        '    """What a customer wants to buy."""\n\n'
        "    def total(self):\n"
        '        """The price of all items, less the discount."""\n'
        "        return sum(item.price for item in self.items) - self.discount()\n\n"
        "    def discount(self):\n"
        "        return 5 if len(self.items) > 10 else 0\n"
    ),
    "shop/mail.py": "def send_invoice(cart):\n    return f'You owe us {cart.total()} coins'\n",
}
CASES = (
    Case(
        id="shop-1",
        repository="shop",
        commit="1",
        kind="how",
        question="How is the total of a cart computed?",
        lines=(Place("shop/cart.py:4-6"), Place("shop/cart.py:8-9", necessary=False)),
        must_cite=(("shop/cart.py:4-6",),),
        must_mention=(("discount", "price"), ("total",)),
        must_not_say=("tax",),
    ),
    Case(
        id="shop-2",
        repository="shop",
        commit="1",
        kind="callers",
        question="Who calls total?",
        lines=(Place("shop/mail.py:1-2"),),
        must_cite=(("shop/mail.py",),),
        must_mention=(("send_invoice",),),
    ),
    Case(
        id="shop-3",
        repository="shop",
        commit="1",
        kind="trap",
        question="How are zeppelins refuelled over Greenland?",
    ),
)
RIGHT = "`Cart.total` sums the prices, less the discount [shop/cart.py:4-6]."
CITED = [{"path": "shop/cart.py", "start": 5, "end": 5, "verified": True}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "trees" / "shop", FILES)
    text = "".join(json.dumps(asdict(case)) + "\n" for case in CASES)
    (tmp_path / "cases.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


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
        (CASES[0], RIGHT, [{**CITED[0], "verified": False}], False),
        (CASES[0], RIGHT, [{**CITED[0], "start": 7, "end": 9}], False),
        (CASES[0], "The total is totally discounted.", CITED, False),
        (CASES[0], f"{RIGHT} Then tax is added.", CITED, False),
        (CASES[2], "There is no such thing in this repository.", [], True),
        (CASES[2], "Zeppelins are refuelled by `Zeppelin.refuel`.", [], False),
        (CASES[2], "**refuel is called in 2 places.** Computed names are not seen.", [], False),
        (CASES[2], "```\n# does not exist\n```\n> There is no such thing\n", [], False),
    ):
        assert judge(case, answer, citations).passed is passed


@pytest.mark.slow
def test_cases_go_through_the_whole_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*more: str) -> int:
        common = ["--trees", folder / "trees", "--cases", folder / "cases.jsonl"]
        return main([*map(str, common), "--out", str(folder / "out"), "--effort", "fast", *more])

    assert run() == 0
    results = load_results(folder / "out" / "extractive-fast.results.jsonl")
    assert [one.verdict.passed for one in results] == [True, True, True]
    assert results[0].recall == 1 and 0 < (results[0].precision or 0) <= 1 and results[0].tokens
    page = (folder / "out" / "extractive-fast.html").read_text("utf-8")
    assert "Who calls total?" in page and "<script" not in page and "src=" not in page

    # What is kept is not asked again, and a later run is compared with it.
    capsys.readouterr()
    kept = folder / "out" / "extractive-fast.results.jsonl"
    assert run("--compare", str(kept)) == 0
    out, err = capsys.readouterr()
    assert err == "" and "since then" in out

    assert run("--reader", "perfect") == 0
    told = answers_in(folder / "out" / "perfect-fast.answers.jsonl")
    assert "[shop/cart.py:4-6]" in told["shop-1"] and "does not show" in told["shop-3"]

    assert run("--dump-prompts", str(folder / "prompts"), "--only", "shop-1") == 0
    prompt = (folder / "prompts" / "shop-1.txt").read_text("utf-8")
    assert "How is the total of a cart computed?" in prompt and "def total(self)" in prompt
