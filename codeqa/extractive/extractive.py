"""An answer that only says what the code itself says: quoted, cited, most relevant first."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from codeqa.extractive.call_path import path_section
from codeqa.extractive.doc_comment import inline, prose
from codeqa.extractive.evidence import OTHERS, Finding, QuotedEvidence
from codeqa.extractive.excerpt import (
    EXCERPT_LINES,
    excerpt,
    first_sentence,
    leading_doc,
    whole_unit,
)
from codeqa.extractive.overview import Overview
from codeqa.extractive.uses import uses_section
from codeqa.extractive.walk import walk_section
from codeqa.parsing.doc_comments import comment_text
from codeqa.search import form_pattern
from codeqa.text.markdown import (
    block_quote,
    cite,
    code_block,
    code_span,
    escape,
    joined,
    pieces,
)
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Chunk, Hit, Unit

WORDS_ONLY = (
    "Without an embedding the words of a question are looked for as they stand: use those of "
    "the code, in its language."
)
INTRODUCTION = "*Without a language model, this is what the code itself says.*"
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

MEMBERS = 16
"""Members of a class that are named."""
FIRST_LINES = 24
"""Lines of code shown of the best unit, if it is a method; else `EXCERPT_LINES`."""
PROSE_LANGUAGES = frozenset({"markdown", "rst", "restructuredtext", "text", "rdoc", "asciidoc"})
AFTER_DESCRIPTION = (
    ":param", ":return", ":rtype", ":raise", "@param", "@return", "@throws", "@since", "@author",
    "@see",
)  # fmt: skip
_BEFORE_NAME = re.compile(r"^(?:func|pub)\s*\([^)]*\)\s*")
_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)
LIST_HEADINGS = frozenset(
    {"Args", "Arguments", "Parameters", "Returns", "Raises", "Yields", "Attributes"}
    | {"# Arguments", "# Errors", "# Panics", "# Safety"}
)


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
    elif evidence.listing:
        yield joined([INTRODUCTION])
        yield from evidence.listing.sections()
        if not (evidence.listing.alone or evidence.weak):
            hits = [*(finding.hit for finding in evidence.findings), *evidence.others]
            yield _also([hit for hit in hits if not evidence.listing.holds(hit.unit)])
    elif evidence.overview and (evidence.overview.readme or evidence.overview.folders):
        yield joined([INTRODUCTION])
        yield from _overview(evidence.overview)
    elif not evidence.findings:
        yield _nothing(evidence)
    elif evidence.weak:
        yield _weak(evidence)
    else:
        yield joined([INTRODUCTION])
        if evidence.walk:
            yield joined([walk_section(evidence.walk)])
        for finding in evidence.findings:
            yield _finding_section(finding, evidence)
        yield _also(evidence.others)


def _also(hits: Sequence[Hit]) -> str:
    return joined(["### Also relevant", "\n".join(map(_unit_line, hits))]) if hits else ""


def _weak(evidence: QuotedEvidence) -> str:
    missing = _listed(evidence.missing)
    lacks = f" Nothing that was found holds {missing}." if missing else ""
    hits = [*(finding.hit for finding in evidence.findings), *evidence.others[:OTHERS]]
    by_meaning = any(channel.startswith("vector") for channel in evidence.channels)
    return joined(
        [
            f"**The evidence is weak.** No definition or section matches enough of the question "
            f"to answer it.{lacks}",
            "The nearest that there is:",
            "\n".join(_unit_line(hit) for hit in hits),
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
            yield joined([f"From {_cite(unit)}:", block_quote(told)])
    if overview.languages:
        counted = ", ".join(f"{escape(name)} ({number:,})" for name, number in overview.languages)
        yield joined([f"### How it is organised\n\nSource files by language: {counted}."])
    items = []
    for folder in overview.folders:
        files = f"{folder.files:,} file{'s' if folder.files != 1 else ''}"
        item = f"- {code_span(folder.path)}: {files}, mostly {escape(folder.language or 'other')}"
        if about := folder.about:
            item += f". {inline(first_sentence(about.doc_comment))} {_cite(about)}"
        if folder.needs:
            needs = ", ".join(f"{code_span(path)} ({files:,})" for path, files in folder.needs)
            item += f"\n  - imports from {needs}"
        items.append(item)
    if items:
        yield joined(["\n".join(items)])
    central = (f"{_unit_line(Hit(u, 0.0))} Used in {n:,} files." for u, n in overview.central)
    if items := list(central):
        yield joined(["### What most of it uses", "\n".join(items)])
    if overview.entries:
        starts = [_unit_line(Hit(unit, 0.0)) for unit in overview.entries]
        yield joined(["### Where it starts", "\n".join(starts)])


def _from_cache(evidence: QuotedEvidence) -> Iterator[str]:
    """An answer from the context of an earlier question: the chunks that hold its words."""
    words = evidence.query.words
    chunks = list(evidence.cached)
    if not evidence.chosen:
        scores = [sum(word in chunk.content.lower() for word in words) for chunk in chunks]
        pairs = sorted(zip(scores, chunks, strict=True), key=lambda pair: -pair[0])
        chunks = [chunk for score, chunk in pairs if score]
    if not chunks:
        yield joined([NOT_MENTIONED])
        return
    yield joined([CHOSEN if evidence.chosen else FROM_BEFORE])
    for chunk in chunks[:CACHED_SHOWN]:
        unit = _chunk_unit(chunk)
        if shown := whole_unit(unit) or excerpt(unit, words):
            place = cite(unit.path, shown.start, shown.end)
            yield joined([place, code_block(shown.code, unit.language)])
    if not evidence.chosen:
        yield joined(["Add `@codebase` to the question to search the code base anew."])


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


def _cite(unit: Unit) -> str:
    return cite(unit.path, unit.start_line, unit.end_line)


def _finding_section(finding: Finding, evidence: QuotedEvidence) -> str:
    unit = finding.hit.unit
    if unit.kind in TEXT_KINDS:
        return joined([_heading(unit, evidence), *_text(unit, evidence)])
    body = [_heading(unit, evidence)]
    first = finding is evidence.findings[0] and unit.is_method
    steps = path_section(evidence.path) if evidence.path and finding is evidence.findings[0] else ""
    if small := whole_unit(unit):
        body += [steps, code_block(small.code, unit.language)]
    else:
        lines = _lines(unit, evidence, FIRST_LINES if first else EXCERPT_LINES)
        body += [_doc(unit, evidence.query.words), steps, *lines, _members(unit)]
    asked = evidence.asks_uses and finding is evidence.findings[0]
    body.append(uses_section(finding.uses, asked=asked))
    return joined(body)


def _heading(unit: Unit, evidence: QuotedEvidence) -> str:
    note = " · *the file has changed since it was indexed*" if unit.path in evidence.changed else ""
    return f"### {_title(unit)}\n\n{unit.kind} · {_cite(unit)}{note}"


def _title(unit: Unit) -> str:
    if unit.kind in TEXT_KINDS:
        return inline(" ".join((unit.qualified_name or unit.name or unit.path).split()))
    if unit.kind == "module" and unit.signature == "":  # the head of a file
        return code_span(unit.path)
    return code_span(unit.qualified_name or unit.name)


def _doc(unit: Unit, words: Iterable[str]) -> str:
    """The part of the doc comment before its lists of parameters and the like: its beginning, and
    where that is not all, the paragraph further down that speaks of the question."""

    def is_list(line: str) -> bool:
        return line.startswith(AFTER_DESCRIPTION) or line.rstrip(":") in LIST_HEADINGS

    lines = unit.doc_comment.split("\n")
    doc = "\n".join(itertools.takewhile(lambda line: not is_list(line.strip()), lines))
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


def _members(unit: Unit) -> str:
    if unit.kind not in CLASS_KINDS or not unit.method_declarations:
        return ""
    names = list(filter(None, dict.fromkeys(map(_member, unit.method_declarations))))
    more = f" and {len(names) - MEMBERS} more" if len(names) > MEMBERS else ""
    return f"Members: {', '.join(map(code_span, names[:MEMBERS]))}{more}" if names else ""


def _member(declaration: str) -> str:
    """The name in a member's signature: the word before its parameters."""
    lines = [line.strip() for line in declaration.strip().split("\n")]
    plain = [line for line in lines if line and not line.startswith(("@", "#[", "[", "//"))]
    head = _BEFORE_NAME.sub("", (plain or lines)[0]).split("(", 1)[0].split("<", 1)[0].split()
    return head[-1].rstrip(":{=") if head else ""


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


def _unit_line(hit: Hit) -> str:
    unit = hit.unit
    told = inline(first_sentence(leading_doc(unit)))
    if not told and unit.kind in TEXT_KINDS and unit.start_line == unit.end_line:
        told = code_span(textwrap.shorten(unit.source_code, 80, placeholder=" …"))
    about = f": {told}" if told else ""
    title = _title(unit)
    # The head of a file is called as its file, which the citation says.
    named = "" if title == code_span(unit.path) else f"{title} "
    return f"- {named}{_cite(unit)}{about}"
