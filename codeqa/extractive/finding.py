"""One unit as a section of an answer: signature, comment, the lines that matter, its uses."""

from __future__ import annotations

import re
import textwrap

from codeqa.extractive.doc_comment import inline, prose
from codeqa.extractive.evidence import Finding, QuotedEvidence
from codeqa.extractive.excerpt import (
    EXCERPT_LINES,
    excerpt,
    first_sentence,
    leading_doc,
    signature_lines,
    whole_unit,
)
from codeqa.symbols import UsageSite
from codeqa.text.markdown import block_quote, cite, code_block, code_span, joined
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Hit, Unit

SURE = 0.9
LIKELY = 0.6
"""Confidence from which a place of use is called certain, and likely."""
MEMBERS = 16
"""Members of a class that are named."""
SIGNATURE_LINES = 14
"""A longer signature is shown by its beginning and its end."""
FIRST_LINES = 24
"""Lines of code shown of the best unit, if it is a method; else `EXCERPT_LINES`."""
PROSE_LANGUAGES = frozenset({"markdown", "rst", "restructuredtext", "text", "rdoc", "asciidoc"})
AFTER_DESCRIPTION = (
    ":param", ":return", ":rtype", ":raise", "@param", "@return", "@throws", "@since", "@author",
    "@see",
)  # fmt: skip
_BODY_MARK = re.compile(r"\s*[:{]\s*$")
_RECEIVER = re.compile(r"^func\s*\([^)]*\)\s*")
LIST_HEADINGS = frozenset(
    {"Args", "Arguments", "Parameters", "Returns", "Raises", "Yields", "Attributes"}
    | {"# Arguments", "# Errors", "# Panics", "# Safety"}
)


def finding_section(finding: Finding, evidence: QuotedEvidence) -> str:
    unit = finding.hit.unit
    if unit.kind in TEXT_KINDS:
        return joined([_heading(unit, evidence), *_text(unit, evidence)])
    body = [_heading(unit, evidence)]
    first = finding is evidence.findings[0] and unit.is_method
    limit = FIRST_LINES if first else EXCERPT_LINES
    small = whole_unit(unit)
    if small:
        body.append(code_block(small.code, unit.language))
    else:
        body += [_signature(unit), _doc(unit), *_lines(unit, evidence, limit), _members(unit)]
    body.append(_uses(finding, evidence))
    return joined(body)


def _heading(unit: Unit, evidence: QuotedEvidence) -> str:
    place = cite(unit.path, unit.start_line, unit.end_line)
    note = " · *the file has changed since it was indexed*" if unit.path in evidence.changed else ""
    return f"### {_title(unit)}\n\n{unit.kind} · {place}{note}"


def _title(unit: Unit) -> str:
    if unit.kind in TEXT_KINDS:
        return inline(" ".join((unit.qualified_name or unit.name or unit.path).split()))
    if unit.kind == "module" and unit.signature == "":  # the head of a file
        return code_span(unit.path)
    return code_span(unit.qualified_name or unit.name)


def _signature(unit: Unit) -> str:
    lines = signature_lines(unit) or unit.signature.strip("\n").split("\n")
    if len(lines) > SIGNATURE_LINES:
        margin = lines[1][: len(lines[1]) - len(lines[1].lstrip())]
        lines = [*lines[: SIGNATURE_LINES - 3], f"{margin}…", *lines[-1:]]
    signature = _BODY_MARK.sub("", textwrap.dedent("\n".join(lines)).strip("\n"))
    return code_block(signature, unit.language) if signature else ""


def _doc(unit: Unit) -> str:
    told = prose(_description(unit.doc_comment))
    return block_quote(told) if told else ""


def _description(doc: str) -> str:
    """The part of a doc comment before its lists of parameters and the like."""
    lines = []
    for line in doc.split("\n"):
        bare = line.strip()
        if bare.startswith(AFTER_DESCRIPTION) or bare.rstrip(":") in LIST_HEADINGS:
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(unit: Unit, evidence: QuotedEvidence, limit: int = EXCERPT_LINES) -> list[str]:
    shown = excerpt(unit, evidence.query.words, limit)
    if shown is None:
        return []
    place = cite(unit.path, shown.start, shown.end)
    label = "The lines that matter" if shown.matches else "It begins with"
    return [f"{label} {place}:", code_block(shown.code, unit.language)]


def _members(unit: Unit) -> str:
    if unit.kind not in CLASS_KINDS or not unit.method_declarations:
        return ""
    names = list(filter(None, dict.fromkeys(map(_member, unit.method_declarations))))
    more = f" and {len(names) - MEMBERS} more" if len(names) > MEMBERS else ""
    return f"Members: {', '.join(code_span(n) for n in names[:MEMBERS])}{more}" if names else ""


def _member(declaration: str) -> str:
    """The name in a member's signature: the word before its parameters."""
    lines = [line.strip() for line in declaration.strip().split("\n")]
    plain = [line for line in lines if line and not line.startswith(("@", "#[", "[", "//"))]
    head = _RECEIVER.sub("", (plain or lines)[0]).split("(", 1)[0].split("<", 1)[0].split()
    return head[-1].rstrip(":{=") if head else ""


def _text(unit: Unit, evidence: QuotedEvidence) -> list[str]:
    """A section of a document as quoted prose, other text as the lines that matter."""
    if unit.language in PROSE_LANGUAGES or unit.kind == "document":
        title = f"**{inline(unit.name)}**"
        told = f"{prose(unit.source_code)}\n\n".removeprefix(f"{title}\n\n").rstrip()
        return [block_quote(told)] if told else []
    small = whole_unit(unit)
    return [code_block(small.code, unit.language)] if small else _lines(unit, evidence)


def _uses(finding: Finding, evidence: QuotedEvidence) -> str:
    if not finding.total:
        asked = evidence.asks_uses and finding is evidence.findings[0]
        return "No place that uses it was found." if asked else ""
    times = f"{finding.total:,} place{'s' if finding.total != 1 else ''}"
    if not finding.uses:
        return f"Used in {times}."
    first = f", the surest {len(finding.uses)}" if len(finding.uses) < finding.total else ""
    items = [_use(site, inside) for site, inside in finding.uses]
    return f"**Used in {times}**{first}:\n\n" + "\n".join(items)


def _use(site: UsageSite, inside: str) -> str:
    place = cite(site.reference.path, site.reference.line, site.reference.line)
    around = f" in {code_span(inside)}" if inside else ""
    return f"- {place}{around}, {_sure(site.confidence)}: {inline(site.reason)}"


def _sure(confidence: float) -> str:
    if confidence >= SURE:
        return "certain"
    return "likely" if confidence >= LIKELY else "possible"


def unit_line(hit: Hit) -> str:
    unit = hit.unit
    told = inline(first_sentence(leading_doc(unit)))
    if not told and unit.kind in TEXT_KINDS and unit.start_line == unit.end_line:
        told = code_span(textwrap.shorten(unit.source_code, 80, placeholder=" …"))
    about = f": {told}" if told else ""
    place = cite(unit.path, unit.start_line, unit.end_line)
    title = _title(unit)
    # The head of a file is called as its file, which the citation says.
    return f"- {place}{about}" if title == code_span(unit.path) else f"- {title} {place}{about}"
