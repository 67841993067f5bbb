"""The messages of a turn: what stands where, what is left out, and what reads back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from block_grammar import parse_block
from chat_kit import gathered
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeqa.chat.messages import (
    HISTORY_CHARACTERS,
    as_sent,
    build_messages,
    count_tokens,
    shrink,
    trim_history,
)
from codeqa.chat.reader import Reader
from codeqa.chat.values import NO_CONTEXT, Gathered, ModelRequest
from codeqa.context.block import unit_chunk
from codeqa.context.packing import pack
from codeqa.errors import UsageError
from codeqa.llm.client import Model
from codeqa.llm.providers import ModelAddress
from codeqa.parsing import parse_file
from codeqa.prompts import render_prompt
from codeqa.routing.mode import read_mode
from codeqa.types import MODES, Chunk, Exchange
from tests.kit.openai_server import openai_server

CODE = "class Api\n{\n    void Run() { }\n}"
BLOCK = pack([Chunk("ctx_0000000a", "src/Api.cs", 3, 6, "csharp", CODE)], 12_000)


def asked(question: str = "What runs?", **fields: Any) -> Gathered:
    return gathered(question, **{"block": BLOCK, "searched": True, **fields})


def test_the_messages_are_rules_then_history_then_the_question_with_the_block() -> None:
    history = (Exchange("And before?", "It *was* so."),)
    messages = build_messages(asked(history=history))
    assert messages[:3] == [
        {"role": "system", "content": render_prompt("chat_system")},
        {"role": "user", "content": "And before?"},
        {"role": "assistant", "content": "It *was* so."},
    ]
    (last,) = messages[3:]
    assert last["role"] == "user"
    instruction, block = last["content"]
    assert instruction == {
        "type": "text",
        "text": "[MODE: explain]\n[INSTRUCTION]\nWhat runs?\n\n"
        + render_prompt("mode_explain", question="").strip()
        + "\n",
    }
    assert block == {"type": "text", "text": BLOCK.text}


def test_each_mode_asks_for_something_of_its_own_below_the_question_as_it_was_typed() -> None:
    asked_for, question = set(), "what is $question {x} $$?"
    for mode in MODES:
        text = as_sent(build_messages(asked(question, mode=mode)))[-1].parts[0]
        assert text.startswith(f"[MODE: {mode}]\n[INSTRUCTION]\n{question}\n\n")
        asked_for.add(text.partition(question)[2])
    assert len(asked_for) == len(MODES)


def test_without_a_context_the_tag_is_to_be_suggested_or_other_words_after_a_search() -> None:
    for searched, prompt in ((False, "no_context"), (True, "nothing_found")):
        (instruction,) = build_messages(asked(block=NO_CONTEXT, searched=searched))[-1]["content"]
        assert "What runs?" in instruction["text"]
        assert render_prompt(prompt).strip() in instruction["text"]
        assert ("@codebase" in instruction["text"]) is not searched


# History.


def test_a_newest_turn_that_is_too_long_alone_is_cut_and_says_so() -> None:
    answer = "\n".join(f"line {number}" for number in range(2_000))
    (kept,) = trim_history([Exchange("before", "x"), Exchange("long?", answer)])
    assert kept.question == "long?"
    assert kept.answer.endswith("\n[…]")
    assert answer.startswith(kept.answer.removesuffix("\n[…]"))
    assert HISTORY_CHARACTERS - 20 < len(kept.question + kept.answer) <= HISTORY_CHARACTERS


texts = st.text(max_size=40) | st.integers(0, 9_000).map(lambda n: "x\n" * (n // 2))


@given(st.lists(st.builds(Exchange, texts, texts), max_size=9))
def test_a_history_keeps_its_limits_and_is_a_run_of_the_newest_turns(
    history: list[Exchange],
) -> None:
    kept = trim_history(history)
    assert sum(len(e.question) + len(e.answer) for e in kept) <= HISTORY_CHARACTERS
    assert bool(kept) == bool(history)
    assert kept[:-1] == history[len(history) - len(kept) : -1]


# Modes.


def test_the_user_alone_chooses_the_mode_and_no_words_of_a_question_do() -> None:
    assert read_mode("/LOCATE\n the cache", "plan") == ("locate", "the cache")
    assert read_mode("where is it?", "plan") == ("plan", "where is it?")
    for typed in (
        "where is the session opened?", "please fix the typo in app.py", "",
        "/etc/passwd is read where?", "/planner", "and /plan later",
    ):  # fmt: skip
        assert read_mode(typed) == ("explain", typed)
    with pytest.raises(UsageError, match="locate"):
        read_mode("x", "sing")


# Less, when it was too long.


def numbered(path: str, count: int) -> Chunk:
    content = "\n".join(f"line {number:04d} {'.' * 40}" for number in range(count))
    return Chunk("ctx_0000000b", path, 1, count, "python", content)


def test_shrinking_halves_the_block_drops_the_history_and_keeps_the_best() -> None:
    block = pack([numbered(f"{name}.py", 60) for name in "abc"], 12_000)
    less = shrink(asked(block=block, history=(Exchange("q", "a"),)))
    assert less.history == ()
    assert len(less.block.text) <= len(block.text) / 2
    assert less.block.chunks[0].path == "a.py"
    assert {c.path for c in less.block.dropped} >= {"c.py"}
    assert parse_block(less.block.text)
    # Of a small block the best chunk alone is kept.
    code = "\n".join(["x" * 150] * 2)
    chunks = [Chunk("ctx_0000000d", f"{name}.py", 1, 2, "python", code) for name in "ab"]
    less = shrink(asked(block=pack(chunks, 12_000)))
    assert [c.path for c in less.block.chunks] == ["a.py"]
    assert [c.path for c in less.block.dropped] == ["b.py"]


def test_a_block_that_cannot_be_halved_goes_without_the_history() -> None:
    one_line = pack([Chunk("ctx_0000000c", "a.py", 1, 1, "python", "x" * 5_000)], 12_000)
    for block in (NO_CONTEXT, one_line):
        less = shrink(asked(block=block, history=(Exchange("q", "a"),)))
        assert less.history == () and less.block is block


# Whatever the code contains.

NASTY = [
    "```", "````", "~~~", "=== CHUNK 1 ===", "[CONTEXT]", "[MODE: change]", "[INSTRUCTION]",
    "Id: ctx_00000000", "Path: x", "Lines: 1-1", "Language: c", "\x00", "\r", "\r\n", "\t", "\t\t",
    "\u202eabc", "\u2066x\u2069", "שלום", "مرحبا", "\u2028", "\x85", "\x0c", "\ufeff", "\u200b",
    "🎉", "e\u0301", "`" * 12, "\\", "\x1b[31m", "<|im_start|>system", "*/", "//", "\n", "\n\n",
]  # fmt: skip
TEMPLATES = {
    "src/Api.cs": "namespace N;\n\n/// <summary>\n/// @\n/// </summary>\nclass Api\n{\n"
    '    // @\n    string Run() { return @"@"; }\n}\n',
    "ui/app.ts": "// @\nexport class App {\n  /* @ */\n  run(): string {\n    return `@`;\n  }\n}\n"
    "export const f = (x: number) => {\n  // @\n  return x;\n};\n",
    "ui/main.scss": "// @\n$a: 1px;\n.card {\n  /* @ */\n  &:hover { color: red; }\n}\n",
    "docs/guide.md": "# Guide\n\n@\n\n## More\n\n```ts\n@\n```\n",
}
nasty = st.lists(
    st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    max_size=8,
).map("".join)


@st.composite
def repositories(draw: st.DrawFn) -> dict[str, str]:
    """Sources in four languages with foreign text wherever it can stand."""
    files = {}
    for path, template in TEMPLATES.items():
        parts = template.split("@")
        text = parts[0] + "".join(draw(nasty) + part for part in parts[1:])
        files[path] = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return files


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(repositories(), st.integers(300, 6_000), nasty)
def test_whatever_files_hold_the_block_reads_back_as_exactly_their_lines(
    files: dict[str, str], budget: int, question: str
) -> None:
    units = [u for path, text in files.items() for u in parse_file(path, text.encode()).units]
    chunks = [unit_chunk(unit) for unit in units]
    block = pack(chunks, budget)
    assert len(block.text) <= budget
    messages = build_messages(asked(question or "?", block=block))
    *parts, last = messages[-1]["content"]
    if not block.chunks:
        assert not parts
        return
    assert last["text"] == block.text
    # Exactly the chunks given: read back from what was sent, nothing more and nothing less.
    parsed = parse_block(last["text"])
    assert [(c.id, c.path, c.start_line, c.end_line, c.language, c.content) for c in parsed] == [
        (c.id, c.path, c.start_line, c.end_line, c.language, c.content) for c in block.chunks
    ]
    for chunk in parsed:
        lines = files[chunk.path].removeprefix("\ufeff").split("\n")
        assert chunk.content == "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


@pytest.mark.parametrize(
    ("window", "question", "block", "told", "cut"),
    [
        (4_096, "why?", 5_000, 1, False),  # the last turn, shortened
        (6_600, "why?", 12_000, 1, False),
        (32_000, "why?", 12_000, 3, False),
        (4_096, "why? " * 900, 6_000, 0, True),  # a long question takes room from the code
        (0, "why? " * 900, 12_000, 3, False),
    ],
)
def test_question_code_and_as_much_of_the_history_as_fits_the_window_are_sent(
    window: int, question: str, block: int, told: int, cut: bool
) -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(60))
    chunks = [Chunk(f"ctx_{n:08x}", f"{n}.py", 1, 60, "python", code) for n in range(20)]
    history = tuple(Exchange(f"question {n}?", f"{n} " * 1_300) for n in range(3))
    packed = pack(chunks, block)
    turn = asked(question, block=packed, history=history, window=window)
    tables = SimpleNamespace(by_ids=lambda ids: [])
    nothing_cited: Any = SimpleNamespace(files=None, tables=lambda: tables)
    with openai_server() as server, Model(ModelAddress(server.base_url, "m")) as model:
        pieces = list(Reader(model, nothing_cited).generate(turn))
    (request,) = (piece for piece in pieces if isinstance(piece, ModelRequest))
    _, *earlier, last = (message.parts for message in request.messages)
    assert not window or count_tokens(request.messages) <= window * 7 / 8
    assert question in last[0] and last[1].startswith(packed.text[:1_000])
    assert (len(last[1]) < len(packed.text)) == bool(request.warning) == cut
    assert [parts[0] for parts in earlier[::2]] == [f"question {n}?" for n in range(3)][3 - told :]
