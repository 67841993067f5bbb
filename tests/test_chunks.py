"""Cutting text by lines: as the source system does to the letter, and the index's own spans."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeqa.parsing.units import CHUNK_SIZE, line_spans, split_lines, trim
from codeqa.review.chunk_index import ChunkIndex


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, count + 1))


def spans(text: str) -> list[tuple[int, int]]:
    lines = split_lines(text)
    return list(line_spans(lines, 1, len(lines)))


CHUNKS = {
    numbered(46): [(1, 46), (46, 46)],
    numbered(51): [(1, 50), (46, 51)],
    numbered(95): [(1, 50), (46, 95), (91, 95)],
    "": [(1, 1)],
    "a\n": [(1, 2)],
}


def test_the_source_systems_chunks_are_exact() -> None:
    for text, expected in CHUNKS.items():
        index, lines = ChunkIndex(), text.split("\n")
        assert index.add_file("a.py", text) == len(expected)
        chunks = [chunk for chunk, _ in index._chunks]
        assert [(chunk["start_line"], chunk["end_line"]) for chunk in chunks] == expected
        for (first, last), chunk in zip(expected, chunks, strict=True):
            assert chunk["content"] == "\n".join(lines[first - 1 : last])


def test_a_chunk_is_found_by_the_cosine_of_whole_words_in_any_case() -> None:
    index = ChunkIndex()
    texts = ["_id _id 9lives x = user", "getUserById(http_404)", "user", "User user"]
    texts.append("a user b user")
    for number, text in enumerate(texts):
        index.add_file(f"{number}.py", text)
    found = [(one["path"], one["score"]) for one in index.search("User", k=9)]
    scores = {"2.py": 1, "3.py": 1, "4.py": 2 / 6**0.5, "0.py": 1 / 6**0.5}
    assert found == [(path, pytest.approx(score)) for path, score in scores.items()]
    assert [one["path"] for one in index.search("user")] == ["2.py", "3.py", "4.py"], "three"
    for word in ("GETUSERBYID", "http_404", "_id"):
        assert len(index.search(word)) == 1, word
    for part in ("getuser", "http", "404", "lives", "9lives", "id", ""):
        assert index.search(part) == [], part
    assert ChunkIndex().search("user") == []


def test_chunks_that_would_not_advance_are_refused() -> None:
    for size, overlap in ((5, 5), (0, 0), (5, -1)):
        with pytest.raises(ValueError, match="overlap"):
            ChunkIndex(size, overlap).add_file("a.py", "a")


def test_the_index_drops_contained_tails_and_empties() -> None:
    assert spans(numbered(50)) == [(1, 50)]
    assert spans(numbered(95)) == [(1, 50), (46, 95)]
    assert spans(numbered(51)) == [(1, 50), (46, 51)]
    assert spans("") == spans("\n\n  \n") == []
    assert spans("\n\na\n\n") == [(3, 3)]
    text = "\n".join("x" * 9_000 for _ in range(6))
    assert spans(text) == [(1, 2), (3, 4), (5, 6)], "long lines end a span early"
    assert spans("x" * 90_000) == [(1, 1)]


def test_lines_end_at_line_feeds_alone() -> None:
    text = "a\r\nb\rc\x0cd\x0be\u2028f\x85g\nh"
    assert split_lines(text) == ["a\r", "b\rc\x0cd\x0be\u2028f\x85g", "h"]
    assert split_lines("a\n") == split_lines("a") == ["a"]
    assert split_lines("a\n\n") == ["a", ""]


texts = st.text(alphabet=st.sampled_from("ab \t\r\n\n\n\x0cé"), max_size=400)
lines_of_all_lengths = st.lists(st.sampled_from(["", " ", "x", "long" * 600]), max_size=300)


@given(texts | lines_of_all_lengths.map("\n".join))
def test_spans_cover_every_line_with_text_and_advance(text: str) -> None:
    lines = split_lines(text)
    found = spans(text)
    covered = {line for first, last in found for line in range(first, last + 1)}
    assert covered >= {number for number, line in enumerate(lines, 1) if line.strip()}
    for (first, last), (next_first, next_last) in pairwise(found):
        assert next_first > first or next_last > last
        assert not (next_first >= first and next_last <= last)
    for first, last in found:
        assert 1 <= first <= last <= len(lines) and last - first < CHUNK_SIZE
        assert trim(lines, first, last) == (first, last)
