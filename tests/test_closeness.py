"""What the built-in reranker reads in the code of the best hits."""

from __future__ import annotations

import time

import pytest

from codeqa.embeddings import question_matcher, shipped_table
from codeqa.errors import EmbeddingError
from codeqa.search import BuiltInReranker, closeness, parse_query, rerank
from codeqa.search.closeness import reading, used_by_better
from codeqa.text.unit_text import UnitText
from codeqa.types import Hit, Unit

FILLER = "\n".join(f"    total_{number} = rows[{number}] + offset" for number in range(80))
"""Lines that have nothing to do with any question here."""
PASSWORD = """\
    salt = os.urandom(16)
    digest = hashlib.pbkdf2_hmac("sha256", password, salt, 100_000)
    return base64.b64encode(salt + digest)"""


def hit(name: str, code: str, *, path: str = "", score: float = 1.0, first: int = 1) -> Hit:
    last = first + code.count("\n")
    path = path or f"{name}.py"
    unit = Unit(path, "python", "function", name, name, code, first, last, id=path + name)
    return Hit(unit, score)


def test_the_nearest_passage_of_a_long_unit_is_found_and_its_lines_told() -> None:
    near = question_matcher(str(shipped_table()), "encrypt the password with a salted hash")
    long = UnitText("app.py", "", "work", "", "", f"def work():\n{FILLER}\n{PASSWORD}\n{FILLER}")
    found = near.nearness(long)
    assert found.first_line <= 82 <= found.last_line
    alone = near.nearness(UnitText("app.py", "", "work", "", "", f"def work():\n{PASSWORD}"))
    filler = near.nearness(UnitText("app.py", "", "work", "", "", f"def work():\n{FILLER}"))
    assert alone.passage > found.passage > filler.passage
    assert alone.late > filler.late


def test_what_is_near_stays_within_one_and_an_empty_unit_is_near_to_nothing() -> None:
    near = question_matcher(str(shipped_table()), "open_session")
    same = near.nearness(UnitText("", "", "", "", "", "open_session open session"))
    assert 0.9 < same.late <= 1.0001 and same.passage <= 1.0001
    for body in ("", "\n\n", "!!"):
        nothing = near.nearness(UnitText("", "", "", "", "", body))
        assert nothing.late == nothing.passage == 0.0


def test_a_question_without_a_known_piece_is_read_by_its_words() -> None:
    assert question_matcher(str(shipped_table()), "\u3042\u3044").empty
    query = parse_query("\u3042\u3044 \u3046\u3048")
    close = reading([hit("a", "x"), hit("b", "\u3042\u3044 \u3046\u3048")], query)
    assert close(1).value > close(0).value


def test_the_built_in_reranker_lifts_what_means_the_question_and_says_which_lines() -> None:
    query = parse_query("encrypt the password with a salted hash")
    wrong = hit("offsets", f"def offsets(rows):\n{FILLER}", score=1.0)
    right = hit("protect", f"def protect(password):\n{PASSWORD}", score=0.97, first=11)
    done = BuiltInReranker().rerank([wrong, right], query)
    assert [one.unit.name for one in done.hits] == ["protect", "offsets"]
    assert done.hits[0].why[-1] == "reranked: lines 11-14 come closest"
    assert (done.reranker, done.notice) == ("built-in", "")


def test_what_better_hits_call_is_lifted_and_what_only_holds_it_does_not_count() -> None:
    caller = hit("handle", "def handle():\n    verify_token()", path="a.py", first=1)
    called = hit("verify_token", "def verify_token():\n    pass", path="b.py")
    other = hit("unrelated", "def unrelated():\n    pass", path="c.py")
    outer = Unit("b.py", "python", "class", "Box", "Box", "def verify_token(): ...", 1, 9, id="o")
    assert used_by_better([caller, other, called]) == [0.0, 0.0, 1.0]
    assert used_by_better([Hit(outer, 2.0), called]) == [0.0, 0.0]
    twin = hit("verify_token", "def verify_token():\n    pass", path="d.py")
    assert used_by_better([other, caller, called, twin]) == [0.0, 0.0, 0.25, 0.25]
    asked = parse_query("who checks the token of a visitor")
    assert reading([caller, other, called], asked)(2).why.endswith("and better hits use it")


def test_a_hit_that_was_not_reached_in_time_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def slow(hits: object, query: object) -> object:
        def read(place: int) -> closeness.Close:
            calls.append(place)
            time.sleep(0.02)
            return closeness.Close(0.1, "read")

        return read

    monkeypatch.setattr(rerank, "reading", slow)
    hits = [hit(f"f{number}", "x", score=1 - number / 100) for number in range(40)]
    done = BuiltInReranker(seconds=0.1).rerank(hits, parse_query("two words"))
    assert 1 <= len(calls) < 20 and "the others stand behind" in done.notice
    assert [one.unit.name for one in done.hits] == [f"f{number}" for number in range(40)]


@pytest.mark.parametrize("damaged", [False, True])
def test_without_the_table_words_that_stand_together_come_first(
    damaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> object:
        raise EmbeddingError("The embedding table cannot be read.", "Install CodeQA again.")

    if damaged:
        monkeypatch.setattr(closeness, "question_matcher", fail)
    else:
        monkeypatch.setattr(closeness, "shipped_table", lambda: None)
    far = "session" + "\n" * 60 + "cookie" + "\n" * 60 + "expire"
    near = "session\ncookie\nexpire"
    question = parse_query("when does a session cookie expire")
    done = BuiltInReranker().rerank([hit("far", far), hit("near", near, score=0.9)], question)
    assert [one.unit.name for one in done.hits] == ["near", "far"]
    assert done.hits[0].why[-1] == "reranked: 100% of the words stand close together"


def test_how_close_together_words_stand() -> None:
    near = "def f():\n    load(cookie)\n    sign(session)"
    far = "load(cookie)" + "\n" * 40 + "sign(session)"
    assert closeness.closeness(near, ["cookie", "session", "absent"]) == 2 / 3
    assert closeness.closeness(far, ["cookie", "session"]) == 0.5
    assert closeness.closeness("routes", ["route"]) == 1.0
    assert closeness.closeness("", ["x"]) == closeness.closeness("x", []) == 0.0
