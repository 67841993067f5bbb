"""The embedding table: words, pieces, fields, vectors, and what a damaged one says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import FIXTURE, GOLDEN, observed

from codeqa.embeddings import pieces as pieces_module
from codeqa.embeddings.pieces import (
    UNKNOWN,
    WordPiece,
    body_field,
    document_fields,
    query_ids,
    split,
    without_lines,
)
from codeqa.embeddings.table import TableEncoder, load_weights
from codeqa.errors import EmbeddingError
from codeqa.text.unit_text import UnitText, encode
from research.training.table_files import save_weights

GOLDENS = json.loads(GOLDEN.read_text("utf-8"))
NASTY = {
    "empty": "",
    "enormous": "def parse(value):\n    return value + other\n" * 10_000,
    "one enormous word": "x" * 400_000,
    "binary": "\x00\x01\x02\ufffd\ufffd\x7f\x1b[0m" * 500,
    "punctuation": "{}[]();:,.<>!?" * 300,
    "Chinese": "数据库连接在哪里建立和关闭" * 40,
    "emoji": "🙂🔥 👩‍👩‍👧 " * 100,
    "lone surrogates": "\ud800 read \udfff the file",
    "a cut unit's text": "codeqa/1\npath: a.py\nowner: \nname: x\ndoc: 7\nonly one",
}


@pytest.fixture(scope="module")
def encoder() -> TableEncoder:
    return TableEncoder(load_weights(FIXTURE))


def unit(body: str, name: str = "", doc: str = "", **more: str) -> UnitText:
    return UnitText(more.get("path", ""), more.get("owner", ""), name, doc, "", body)


def words_of(bag: tuple[list[int], list[int]], pieces: WordPiece) -> set[str]:
    """Whole words of a bag; a word that has no piece of its own is missing."""
    names = {pieces.ids(word): word for word in WORDS if len(pieces.ids(word)) == 1}
    return {names[(one,)] for one in bag[0] if (one,) in names}


WORDS = "open file name path value return self text config index table the read write".split()  # noqa: SIM905


@pytest.mark.parametrize("golden", GOLDENS, ids=range(len(GOLDENS)))
def test_a_text_gives_the_words_pieces_and_vectors_that_were_written_down(golden: Any) -> None:
    result = json.loads(json.dumps(observed(golden["text"])))
    wanted = dict(golden)
    for name in ("query_vector", "document_vector"):
        assert np.abs(np.subtract(result.pop(name), wanted.pop(name))).max() <= 2e-6
    assert result == wanted


@given(st.text())
def test_any_text_is_split_into_words_of_letters_and_digits(text: str) -> None:
    for word in split(text):
        assert word and not re.search(r"[\s_]|[A-Z]", word)
    assert split(text) == split(text + " \n")


@given(st.text(st.characters(codec="ascii", categories=("Ll", "Nd")), max_size=30))
def test_pieces_put_together_are_the_word(word: str) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    names = [UNKNOWN, *letters, *(f"##{x}" for x in letters), "ab", "##cd", "##cde", "abcd"]
    ids = WordPiece(names).ids(word)
    assert "".join(names[one].removeprefix("##") for one in ids) == word
    assert all(names[one].startswith("##") == (place > 0) for place, one in enumerate(ids))


def test_the_longest_piece_wins_and_unknown_letters_give_the_unknown_id() -> None:
    pieces = WordPiece([UNKNOWN, "un", "unable", "##able", "##d", "u", "##n"])
    words = {"unable": (2,), "unabled": (2, 4), "unд": (1, 0), "": ()}
    assert {word: pieces.ids(word) for word in words} == words
    for names in ([], [UNKNOWN, "a", "a"], ["a", UNKNOWN]):
        with pytest.raises(ValueError, match="piece"):
            WordPiece(names)


def test_the_last_four_segments_of_a_path_count(encoder: TableEncoder) -> None:
    pieces = encoder.weights.pieces
    long = document_fields(unit("", path="read/write/index/table/config/file.name"), pieces)[0]
    assert words_of(long, pieces) == {"index", "table", "config", "file"}
    assert document_fields(unit("", path=".config"), pieces)[0] == query_ids("config", pieces)


def test_the_body_is_without_its_own_name_and_its_doc_comment(encoder: TableEncoder) -> None:
    pieces = encoder.weights.pieces
    body = 'def open(path):\n    """Read the\n    table."""\n    return open_file(path, open)\n'
    bag = body_field(unit(body, "open", "Read the\ntable."), pieces)
    assert words_of(bag, pieces) == {"path", "return", "open", "file"}  # of `open_file` alone
    assert bag[1][bag[0].index(pieces.ids("open")[0])] == 1


def test_a_doc_comment_is_taken_out_whatever_its_marks() -> None:
    for source, doc in (
        ("// Opens the file.\n// And more.\nopen()", "Opens the file.\nAnd more."),
        ("/**\n * Opens the file.\n * And more.\n */\nopen()", "Opens the file.\n\nAnd more."),
        ("/** Opens the file. */ open()", "Opens the file."),
        ('r"""Opens the file."""\nopen()', "Opens the file."),
    ):
        left = without_lines(source, doc.split("\n"))
        assert "open()" in left and "Opens" not in left and "more" not in left
    assert without_lines("value = 1", ["a"]) == "value = 1"  # out of the middle of a word


def test_a_long_body_counts_by_its_most_frequent_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "BODY_TOKENS", 3)
    pieces = WordPiece([UNKNOWN, *"abcde"])
    assert body_field(unit("a b c d e d e"), pieces) == ([4, 5, 1], [2, 2, 1])
    monkeypatch.setattr(pieces_module, "BODY_CHARACTERS", 3)
    assert body_field(unit("a b c d e d e"), pieces) == ([1, 2], [1, 1])


def test_vectors_do_not_depend_on_what_is_encoded_beside_them(encoder: TableEncoder) -> None:
    source = Path(pieces_module.__file__).read_text("utf-8")
    parts = [
        unit(source[at : at + 700], "part", source[at : at + 90]) for at in range(0, 9_000, 300)
    ]
    texts, size = [*map(encode, parts), *NASTY.values()], 17
    whole = encoder.compute_source_embeddings(texts)
    pieces = [texts[at : at + size] for at in range(0, len(texts), size)]
    apart = np.concatenate([encoder.compute_source_embeddings(some) for some in pieces])
    assert np.abs(apart - whole).max() <= 1e-6


def test_any_text_has_a_vector_of_length_one(encoder: TableEncoder) -> None:
    for kind, text in NASTY.items():
        everything = UnitText(text, text, text, text, text, text)
        documents = encoder.compute_source_embeddings([text, encode(everything)])
        vectors = np.concatenate([documents, encoder.encode_query(text)[None]])
        assert vectors.dtype == np.float32 and vectors.shape == (3, encoder.dimension)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6), kind


def test_texts_without_a_known_word_share_one_vector(encoder: TableEncoder) -> None:
    vectors = encoder.compute_source_embeddings(["", "数据库", "!?"])
    assert np.array_equal(vectors, np.array([encoder.unknown] * 3))
    assert np.array_equal(encoder.encode_query("где"), encoder.unknown)
    assert encoder.knows("file") and encoder.knows("где file")
    assert not any(map(encoder.knows, ("где", "", "?", "zyzzyva qwxyz")))
    assert encoder.compute_source_embeddings([]).shape == (0, encoder.dimension)


def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for file in ("manifest.json", "table.npy", "scales.npy", "vocabulary.txt"):
        damaged = shutil.copytree(FIXTURE, tmp_path / file) / file
        damaged.write_bytes(damaged.read_bytes()[:100] if file != "vocabulary.txt" else b"\xff")
        message = r"^The embedding table cannot be read: "
        with pytest.raises(EmbeddingError, match=message) as caught:
            load_weights(damaged.parent)
        assert caught.value.hint and "\n" not in str(caught.value)
        damaged.unlink()
        with pytest.raises(EmbeddingError, match=file):
            load_weights(damaged.parent)


def test_parts_that_do_not_fit_are_not_written(tmp_path: Path) -> None:
    ones = np.ones(2, np.float32)
    parts: dict[str, Any] = {
        "pieces": [UNKNOWN, "a"], "table": np.zeros((2, 4), np.int8), "scales": ones,
        "query_weights": ones, "document_weights": ones, "field_weights": np.ones(4, np.float32),
    }  # fmt: skip
    wrong: list[dict[str, Any]] = [
        {"table": np.zeros((3, 4), np.int8)}, {"scales": np.array([1, np.nan], np.float32)},
        {"pieces": [UNKNOWN, "a\nb"]},
    ]  # fmt: skip
    for part in wrong:
        with pytest.raises(ValueError):
            save_weights(tmp_path / "table", **{**parts, **part}, name="t", version="1", card="")
        assert not (tmp_path / "table").exists(), part
