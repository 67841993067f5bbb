"""Cutting text by lines into the spans of the index."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from codeqa.parsing.source import CHUNK_SIZE, line_spans, split_lines, trim


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, count + 1))


def spans(text: str) -> list[tuple[int, int]]:
    lines = split_lines(text)
    return list(line_spans(lines, 1, len(lines)))


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
