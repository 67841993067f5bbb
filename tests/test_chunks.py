"""Cutting text by lines: the compatible API to the letter, and the index's own spans."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeqa.parsing.chunks import LineChunk, chunk_by_lines, line_spans, split_lines, trim


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, count + 1))


def spans(text: str, **options: int) -> list[tuple[int, int]]:
    return list(line_spans(split_lines(text), **options))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [(1, 1)]),
        (45, [(1, 45)]),
        (46, [(1, 46), (46, 46)]),
        (50, [(1, 50), (46, 50)]),
        (51, [(1, 50), (46, 51)]),
        (95, [(1, 50), (46, 95), (91, 95)]),
        (100, [(1, 50), (46, 95), (91, 100)]),
    ],
)
def test_the_compatible_chunks_are_exact(count: int, expected: list[tuple[int, int]]) -> None:
    chunks = chunk_by_lines(numbered(count))
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == expected
    for chunk in chunks:
        assert chunk.content == "\n".join(
            f"line {number}" for number in range(chunk.start_line, chunk.end_line + 1)
        )


def test_the_compatible_api_keeps_the_source_systems_oddities() -> None:
    assert chunk_by_lines("") == [LineChunk("", 1, 1)]
    assert chunk_by_lines("a\n") == [LineChunk("a\n", 1, 2)]
    assert [c.start_line for c in chunk_by_lines(numbered(30), chunk_size=20, overlap=5)] == [1, 16]


@pytest.mark.parametrize(("size", "overlap"), [(5, 5), (5, 6), (0, 0), (5, -1)])
def test_chunks_that_would_not_advance_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="overlap"):
        chunk_by_lines("a", size, overlap)


def test_the_index_drops_contained_tails_and_empties() -> None:
    assert spans(numbered(50)) == [(1, 50)]
    assert spans(numbered(95)) == [(1, 50), (46, 95)]
    assert spans(numbered(51)) == [(1, 50), (46, 51)]
    assert spans("") == spans("\n\n  \n") == []
    assert spans("\n\na\n\n") == [(3, 3)]


def test_long_lines_end_a_span_early() -> None:
    text = "\n".join("x" * 9_000 for _ in range(6))
    assert spans(text) == [(1, 2), (3, 4), (5, 6)]
    assert spans("x" * 90_000) == [(1, 1)]


def test_lines_end_at_line_feeds_alone() -> None:
    text = "a\r\nb\rc\x0cd\x0be\u2028f\x85g\nh"
    assert split_lines(text) == ["a\r", "b\rc\x0cd\x0be\u2028f\x85g", "h"]
    assert split_lines("a\n") == split_lines("a") == ["a"]
    assert split_lines("a\n\n") == ["a", ""]


texts = st.text(alphabet=st.sampled_from("ab \t\r\n\n\n\x0cé"), max_size=400)
long_texts = st.lists(st.sampled_from(["", " ", "x", "long" * 20]), max_size=300).map("\n".join)


@given(texts | long_texts, st.integers(1, 60), st.data())
def test_spans_cover_every_line_with_text_and_advance(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    characters = data.draw(st.sampled_from([10, 200, 20_000]))
    lines = split_lines(text)
    found = list(line_spans(lines, 1, None, size, overlap, characters))
    covered = {line for first, last in found for line in range(first, last + 1)}
    assert covered >= {number for number, line in enumerate(lines, 1) if line.strip()}
    for (first, last), (next_first, next_last) in pairwise(found):
        assert next_first > first or next_last > last
        assert not (next_first >= first and next_last <= last)
    for first, last in found:
        assert 1 <= first <= last <= len(lines) and last - first < size
        assert trim(lines, first, last) == (first, last)
