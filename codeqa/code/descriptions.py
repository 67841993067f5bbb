"""A definition in Markdown: what it is called, where it stands, what it says of itself."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from codeqa.context.statements import COMMENT_LINE
from codeqa.text.doc_comment import inline
from codeqa.text.markdown import cite, code_span, joined
from codeqa.types import TEXT_KINDS, Unit

SENTENCE_CHARACTERS = 140
_SENTENCE = re.compile(r"(.+?[.!?])(?=\s+[A-Z`(]|\s*$)", re.DOTALL)
_RULE = re.compile(r"\s*([=\-~^*+#_.:])\1{2,}\s*")
_COMMENT_MARKS = re.compile(r"^\s*(?:///?!?|/\*\*?|\*/|\*(?!\w)|#+|--+|;+|\"\"\"|'''|%+)?\s?")


def first_sentence(text: str) -> str:
    """The first sentence of a doc comment on one line, '' when it has none."""
    lines = text.strip().split("\n\n", 1)[0].split("\n")
    paragraph = " ".join(" ".join(line for line in lines if not _RULE.fullmatch(line)).split())
    match = _SENTENCE.match(paragraph)
    sentence = match[1] if match else paragraph
    return textwrap.shorten(sentence, SENTENCE_CHARACTERS, placeholder=" …")


def leading_doc(unit: Unit) -> str:
    """The doc comment; of a file's head only one that stands before all code there.

    A comment further down speaks about the line below it rather than about the file.
    """
    if unit.kind != "module" or unit.signature:
        return unit.doc_comment
    doc = doc_lines(unit)
    for line in unit.source_code.split("\n"):
        bare = line.strip()
        if bare and doc and (is_doc(line, doc) or bare.lstrip("rRuU")[:3] in ('"""', "'''")):
            return unit.doc_comment
        if bare and not COMMENT_LINE.match(line) and not bare.startswith(("package ", "<?php")):
            return ""
    return ""


def doc_lines(unit: Unit) -> set[str]:
    """The lines of its doc comment, each with single spaces."""
    return {" ".join(line.split()) for line in unit.doc_comment.split("\n")} - {""}


def is_doc(line: str, doc: set[str]) -> bool:
    """Whether a line of code is one of the lines `doc`, or an empty line of a comment."""
    plain = " ".join(line.split())
    bare = " ".join(_COMMENT_MARKS.sub("", line).rstrip("*/\"' \r").split())
    return bare in doc or plain in doc or (not bare and plain[:1] in tuple("*/#\"'"))


def cite_unit(unit: Unit) -> str:
    """Where a unit stands."""
    return cite(unit.path, unit.start_line, unit.end_line)


def unit_title(unit: Unit) -> str:
    """What a unit is called; the head of a file is called as its file."""
    if unit.kind in TEXT_KINDS:
        return inline(" ".join((unit.qualified_name or unit.name or unit.path).split()))
    if unit.kind == "module" and unit.signature == "":
        return code_span(unit.path)
    return code_span(unit.qualified_name or unit.name)


def unit_item(unit: Unit, note: str = "") -> str:
    """An item of a list that is one unit, in a line: its title, place and first sentence."""
    told = inline(first_sentence(leading_doc(unit)))
    if not told and unit.kind in TEXT_KINDS and unit.start_line == unit.end_line:
        told = code_span(textwrap.shorten(unit.source_code, 80, placeholder=" …"))
    title = unit_title(unit)
    called = "" if title == code_span(unit.path) else f"{title} "  # the place says the path
    return f"- {called}{cite_unit(unit)}{f': {told}' if told else ''}{note}"


def bullet_list(title: str, items: Iterable[str], more: int = 0, note: str = "") -> str:
    """`items` below their title, '' for none; `more` are left out, `note` says which."""
    lines = "\n".join(items)
    left = f"\n- and {more:,} more{note}" if more else ""
    return joined([title, f"{lines}{left}"]) if lines else ""
