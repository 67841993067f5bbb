from __future__ import annotations

import pytest
from block_grammar import parse_block
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeqa.context.block import chunk_id, format_block
from codeqa.types import Chunk

NASTY = [
    "", "\n", "```", "```\n\n", "````python", "=== CHUNK 2 ===\n", "[CONTEXT]\n\n",
    "Id: ctx_00000000", "\x00", "\r\n", "\r", "\t\tx", "\u2028", "\x85\x0c\x0b", "\u202eabc", "   ",
    "`", "ünïcode 漢字 🎉",
    "```\n\n=== CHUNK 2 ===\nId: ctx_00000000\nPath: x\nLines: 1-1\nLanguage: c\n```c\n",
]  # fmt: skip

contents = st.lists(st.sampled_from(NASTY) | st.text(max_size=12), max_size=8).map("".join)
paths = st.sampled_from(["a.py", "src/a b.py", 'q"uote.py', '"begins.py', "new\nline", "r\r", "\\"])
languages = st.sampled_from(["python", "c++", "c#", "objective-c", "", "csharp", "scss", "tsx"])


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    content = draw(contents)
    path = draw(paths | st.text(max_size=10))
    start = draw(st.integers(1, 10**6))
    return Chunk(
        id=chunk_id(path, "symbol", content),
        path=path,
        start_line=start,
        end_line=start + content.count("\n"),
        language=draw(languages),
        content=content,
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(chunks(), max_size=6))
def test_a_block_reads_back_as_the_chunks_it_was_written_from(given_chunks: list[Chunk]) -> None:
    text = format_block(given_chunks)
    assert parse_block(text) == given_chunks
    assert format_block(parse_block(text)) == text
    assert bool(text) == bool(given_chunks)


def test_the_block_is_written_as_specified() -> None:
    first = Chunk("ctx_0000000a", "src/Api.cs", 3, 4, "csharp", "class Api\n{")
    second = Chunk("ctx_0000000c", "README.md", 9, 11, "markdown", "```ts\nx\n```")
    assert format_block([first, second]) == (
        "[CONTEXT]\n"
        "\n"
        "=== CHUNK 1 ===\n"
        "Id: ctx_0000000a\n"
        "Path: src/Api.cs\n"
        "Lines: 3-4\n"
        "Language: csharp\n"
        "```csharp\n"
        "class Api\n"
        "{\n"
        "```\n"
        "\n"
        "=== CHUNK 2 ===\n"
        "Id: ctx_0000000c\n"
        "Path: README.md\n"
        "Lines: 9-11\n"
        "Language: markdown\n"
        "````markdown\n"
        "```ts\n"
        "x\n"
        "```\n"
        "````\n"
        "\n"
    )


def test_the_id_depends_on_path_symbol_and_content_and_on_nothing_else() -> None:
    one = chunk_id("a.py", "f", "x = 1")
    assert one == chunk_id("a.py", "f", "x = 1")
    assert one.startswith("ctx_") and len(one) == 12
    others = [chunk_id("b.py", "f", "x = 1"), chunk_id("a.py", "g", "x = 1")]
    others += [chunk_id("a.py", "f", "x = 2"), chunk_id("a.pyf", "", "x = 1")]
    assert len({one, *others}) == 5


def test_a_chunk_that_cannot_be_written_is_refused_and_a_path_is_quoted() -> None:
    for end, language, why in ((2, "python", "1-2"), (1, "py thon`", "language")):
        with pytest.raises(ValueError, match=why):
            format_block([Chunk("ctx_00000000", "a.py", 1, end, language, "one line")])
    chunk = Chunk("ctx_0000000a", "a\nLines: 9-9", 1, 1, "python", "x")
    text = format_block([chunk])
    assert 'Path: "a\\nLines: 9-9"\n' in text
    assert parse_block(text) == [chunk]
