"""Show the events of an answer in the terminal.

`ask` imports this after it has sent the question: a running server answers meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from codeqa.chat.events import (
    Drafting,
    Event,
    Failed,
    Generating,
    Stopped,
    Thought,
    Token,
    ToolStep,
    Waiting,
    as_json,
)
from codeqa.chat.record import Done, TurnRecord
from codeqa.cli.command import DONE, FAILED
from codeqa.cli.console import Line, PlainText, print_json, search_notes, visible
from codeqa.errors import CodeQAError, error_from
from codeqa.text import counted
from codeqa.types import APP, EXTRACTIVE

FAULT_OF_MODELS = ("model", "context_length", "settings")
"""Codes of errors that cannot happen in an answer without a model."""

DETAILS = (
    "mode", "model", "host", "tokens", "generator", "reranker", "hyde", "stages", "notice",
    "coverage", "citations",
)  # fmt: skip
"""Fields that `--json` prints beside the question and the answer."""

MOST_LINES = 65
"""Lines of an answer without a model that a terminal shows."""
WITHOUT_MODEL = (EXTRACTIVE, APP)
"""Responders that use no model."""


def watched(events: Iterator[Event], progress: Line, use_model: bool) -> Iterator[Event]:
    """Yield the events, show what CodeQA is doing between them, and raise errors."""
    for event in events:
        progress.close()
        match event:
            case Failed(failure):
                error = error_from(as_json(failure))
                if use_model and error.code in FAULT_OF_MODELS:
                    error.hint = f"{error.hint} Or ask with --no-model.".strip()
                raise error
            case ToolStep():
                click.echo(f"  {visible(event.summary)}", err=True)
            case Generating(generator):
                use_model = generator not in WITHOUT_MODEL
        if isinstance(event, Waiting) and event.seconds:
            progress.show(f"{event.text}…")
        elif isinstance(event, Drafting | Generating | Thought | ToolStep | Waiting):
            progress.show("Waiting for the language model…" if use_model else "Writing the answer…")
        yield event


def print_whole(question: str, events: Iterator[Event]) -> int:
    """Print the question, the answer and its details as one object once it is complete."""
    answer, status = "", FAILED
    for event in events:
        match event:
            case Token(text):
                answer += text
            case Done(record):
                public = record.public()
                details = {name: public[name] for name in DETAILS}
                print_json({"question": question, "answer": answer, **details})
                status = DONE
    return status


def print_answer(events: Iterator[Event], whole: bool) -> int:
    """Print the answer as it comes, and notes to stderr, so that a pipe gets the answer only."""
    printer = _AnswerPrinter(whole)
    try:
        for event in events:
            match event:
                case Generating(generator):
                    printer.begin(generator)
                case Token(text):
                    printer.add(text)
                case Stopped():
                    click.echo()
                    return FAILED
                case Done(record):
                    printer.end()
                    if notes := "\n".join(_notes(record, printer.text)):
                        click.echo(f"\n{visible(notes)}", err=True)
    except CodeQAError:
        if printer.text:
            click.echo()
        raise
    return DONE


class _AnswerPrinter:
    """Prints an answer; unless `whole`, a terminal gets MOST_LINES of one without a model."""

    def __init__(self, whole: bool) -> None:
        self.text = ""
        self._plain = PlainText() if sys.stdout.isatty() else None
        self._whole = whole or self._plain is None
        self._room = MOST_LINES

    def begin(self, generator: str) -> None:
        if self._whole or generator != EXTRACTIVE:
            self._room = sys.maxsize

    def add(self, text: str) -> None:
        # Blank lines wait for what follows them: the last ones separate nothing.
        start = len(self.text.rstrip("\n"))
        self.text += text
        text = self.text[start : len(self.text.rstrip("\n"))]
        self._print(self._plain.feed(text) if self._plain else text)

    def end(self) -> None:
        self._print(f"{self._plain.feed('', last=True) if self._plain else ''}\n")

    def _print(self, text: str) -> None:
        lines = text.splitlines(keepends=True)
        if 0 < self._room <= len(lines):
            lines[self._room - 1 :] = ["… Add --all to see the rest."]
        click.echo("".join(lines[: max(0, self._room)]), nl=False)
        self._room -= text.count("\n")


def _notes(record: TurnRecord, answer: str) -> Iterator[str]:
    """Yield lines about how the answer was made."""
    coverage = record.coverage
    yield from search_notes("" if coverage in answer else coverage, record.reranker)
    if record.model:
        tokens = record.tokens
        about = "about " if tokens.estimated else ""
        cost = f"{about}{tokens.prompt:,} tokens read and {tokens.completion:,} written"
        if tokens.cost:
            cost += f", ${tokens.cost:.6f}".rstrip("0")
        yield f"Model: {record.model} at {record.host}, {cost}"
    if record.notice:
        yield record.notice
    if record.earlier:
        yield f"Sent along: {counted(len(record.earlier), 'earlier answer')}."
    problems = []
    for citation in record.citations:
        if not citation.verified:
            last = f"-{citation.end}" if citation.end != citation.start else ""
            problems.append(f"{citation.path}:{citation.start}{last}, {citation.problem}")
    if problems:
        yield f"Not verified: {'; '.join(problems)}"
