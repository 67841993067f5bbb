"""Questions made from a repository itself, and settings compared on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT

from codeqa.parsing import parse_file
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.records import Turn
from codeqa.store import Tables, locate
from research.evals.search.generate import comment_questions
from research.evals.search.own import PREFIX, THUMB, copied, prepared, thumb_questions
from research.evals.search.questions import load_questions
from research.evals.search.sentences import leaks, question_of
from research.evals.search.thumbs import CitedLines
from tests.kit.openai_server import openai_server, stream
from tests.kit.repositories import git, write
from tests.kit.waiting import PATIENCE

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop", "chat_fixtures")
pytestmark = pytest.mark.usefixtures("clock")

BASKET = '''\
class Basket:
    """Keeps the articles that a customer wants to buy until payment.

    More about it.
    """

    def __init__(self):
        self.articles = []

    def add_article(self, article, price):
        """Puts one article with its price into the customer's collection."""
        if price < 0:
            raise ValueError(price)
        self.articles.append((article, price))

    def total_price(self):
        prices = [price for _, price in self.articles]
        return sum(prices)
'''
TILL = '''\
from shop.basket import Basket


def pay_everything(basket: Basket, purse):
    # A comment that says nothing of interest to anybody.
    total = basket.total_price()
    purse.take_money(total)
    return round_amount(total)


def round_amount(amount):
    """
    Rounds an amount of money to the smallest coin that exists here.
    """
    coins = amount * 20
    return round(coins) / 20
'''
GO = """\
package gate

// openGate lets a visitor in when the badge is known to the guard.
// It writes the visit down.
func openGate(badge string) bool {
\tguard := find(badge)
\tif guard == nil {
\t\treturn false
\t}
\treturn guard.knows
}
"""
FILES = {"shop/basket.py": BASKET, "shop/till.py": TILL, "gate/gate.go": GO}


def quiet(*_: Any) -> None:
    pass


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files are parsed sooner than a process starts."""
    monkeypatch.setenv("CODEQA_WORKERS", "1")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made: a folder of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write(tmp_path / "shop", FILES)


# Sentences


def test_the_first_sentence_of_a_comment_is_the_question() -> None:
    for comment, name, expected in (
        ("Opens the door for a guest. More.", "open", "Opens the door for a guest"),
        ("openDoor opens the door, e.g. for a guest.\nMore", "openDoor",
         "opens the door, e.g. for a guest"),
        ("Opens {@link Door} for `a guest`\n\n@param x y", "f", "Opens Door for a guest"),
        ("@param door what is opened by this", "f", ""),
        ("Opens it.", "f", ""),
        ("See the function below for more.", "f", ""),
        ("x = open(door); return x and y and z", "f", ""),
        ("Deprecated in favour of another way to open", "f", ""),
    ):  # fmt: skip
        assert question_of(comment, name) == expected


# The copy


def test_the_copy_holds_what_would_be_indexed_and_no_secret(
    tmp_path: Path, settings: Settings, temporary: Path
) -> None:
    token = "ghp_" + "a1B2" * 9
    root = write(
        tmp_path / "root",
        {
            **FILES,
            ".gitignore": "*.log\nkept.txt\n",
            "out.log": "noise\n",
            "kept.txt": "tracked all the same\n",
            ".env": "PASSWORD=hunter2hunter2\n",
            "key.py": f'TOKEN = "{token}"\n',
            "image.png": b"\x89PNG\0\0",
        },
    )
    git(root, "init", "-q")
    git(root, "add", "-f", "kept.txt")
    with copied(root, settings, quiet) as copy:
        names = {
            path.relative_to(copy.folder).as_posix()
            for path in copy.folder.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }
        assert names == {*FILES, "key.py", "kept.txt"}
        assert token not in (copy.folder / "key.py").read_text("utf-8")
        assert (copy.folder / "shop/basket.py").read_text("utf-8") == BASKET
        assert set(copy.sources) == {*FILES, "key.py"}
        assert copy.folder.parent.stat().st_mode & 0o077 == 0 or os.name == "nt"
    assert list(temporary.iterdir()) == []


# Questions


def test_comments_become_questions_and_are_emptied_line_for_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "copy", FILES)
    found = comment_questions(folder, sorted(FILES))
    asked = {one.question: one.relevant[0] for one in found}
    coin = asked["Rounds an amount of money to the smallest coin that exists here"]
    place = (coin.path, coin.symbol, coin.start, coin.end)
    assert place == ("shop/till.py", "round_amount", 11, 16)
    gate = asked["lets a visitor in when the badge is known to the guard"]
    # The comment stood in front: what is left begins where the function does.
    assert (gate.start, gate.end) == (5, 11)
    assert any("Basket" in target.symbol for target in asked.values())
    for name, before in FILES.items():
        after = (folder / name).read_text("utf-8")
        assert after.count("\n") == before.count("\n")
        assert not any(leaks(question, after) for question in asked)
        assert not parse_file(name, after.encode()).has_errors
    assert "smallest coin" not in (folder / "shop/till.py").read_text("utf-8")


def test_every_kind_of_question_has_its_targets_and_neither_repository_nor_index_is_touched(
    shop: Path, settings: Settings, data_dir: Path, temporary: Path
) -> None:
    before = {path: path.read_bytes() for path in shop.rglob("*.py")}
    with prepared(settings, shop, quiet, count=60) as own:
        assert {one.category for one in own.questions} == {"comment", "symbol", "callers"}
        assert {one.repo for one in own.questions} == {"shop"}
        # Emptied comments are in the index of the copy neither.
        text = "\n".join(unit.source_code for unit in own.tables.units())
        for one in own.questions:
            if one.category == "symbol":
                assert one.relevant[0].symbol.endswith(one.question)
            assert one.category != "comment" or not leaks(one.question, text)
        (calls,) = (q.relevant for q in own.questions if q.question == "what calls round_amount?")
        assert [(t.symbol, t.grade) for t in calls] == [("pay_everything", 2), ("round_amount", 1)]
        assert not own.location.folder.is_relative_to(data_dir)
        assert own.location.root != locate(settings, shop).root
    assert {path: path.read_bytes() for path in shop.rglob("*.py")} == before
    assert not data_dir.exists()


# Thumbs


def thumb(question: str, *cited: CitedLines, value: int = 1, searched: bool = True) -> Any:
    return SimpleNamespace(question=question, value=value, cited=cited, searched=searched)


def test_thumbs_up_ask_for_the_places_that_the_answer_stood_on(tmp_path: Path) -> None:
    folder = write(tmp_path / "copy", FILES)
    place = CitedLines("shop/till.py", 4, 8)
    elsewhere = (CitedLines("gone.py", 1, 2), CitedLines("../x", 1, 1))
    thumbs = [
        thumb("how is it paid?", place, place, *elsewhere),
        thumb("where is the gate?", CitedLines("gate/gate.go", 5, 400)),
        thumb("not good", place, value=-1),
        thumb("and then?", place, searched=False),
        thumb("changed my mind", place),
        thumb("changed my mind", place, value=-1),
    ]
    found = thumb_questions(thumbs, folder)
    assert [(one.question, one.category) for one in found] == [("how is it paid?", THUMB)]
    assert [(t.path, t.start, t.end) for t in found[0].relevant] == [("shop/till.py", 4, 8)]


# The command


def test_the_users_own_repository_is_asked_and_settings_are_compared(
    shop: Path, settings: Settings, tmp_path: Path, temporary: Path, judged: Command
) -> None:
    state = State(settings.data_dir)
    place = {"path": "shop/till.py", "start": 4, "end": 8, "verified": True}
    turn = Turn("t1", "c", "@codebase how is it paid?", "So.", "", {"citations": [place]},
                repository=locate(settings, shop).id)  # fmt: skip
    state.turns.save(turn)
    state.feedback.save("t1", turn.user, 1)
    asked = tmp_path / "asked.jsonl"
    done = judged(
        shop, "--count", "20", "--compare", "rerank", "--compare",
        "vectors", "--questions", asked, "--out", tmp_path / "lists.jsonl",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "1 thumb up" in done.out
    assert "with rerank" in done.out and "without vectors" in done.out
    assert "easier than what people ask" in done.out and "they favour" in done.out
    questions = load_questions(asked)
    assert any(one.question == "how is it paid?" for one in questions)
    lists = (tmp_path / "lists.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lists] == [one.id for one in questions]
    assert list(temporary.iterdir()) == []
    with pytest.raises(Exception, match="codeqa index"):
        Tables(locate(settings, shop)).meta()


def test_a_wish_that_cannot_be_met_is_said_before_anything_is_done(
    shop: Path, temporary: Path, judged: Command
) -> None:
    for arguments, message in (
        (["--compare", "hyde"], "Drafts need a language model"),
        (["--rerank"], "REPO goes without --trees"),
    ):
        done = judged(shop, *arguments)
        assert done.status == 2 and message in done.err and not done.out
        assert "copying" not in done.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_a_run_that_is_stopped_leaves_no_copy_behind(tmp_path: Path, temporary: Path) -> None:
    many = {f"part{n}/basket{n}.py": BASKET.replace("Basket", f"Basket{n}") for n in range(150)}
    root = write(tmp_path / "large", many)
    process = subprocess.Popen(
        [sys.executable, "-m", "research.evals.search", str(root), "--count", "200"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    # By then queries are read, in which tree-sitter takes a signal for an error of its own.
    while "questions of" not in (line := process.stderr.readline()):
        assert line, "it ended"
    assert list(temporary.glob(f"{PREFIX}*/*/part*"))
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "interrupted" in errors and "Traceback" not in errors
    assert list(temporary.glob(f"{PREFIX}*")) == []


@pytest.mark.slow
def test_drafts_are_compared_over_a_real_connection(
    shop: Path, temporary: Path, judged: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with openai_server(lambda *_: stream(["def round_amount(coins): ", "return coins"])) as server:
        monkeypatch.setenv("CODEQA_MODEL", "custom/scripted")
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        done = judged(shop, "--count", "10", "--compare", "hyde", "--json")
        assert done.status == 0, done.err
        asked = len(server.exchanges)
    content = json.loads(done.out)
    assert set(content["runs"]) == {"as it is", "with drafts (HyDE)"}
    # The run with the defaults asks no model; each question of the other one does.
    questions = sum(content["questions"].values())
    assert questions <= asked <= 2 * (questions + 1)
    assert set(content["differences"]["with drafts (HyDE)"]) >= {"ndcg@10", "cover@500"}
