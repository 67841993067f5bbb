"""The built-in reranker: what it reads in the code of the best hits, and its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reranking import HITS, hit, numbers

from codeqa.embeddings.registry import question_matcher
from codeqa.errors import EmbeddingError
from codeqa.search import Reranked, parse_query, rerank
from codeqa.search.rerank import rerank_built_in, used_by_better
from codeqa.text.unit_text import UnitText
from codeqa.types import Hit, Unit

QUESTION = parse_query("when does a session cookie expire")
FILLER = "\n".join(f"    total_{number} = rows[{number}] + offset" for number in range(80))
"""Lines that have nothing to do with any question here."""
PASSWORD = """\
    salt = os.urandom(16)
    digest = hashlib.pbkdf2_hmac("sha256", password, salt, 100_000)
    return base64.b64encode(salt + digest)"""


def named(name: str, code: str, *, path: str = "", score: float = 1.0, first: int = 1) -> Hit:
    last = first + code.count("\n")
    path = path or f"{name}.py"
    unit = Unit(path, "python", "function", name, name, code, first, last, id=path + name)
    return Hit(unit, score)


# What it reads


def test_the_nearest_passage_of_a_long_unit_is_found_and_its_lines_told() -> None:
    near = question_matcher("encrypt the password with a salted hash")
    long = UnitText("app.py", "", "work", "", "", f"def work():\n{FILLER}\n{PASSWORD}\n{FILLER}")
    found = near.nearness(long)
    assert found.first_line <= 82 <= found.last_line
    alone = near.nearness(UnitText("app.py", "", "work", "", "", f"def work():\n{PASSWORD}"))
    filler = near.nearness(UnitText("app.py", "", "work", "", "", f"def work():\n{FILLER}"))
    assert alone.passage > found.passage > filler.passage
    assert alone.late > filler.late


def test_what_better_hits_call_is_lifted_and_what_only_holds_it_does_not_count() -> None:
    caller = named("handle", "def handle():\n    verify_token()", path="a.py")
    called = named("verify_token", "def verify_token():\n    pass", path="b.py")
    other = named("unrelated", "def unrelated():\n    pass", path="c.py")
    outer = Unit("b.py", "python", "class", "Box", "Box", "def verify_token(): ...", 1, 9, id="o")
    assert used_by_better([caller, other, called]) == [0.0, 0.0, 1.0]
    assert used_by_better([Hit(outer, 2.0), called]) == [0.0, 0.0]
    twin = named("verify_token", "def verify_token():\n    pass", path="d.py")
    assert used_by_better([other, caller, called, twin]) == [0.0, 0.0, 0.25, 0.25]
    asked = parse_query("who checks the token of a visitor")
    done = rerank_built_in([caller, other, called], asked)
    why = {one.unit.name: one.why[-1] for one in done.hits}
    assert why["verify_token"].endswith("and better hits use it")
    assert "better hits" not in why["unrelated"]


# What it makes of that


def test_the_built_in_reranker_lifts_what_means_the_question_and_says_which_lines() -> None:
    query = parse_query("encrypt the password with a salted hash")
    wrong = named("offsets", f"def offsets(rows):\n{FILLER}", score=1.0)
    right = named("protect", f"def protect(password):\n{PASSWORD}", score=0.97, first=11)
    done = rerank_built_in([wrong, right], query)
    assert [one.unit.name for one in done.hits] == ["protect", "offsets"]
    assert done.hits[0].why[-1] == "reranked: lines 11-14 come closest"
    assert (done.reranker, done.warnings) == ("built-in", ())


def test_a_damaged_table_leaves_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise EmbeddingError("The embedding table cannot be read.", "Install CodeQA again.")

    monkeypatch.setattr(rerank, "question_matcher", fail)
    assert rerank_built_in(HITS, QUESTION) == Reranked(HITS, "built-in")


@pytest.mark.parametrize("question", ["", "cookie", "lang:python", "\u3042\u3044 \u3046\u3048"])
def test_a_question_of_one_word_or_of_nothing_known_keeps_its_order(question: str) -> None:
    done = rerank_built_in(HITS, parse_query(question))
    assert (done.hits, done.reranker) == (HITS, "built-in")
    assert rerank_built_in([], QUESTION) == Reranked([], "")


# Its bounds


def test_the_built_in_reranker_reads_at_most_fifty_hits_and_the_rest_stays_behind() -> None:
    near = "when\nsession\ncookie\nexpire"
    beyond = [replace(hit(n, near if n == 55 else ""), score=0.5) for n in range(60)]
    done = rerank_built_in(beyond, QUESTION).hits
    assert sorted(numbers(done)[:50]) == list(range(50))
    assert numbers(done)[50:] == list(range(50, 60))
    assert [one.score for one in done] == sorted((one.score for one in done), reverse=True)
    within = [replace(hit(n, near if n == 49 else ""), score=0.5) for n in range(60)]
    assert numbers(rerank_built_in(within, QUESTION).hits)[0] == 49


def test_the_built_in_reranker_stops_when_its_time_is_over_and_says_so() -> None:
    done = rerank_built_in(HITS, QUESTION, -1.0)
    assert done.hits == HITS
    assert done.warnings[0].startswith("built-in read 0 of 50 hits in ")
    slow = [hit(n, "session cookie expire\n" * 2_000) for n in range(60)]
    done = rerank_built_in(slow, QUESTION, 0.02)
    assert done.warnings[0].endswith("; the others stand behind them.")
    assert numbers(done.hits) == list(range(60))
