"""Questions, ranked lists, and the figures that judge them."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from codeqa.errors import UsageError
from research.evals.search.questions import Question, Target, load_questions
from research.evals.search.ranked import Ranked, load_ranked, save_ranked
from research.evals.search.scores import FIGURES, compare, score
from tests.kit.repositories import write

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)

TARGETS = Target("a.py", 2, 10, 19, "open"), Target("b.py", 2, 1, 4, "close"), Target("c.py", 1)
QUESTION = Question("r-1", "r", "where is it opened?", TARGETS, "behaviour", "python")


def result(path: str, start: int = 0, end: int = 0) -> dict[str, Any]:
    return {"path": path, "start": start, "end": end} if start else {"path": path}


def ranked(*results: dict[str, Any], id: str = "r-1") -> Ranked:
    return Ranked(id, "r", "", results, 5.0)


def score_question(question: Question, results: Sequence[dict[str, Any]]) -> Mapping[str, float]:
    return score([question], [ranked(*results, id=question.id)]).per_question[0]


def test_a_perfect_list_of_files_scores_one_and_an_empty_one_nothing() -> None:
    figures = score_question(QUESTION, [result("a.py"), result("b.py"), result("c.py")])
    for name in ("ndcg@10", "mrr@10", "recall@5", "recall@10", "hit@1"):
        assert figures[name] == 1
    of_contexts = {"answer in context"}  # of runs that say what would be sent
    assert set(score_question(QUESTION, [])) == set(FIGURES) - of_contexts
    assert not any(score_question(QUESTION, []).values())
    # Files are graded, and counted once.
    figures = score_question(QUESTION, [result("c.py"), result("c.py", 3, 9), result("b.py")])
    ideal = 2 + 2 / math.log2(3) + 1 / 2
    assert figures["ndcg@10"] == pytest.approx((1 + 2 / math.log2(3)) / ideal)
    assert figures["mrr@10"] == 0.5 and figures["hit@1"] == 0
    assert figures["recall@10"] == 0.5


def test_a_result_finds_a_target_when_they_share_half_of_the_shorter_one() -> None:
    def found(start: int, end: int) -> float:
        return score_question(QUESTION, [result("a.py", start, end)])["line hit@1"]

    assert found(10, 19) == found(1, 40) == found(15, 30) == found(12, 13) == 1
    assert found(16, 30) == found(20, 40) == found(1, 9) == 0
    assert found(18, 30) == 0
    # Of a long result only the beginning counts.
    late = Question("r-2", "r", "x", (Target("a.py", 2, 400, 410),))
    assert score_question(late, [result("a.py", 1, 1_000)])["line hit@1"] == 0
    assert score_question(late, [result("a.py", 200, 1_000)])["line hit@1"] == 1
    # A target is found once, and one result may find several.
    twice = score_question(QUESTION, [result("a.py", 10, 19), result("a.py", 11, 18)])
    assert twice["line recall@10"] == 0.5
    both = Question("r-3", "r", "x", (Target("a.py", 2, 1, 4), Target("a.py", 2, 6, 9)))
    assert score_question(both, [result("a.py", 1, 10)])["line ndcg@10"] == 1


def test_cover_counts_the_lines_that_are_read_and_none_of_them_twice() -> None:
    question = Question("r-4", "r", "x", (Target("a.py", 2, 201, 300),))
    figures = score_question(question, [result("b.py", 1, 200), result("a.py", 201, 300)])
    assert figures["cover@250"] == 0.5
    assert figures["cover@500"] == figures["cover@1000"] == 1
    again = score_question(question, [result("b.py", 1, 200)] * 5 + [result("a.py", 201, 300)])
    assert again["cover@500"] == 1


def test_a_report_gives_means_groups_and_what_is_missing() -> None:
    other = Question("s-1", "s", "y", (Target("z.py"),), category="symbol", language="go")
    report = score([QUESTION, other], [ranked(result("a.py"), result("b.py"), result("c.py"))])
    assert report.figures["ndcg@10"].mean == 0.5
    assert report.figures["line ndcg@10"].questions == 1
    assert report.missing == 1 and report.latency_ms == (5.0, 5.0)
    assert report.groups["repo"]["r"]["hit@1"].mean == 1
    assert report.groups["category"]["symbol"]["hit@1"].mean == 0
    assert report.figures["ndcg@10"].low <= 0.5 <= report.figures["ndcg@10"].high


def test_runs_are_compared_question_by_question() -> None:
    questions = [Question(f"q-{n}", "r", f"q {n}", (Target(f"{n}.py"),)) for n in range(60)]
    good = score(questions, [ranked(result(f"{n}.py"), id=f"q-{n}") for n in range(60)])
    half = score(questions, [ranked(result(f"{n}.py"), id=f"q-{n}") for n in range(0, 60, 2)])
    difference = compare(good, half)["hit@1"]
    assert difference.mean == 0.5 and difference.beyond_chance
    assert difference.low > 0.3 and difference.high < 0.7
    same = compare(good, good)["hit@1"]
    assert (same.mean, same.low, same.high) == (0, 0, 0) and not same.beyond_chance
    with pytest.raises(ValueError, match="different questions"):
        compare(good, score(questions[:3], []))


def write_lines(path: Path, *lines: object) -> Path:
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    path.write_text(text + "\n", encoding="utf-8")
    return path


WHOLE = {"id": "a", "repo": "r", "question": "x?", "relevant": [{"path": "a.py", "grade": 2}]}


def test_questions_that_cannot_be_are_named_with_their_line(tmp_path: Path) -> None:
    for line, message in (
        ("{", "line 2"),
        ({**WHOLE, "id": "b", "relevant": []}, "no target has grade 2"),
        ({"id": "b", "repo": "r", "question": "x"}, "relevant: Field required"),
        (WHOLE, "stands twice"),
    ):
        path = write_lines(tmp_path / "q.jsonl", WHOLE, line)
        with pytest.raises(UsageError, match=message) as caught:
            load_questions(path)
        assert "line 2" in str(caught.value)


def test_ranked_lists_come_back_as_they_were_written_also_packed(tmp_path: Path) -> None:
    lists = [ranked(result("a.py", 1, 2)), ranked(id="r-2")]
    plain = tmp_path / "ranked.jsonl"
    assert save_ranked(plain, lists) == 2
    assert load_ranked(plain) == lists
    packed = tmp_path / "ranked.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert load_ranked(packed) == lists
    path = write_lines(tmp_path / "ranked.jsonl", {"id": "a", "results": []}, {"id": "x"})
    with pytest.raises(UsageError, match="line 2, is no ranked list"):
        load_ranked(path)


# The command


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A folder with questions and the two repositories that they are about."""
    basket = "def total_price(basket):\n    return sum(basket.prices)\n"
    door = "def open_door(key):\n    return key.turn()\n"
    write(tmp_path / "trees" / "shop", {"basket.py": basket})
    write(tmp_path / "trees" / "gate", {"door.py": door, "bell.py": "def ring(): pass\n"})
    lines = {"grade": 2, "start": 1, "end": 2}
    write_lines(
        tmp_path / "q.jsonl",
        {"id": "shop-1", "repo": "shop", "question": "total price of a basket",
         "category": "semantic", "relevant": [{"path": "basket.py", **lines}]},
        {"id": "gate-1", "repo": "gate", "question": "open_door",
         "category": "symbol", "relevant": [{"path": "door.py", **lines}]},
    )  # fmt: skip
    return tmp_path


def test_a_batch_is_indexed_asked_written_and_judged_and_what_is_missing_is_named(
    asked: Path, judged: Command
) -> None:
    out = asked / "ranked.jsonl"
    arguments = ("--questions", str(asked / "q.jsonl"), "--out", str(out))
    done = judged(*arguments, "--trees", str(asked / "trees"))
    assert done.status == 0, done.err
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["shop-1", "gate-1"]
    first = lines[0]["results"][0]
    assert (first["path"], first["start"], first["end"]) == ("basket.py", 1, 2)
    assert first["symbol"] == "total_price" and lines[0]["latency_ms"] > 0
    assert "hit@1" in done.out and "category" in done.out
    # Judged again without asking, beside itself.
    again = judged(*arguments, "--versus", str(out), "--json")
    document = json.loads(again.out)
    run = document["runs"]["ranked.jsonl"]
    assert run["figures"]["hit@1"]["mean"] == 1 and run["missing"] == 0
    assert run["groups"]["category"]["symbol"]["hit@1"]["questions"] == 1
    assert document["differences"]["minus ranked.jsonl"]["hit@1"]["mean"] == 0
    missing = judged(*arguments, "--trees", str(asked))
    assert missing.status == 2
    assert "lacks the folders gate, shop" in missing.err and "Traceback" not in missing.err
