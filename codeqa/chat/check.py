"""What of an answer holds, and what may be asked next: the last stage of a turn before it is kept.

Whether each sentence has its evidence in the code that was sent is told without a model: by its
citations, the names and numbers in it, and how near its words come to a chunk's. Questions to ask
next are made from names that really stand in that code, so that a search by name answers them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import log
from typing import Any

from codeqa.chat.citations import CitedCode, find_citations, next_fence, verify_all
from codeqa.chat.claims import GROUPED, NAME, NOT_SHOWN, names_in, numbers_in, stems_in
from codeqa.chat.hooks import Hooks
from codeqa.chat.record import read_turn_record
from codeqa.chat.stream import Stream
from codeqa.chat.values import Checked, Citation, Sentence
from codeqa.code.descriptions import cite_unit
from codeqa.code.tools import Toolbox
from codeqa.embeddings.registry import sentence_matcher
from codeqa.errors import CodeQAError
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE
from codeqa.search.hybrid import SearchResult
from codeqa.search.query import QUESTION_WORDS
from codeqa.state import State
from codeqa.state.records import Turn
from codeqa.text.markdown import CITATION, cite
from codeqa.types import TEXT_KINDS, Chunk

SUGGESTIONS = 3

_TELLING_NAME = re.compile(r"[^\W\d_]\w{3,59}")
"""One that few other things have, and that still makes a question that reads well."""
_AS_CODE = re.compile(r"`([^`\n]{1,200})`")
_USES = re.compile(r"\b(?:us(?:e[sd]?|ages?|ing)|call|reference|invoke)", re.IGNORECASE)
_TESTS = re.compile(r"\btest", re.IGNORECASE)


def check(stream: Stream, hooks: Hooks, toolbox: Toolbox) -> Checked:
    """Read what `stream` has come to: it may have ended early."""
    gathered, written = stream.gathered, "".join(stream.pieces)
    if gathered is None:
        return Checked()
    revised, problems = written, tuple[str, ...]()
    if stream.finished and not gathered.reply:
        revised, problems = hooks.run("after_generation", written, asked=gathered)
    answer, revised = revised or written, revised if revised != written else ""
    chunks = stream.block.chunks
    try:
        cited = CitedCode.of(toolbox, chunks)
        citations = verify_all(answer, stream.shown(), cited, stream.moved)
    except CodeQAError:  # the index is gone by now
        return Checked(revised, problems=problems)
    judged, not_known, about = list[Sentence](), "", True
    ours = gathered.reply == ISSUE or gathered.counted
    sent = stream.request.block.chunks if stream.request and not ours else ()
    if stream.finished and sent:
        judged = judge_all(answer, sent)
        not_known = what_is_not_known(judged, gathered.search, sent)
        about = is_about(gathered.rewritten or gathered.question, answer, sent)
    suggestions: tuple[str, ...] = ()
    if stream.finished and gathered.intent in NEED_CODE:
        suggestions = suggest(stream.question.text, chunks, answer)
    return Checked(revised, citations, as_data(judged, about), not_known, suggestions, problems)


def still_holds(past: Turn, state: State, toolbox: Toolbox) -> bool:
    """Whether the answer `past` may be told elsewhere: it has citations that are all right in the
    code as it is now, most of what it claims has its evidence, and nobody put a thumb down."""
    thumbs = state.feedback.of_conversation(past.conversation, past.user, past.repository)
    kept = read_turn_record(past)
    shown, claims = kept.grounding["supported"], kept.grounding["claims"]
    bad = thumbs.get(past.id, (0, ""))[0] < 0 or not kept.grounding.get("about", True)
    if bad or shown < UNKNOWN_BELOW * claims:
        return False
    spans = [Citation(chunk.path, chunk.start_line, chunk.end_line) for chunk in kept.chunks]
    try:
        cited = verify_all(past.answer, spans, CitedCode.of(toolbox, kept.chunks))
    except CodeQAError:
        return False
    return bool(cited) and all(one.verified for one in cited)


def suggest(question: str, chunks: Sequence[Chunk], answer: str) -> tuple[str, ...]:
    """Up to SUGGESTIONS questions that follow from `chunks`, the context of `answer` to `question`.

    What the answer names as code comes first, then what it cites, then the rest of the context.
    What `question` asks is not asked again, and no question is of the kind of the one before it.
    """
    asked = {word.lower() for word in re.findall(r"\w+", question)}
    mentioned = {word for code in _AS_CODE.findall(answer) for word in re.findall(r"\w+", code)}
    cited = [(one.path, one.start, one.end) for one in find_citations(answer)]

    def place(chunk: Chunk) -> int:
        found = (number for number, one in enumerate(cited) if overlaps(chunk, [one]))
        return next(found, len(cited))

    names = dict.fromkeys(
        chunk.name
        for chunk in sorted(chunks, key=place)
        if chunk.role == "source" and chunk.kind not in TEXT_KINDS
        if _TELLING_NAME.fullmatch(chunk.name) and not chunk.why.startswith("uses ")
    )
    main, *rest = sorted(names, key=lambda name: name not in mentioned) or [""]
    others = [name for name in rest if name.lower() not in asked]
    found: list[str] = []
    if main and not (_USES.search(question) and main.lower() in asked):
        found.append(f"Where is `{main}` used?")
    found += [f"What does `{name}` do?" for name in others[:1]]
    if main and not _TESTS.search(question):
        found.append(f"Are there tests for `{main}`?")
    for name in others:
        found += [f"Where is `{name}` used?", f"What does `{name}` do?"]
    return tuple(dict.fromkeys(found))[:SUGGESTIONS]


# The evidence of sentences.

NEAR = 0.63
"""A chunk that says this part of a sentence shows it. This and the next are set on the tuned half
of evals/grounding."""
QUOTED, ALTERED = 0.8, 0.3
"""Part of a code block's lines that stand in what was sent: it is a quotation, one that was
changed, or below that an example of the answer's own."""
UNKNOWN_BELOW = 0.5
"""When less than this part of what an answer claims has its evidence, the answer is not known."""
FEWEST_CLAIMS = 2
CITES, ABOUT = 0.4, 0.6
"""What citing what was sent adds to the share of the question that an answer speaks of, and the
least of both. Set on the tuned half of evals/grounding."""
NEAREST = 3
"""Places that are named for who wants to read on after such an answer."""

_JOINING = re.compile(rf"(?<![\w`])(?:{'|'.join(sorted(QUESTION_WORDS))})(?![\w`])", re.IGNORECASE)
_OF_THIS = re.compile(r"\W*(?:The|Its?|They|Their)\b")
"""A sentence that begins so speaks of this code."""
_COMMENT = " \t/*#!"
"""Around a line of code that is quoted from a comment."""
_NOT_PROSE = re.compile(r"\W*(?:#.*)?", re.DOTALL)


class Grounding:
    """Judges sentences by the chunks that were sent."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._texts = [f"{chunk.path}\n{chunk.content}" for chunk in chunks]
        self._matcher = sentence_matcher(self._texts) if chunks else None
        self._names = {name.lower() for text in self._texts for name in NAME.findall(text)}
        plain = (GROUPED.sub("", text) for text in self._texts)
        self._numbers = {number for text in plain for number in re.findall(r"\d+", text)}
        self._lines: dict[str, int] = {}
        """Each line that says something, and the chunk in which it stands first."""
        for at, chunk in enumerate(chunks):
            for line in chunk.content.split("\n"):
                self._lines.setdefault(line.strip(_COMMENT), at)

    def judge(self, written: str) -> Sentence | None:
        """What the evidence of a sentence is; None for what says nothing of the code: a heading, a
        mark, words that lead to a list, or that something is not known."""
        text = written.strip()
        if not self._matcher:
            return None
        if next_fence("", text.split("\n", 1)[0])[1]:
            return self._judge_block(text)
        if _NOT_PROSE.fullmatch(text) or text.endswith(":") or NOT_SHOWN.search(text):
            return None
        said = CITATION.sub(" ", text)
        names, paths = names_in(said)
        cited = [(c[1], int(c[2]), int(c[3] or c[2])) for c in CITATION.finditer(text)]
        shown = [at for at, chunk in enumerate(self._chunks) if overlaps(chunk, cited)]
        numbers = numbers_in(said)
        claims = bool(names or paths or cited or numbers) or _OF_THIS.match(said) is not None
        known = (
            (shown or not cited)
            and self._names.issuperset(names)
            and self._numbers.issuperset(numbers)
            and all(any(path in text for text in self._texts) for path in paths)
        )
        if known:
            nearness = self._matcher.nearness(_JOINING.sub(" ", said))
            best = int(nearness.argmax())
            if nearness[best] >= NEAR:
                cited_best = max(shown, key=nearness.__getitem__, default=best)
                return self._supported(text, cited_best if nearness[cited_best] >= NEAR else best)
        return Sentence(text, "unsupported" if claims else "general")

    def _judge_block(self, text: str) -> Sentence:
        lines = [line.strip(_COMMENT) for line in text.split("\n")[1:] if re.search(r"\w", line)]
        found = [self._lines[line] for line in lines if line in self._lines]
        if lines and len(found) >= QUOTED * len(lines):
            return self._supported(text, max(set(found), key=found.count))
        return Sentence(text, "unsupported" if len(found) >= ALTERED * len(lines) else "general")

    def _supported(self, text: str, at: int) -> Sentence:
        chunk = self._chunks[at]
        return Sentence(text, "supported", chunk.path, chunk.start_line, chunk.end_line)


def judge_all(answer: str, chunks: Sequence[Chunk]) -> list[Sentence]:
    """The sentences of `answer` that say something, judged by `chunks`."""
    grounding = Grounding(chunks)
    return [one for text in sentences_of(answer) if (one := grounding.judge(text))]


def is_about(question: str, answer: str, chunks: Sequence[Chunk]) -> bool:
    """Whether `answer` is one to `question`: by the words of the question that `chunks`, which were
    sent, have as well, the rarer the more, if it says them or cites lines with them; and by
    whether it cites those chunks.

    Nothing is told of an answer that cites nothing, or of a question in other words than the code.
    """
    cited = [(one.path, one.start, one.end) for one in find_citations(answer)]
    texts = [stems_in(f"{chunk.path}\n{chunk.content}") for chunk in chunks]
    counts = {stem: sum(stem in text for text in texts) for stem in stems_in(question)}
    weights = {stem: log(1 + len(texts) / count) for stem, count in counts.items() if count}
    if not cited or len(weights) < 2:
        return True
    said = stems_in(CITATION.sub(" ", answer))
    for path, start, end in cited:
        for chunk in chunks:
            if overlaps(chunk, [(path, start, end)]):
                first = chunk.start_line
                lines = chunk.content.split("\n")[max(0, start - first) : end - first + 1]
                said |= stems_in("\n".join([path, *lines]))
    share = sum(weights[stem] for stem in said & weights.keys()) / sum(weights.values())
    shown = sum(any(overlaps(chunk, [one]) for chunk in chunks) for one in cited) / len(cited)
    return share + CITES * shown >= ABOUT


def as_data(judged: Sequence[Sentence], about: bool = True) -> dict[str, Any]:
    """What is kept and told of an answer's sentences: `TurnRecord.grounding`."""
    counts = Counter(one.verdict for one in judged)
    return {
        "supported": counts["supported"],
        "claims": counts["supported"] + counts["unsupported"],
        "sentences": [asdict(one) for one in judged],
        "about": about,
    }


def what_is_not_known(
    judged: Iterable[Sentence], search: SearchResult | None, chunks: Sequence[Chunk]
) -> str:
    """Where most of what is claimed has no evidence: that, what was searched, and what was found
    first, as sentences with citations; else ''. The code may answer all the same."""
    claims = [one for one in judged if one.verdict != "general"]
    without = [one.text for one in claims if one.verdict != "supported"]
    if len(claims) < FEWEST_CLAIMS or len(without) <= (1 - UNKNOWN_BELOW) * len(claims):
        return ""
    told = "Most of what this answer says is not backed by the code that was found. "
    if sum(bool(CITATION.search(text)) for text in without) >= len(without) / 2:
        told = "This answer cites lines that do not show what it says, or that were not sent. "
    places = [cite(chunk.path, chunk.start_line, chunk.end_line) for chunk in chunks[:NEAREST]]
    if search:
        words = ", ".join(f"“{word}”" for word in search.query.words)
        files = search.coverage.partition(", ")[0]
        told += f"Searched: {files}{f' for {words}' if words else ''}. "
        units = [hit.unit for hit in search.units[:NEAREST]]
        places = [f"{one.qualified_name} {cite_unit(one)}" for one in units]
    return f"{told}Found first: {', '.join(places)}."


def overlaps(chunk: Chunk, cited: Iterable[tuple[str, int, int]]) -> bool:
    return any(
        chunk.path == path and chunk.start_line <= end and start <= chunk.end_line
        for path, start, end in cited
    )


# An answer in sentences: lists, tables and code blocks included.

LONGEST = 2_000
"""Characters after which a sentence is taken as it is: its end is not looked for beyond."""

_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]*(?:\1(?!`)|$)")
_CITED, _CODE = "\x01", "\x02"
_MARKER = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+|>[ \t]*)(?=\S)")
_END = re.compile(
    rf"(?<!\be\.g)(?<!\bi\.e)[.!?][\"')*_]*(?:[ ]?{_CITED}++)*+\s+(?=[A-Z0-9\"'(*_{_CODE}])"
    r"|\n[ \t]*\n\s*(?=\S)"
    r"|\n(?=[ \t]*(?:(?:[-*+>]|\d{1,3}[.)])[ \t]|#{1,6} |\||`{3}|~{3}))"
)
_LINE = re.compile(r"[ \t]*(?:#{1,6} |\|)[^\n]*\n\s*(?=\S)")


def sentences_of(text: str) -> list[str]:
    """All sentences of `text`, which join to it again.

    A code block is one sentence, as is a heading, a row of a table, and the mark before an item of
    a list.
    """
    found, at = [], 0
    while at < len(text):
        end = _end_of_sentence(text, at)
        found.append(text[at:end])
        at = end
    return found


def _end_of_sentence(text: str, start: int) -> int:
    near = text[start : start + LONGEST]
    fence, inside = next_fence("", near.split("\n", 1)[0])
    if inside:
        return _end_of_block(text, start, fence)
    for pattern in (_MARKER, _LINE):
        if match := pattern.match(near):
            return start + match.end()
    masked = _SPAN.sub(lambda span: _CODE * len(span[0]), near)
    masked = CITATION.sub(lambda cited: _CITED * len(cited[0]), masked)
    match = _END.search(masked)
    return start + (match.end() if match else len(near))


def _end_of_block(text: str, start: int, fence: str) -> int:
    end = text.find("\n", start) + 1
    while fence and end:
        start, end = end, text.find("\n", end) + 1
        fence, _ = next_fence(fence, text[start : end - 1 if end else None])
    return end or len(text)
