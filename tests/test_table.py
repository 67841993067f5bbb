"""The embedding table: words, pieces, fields, vectors, and what a damaged one says."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from tables import FIXTURE, GOLDEN, make_table, observed

from codeqa.embeddings import table as table_module
from codeqa.embeddings.table import (
    UNKNOWN,
    TableEncoder,
    WordPiece,
    body_field,
    document_fields,
    load_weights,
    query_ids,
    split,
    without_lines,
)
from codeqa.errors import EmbeddingError
from codeqa.text.unit_text import UnitText, decode, encode
from training.table_files import save_weights

GOLDENS = json.loads(GOLDEN.read_text("utf-8"))
NASTY = {
    "empty": "",
    "enormous": "def parse(value):\n    return value + other\n" * 60_000,
    "one enormous word": "x" * 2_000_000,
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


@pytest.fixture(scope="module")
def real_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random numbers in a table of the real size."""
    return make_table(tmp_path_factory.mktemp("tables") / "real")


def unit(body: str, name: str = "", doc: str = "", **more: str) -> UnitText:
    return UnitText(more.get("path", ""), more.get("owner", ""), name, doc, "", body)


def words_of(bag: tuple[list[int], list[int]], pieces: WordPiece) -> set[str]:
    """Whole words of a bag; a word that has no piece of its own is missing."""
    names = {pieces.ids(word): word for word in WORDS if len(pieces.ids(word)) == 1}
    return {names[(one,)] for one in bag[0] if (one,) in names}


WORDS = "open file name path value return self text config index table the read write".split()  # noqa: SIM905


# Golden


@pytest.mark.parametrize("golden", GOLDENS, ids=range(len(GOLDENS)))
def test_a_text_gives_the_words_pieces_and_vectors_that_were_written_down(golden: Any) -> None:
    found = json.loads(json.dumps(observed(golden["text"])))
    vectors = ("query_vector", "document_vector")
    assert {k: v for k, v in found.items() if k not in vectors} == {
        k: v for k, v in golden.items() if k not in vectors
    }
    for name in vectors:
        assert np.abs(np.subtract(found[name], golden[name])).max() <= 2e-6


# Words and pieces


def test_identifiers_are_split_into_lower_case_words() -> None:
    for text, words in {
        "getHTTPResponse_v2": "get http response v 2",
        "__init__ MAX_SIZE x1": "init max size x 1",
        "café ＦＵＬＬ naïve": "cafe full naive",
        "“don’t”—stop": "don t stop",
        "数据 読む": "数 据 読 む",
    }.items():
        assert split(text) == words.split()


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


def test_the_longest_piece_wins_and_unknown_letters_give_the_unknown_id_once() -> None:
    pieces = WordPiece([UNKNOWN, "un", "unable", "##able", "##d", "u", "##n"])
    assert pieces.ids("unable") == (2,)
    assert pieces.ids("unabled") == (2, 4)
    assert pieces.ids("unд") == (1, 0)
    assert pieces.ids("жжun") == (0, 6 - 0)[:1] + pieces.ids("жun")[1:]
    assert pieces.ids("") == ()


def test_a_vocabulary_that_cannot_be_is_refused() -> None:
    for names in ([], [UNKNOWN, "a", "a"], ["a", UNKNOWN]):
        with pytest.raises(ValueError, match="piece"):
            WordPiece(names)


# Fields


def test_the_path_counts_by_its_last_four_segments_without_the_ending(
    encoder: TableEncoder,
) -> None:
    pieces = encoder.weights.pieces
    long = document_fields(unit("", path="read/write/index/table/config/file.name"), pieces)[0]
    assert words_of(long, pieces) == {"index", "table", "config", "file"}
    assert document_fields(unit("", path=".config"), pieces)[0] == query_ids("config", pieces)


def test_the_body_is_without_its_own_name_and_its_doc_comment(encoder: TableEncoder) -> None:
    pieces = encoder.weights.pieces
    body = 'def open(path):\n    """Read the\n    table."""\n    return open_file(path, open)\n'
    found = words_of(body_field(unit(body, "open", "Read the\ntable."), pieces), pieces)
    assert found == {"path", "return", "open", "file"}  # `open` of `open_file` alone
    bag = body_field(unit(body, "open", "Read the\ntable."), pieces)
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


def test_a_short_line_is_not_taken_out_of_the_middle_of_others() -> None:
    assert without_lines("value = 1", ["a"]) == "value = 1"
    assert without_lines("", ["a"]) == "" and without_lines("same", [""]) == "same"


def test_a_long_body_counts_by_its_most_frequent_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "BODY_TOKENS", 3)
    pieces = WordPiece([UNKNOWN, *"abcde"])
    assert body_field(unit("a b c d e d e"), pieces) == ([4, 5, 1], [2, 2, 1])
    monkeypatch.setattr(table_module, "BODY_CHARACTERS", 3)
    assert body_field(unit("a b c d e d e"), pieces) == ([1, 2], [1, 1])


# Vectors


def by_the_book(encoder: TableEncoder, text: UnitText) -> Any:
    """The same sums in plain loops and double precision."""
    weights = encoder.weights
    total = np.zeros(weights.dimension)
    for field, (ids, counts) in enumerate(document_fields(text, weights.pieces)):
        bag = np.zeros(weights.dimension)
        for one, count in zip(ids, counts, strict=True):
            share = float(weights.document_weights[one]) * (1 + math.log(count))
            bag += share * float(weights.scales[one]) * weights.table[one].astype(float)
        if np.linalg.norm(bag) > 0:
            share = math.log1p(math.exp(float(weights.field_weights[field])))
            total += share * bag / np.linalg.norm(bag)
    return total / np.linalg.norm(total)


def sources() -> list[UnitText]:
    """Texts of all sizes: CodeQA's own modules, whole and in parts."""
    found = []
    for path in sorted((ROOT / "codeqa").rglob("*.py"))[:60]:
        source = path.read_text("utf-8")
        name = path.relative_to(ROOT).as_posix()
        found.append(UnitText(name, "", path.stem, source[3:200], "", source))
        for start in range(0, len(source), 700):
            found.append(UnitText(name, path.stem, "part", "", "", source[start : start + 700]))
    return found


def test_vectors_are_what_plain_loops_give(encoder: TableEncoder, real_table: Path) -> None:
    texts = sources()[::9]
    serialised = [encode(text) for text in texts]
    assert [decode(text) for text in serialised] == texts
    for one in (encoder, TableEncoder(load_weights(real_table))):
        wanted = np.array([by_the_book(one, text) for text in texts])
        assert np.abs(one.compute_source_embeddings(serialised) - wanted).max() < 1e-6


def test_vectors_do_not_depend_on_what_is_encoded_beside_them(
    encoder: TableEncoder, real_table: Path
) -> None:
    texts, size = [encode(text) for text in sources()[:60]] + list(NASTY.values()), 17
    for one in (encoder, TableEncoder(load_weights(real_table))):
        whole = one.compute_source_embeddings(texts)
        parts = [
            one.compute_source_embeddings(texts[at : at + size])
            for at in range(0, len(texts), size)
        ]
        assert np.abs(np.concatenate(parts) - whole).max() <= 1e-6


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_any_text_has_a_vector_of_length_one(encoder: TableEncoder, text: str) -> None:
    everything = UnitText(text, text, text, text, text, text)
    vectors = np.concatenate(
        [
            encoder.compute_source_embeddings([text, encode(everything)]),
            encoder.encode_query(text)[None],
        ]
    )
    assert vectors.dtype == np.float32 and vectors.shape == (3, encoder.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_texts_without_a_known_word_share_one_vector(encoder: TableEncoder) -> None:
    vectors = encoder.compute_source_embeddings(["", "数据库", "!?"])
    assert np.array_equal(vectors, np.array([encoder.unknown] * 3))
    assert np.array_equal(encoder.encode_query("где"), encoder.unknown)
    assert encoder.knows("file") and encoder.knows("где file")
    assert not any(map(encoder.knows, ("где", "", "?", "zyzzyva qwxyz")))
    assert encoder.compute_source_embeddings([]).shape == (0, encoder.dimension)


# Files


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return shutil.copytree(FIXTURE, tmp_path / "table")


@pytest.mark.parametrize("file", ["manifest.json", "table.npy", "scales.npy", "vocabulary.txt"])
def test_a_damaged_file_is_refused_in_a_sentence(copied: Path, file: str) -> None:
    whole = (copied / file).read_bytes()
    (copied / file).write_bytes(whole[:100] if file != "vocabulary.txt" else b"\xff")
    said = "^The embedding table cannot be read: "
    with pytest.raises(EmbeddingError, match=said) as caught:
        load_weights(copied)
    assert caught.value.hint and "\n" not in str(caught.value)
    (copied / file).unlink()
    with pytest.raises(EmbeddingError, match=file):
        load_weights(copied)


@pytest.mark.parametrize(
    "part",
    [
        {"table": np.zeros((3, 4), np.int8)},
        {"scales": np.ones(3, np.float32)},
        {"scales": np.array([1, np.nan], np.float32)},
        {"pieces": [UNKNOWN, "a\nb"]},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_not_written(tmp_path: Path, part: dict[str, Any]) -> None:
    ones = np.ones(2, np.float32)
    parts: dict[str, Any] = {
        "pieces": [UNKNOWN, "a"],
        "table": np.zeros((2, 4), np.int8),
        "scales": ones,
        "query_weights": ones,
        "document_weights": ones,
        "field_weights": np.ones(4, np.float32),
    }
    with pytest.raises(ValueError):
        save_weights(tmp_path / "table", **{**parts, **part}, name="t", version="1", card="")
    assert not (tmp_path / "table").exists()
