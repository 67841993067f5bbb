"""The pure parts of an answer: Markdown of foreign text, excerpts, citations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from codeqa.chat.citations import find_citations
from codeqa.chat.values import Citation
from codeqa.code.descriptions import first_sentence, leading_doc
from codeqa.quoted import (
    LINES_SHOWN,
    WHOLE_LINES,
    Finding,
    QuotedEvidence,
    excerpt,
    quoted_answer,
    whole_unit,
)
from codeqa.search.query import parse_query
from codeqa.text.doc_comment import prose
from codeqa.text.markdown import block_quote, cite, code_block, code_span, escape, pieces
from codeqa.text.tokens import stem
from codeqa.types import Hit, Unit

NASTY = [
    "```", "````", "~~~", "\n\n", "\n", "> ", "# ", "- ", "1. ", "    ",
    "<script>alert(1)</script>", "[x](http://evil.example/)", "![x](http://evil.example/i.png)",
    "<img src=x>", "`", "``", "*", "_", "=====", "-----", ".. note::", ":meth:`x`", "[a.py:1-2]",
    "\u202e", "\x00", "\r\n", "\t", "|", "&lt;", "<http://evil.example>", "===\n",
    "[ref]: http://evil.example",
]  # fmt: skip
foreign = st.lists(st.sampled_from(NASTY) | st.text(max_size=8), max_size=12).map("".join)
markdown = MarkdownIt("commonmark", {"html": True})


def tokens_of(text: str) -> list[str]:
    found = []
    for token in markdown.parse(text):
        found.append(token.type)
        found += [child.type for child in token.children or []]
    return found


@settings(deadline=None)
@given(foreign)
def test_quoted_prose_stays_in_its_quote_and_brings_no_markup_of_its_own(text: str) -> None:
    told = prose(text)
    if not told.strip():
        return
    parsed = markdown.parse(block_quote(told) + "\n\nafter\n")
    depth = 0
    for token in parsed:
        depth += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if depth == 0 and token.type == "inline":
            assert token.content == "after"
    kinds = set(tokens_of(block_quote(told)))
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr"}


@settings(deadline=None)
@given(foreign)
def test_a_code_block_holds_everything_that_is_put_into_it(text: str) -> None:
    parsed = markdown.parse(code_block(text, "python") + "\n\nafter\n")
    kinds = [token.type for token in parsed]
    assert kinds == ["fence", "paragraph_open", "inline", "paragraph_close"]


@settings(deadline=None)
@given(foreign)
def test_a_code_span_is_one_code_span(text: str) -> None:
    inside = [token for token in tokens_of(f"a {code_span(text)} b") if token != "inline"]
    assert inside == ["paragraph_open", "text", "code_inline", "text", "paragraph_close"]


@settings(deadline=None)
@given(foreign)
def test_escaped_text_holds_no_citation_and_no_markup(text: str) -> None:
    assert find_citations(escape(text)) == [] or "\n" in text or "\\" in text
    line = escape(" ".join(text.split()))
    kinds = set(tokens_of("a " + line))
    assert kinds <= {"paragraph_open", "inline", "text", "paragraph_close", "text_special"}


@given(foreign)
def test_pieces_join_to_the_text_and_are_short(text: str) -> None:
    found = list(pieces(text * 20))
    assert "".join(found) == text * 20
    assert all(0 < len(piece) <= 260 for piece in found)


def test_prose_reads_like_the_doc_comment_without_its_machinery() -> None:
    doc = (
        "Register a rule with :meth:`~flask.Flask.route`, see ``url_for``.\n"
        "More *text*.\n\n.. versionadded:: 0.2\n   The ``x`` thing.\n\n"
        "Example::\n\n    @app.route('/')\n    def x(): ...\n\n- one\n  more\n- two\n"
    )
    assert prose(doc) == (
        "Register a rule with `flask.Flask.route`, see `url_for`. More \\*text\\*.\n\n"
        "Example:\n\n"
        "```\n@app.route('/')\ndef x(): ...\n```\n\n"
        "- one more\n- two"
    )


def test_what_was_typed_into_an_interpreter_keeps_its_lines() -> None:
    doc = "Sum.\n\nExamples\n========\n\n>>> total([1,\n...        2])\n3\n\nMore.\n"
    typed = "```pycon\n>>> total([1,\n...        2])\n3\n```"
    assert prose(doc) == f"Sum.\n\n**Examples**\n\n{typed}\n\nMore."


def test_links_that_the_text_defines_itself_read_as_their_text() -> None:
    doc = "A wrapper around [Jinja] and [x].\n\n[jinja]: https://example.org/\n"
    assert prose(doc) == "A wrapper around Jinja and \\[x\\]."


def make_unit(source: str, *, signature: str = "", doc: str = "", kind: str = "function") -> Unit:
    lines = 101, 101 + source.count("\n")
    named = {"signature": signature, "doc_comment": doc}
    return Unit("src/a.py", "python", kind, "f", "f", source, *lines, **named)


def long_function() -> Unit:
    body = [f"    step_{n} = prepare({n})" for n in range(40)]
    body[25] = "    session.refresh(cookie)"
    body[26] = "    return cookie"
    source = (
        '@decorated\ndef f(a,\n      b):\n    """Do it.\n\n    At length.\n    """\n'
        + "\n".join(body)
    )
    return make_unit(source, signature="def f(a,\n      b)", doc="Do it.\n\nAt length.")


def test_the_excerpt_is_the_declaration_and_the_lines_that_matter() -> None:
    unit = long_function()
    shown = excerpt(unit, ["cookie", "refresh"], 12)
    assert shown is not None
    told = shown.code.split("\n")
    assert told[:4] == ["@decorated", "def f(a,", "      b):", "    … 26 lines (104-129)"]
    assert len(told) - 3 <= 12
    assert told[told.index("    session.refresh(cookie)") + 1] == "    return cookie"
    assert unit.source_code.split("\n")[shown.end - 101] == told[-1]
    assert shown.start == 101
    shown = excerpt(unit, ["nothing"], 12)
    assert shown is not None
    assert shown.code.split("\n")[3:5] == ["    … 4 lines (104-107)", "    step_0 = prepare(0)"]


def test_an_excerpt_is_whole_statements() -> None:
    source = (
        "def f(rows):\n    total = 0\n    # All of them,\n    # one by one.\n    for row in rows:\n"
        "        if row:\n            total += row.cookie\n        else:\n            total += 1\n"
        "    other = {\n        'a': 1,\n    }\n" + "    step()\n" * 20
    )
    shown = excerpt(make_unit(source.rstrip(), signature="def f(rows)"), ["cookie"])
    assert shown is not None
    assert "    for row in rows:\n        if row:\n            total += row.cookie\n" in shown.code
    assert ("other = {" in shown.code) == ("        'a': 1,\n    }" in shown.code)
    assert shown.code.endswith("\n    step()"), "what a function comes to is its last statement"


def test_of_a_class_without_a_word_of_the_question_the_declaration_is_shown() -> None:
    source = "class A:\n    x = 1\n    y = 2"
    shown = excerpt(make_unit(source, signature="class A", kind="class"), ["z"])
    assert shown is not None and (shown.code, shown.end) == ("class A:", 101)
    shown = excerpt(make_unit(source, signature="class A", kind="class"), ["y"])
    assert shown is not None and shown.code == source


def test_an_enum_says_its_values_and_what_it_has() -> None:
    source = "enum Color:\n    # Seen.\n    RED = 1\n    BLUE = 2\n\n    def mixed(self, other):\n"
    source += "\n".join(f"        step_{n}(other)" for n in range(WHOLE_LINES))
    whole = make_unit(source, signature="enum Color", kind="enum")
    whole = replace(whole, name="Color")
    found = QuotedEvidence(
        parse_query("which colors?"),
        findings=(Finding(Hit(whole, 1.0), members=("mixed",)),),
    )
    text = "".join(quoted_answer(found))
    assert "Members: `RED`, `BLUE`, `mixed`" in text


def test_a_declaration_is_shown_as_it_is_written() -> None:
    source = "# told\n@decorated\ndef f(\n    a,\n    b,\n):\n    return a"
    shown = excerpt(make_unit(source, signature="def f( a, b, )", doc="told"), ["a"])
    assert shown is not None and shown.code == source.removeprefix("# told\n")
    many = "def f(\n" + "".join(f"    a{n},\n" for n in range(30)) + "):\n    return a1"
    shown = excerpt(make_unit(many, signature="def f( …)"), ["a1"])
    assert shown is not None
    assert shown.code.endswith("    a9,\n    … 19 lines (112-130)\n    a29,\n):\n    return a1")


@pytest.mark.parametrize(
    ("source", "doc", "expected"),
    [
        ('"""About it."""\nimport a', "About it.", "About it."),
        ("// Copyright\n\n// Package a is it.\npackage a", "Package a is it.", "Package a is it."),
        ("import a\n\n# For old callers.\nx = a", "For old callers.", ""),
        ("import a", "", ""),
    ],
)
def test_a_file_is_told_by_a_comment_before_its_code(source: str, doc: str, expected: str) -> None:
    assert leading_doc(make_unit(source, doc=doc, kind="module")) == expected


@pytest.mark.parametrize(
    ("asked", "written"),
    [("saving", "save_session"), ("saved", "saves"), ("subdivision", "subdivides"),
     ("Speicherung", "speichern"), ("guardar", "guardado")],
)  # fmt: skip
def test_forms_of_a_word_have_their_stem_in_common(asked: str, written: str) -> None:
    assert stem(asked.lower()) in written


def test_a_comment_that_ends_a_function_is_no_statement_of_it() -> None:
    source = "def f(a):\n" + "    go(a)\n" * 30 + "    # the end of a"
    shown = excerpt(make_unit(source, signature="def f(a)"), ["a"])
    assert shown is not None and shown.code.endswith("go(a)")


def answer(question: str, unit: Unit) -> str:
    finding = Finding(Hit(unit, 1.0))
    evidence = QuotedEvidence(query=parse_query(question), findings=(finding,))
    return "".join(quoted_answer(evidence))


def test_of_many_long_definitions_the_best_get_the_most_room_and_all_of_them_some() -> None:
    source = "def f():\n" + "    go()\n" * 300 + "    bake(oven)\n    end()"
    hits = [Hit(make_unit(source, signature="def f()"), 1.0)] * 9
    query = parse_query("what happens to the oven?")
    found = QuotedEvidence(query, findings=tuple(map(Finding, hits[:6])), others=tuple(hits[6:]))
    code, _, further = "".join(quoted_answer(found)).partition("### Also relevant")
    sizes = [len(block.split("\n")) for block in code.split("```")[1::2]]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] >= 40 and sizes[-1] >= 5
    assert sum(sizes) <= LINES_SHOWN + 6 * 10 and code.count("bake(oven)") == 6
    assert further.count("\n  - [src/a.py:402] `bake(oven)`") == 3


def test_comments_alone_are_quoted_rather_than_shown_as_lines() -> None:
    unit = make_unit("# f does\n" * WHOLE_LINES, kind="chunk")
    assert excerpt(unit, ["f"]) is None
    assert "> f does f does" in answer("what does f do", unit)


def test_of_a_long_doc_comment_the_paragraph_about_the_question_is_quoted() -> None:
    paragraphs = [f"It tells of {n}, at some length, and then some more of it." for n in range(30)]
    paragraphs[19] = "```\nthe oven()\n\nthe oven explodes()\n```"
    paragraphs[20] = "When the oven explodes, the cook is told."
    source = "def f():\n" + "    go()\n" * WHOLE_LINES
    unit = make_unit(source.rstrip(), signature="def f()", doc="\n\n".join(paragraphs))
    assert "> …\n>\n> When the oven explodes" in answer("what happens when the oven explodes", unit)
    assert "explodes" not in answer("what happens at length", unit)


def test_a_short_unit_is_shown_whole() -> None:
    shown = whole_unit(make_unit("    def f():\n        return 1"))
    assert shown is not None
    assert (shown.start, shown.end, shown.code) == (101, 102, "def f():\n    return 1")
    assert whole_unit(long_function(), 40) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Do it. Then more.", "Do it."),
        ("Reads e.g. a file\nof lines.", "Reads e.g. a file of lines."),
        ("", ""),
        ("No stop\n\nSecond", "No stop"),
    ],
)
def test_the_first_sentence_of_a_doc_comment(text: str, expected: str) -> None:
    assert first_sentence(text) == expected


def test_citations_are_found_in_prose_and_not_in_code() -> None:
    text = (
        "See [src/a.py:1-2] and [app/[id]/page.tsx:7].\n"
        "```python\n[src/b.py:1-2]\n```\n"
        "> ````\n> [src/c.py:1-2]\n> ```\n> ````\n"
        "`[src/d.py:1-2]` [src/a.py:1-2] [x](y) [not one]\n"
    )
    assert find_citations(text) == [
        Citation("src/a.py", 1, 2),
        Citation("app/[id]/page.tsx", 7, 7),
    ]


@pytest.mark.parametrize(
    "path", ["a.py", "src/__init__.py", "app/[id]/page.tsx", "a b (copy).py", "x:1.py", "ä-漢.rs"]
)
def test_a_citation_of_any_usual_path_reads_back(path: str) -> None:
    text = f"See {cite(path, 3, 9)} and {cite(path, 4, 4)}."
    assert find_citations(text) == [Citation(path, 3, 9), Citation(path, 4, 4)]


@pytest.mark.parametrize(
    "path",
    ["a`b`.py", "``` [a.py:1-2].py", "[a.py:1-2] x.py", "k [b.py:1", "<img src=x>.js",
     "[a](mailto:x).py", "]a[.py"],
)  # fmt: skip
def test_a_path_that_could_be_read_as_something_else_is_code_and_no_citation(path: str) -> None:
    text = f"See {cite(path, 3, 9)}."
    assert find_citations(text) == []
    assert set(tokens_of(text)) <= {
        "paragraph_open",
        "inline",
        "text",
        "code_inline",
        "paragraph_close",
    }
    assert path in markdown.parseInline(text)[0].children[1].content
