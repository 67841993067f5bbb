"""Shorten a definition to what its comment says, and the code that matters for a question."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence, Set
from itertools import pairwise

from codeqa.code.descriptions import doc_lines, first_sentence, is_doc, leading_doc
from codeqa.context.statements import COMMENT_LINE, choose_lines, outlined, spans_of, statements
from codeqa.text import counted
from codeqa.text.doc_comment import inline, prose
from codeqa.text.markdown import block_quote, code_block
from codeqa.text.tokens import form_pattern, split_identifier
from codeqa.types import CLASS_KINDS, Unit

BODIES = (32, 12, 8, 6)
"""Lines of code of the definitions that are shown. The next one gets those that one leaves over: of
25 questions 18 were answered at once from this form, as from 225 lines, and 13 from one body of 30
lines."""
WHOLE_LINES = 48
"""The first of them is shown whole if it takes no more lines."""

LEAST_FOLD = 3
"""Lines that are left out together at least: a mark takes one itself."""

MOST_TELLING = 3
"""Sentences of a comment, besides its first, that are quoted if they hold words of the question."""

ENDS_WEIGHT = 0.05
"""Weight of a line that returns or raises; lines with words of the question weigh more."""

LONGEST_LINE = 300
"""A unit with a longer line, which is data or machine-made, is not shown whole."""

LONGEST_SENTENCE = 300
"""Characters of a further sentence that is quoted."""

_SENTENCES = re.compile(r"(\S.+?(?:[.!?](?=\s)|(?=\n\s*\n)|\Z))", re.DOTALL)
"""Matches the sentences of a comment."""

_TAGS = re.compile(
    r"(?m)^\s*(?:```|>>>|[@:]\w|\w+:\s*$|(?:Parameters|Returns|Raises|Examples?)\b:?\s*$)"
)

_INLINE_TAG = re.compile(r"\{@\w+ ([^{}]*)\}")
"""Code in a comment of Java."""

_RETURNS = re.compile(r"(?m)^\s*(?::returns?:|@returns?|Returns:?)\s+(.+(?:\n[^\n:@]+)?)")

_ENDS = re.compile(r"\s*(?:return|raise|throw|panic!?|yield|Err)\b")

_IMPORTS = re.compile(r"\s*(?:import|from|use|using|require|package|#include)\b")


def sentences_of(unit: Unit, words: Sequence[str]) -> str:
    """Join its comment's first sentence, those with most of `words`, and what it returns."""
    doc = leading_doc(unit)
    returns = _RETURNS.search(doc)
    text = _TAGS.split(_INLINE_TAG.sub(r"`\1`", doc), maxsplit=1)[0]
    first, *others = [" ".join(sentence.split()) for sentence in _SENTENCES.findall(text)] or [""]
    numbers = [_words_in(sentence, words) for sentence in others]
    best = sorted(range(len(others)), key=lambda n: -numbers[n])[:MOST_TELLING]
    sentences = [first_sentence(first)]
    best = [n for n in sorted(best) if numbers[n] and len(others[n]) < LONGEST_SENTENCE]
    sentences += [others[n] for n in best]
    if returns:
        sentences.append(first_sentence(f"Returns {returns[1]}"))
    return inline(" ".join(dict.fromkeys(filter(None, sentences))))


def _words_in(text: str, words: Sequence[str]) -> int:
    return sum(form_pattern(word).search(text.lower()) is not None for word in words)


def condensed(unit: Unit, words: Sequence[str], limit: int, whole: int = 0) -> str:
    """Return the unit as a block of code without its comment.

    It is whole if that takes at most `whole` lines. Else it has `limit` lines: whole statements
    around those that hold `words`, return or raise, and what they lie in; of a class what it
    declares.
    """
    lines, first = unit.source_code.split("\n"), unit.start_line
    long = {n for n, line in enumerate(lines) if len(line) > LONGEST_LINE}
    numbers = set(range(len(lines))) - _hidden(unit, lines, long)
    if len(numbers) > max(limit, whole):
        numbers = _chosen(unit, lines, numbers, words, limit)
    for end, start in pairwise(sorted(numbers) + [len(lines)]):
        if start - end <= LEAST_FOLD:
            numbers |= set(range(end, start)) - long
    spans = spans_of(numbers, lines)
    if not spans:
        return ""
    code = textwrap.dedent(outlined([line.rstrip("\r") for line in lines], spans, first))
    end = spans[-1][1]
    if "".join(lines[end:]).strip():
        left = counted(len(lines) - end, "line")
        code += f"\n… {left} ({first + end}-{first + len(lines) - 1})"
    place = f"{unit.path}:{first + spans[0][0]}-{first + end - 1}"
    return code_block(code.strip("\n"), unit.language, place)


def _hidden(unit: Unit, lines: Sequence[str], long: Set[int]) -> set[int]:
    """Return the indices of lines that are not shown: `long` ones, its comment, a file's imports.

    The blank lines after them are hidden too.
    """
    doc, hidden = doc_lines(unit), set(long)
    for n, line in enumerate(lines):
        if is_doc(line, doc) if doc and line.strip() else n - 1 in hidden:
            hidden.add(n)
    if unit.is_head:  # what a file imports answers nothing
        hidden.update(n for n, line in enumerate(lines) if _IMPORTS.match(line))
    return hidden


def _chosen(
    unit: Unit, lines: Sequence[str], numbers: Set[int], words: Sequence[str], limit: int
) -> set[int]:
    """Return those of the indices `numbers` that matter, about `limit` with the unit's head."""
    weights = weights_of(lines, words)
    depths = [len(line) - len(line.lstrip()) for line in lines]
    declared = -1
    if unit.kind in CLASS_KINDS:
        declared = min((depths[n] for n in numbers if depths[n] and lines[n].strip()), default=0)
    for n, line in enumerate(lines):
        if _ENDS.match(line) or depths[n] == declared:
            weights[n] += ENDS_WEIGHT
    height = max(1, len(unit.signature.strip().split("\n")))
    begins = next((n for n in sorted(numbers) if lines[n].strip()), 0)
    head = numbers & set(range(begins, begins + height))
    costs = [limit + 1] * len(lines)
    for n in numbers:
        costs[n] = 0 if n in head else 1
    parts = statements(unit.source_code, unit.language)
    spans = choose_lines(lines, parts, weights, costs, limit - len(head)) if parts else []
    chosen: set[int] = set()
    for span in spans:
        chosen.update(range(*span))
    return chosen & numbers or set(sorted(numbers)[:limit])


def text_of(unit: Unit, words: Sequence[str], room: int) -> str:
    """Quote a section of a document as prose, other text as code."""
    if unit.kind == "document":
        title = f"**{inline(unit.name)}**"
        text = f"{prose(unit.source_code)}\n\n".removeprefix(f"{title}\n\n").rstrip()
        return block_quote(text) if text else ""
    return condensed(unit, words, room)


def weights_of(lines: Sequence[str], words: Sequence[str]) -> list[float]:
    """Weigh each line by the question's words that it holds, rare ones most.

    The parts of a name (`dispatch` of `dispatch_request`) count half, and so does a comment.
    """
    shares: dict[str, float] = {}
    for word in words:
        for part in split_identifier(word):
            if len(part) > 2:
                shares[part] = 0.5
    shares |= dict.fromkeys(words, 1.0)
    weights = [0.0] * len(lines)
    for word, share in shares.items():
        pattern = form_pattern(word)
        holding = [n for n, line in enumerate(lines) if pattern.search(line.lower())]
        for n in holding:
            weight = share / 2 if COMMENT_LINE.match(lines[n]) else share
            weights[n] += weight / len(holding) ** 0.5
    return weights
