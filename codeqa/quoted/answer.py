"""An answer that only says what the code itself says: quoted, cited, most relevant first; of a long
unit the part that matters for the question, as whole statements with what they lie in."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from codeqa.code.descriptions import cite_unit, doc_lines, is_doc, unit_item, unit_title
from codeqa.context import (
    COMMENT_LINE,
    Statement,
    choose_lines,
    outlined,
    spans_of,
    statements,
)
from codeqa.parsing.units import comment_text
from codeqa.quoted.evidence import OTHERS, Finding, QuotedEvidence
from codeqa.text.doc_comment import inline, prose
from codeqa.text.markdown import block_quote, cite, code_block, code_span, escape, joined, pieces
from codeqa.text.tokens import form_pattern, split_identifier
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Hit, Unit

INTRODUCTION = "*Without a language model, this is what the code itself says.*"
COUNTED = "*Counted from the index, without a language model.*"
CHOSEN = "*Without a language model, this is what the code that you chose says.*"
FROM_BEFORE = (
    "*From the code looked up earlier in this conversation; nothing new was searched. "
    "Without a language model, this is what the code itself says.*"
)
NOT_MENTIONED = (
    "The code that was looked up earlier in this conversation does not mention what you ask "
    "about.\n\nAdd `@codebase` to the question to search the code base for it."
)
CACHED_SHOWN = 3
OTHER_TOPIC = (
    "That seems to be about something else than the code that was looked up so far in this "
    "conversation.\n\n"
    "Begin the question with `@codebase` to search the code base for it.\n"
)
NOTHING_LOOKED_UP = (
    "No code has been looked up for this question.\n\n"
    "Begin the question with `@codebase` to search the code base, for example "
    "`@codebase where does the program start?`\n"
)

EXCERPT_LINES = 12
"""Lines of code shown of one unit: what is read without scrolling."""
LONG_DECLARATION = 11
"""Lines of a declaration that are shown, beside its last two."""
LONGEST_LINE = 300
"""A longer line is data or machine-made; it is never shown, nor cut."""
WHOLE = 1.4
"""A body up to this part longer than what is asked for is shown whole."""
MEMBERS = 16
"""Members of a class that are named."""
FIRST_LINES = 24
"""Lines of code shown of the best unit, if it is a method; else `EXCERPT_LINES`."""
PROSE_LANGUAGES = frozenset({"markdown", "rst", "restructuredtext", "text", "rdoc", "asciidoc"})
_LISTS = re.compile(
    r"\s*(?:[:@](?:param|return|rtype|raise|throws|since|author|see)"
    r"|(?:# )?(?:Arg(?:ument)?s|Parameters|Returns|Raises|Yields|Attributes|Errors|Panics|Safety)"
    r":?$)"
)
"""A line of a doc comment behind which stand parameters and the like."""
_VALUE = re.compile(r"\s*(?:(?:indirect )?case\s+)?(?!static\b)([A-Za-z_]\w*)\s*(?:[=,({:;]|$)")
_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)


def quoted_answer(evidence: QuotedEvidence | None, *, about_code: bool = True) -> Iterator[str]:
    """Yield the answer line by line; each section is made when it is reached.

    Without `evidence` nothing was looked up; `about_code` is whether it should have been.
    """
    if evidence is None:
        yield from pieces(NOTHING_LOOKED_UP if about_code else OTHER_TOPIC)
        return
    for section in _sections(evidence):
        yield from pieces(f"{section}\n\n")


def _sections(evidence: QuotedEvidence) -> Iterator[str]:
    if evidence.cached:
        yield from _from_cache(evidence)
    elif not (evidence.findings or evidence.lead):
        yield _nothing(evidence)
    elif evidence.weak and not evidence.lead:
        yield _weak(evidence)
    else:
        first = COUNTED if evidence.counted else INTRODUCTION
        yield joined([first, evidence.absent, evidence.lead])
        for finding in evidence.findings:
            yield _finding_section(finding, evidence)
        if evidence.others:
            yield joined(["### Also relevant", _unit_lines(evidence.others)])


def _unit_lines(hits: Iterable[Hit]) -> str:
    return "\n".join(unit_item(hit.unit) for hit in hits)


def _weak(evidence: QuotedEvidence) -> str:
    missing = _listed(evidence.missing)
    lacks = f" Nothing that was found holds {missing}." if missing else ""
    hits = [*(finding.hit for finding in evidence.findings), *evidence.others[:OTHERS]]
    return joined(
        [
            f"**The evidence is weak.** No definition or section matches enough of the question "
            f"to answer it.{lacks}",
            "The nearest that there is:",
            _unit_lines(hits),
            _searched(evidence),
        ]
    )


def _nothing(evidence: QuotedEvidence) -> str:
    words = _listed(evidence.query.words)
    wanted = f" for {words}" if words else ""
    return joined(
        [
            f"**Nothing was found{wanted}.**",
            _searched(evidence),
            "Try other words, the name of a function or file, or fewer filters."
            if evidence.query.filtered
            else "Try other words, or the name of a function, class or file.",
        ]
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"“{escape(word)}”" for word in words)


def _searched(evidence: QuotedEvidence) -> str:
    return f"Searched: {escape(evidence.coverage)}." if evidence.coverage else ""


def _from_cache(evidence: QuotedEvidence) -> Iterator[str]:
    """An answer from the context of an earlier question: the chunks that hold its words."""
    words = evidence.query.words
    chunks = list(evidence.cached)
    if not evidence.chosen:
        scores = [sum(word in chunk.content.lower() for word in words) for chunk in chunks]
        pairs = sorted(zip(scores, chunks, strict=True), key=lambda pair: -pair[0])
        chunks = [chunk for score, chunk in pairs if score]
    if not chunks:
        yield NOT_MENTIONED
        return
    yield CHOSEN if evidence.chosen else FROM_BEFORE
    for chunk in chunks[:CACHED_SHOWN]:
        lines = (chunk.start_line, chunk.end_line)
        unit = Unit(chunk.path, chunk.language, "chunk", "", "", chunk.content, *lines)
        if shown := whole_unit(unit) or excerpt(unit, words):
            place = cite(unit.path, shown.start, shown.end)
            yield joined([place, code_block(shown.code, unit.language)])
    if not evidence.chosen:
        yield "Add `@codebase` to the question to search the code base anew."


def _finding_section(finding: Finding, evidence: QuotedEvidence) -> str:
    unit = finding.hit.unit
    if unit.kind in TEXT_KINDS:
        return joined([_heading(unit, evidence), *_text(unit, evidence)])
    first = finding is evidence.findings[0] and unit.is_method
    if small := whole_unit(unit):
        body = [finding.calls, code_block(small.code, unit.language)]
    else:
        lines = _lines(unit, evidence, FIRST_LINES if first else EXCERPT_LINES)
        doc = _doc(unit, evidence.query.words)
        body = [doc, finding.calls, *lines, *_member_found(unit, evidence), _members(finding)]
    return joined([_heading(unit, evidence), *body, finding.uses])


def _heading(unit: Unit, evidence: QuotedEvidence) -> str:
    note = " · *the file has changed since it was indexed*" if unit.path in evidence.changed else ""
    return f"### {unit_title(unit)}\n\n{unit.kind} · {cite_unit(unit)}{note}"


def _doc(unit: Unit, words: Iterable[str]) -> str:
    """The part of the doc comment before its lists of parameters and the like: its beginning, and
    where that is not all, the paragraph further down that speaks of the question."""
    lines = unit.doc_comment.split("\n")
    doc = "\n".join(itertools.takewhile(lambda line: not _LISTS.match(line.rstrip()), lines))
    told = prose(doc)
    if told.endswith("…"):
        patterns = [form_pattern(word) for word in words]
        new = [pattern for pattern in patterns if not pattern.search(told.lower())]
        spoken = _FENCED.sub("", doc).split("\n\n")
        paragraphs = [one for one in spoken if not one.startswith("    ")]
        found = {one: sum(bool(p.search(one.lower())) for p in new) for one in paragraphs}
        best = max(paragraphs, key=found.__getitem__, default="")
        if found.get(best) and (more := prose(best)):
            told += f"\n\n{more}\n\n…"
    return block_quote(told) if told else ""


def _lines(unit: Unit, evidence: QuotedEvidence, limit: int = EXCERPT_LINES) -> list[str]:
    shown = excerpt(unit, evidence.query.words, limit)
    if shown is None:
        return []
    label = f"{shown.label} {cite(unit.path, shown.start, shown.end)}:" if shown.label else ""
    return [label, code_block(shown.code, unit.language)]


def _member_found(unit: Unit, evidence: QuotedEvidence) -> list[str]:
    """The best member of a class that was found as well: most of what a class does stands there."""
    of_class = (unit.path, unit.qualified_name)
    found = (hit.unit for hit in evidence.others if hit.unit.is_method)
    member = next((one for one in found if (one.path, one.class_name) == of_class), None)
    if member is None or unit.kind not in CLASS_KINDS:
        return []
    small = whole_unit(member)
    code = [code_block(small.code, unit.language)] if small else _lines(member, evidence)
    return [f"In it {unit_title(member)} · {cite_unit(member)}", *code]


def _members(finding: Finding) -> str:
    values = _values(finding.hit.unit) if finding.hit.unit.kind == "enum" else ()
    names = list(filter(None, dict.fromkeys((*values, *finding.members))))
    more = f" and {len(names) - MEMBERS} more" if len(names) > MEMBERS else ""
    return f"Members: {', '.join(map(code_span, names[:MEMBERS]))}{more}" if names else ""


def _values(unit: Unit) -> list[str]:
    """The values of an enum: what stands first in the lines of code next deeper than its own."""
    code = [line for line in unit.source_code.split("\n") if not COMMENT_LINE.match(line)]
    depths = [(len(line) - len(line.lstrip()), line) for line in code if line.strip()]
    deeper = sorted({depth for depth, _ in depths})[1:2]
    found = (_VALUE.match(line) for depth, line in depths if depth in deeper)
    return [one[1] for one in found if one and one[1] != unit.name]


def _text(unit: Unit, evidence: QuotedEvidence) -> list[str]:
    """A section of a document as quoted prose, other text as the lines that matter."""
    if unit.language in PROSE_LANGUAGES or unit.kind == "document":
        title = f"**{inline(unit.name)}**"
        told = f"{prose(unit.source_code)}\n\n".removeprefix(f"{title}\n\n").rstrip()
        return [block_quote(told)] if told else []
    if small := whole_unit(unit):
        return [code_block(small.code, unit.language)]
    told = prose(comment_text([unit.source_code]))  # of comments alone there is no excerpt
    return _lines(unit, evidence) or ([block_quote(told)] if told else [])


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `start`..`end` (1-based) of a file, their common indentation removed."""

    start: int
    end: int
    code: str
    """Where lines are left out, one says how many."""
    label: str = ""
    """What the lines are, '' for all of the unit or its declaration alone."""


def excerpt(unit: Unit, words: Sequence[str], limit: int = EXCERPT_LINES) -> Excerpt | None:
    """The declaration and at most `limit` lines of the body: whole statements that hold the most
    words of the question, what they lie in, and what stands near them.

    A rare word of the unit counts more than one that stands on every line. Without any of the
    words, the beginning of the body, and of a class only its declaration; None for comments alone.
    """
    lines = unit.source_code.split("\n")
    found = statements(unit.source_code, unit.language)
    costs = _costs(unit, lines, found, limit)
    if costs.count(1) <= WHOLE * limit:
        limit = max(limit, costs.count(1) + 1)
    weights = _weights(lines, costs, words, limit)
    spans = choose_lines(lines, found, weights, costs, limit)
    shown = [line for span in spans for line in range(*span) if costs[line]]
    matches = any(weights[line] for line in shown)
    label = "The lines that matter" if matches else "It begins with"
    if not shown or (unit.kind in CLASS_KINDS and not matches):
        spans, label = spans_of([line for line, cost in enumerate(costs) if not cost], lines), ""
    if not spans:
        return None
    code = textwrap.dedent(outlined([line.rstrip("\r") for line in lines], spans))
    first = unit.start_line
    return Excerpt(first + spans[0][0], first + spans[-1][1] - 1, code, label)


def whole_unit(unit: Unit, limit: int = EXCERPT_LINES) -> Excerpt | None:
    """The unit itself when it has at most `limit` lines, none of them overlong."""
    lines = unit.source_code.split("\n")
    if len(lines) > limit or any(len(line) > LONGEST_LINE for line in lines):
        return None
    code = textwrap.dedent("\n".join(line.rstrip("\r") for line in lines)).strip("\n")
    return Excerpt(unit.start_line, unit.start_line + len(lines) - 1, code)


def _declaration(
    unit: Unit, lines: Sequence[str], found: Sequence[Statement]
) -> tuple[list[int], int]:
    """Numbers of the lines of the declaration, and of the first line behind it and its doc."""
    body = 0 if not unit.signature or unit.kind in TEXT_KINDS else 1
    if len(found) < body:
        return [], 0
    end = found[body].start if body < len(found) else len(lines)
    head = [n for n in range(end * body) if lines[n].strip() and not COMMENT_LINE.match(lines[n])]
    doc = doc_lines(unit)
    while doc and end < len(lines) and (not lines[end].strip() or is_doc(lines[end], doc)):
        end += 1
    return [n for n in head if n >= found[0].first or not is_doc(lines[n], doc)], end


def _costs(unit: Unit, lines: Sequence[str], found: Sequence[Statement], limit: int) -> list[int]:
    """1 for each line of the body, 0 for the declaration, more than `limit` for what is not shown:
    overlong lines, comments that stand alone, the doc comment, members of a class."""
    declaration, behind = _declaration(unit, lines, found)
    last = unit.head_end_line - unit.start_line if unit.kind in CLASS_KINDS else 0
    costs = [1] * len(lines)
    hidden = [line for one in found if one.first == one.end for line in range(one.start, one.end)]
    hidden += [n for n, line in enumerate(lines) if len(line) > LONGEST_LINE or 0 < last < n]
    for line in (*range(behind), *hidden):
        costs[line] = limit + 1
    for line in (*declaration[:LONG_DECLARATION], *declaration[-2:]):
        costs[line] = 0
    return costs


def _weights(
    lines: Sequence[str], costs: Sequence[int], words: Sequence[str], limit: int
) -> list[float]:
    """How much each line of the body matters: the question's words that it holds, each by its
    rarity.

    The parts of a name (`dispatch` of `dispatch_request`) count half, and so does a comment.
    """
    shares = {part: 0.5 for word in words for part in split_identifier(word) if len(part) > 2}
    shares.update(dict.fromkeys(words, 1.0))
    patterns = {word: form_pattern(word) for word in shares}
    found: list[list[str]] = []
    for line, cost in zip(lines, costs, strict=True):
        lower = line.lower() if 0 < cost <= limit else ""
        found.append([word for word, pattern in patterns.items() if pattern.search(lower)])
    counts = Counter(word for held in found for word in held)
    weights = []
    for line, held in zip(lines, found, strict=True):
        worth = sum(shares[word] / counts[word] ** 0.5 for word in held)
        weights.append(worth / 2 if COMMENT_LINE.match(line) else worth)
    return weights
