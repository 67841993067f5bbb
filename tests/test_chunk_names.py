"""Chunks that a model calls by number or Id become citations of their lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeqa.chat.citations import ChunkNames, Citation, find_citations
from codeqa.types import Chunk

CHUNKS = (
    Chunk("ctx_0000000a", "src/app.py", 3, 9, "python", "…"),
    Chunk("ctx_0000000b", "app/[id]/page.tsx", 7, 7, "tsx", "…"),
    Chunk("ctx_0000000c", "odd]name.py", 1, 2, "python", "…"),
)


def written(*pieces: str) -> str:
    names = ChunkNames(CHUNKS)
    return "".join([*map(names.feed, pieces), names.close()])


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See [Chunk 1].", "See [src/app.py:3-9]."),
        ("It ends (chunk 2).", "It ends ([app/[id]/page.tsx:7-7])."),
        ("[ctx_0000000a]", "[src/app.py:3-9]"),
        ("[CHUNK #1]", "[src/app.py:3-9]"),
        ("[Chunk 1, Id: ctx_0000000a]", "[src/app.py:3-9]"),
        ("[Chunks 1 and 2]", "[src/app.py:3-9], [app/[id]/page.tsx:7-7]"),
        ("(Chunk 1; Chunk 2)", "([src/app.py:3-9], [app/[id]/page.tsx:7-7])"),
        ("**[Chunk 1]**\n\n- [Chunk 1]\n", "**[src/app.py:3-9]**\n\n- [src/app.py:3-9]\n"),
    ],
)
def test_a_named_chunk_becomes_a_citation_of_its_lines(said: str, shown: str) -> None:
    assert written(said) == shown
    places = {Citation("src/app.py", 3, 9), Citation("app/[id]/page.tsx", 7, 7)}
    assert find_citations(shown) and places.issuperset(find_citations(shown))


@pytest.mark.parametrize(
    "said",
    [
        "[Chunk 4]", "[Chunk 0]", "[Chunk 1, Chunk 4]", "[ctx_ffffffff]", "[Chunk 3]",
        "Chunk 1 and ctx_0000000a", "(chunks of 50 lines)", "[src/app.py:4-5] and [1]",
        "[Chunk 1" + ", Chunk 1" * 20 + "]", "an open [Chunk 1",
    ],
)  # fmt: skip
def test_everything_else_stays_as_the_model_said_it(said: str) -> None:
    assert written(said) == said


def test_only_what_may_become_a_name_waits() -> None:
    names = ChunkNames(CHUNKS)
    assert names.feed("It is (called") == "It is (called"
    assert names.feed(" once) in [Chu") == " once) in "
    assert names.feed("nk 1") == ""
    assert names.feed("].") == "[src/app.py:3-9]."
    assert names.feed(" and [c") == " and "
    assert names.feed("all it]") == "[call it]"
    assert names.close() == ""


FRAGMENTS = [
    "[", "]", "(", ")", "Chunk", "Chunks", " ", "1", "2", "9", ", ", " and ", "ctx_", "0000000a",
    "[Chunk 1]", "(Chunk 2)", "[ctx_0000000b]", "`", "```", "\n", "c", "ch", "Id: ", "text ", "#",
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30))
def test_how_an_answer_is_cut_into_pieces_changes_nothing(fragments: list[str]) -> None:
    whole = "".join(fragments)
    assert written(*fragments) == written(whole) == written(*whole)
