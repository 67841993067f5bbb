"""A definition in a few lines: what its comment says, and the code that matters for a question."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from codeqa.code.descriptions import doc_lines, first_sentence, is_doc, leading_doc
from codeqa.context.statements import COMMENT_LINE, choose_lines, outlined, spans_of, statements
from codeqa.text import counted
from codeqa.text.doc_comment import inline, prose
from codeqa.text.markdown import block_quote, code_block
from codeqa.text.tokens import form_pattern, split_identifier
from codeqa.types import CLASS_KINDS, Unit

BODIES = (32, 12, 8, 6)
"""Lines of code of the definitions that are shown, what one leaves is for the next: of 25 questions
18 were answered at once from such a form, as from 225 lines, and 13 from one body of 30 lines."""
WHOLE = 48
"""The first of them is shown whole where it takes no more lines."""

LEAST_FOLD = 3
"""Lines that are left out together at least: a mark takes one itself."""

TELLING = 3
"""Sentences of a comment besides its first that are told where they hold words of the question."""

ENDS_WEIGHT = 0.05
"""Of a line that returns or raises, beside those that hold the question's words."""

LONGEST_LINE = 300
"""A unit with a longer line, which is data or machine-made, is not shown whole."""

_SENTENCES = re.compile(r"(\S.+?(?:[.!?](?=\s)|(?=\n\s*\n)|\Z))", re.DOTALL)

_TAGS = re.compile(
    r"(?m)^\s*(?:```|>>>|[@:]\w|\w+:\s*$|(?:Parameters|Returns|Raises|Examples?)\b:?\s*$)"
)

_INLINE_TAG = re.compile(r"\{@\w+ ([^{}]*)\}")
"""Where the sentences of a comment end, and code in one of Java."""

_RETURNS = re.compile(r"(?m)^\s*(?::returns?:|@returns?|Returns:?)\s+(.+(?:\n[^\n:@]+)?)")

_ENDS = re.compile(r"\s*(?:return|raise|throw|panic!?|yield|Err)\b")

_IMPORTS = re.compile(r"\s*(?:import|from|use|using|require|package|#include)\b")


def sentences_of(unit: Unit, words: Sequence[str]) -> str:
    """Join its comment's first sentence, those with most of `words`, and what it returns."""
    doc = leading_doc(unit)
    returns = _RETURNS.search(doc)
    prose, *_ = _TAGS.split(_INLINE_TAG.sub(r"`\1`", doc), maxsplit=1)
    first, *others = [" ".join(one.split()) for one in _SENTENCES.findall(prose)] or [""]
    held = [sum(1 for word in words if form_pattern(word).search(one.lower())) for one in others]
    telling = sorted(range(len(others)), key=lambda n: -held[n])[:TELLING]
    said = [
        first_sentence(first),
        *(others[n] for n in sorted(telling) if held[n] and len(others[n]) < 300),
    ]
    said += [first_sentence(f"Returns {returns[1]}")] if returns else []
    return inline(" ".join(dict.fromkeys(filter(None, said))))


def condensed(unit: Unit, words: Sequence[str], limit: int, whole: int = 0) -> str:
    """The unit as a block of code without its comment: all of it where that is at most `whole`
    lines, else `limit` lines, whole statements around those that hold `words`, return or raise, and
    what they lie in; of a class what it declares."""
    lines, first = unit.source_code.split("\n"), unit.start_line
    doc = doc_lines(unit)
    weights = weights_of(lines, words)
    long = {n for n, line in enumerate(lines) if len(line) > LONGEST_LINE}
    hidden = set(long)
    for n, line in enumerate(lines):
        said = is_doc(line, doc) if doc and line.strip() else n - 1 in hidden
        if said:
            hidden.add(n)
    if unit.is_head:  # what a file imports answers nothing
        hidden |= {n for n, line in enumerate(lines) if _IMPORTS.match(line)}
    numbers = set(range(len(lines))) - hidden
    if len(numbers) > max(limit, whole):
        depths = [len(line) - len(line.lstrip()) for line in lines]
        inner = [depths[n] for n in numbers if depths[n] and lines[n].strip()]
        declared = min(inner, default=0) if unit.kind in CLASS_KINDS else -1
        for n, line in enumerate(lines):
            if _ENDS.match(line) or depths[n] == declared:
                weights[n] += ENDS_WEIGHT
        height = max(1, len(unit.signature.strip().split("\n")))
        begins = next((n for n in sorted(numbers) if lines[n].strip()), 0)
        head = numbers & set(range(begins, begins + height))
        costs = [limit + 1 if n in hidden else 0 if n in head else 1 for n in range(len(lines))]
        found = statements(unit.source_code, unit.language)
        spans = choose_lines(lines, found, weights, costs, limit - len(head)) if found else []
        chosen = {n for span in spans for n in range(*span)} - hidden
        numbers = chosen or set(sorted(numbers)[:limit])
    for end, start in pairwise((*sorted(numbers), len(lines))):
        if start - end <= LEAST_FOLD:
            numbers |= set(range(end, start)) - long
    spans = spans_of(numbers, lines)
    if not spans:
        return ""
    code = textwrap.dedent(outlined([line.rstrip("\r") for line in lines], spans, first))
    if (left := len(lines) - spans[-1][1]) > 0 and "".join(lines[-left:]).strip():
        code += (
            f"\n… {counted(left, 'line')} ({first + len(lines) - left}-{first + len(lines) - 1})"
        )
    place = f"{unit.path}:{first + spans[0][0]}-{first + spans[-1][1] - 1}"
    return code_block(code.strip("\n"), unit.language, place)


def text_of(unit: Unit, words: Sequence[str], room: int) -> str:
    """Quote a section of a document as prose, other text as code."""
    if unit.kind == "document":
        title = f"**{inline(unit.name)}**"
        told = f"{prose(unit.source_code)}\n\n".removeprefix(f"{title}\n\n").rstrip()
        return block_quote(told) if told else ""
    return condensed(unit, words, room)


def weights_of(lines: Sequence[str], words: Sequence[str]) -> list[float]:
    """Weigh each line: the question's words that it holds, each by its rarity.

    The parts of a name (`dispatch` of `dispatch_request`) count half, and so does a comment.
    """
    shares = {part: 0.5 for word in words for part in split_identifier(word) if len(part) > 2}
    shares.update(dict.fromkeys(words, 1.0))
    weights = [0.0] * len(lines)
    for word, share in shares.items():
        pattern = form_pattern(word)
        holding = [at for at, line in enumerate(lines) if pattern.search(line.lower())]
        for at in holding:
            told = share / 2 if COMMENT_LINE.match(lines[at]) else share
            weights[at] += told / len(holding) ** 0.5
    return weights
