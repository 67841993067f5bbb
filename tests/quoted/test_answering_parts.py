"""The pure parts of an answer: Markdown of foreign text, excerpts, citations."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from codeqa.chat.citations import find_citations
from codeqa.chat.events import Citation
from codeqa.code.descriptions import first_sentence, leading_doc
from codeqa.quoted import QuotedEvidence, quoted_answer
from codeqa.quoted.condense import BODIES, condensed
from codeqa.quoted.evidence import Finding
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
    # What was typed into an interpreter keeps its lines.
    doc = "Sum.\n\nExamples\n========\n\n>>> total([1,\n...        2])\n3\n\nMore.\n"
    typed = "```pycon\n>>> total([1,\n...        2])\n3\n```"
    assert prose(doc) == f"Sum.\n\n**Examples**\n\n{typed}\n\nMore."
    # Links that the text defines itself read as their text.
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
    shown = condensed(long_function(), ["cookie", "refresh"], 8).split("\n")
    assert shown[0].startswith("```python src/a.py:101-")
    assert shown[1:4] == ["@decorated", "def f(a,", "      b):"]
    at = shown.index("    session.refresh(cookie)")
    assert shown[at + 1] == "    return cookie" and "    step_2 = prepare(2)" not in shown
    gap = next(line for line in shown if line.startswith("    … "))
    assert re.fullmatch(r"    … \d+ lines \(\d+-\d+\)", gap)
    begun = condensed(long_function(), ["nothing"], 8).split("\n")
    assert begun[1:4] == shown[1:4] and "    return cookie" in begun  # how it ends


def test_an_excerpt_is_whole_statements() -> None:
    source = (
        "def f(rows):\n    total = 0\n    # All of them,\n    # one by one.\n    for row in rows:\n"
        "        if row:\n            total += row.cookie\n        else:\n            total += 1\n"
        "    other = {\n        'a': 1,\n    }\n" + "    step()\n" * 60
    )
    shown = condensed(make_unit(source.rstrip(), signature="def f(rows)"), ["cookie"], 8)
    assert "    for row in rows:\n        if row:\n            total += row.cookie\n" in shown
    assert ("other = {" in shown) == ("        'a': 1,\n    }" in shown)
    assert shown.count("step()") < 60


def test_a_file_is_told_by_a_comment_before_its_code() -> None:
    for source, doc, expected in (
        ('"""About it."""\nimport a', "About it.", "About it."),
        ("// Copyright\n\n// Package a is it.\npackage a", "Package a is it.", "Package a is it."),
        ("import a\n\n# For old callers.\nx = a", "For old callers.", ""),
        ("import a", "", ""),
    ):
        assert leading_doc(make_unit(source, doc=doc, kind="module")) == expected


def test_forms_of_a_word_have_their_stem_in_common() -> None:
    for asked, written in (
        ("saving", "save_session"), ("saved", "saves"), ("subdivision", "subdivides"),
        ("Speicherung", "speichern"), ("guardar", "guardado"),
    ):  # fmt: skip
        assert stem(asked.lower()) in written


def answer(question: str, unit: Unit) -> str:
    finding = Finding(Hit(unit, 1.0))
    evidence = QuotedEvidence(query=parse_query(question), findings=(finding,))
    return "".join(quoted_answer(evidence))


def test_of_many_long_definitions_the_best_get_the_most_room_and_all_of_them_some() -> None:
    source = "def f():\n" + "    go_on(with_this, and_that)\n" * 300 + "    bake(oven)\n    end()"
    hits = [Hit(make_unit(source, signature="def f()"), 1.0)] * 9
    query = parse_query("what happens to the oven?")
    found = QuotedEvidence(query, findings=tuple(map(Finding, hits[:6])), others=tuple(hits[6:]))
    code, _, further = "".join(quoted_answer(found)).partition("**Also relevant**")
    sizes = [len(block.split("\n")) - 2 for block in code.split("```")[1::2]]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == len(BODIES)
    assert all(size <= most + 1 for size, most in zip(sizes, BODIES, strict=True))  # with a mark
    assert code.count("bake(oven)") == len(BODIES) and further.count("- `f` [src/a.py:") == 3
    whole = "".join(quoted_answer(replace(found, whole_code=True)))
    assert whole.count("go_on(with_this") == 300 * len(BODIES)


def test_what_one_definition_leaves_of_the_room_the_next_ones_have() -> None:
    short = make_unit("def bake():\n    return 1", signature="def bake()")
    source = "def f():\n" + "    go_on(with_this, and_that)\n" * 300 + "    bake(oven)\n    end()"
    hits = [Hit(short, 1.0), Hit(make_unit(source, signature="def f()"), 1.0)]
    found = QuotedEvidence(parse_query("the oven?"), findings=tuple(map(Finding, hits)))
    blocks = "".join(quoted_answer(found)).split("```")[1::2]
    assert len(blocks[1].split("\n")) - 3 == sum(BODIES[:2]) - 3  # a mark takes one


def test_each_cut_of_a_definition_is_marked_with_its_lines() -> None:
    source = "def f():\n" + "    go()\n" * 40 + "    bake(oven)\n" + "    go()\n" * 40 + "    end()"
    told = answer("the oven?", make_unit(source, signature="def f()"))
    shown, at = set[int](), 100
    for line in told.split("```")[1].split("\n")[1:-1]:
        if mark := re.fullmatch(r"\s*… \d+ lines? \((\d+)(?:-(\d+))?\)", line):
            assert int(mark[1]) == at + 1
            at = int(mark[2] or mark[1])
        else:
            at += 1
            shown.add(at)
            assert source.split("\n")[at - 101] == line
    assert at == 101 + source.count("\n") and 142 in shown


def test_a_definition_is_told_by_what_its_comment_says_of_the_question() -> None:
    doc = "Bakes it.\n\nAt length. The oven of the baker stays warm.\n\n@param oven: hot."
    unit = make_unit("def f():\n    go()\n    go()", signature="def f()", doc=doc)
    told = answer("which oven does the baker use", unit)
    assert ": Bakes it. The oven of the baker stays warm.\n```" in told and "length" not in told


def test_a_short_unit_is_shown_whole() -> None:
    shown = condensed(make_unit("    def f():\n        return 1"), ["x"], 8)
    assert shown == "```python src/a.py:101-102\ndef f():\n    return 1\n```"
    assert "…" in condensed(long_function(), ["cookie"], 8)
    assert condensed(make_unit(f"x = '{'y' * 100_000}'"), ["x"], 8) == "", "data of one line"


def test_the_first_sentence_of_a_doc_comment() -> None:
    for text, expected in (
        ("Do it. Then more.", "Do it."),
        ("Reads e.g. a file\nof lines.", "Reads e.g. a file of lines."),
        ("", ""),
        ("No stop\n\nSecond", "No stop"),
    ):
        assert first_sentence(text) == expected


def test_citations_are_found_in_prose_and_not_in_code() -> None:
    text = (
        "See [src/a.py:1-2] and [app/[id]/page.tsx:7].\n"
        "```python\n[src/b.py:1-2]\n```\n"
        "> ````\n> [src/c.py:1-2]\n> ```\n> ````\n"
        "`[src/d.py:1-2]` [src/a.py:1-2] [x](y) [not one]\n"
    )
    assert find_citations(text) == [Citation("src/a.py", 1, 2), Citation("app/[id]/page.tsx", 7, 7)]


def test_a_citation_of_any_usual_path_reads_back() -> None:
    for path in (
        "a.py",
        "src/__init__.py",
        "app/[id]/page.tsx",
        "a b (copy).py",
        "x:1.py",
        "ä-漢.rs",
    ):
        text = f"See {cite(path, 3, 9)} and {cite(path, 4, 4)}."
        assert find_citations(text) == [Citation(path, 3, 9), Citation(path, 4, 4)]


def test_a_path_that_could_be_read_as_something_else_is_code_and_no_citation() -> None:
    for path in (
        "a`b`.py", "``` [a.py:1-2].py", "[a.py:1-2] x.py", "k [b.py:1", "<img src=x>.js",
        "[a](mailto:x).py", "]a[.py",
    ):  # fmt: skip
        text = f"See {cite(path, 3, 9)}."
        assert find_citations(text) == []
        kinds = {"paragraph_open", "inline", "text", "code_inline", "paragraph_close"}
        assert set(tokens_of(text)) <= kinds
        assert path in markdown.parseInline(text)[0].children[1].content
