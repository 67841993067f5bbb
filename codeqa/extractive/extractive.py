"""An answer that only says what the code itself says: quoted, cited, most relevant first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from codeqa.extractive.doc_comment import inline, prose
from codeqa.extractive.evidence import QuotedEvidence
from codeqa.extractive.excerpt import excerpt, first_sentence, whole_unit
from codeqa.extractive.finding import finding_section, unit_line
from codeqa.extractive.overview import Overview
from codeqa.text.markdown import (
    block_quote,
    cite,
    code_block,
    code_span,
    escape,
    joined,
    pieces,
)
from codeqa.types import Chunk, Hit, Unit

WORDS_ONLY = (
    "Without an embedding the words of a question are looked for as they stand: use those of "
    "the code, in its language."
)
INTRODUCTION = "*Without a language model, this is what the code itself says.*"
CHOSEN = "*Without a language model, this is what the code that you chose says.*"
CACHED_SHOWN = 3


def quoted_answer(evidence: QuotedEvidence | None, *, about_code: bool = True) -> Iterator[str]:
    """Yield the answer line by line; each section is made when it is reached.

    Without `evidence` nothing was looked up; `about_code` is whether it should have been.
    """
    if evidence is None:
        yield from pieces(NOTHING_LOOKED_UP if about_code else OTHER_TOPIC)
        return
    for section in _sections(evidence):
        yield from pieces(section)


def _sections(evidence: QuotedEvidence) -> Iterator[str]:
    if evidence.cached:
        yield from _from_cache(evidence)
    elif evidence.overview and (evidence.overview.readme or evidence.overview.folders):
        yield joined([INTRODUCTION])
        yield from _overview(evidence.overview)
    elif not evidence.findings:
        yield _nothing(evidence)
    elif evidence.weak:
        yield _weak(evidence)
    else:
        yield joined([INTRODUCTION])
        for finding in evidence.findings:
            yield finding_section(finding, evidence)
        yield _also(evidence)


def _also(evidence: QuotedEvidence) -> str:
    items = [unit_line(hit) for hit in (*evidence.others, *evidence.more_files)]
    return joined(["### Also relevant", "\n".join(items)]) if items else ""


def _weak(evidence: QuotedEvidence) -> str:
    missing = _listed(evidence.missing)
    lacks = f" Nothing that was found holds {missing}." if missing else ""
    hits = [*(finding.hit for finding in evidence.findings), *evidence.others]
    by_meaning = any(channel.startswith("vector") for channel in evidence.channels)
    return joined(
        [
            f"**The evidence is weak.** No definition or section matches enough of the question "
            f"to answer it.{lacks}",
            "The nearest that there is:",
            "\n".join(unit_line(hit) for hit in hits),
            "" if by_meaning else WORDS_ONLY,
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


def _overview(overview: Overview) -> Iterator[str]:
    for unit in overview.readme:
        if told := prose(unit.source_code):
            yield joined([f"From {_cited(unit)}:", block_quote(told)])
    if overview.languages:
        counted = ", ".join(f"{escape(name)} ({number:,})" for name, number in overview.languages)
        yield joined([f"### How it is organised\n\nSource files by language: {counted}."])
    items = []
    for folder in overview.folders:
        files = f"{folder.files:,} file{'s' if folder.files != 1 else ''}"
        item = f"- {code_span(folder.path)}: {files}, mostly {escape(folder.language or 'other')}"
        if about := folder.about:
            item += f". {inline(first_sentence(about.doc_comment))} {_cited(about)}"
        items.append(item)
    if items:
        yield joined(["\n".join(items)])
    if overview.entries:
        starts = [unit_line(Hit(unit, 0.0)) for unit in overview.entries]
        yield joined(["### Where it starts", "\n".join(starts)])


def _cited(unit: Unit) -> str:
    return cite(unit.path, unit.start_line, unit.end_line)


def _from_cache(evidence: QuotedEvidence) -> Iterator[str]:
    """An answer from the context of an earlier question: the chunks that hold its words."""
    units = [_chunk_unit(chunk) for chunk in evidence.cached]
    words = evidence.query.words
    if evidence.chosen:
        yield joined([CHOSEN])
        yield from _quoted(units, words)
        return
    scored = [(sum(word in unit.source_code.lower() for word in words), unit) for unit in units]
    best = [unit for score, unit in sorted(scored, key=lambda pair: -pair[0]) if score]
    if not best:
        yield joined(
            [
                "The code that was looked up earlier in this conversation does not mention what "
                "you ask about.",
                "Add `@codebase` to the question to search the code base for it.",
            ]
        )
        return
    yield joined(
        [
            "*From the code looked up earlier in this conversation; nothing new was searched. "
            "Without a language model, this is what the code itself says.*"
        ]
    )
    yield from _quoted(best, words)
    yield joined(["Add `@codebase` to the question to search the code base anew."])


def _quoted(units: Sequence[Unit], words: Sequence[str]) -> Iterator[str]:
    for unit in units[:CACHED_SHOWN]:
        if shown := whole_unit(unit) or excerpt(unit, words):
            place = cite(unit.path, shown.start, shown.end)
            yield joined([place, code_block(shown.code, unit.language)])


def _chunk_unit(chunk: Chunk) -> Unit:
    return Unit(
        path=chunk.path,
        language=chunk.language,
        kind="chunk",
        name="",
        qualified_name="",
        source_code=chunk.content,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
    )


OTHER_TOPIC = (
    "That seems to be about something else than the code that was looked up so far in this "
    "conversation.\n\n"
    "Begin the question with `@codebase` to search the code base for it.\n"
)
NOTHING_LOOKED_UP = (
    "No code has been looked up in this conversation yet.\n\n"
    "Begin the question with `@codebase` to search the code base, for example "
    "`@codebase where does the program start?`\n"
)
