"""The table that ships with CodeQA: whole, small, described, and of use where words are not."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from codeqa.embeddings.registry import SHIPPED, fast_embedding
from codeqa.embeddings.table import load_weights
from codeqa.search.hybrid import Search
from codeqa.search.query import parse_query
from codeqa.search.ranking import matching_words
from codeqa.settings import load_settings
from codeqa.text.tokens import written_forms
from research.training.licences import ALLOWED
from tests.kit.indexed import indexed

LARGEST_WHEEL = 20_000_000

SHOP = """\
import hashlib


def authenticate(username, password):
    user = User.find(username)
    return user if user and verify(user.password_hash, password) else None


def checksum(data):
    return hashlib.sha256(data).hexdigest()


def rollback(transaction):
    for statement in reversed(transaction.statements):
        statement.undo()
    transaction.connection.close()


def render_invoice(order, template):
    return template.render(lines=order.lines, total=order.total)


def paginate(rows, page, per_page):
    start = (page - 1) * per_page
    return rows[start:start + per_page]
"""

QUESTIONS = {
    "check who is logging in": "authenticate",
    "fingerprint of some bytes": "checksum",
    "revert the changes made in the database": "rollback",
    "limit and offset of a listing": "paginate",
}


def test_a_table_is_shipped_whole_and_small_enough() -> None:
    weights = load_weights(SHIPPED)
    digests = json.loads((SHIPPED / "manifest.json").read_text("utf-8"))["files"]
    for file, digest in digests.items():
        assert hashlib.sha256((SHIPPED / file).read_bytes()).hexdigest() == digest, file
    assert weights.table.shape == (32_000, 512)
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < LARGEST_WHEEL
    embedding = fast_embedding()
    assert embedding is not None
    assert (embedding.name, embedding.version) == (weights.name, weights.version)


def test_its_card_says_what_it_was_trained_on_how_when_and_where_it_ends() -> None:
    card = (SHIPPED / "card.md").read_text("utf-8")
    for heading in ("Trained on", "How", "Figures", "Limits"):
        assert f"## {heading}\n" in card
    pairs = re.search(r"([\d,]+) pairs of (\d+) public repositories", card)
    assert pairs is not None and int(pairs[2]) >= 150
    assert re.search(r"Trained on 20\d\d-\d\d-\d\d\.", card)
    licences = card.split("| licence | repositories |")[1].split("\n\n")[0]
    named = set(re.findall(r"^\| ([^|]+) \| \d+ \|$", licences, re.M))
    assert named and named <= ALLOWED


def test_plain_words_find_code_that_holds_none_of_them(tmp_path: Path) -> None:
    tables = indexed(tmp_path, {"shop.py": SHOP})
    assert tables.counts().embedded == tables.counts().units
    with_table = Search(lambda: tables, load_settings(), lambda name: fast_embedding())
    without = Search(lambda: tables, load_settings())
    for question, name in QUESTIONS.items():
        units = [hit.unit for hit in with_table.search(question).units if hit.unit.is_method]
        assert units[0].name == name
        words = [(word, written_forms(word)) for word in parse_query(question).words]
        assert not matching_words(units[0], words)
        assert name not in [hit.unit.name for hit in without.search(question).units]
