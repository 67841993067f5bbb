"""Write the answer without a language model: Markdown that cites each place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codeqa.code.descriptions import cite_unit, unit_item, unit_title
from codeqa.quoted.condense import BODIES, WHOLE_LINES, condensed, sentences_of, text_of
from codeqa.quoted.evidence import Finding, QuotedEvidence
from codeqa.text.markdown import cite, escape, joined, pieces
from codeqa.types import TEXT_KINDS, Chunk, Unit

ALL_LINES = 1_000

INTRODUCTION = (
    "*Without a language model, this answer is the code itself, the most relevant first. For an "
    "answer in words, choose a model beside the question or with `codeqa models use`.*"
)

COUNTED = "*Counted, without a language model.*"

FROM_BEFORE = (
    "*From the code found earlier; there was no new search. Without a language model, this is the "
    "code itself.*"
)

NOT_MENTIONED = (
    "The code found earlier in this conversation does not mention what you ask about.\n\n"
    "Add `@codebase` to the question to search the code base for it."
)

CACHED_SHOWN, CACHED_LINES = 3, 80

NOTHING_LOOKED_UP = (
    "No code has been looked up for this question.\n\n"
    "Begin the question with `@codebase` to search the code base, for example "
    "`@codebase where does the program start?`\n"
)


def quoted_answer(evidence: QuotedEvidence | None) -> Iterator[str]:
    """Yield the answer line by line; each section is made when it is reached.

    Without `evidence` the answer is that nothing was looked up.
    """
    if evidence is None:
        yield from pieces(NOTHING_LOOKED_UP)
        return
    for section in _sections(evidence):
        yield from pieces(f"{section}\n\n")


def _sections(evidence: QuotedEvidence) -> Iterator[str]:
    if evidence.cached:
        yield from _from_cache(evidence)
    elif not (evidence.lead or evidence.findings or evidence.others):
        yield _nothing(evidence)
    else:
        warning = evidence.absent
        if evidence.weak and not evidence.lead:
            warning = _weak(evidence)
        if first := joined([warning, evidence.lead]):
            yield first
        left = 0
        whole_limits = (ALL_LINES,) * len(BODIES) if evidence.whole_code else (WHOLE_LINES, 0, 0, 0)
        for finding, limit, whole in zip(evidence.findings, BODIES, whole_limits, strict=False):
            section, used = _finding_section(finding, evidence, limit + left, whole)
            left = max(0, limit + left - used)
            yield section
            if finding.below:
                yield finding.below
        if evidence.others:
            items = [unit_item(hit.unit) for hit in evidence.others]
            if evidence.elsewhere:
                items.append(evidence.elsewhere)
            yield joined(["**Also relevant**:", "\n".join(items)])
        yield COUNTED if evidence.counted else INTRODUCTION


def _weak(evidence: QuotedEvidence) -> str:
    """Say that too little was found."""
    text = "**The evidence is weak.** No definition or section matches enough of the question "
    text += "to answer it. "
    if evidence.missing:
        text += f"None of the hits contains {_quoted(evidence.missing)}. "
    text += "The nearest hits follow."
    if evidence.coverage:
        text += f" Searched: {escape(evidence.coverage)}."
    return text


def _nothing(evidence: QuotedEvidence) -> str:
    words = _quoted(evidence.query.words)
    searched = f"Searched: {escape(evidence.coverage)}." if evidence.coverage else ""
    advice = "Try other words, or the name of a function, class or file."
    if evidence.query.filtered:
        advice = "Try other words, the name of a function or file, or fewer filters."
    return joined([f"**Nothing was found{f' for {words}' if words else ''}.**", searched, advice])


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"“{escape(word)}”" for word in words)


def _from_cache(evidence: QuotedEvidence) -> Iterator[str]:
    """Answer from the context of an earlier question: the chunks that hold its words."""
    words = evidence.query.words
    chunks = list(evidence.cached)
    if not evidence.chosen:
        chunks.sort(key=lambda chunk: -_words_in(chunk, words))
        chunks = [chunk for chunk in chunks if _words_in(chunk, words)]
    if not chunks:
        yield NOT_MENTIONED
        return
    yield joined([evidence.lead, FROM_BEFORE])
    for chunk in chunks[:CACHED_SHOWN]:
        lines = (chunk.start_line, chunk.end_line)
        unit = Unit(chunk.path, chunk.language, "chunk", "", "", chunk.content, *lines)
        yield joined([cite(unit.path, *lines), condensed(unit, words, CACHED_LINES)])
    if not evidence.chosen:
        yield "Add `@codebase` to the question for a new search of the code base."


def _words_in(chunk: Chunk, words: Iterable[str]) -> int:
    return sum(word in chunk.content.lower() for word in words)


def _finding_section(
    finding: Finding, evidence: QuotedEvidence, limit: int, whole: int
) -> tuple[str, int]:
    """Return the unit's title and what its comment says, then its code; and the lines of code."""
    unit, words = finding.hit.unit, evidence.query.words
    heading = f"**{unit_title(unit)}** · {unit.kind} {cite_unit(unit)}"
    if unit.path in evidence.changed:
        heading += " · *the file has changed since it was indexed*"
    if unit.kind in TEXT_KINDS:
        text = text_of(unit, words, limit)
        return joined([heading, text]), text.count("\n")
    if sentences := sentences_of(unit, words):
        heading += f": {sentences}"
    code = condensed(unit, words, limit, whole)
    return f"{heading}\n{code}", max(0, code.count("\n") - 1)
