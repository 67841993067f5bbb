"""What may write the answers beside CodeQA's own parts, each at the seam where they write."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codeqa.chat.citations import CitationWriter, CitedCode
from codeqa.chat.messages import build_messages
from codeqa.chat.values import AnswerPiece, Gathered
from codeqa.code.tools import Toolbox
from codeqa.types import Chunk
from research.evals.answers.cases import Case, says, shown_lines

NOT_SHOWN = "The code that was found does not show it.\n"


@dataclass(frozen=True, slots=True)
class PerfectReader:
    """Knows what is to be said, and says what of it stands in the block, in the files that hold the
    answer: what it leaves out, no model can take from the block either."""

    cases: Mapping[str, Case]
    """By their question."""

    name = "perfect reader"

    def generate(self, asked: Gathered) -> Generator[AnswerPiece, None, None]:
        """Yield a line for each word that is to be said and stands there, and one for each labelled
        place."""
        case = self.cases.get(asked.question)
        lines = list(_readable(case, asked.block.chunks)) if case else []
        yield from lines or [NOT_SHOWN]


def _readable(case: Case, chunks: Sequence[Chunk]) -> Iterator[str]:
    labelled = [
        (_cite(place.span[0], start, end), text)
        for place in case.lines
        for start, end, text in shown_lines(place, chunks)
    ]
    files = {place.span[0] for place in case.lines}
    beside = [(_cite(c.path, c.start_line, c.end_line), c.content) for c in chunks]
    readable = [*labelled, *(one for one in beside if one[0][1:].rpartition(":")[0] in files)]
    for group in case.must_mention:
        told = ((word, at) for word in group for at, text in readable if says(at + text, word))
        if found := next(told, None):
            yield f"- {found[0]} {found[1]}\n"
    for at, _ in labelled:
        yield f"- {at}\n"


def _cite(path: str, start: int, end: int) -> str:
    return f"[{path}:{start}-{end}]"


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """Answers that were collected by hand; citations are treated as a model's are."""

    answers: Mapping[str, str]
    """By their question."""
    toolbox: Toolbox

    name = "recorded"

    def generate(self, asked: Gathered) -> Generator[AnswerPiece, None, None]:
        """Yield the recorded answer, an empty line where there is none."""
        chunks = asked.block.chunks
        writer = CitationWriter(chunks, CitedCode.of(self.toolbox, chunks))
        yield writer.feed(self.answers.get(asked.question, "\n"))
        yield writer.close()


@dataclass(frozen=True, slots=True)
class PromptWriter:
    """Writes what a model would be sent into files, and answers nothing."""

    files: Mapping[str, Path]
    """Where the prompt of each question goes."""

    name = "prompts"

    def generate(self, asked: Gathered) -> Generator[AnswerPiece, None, None]:
        """Write one prompt; yield nothing of weight."""
        if file := self.files.get(asked.question):
            parts = []
            for message in build_messages(asked):
                content = message["content"]
                texts = [content] if isinstance(content, str) else [p["text"] for p in content]
                parts.append(f"===== {message['role']} =====\n" + "\n".join(texts))
            file.write_text("\n\n".join(parts), encoding="utf-8")
        yield "\n"
