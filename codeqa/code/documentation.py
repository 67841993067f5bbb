"""What a definition says of itself: its doc comment, and the first sentence of that."""

from __future__ import annotations

import re
import textwrap

from codeqa.context.statements import COMMENT_LINE
from codeqa.types import Unit

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
