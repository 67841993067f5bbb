from __future__ import annotations

from itertools import permutations

from block_grammar import parse_block
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeqa.context.block import chunk_id, unit_chunk
from codeqa.context.packing import pack
from codeqa.text.tokens import form_pattern
from codeqa.types import Chunk, Unit


def file_chunk(lines: list[str], start: int, end: int, path: str = "a.py") -> Chunk:
    content = "\n".join(lines[start - 1 : end])
    return Chunk(chunk_id(path, "s", content), path, start, end, "python", content)


@st.composite
def files_and_chunks(draw: st.DrawFn) -> tuple[dict[str, list[str]], list[Chunk]]:
    signs = st.characters(exclude_characters="\n", exclude_categories=["Cs"])
    line = st.sampled_from(["", "x = 1", "```", "=== CHUNK 1 ===", "\r", "y" * 300, "`" * 9])
    lines = st.lists(line | st.text(alphabet=signs, max_size=20), min_size=1, max_size=60)
    files = {path: draw(lines) for path in ("a.py", "dir/b.md")}
    chunks = []
    for _ in range(draw(st.integers(0, 8))):
        path = draw(st.sampled_from(sorted(files)))
        start = draw(st.integers(1, len(files[path])))
        end = draw(st.integers(start, len(files[path])))
        chunks.append(file_chunk(files[path], start, end, path))
    return files, chunks


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files_and_chunks(), st.integers(0, 4_000))
def test_a_packed_block_keeps_its_budget_its_lines_and_its_fences(
    given_files: tuple[dict[str, list[str]], list[Chunk]], budget: int
) -> None:
    files, chunks = given_files
    block = pack(chunks, budget)
    assert len(block.text) <= budget or block.text == ""
    parsed = parse_block(block.text)
    assert [c.id for c in parsed] == [c.id for c in block.chunks]
    assert len({c.id for c in parsed}) == len(parsed)
    for chunk in parsed:
        lines = files[chunk.path][chunk.start_line - 1 : chunk.end_line]
        assert chunk.content == "\n".join(lines)
    for one, other in permutations(parsed, 2):
        inside = other.start_line <= one.start_line and one.end_line <= other.end_line
        assert one.path != other.path or not inside
    # With room enough everything is packed whole.
    whole = pack(chunks, 1_000_000)
    assert whole.dropped == ()
    for chunk in chunks:
        assert any(
            kept.path == chunk.path
            and kept.start_line <= chunk.start_line
            and chunk.end_line <= kept.end_line
            for kept in whole.chunks
        )


def numbered(count: int) -> list[str]:
    return [f"line {number:04d} {'.' * 40}" for number in range(1, count + 1)]


def test_a_single_chunk_that_is_too_long_is_cut_after_a_line_and_says_so() -> None:
    lines = numbered(1_000)
    block = pack([file_chunk(lines, 5, 1_000)], 12_000)
    (chunk,) = block.chunks
    assert 11_000 < len(block.text) <= 12_000
    assert chunk.start_line == 5
    assert chunk.content == "\n".join(lines[4 : chunk.end_line])
    assert f"Lines: 5-{chunk.end_line}\n" in block.text


def test_one_huge_chunk_does_not_push_out_the_others() -> None:
    huge = file_chunk(numbered(1_000), 1, 1_000)
    small = [file_chunk(numbered(20), 1, 20, f"{name}.py") for name in "bcde"]
    block = pack([huge, *small], 12_000)
    assert [c.path for c in block.chunks] == ["a.py", "b.py", "c.py", "d.py", "e.py"]
    assert len(block.text) > 11_000, "what is left goes back to the chunk that was cut"


def test_a_chunk_that_does_not_fit_is_left_out_and_a_smaller_one_still_enters() -> None:
    chunks = [file_chunk(numbered(n), 1, n, f"{n}.py") for n in (90, 92, 80, 3)]
    block = pack(chunks, 11_000)
    assert [c.path for c in block.chunks] == ["90.py", "92.py", "3.py"]
    assert [c.path for c in block.dropped] == ["80.py"]


LONG_FUNCTION = [
    "def weave(threads):",
    '    """Weave."""',
    *(f"    first_{number} = prepare(threads, {number})" for number in range(300)),
    "    for thread in threads:",
    "        shuttle.throw(",
    "            thread,",
    "            twice=True,",
    "        )",
    *(f"    last_{number} = finish(threads, {number})" for number in range(300)),
]


def test_a_long_function_is_cut_at_statements_around_the_lines_that_matter() -> None:
    whole = file_chunk(LONG_FUNCTION, 1, len(LONG_FUNCTION))
    block = pack([whole], 3_000, words=[form_pattern("shuttle")])
    head, around = block.chunks
    assert head.content.startswith('def weave(threads):\n    """Weave."""')
    assert "\n".join(LONG_FUNCTION[302:307]) in around.content
    assert len(block.text) <= 3_000
    for chunk in block.chunks:
        lines = LONG_FUNCTION[chunk.start_line - 1 : chunk.end_line]
        assert chunk.content == "\n".join(lines)


def test_a_cut_never_ends_within_a_statement() -> None:
    lines = ["def f():", *(["    call(", "        one,", "        two,", "    )"] * 40)]
    for budget in range(400, 1_400, 90):
        (chunk,) = pack([file_chunk(lines, 1, len(lines))], budget).chunks
        assert chunk.content.endswith(("):", "    )"))


def test_contained_duplicates_are_dropped_and_neighbours_stay_apart() -> None:
    lines = numbered(60)
    chunks = [file_chunk(lines, *span) for span in ((1, 20), (21, 30), (3, 9), (21, 30))]
    block = pack(chunks, 12_000)
    assert [(c.start_line, c.end_line) for c in block.chunks] == [(1, 20), (21, 30)]
    assert block.dropped == ()
    holding = pack([file_chunk(lines, *span) for span in ((3, 9), (40, 50), (1, 20))], 9_000)
    assert [(c.start_line, c.end_line) for c in holding.chunks] == [(1, 20), (40, 50)]


def unit(lines: int, kind: str, head_end: int) -> Unit:
    source = "\n".join(numbered(lines))
    return Unit("a.py", "python", kind, "C", "C", source, 11, 10 + lines, head_end_line=head_end)


def test_a_long_class_enters_by_its_head_and_everything_else_whole() -> None:
    for lines, kind, end in (
        (81, "class", 30),
        (80, "class", 90),
        (200, "function", 210),
        (200, "document", 210),
    ):
        chunk = unit_chunk(unit(lines, kind, 30))
        assert (chunk.start_line, chunk.end_line) == (11, end)
        assert chunk.content == "\n".join(numbered(end - 10))
