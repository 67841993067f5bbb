"""Prints an answer of the engine on the terminal, as it comes or as one object."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from codeqa.cli.command import DONE, FAILED
from codeqa.cli.console import PlainText, Waiting, print_json, search_notes, visible
from codeqa.errors import CodeQAError, error_from
from codeqa.types import Event

FAULT_OF_MODELS = ("model", "context_length", "settings")
"""Codes of errors that an answer without a model does not meet."""

TOLD = (
    "mode", "model", "host", "tokens", "generator", "reranker", "hyde", "stages", "notice",
    "coverage", "citations", "grounding",
)  # fmt: skip
"""What `--json` gives beside the question and the answer."""


def watched(events: Iterator[Event], waiting: Waiting, use_model: bool) -> Iterator[Event]:
    """The events; what is going on meanwhile is shown, and errors are raised."""
    for event in events:
        if event.kind in ("classified", "drafted"):
            waiting.show("Searching the code…")
        elif event.kind == "drafting":
            does = "puts the files in order" if event.data["name"] == "order" else "drafts"
            waiting.show(f"{event.data['model']} {does}…")
        elif event.kind == "generating":
            waiting.show("Waiting for the answer…")
        elif event.kind == "thought":
            waiting.show("The model thinks…")
        elif event.kind == "looked_up":
            waiting.close()
            click.echo(f"  {visible(event.data['summary'])}", err=True)
            waiting.show("Waiting for the answer…")
        else:
            waiting.close()
        if event.kind == "error":
            error = error_from(event.data)
            if use_model and error.code in FAULT_OF_MODELS:
                error.hint = f"{error.hint} Or ask with --no-model.".strip()
            raise error
        yield event


def print_whole(question: str, events: Iterator[Event]) -> int:
    """Print one object when the answer is complete."""
    answer, status = "", FAILED
    for event in events:
        if event.kind == "token":
            answer += str(event.data["text"])
        elif event.kind == "done":
            told = {name: event.data.get(name) for name in TOLD}
            print_json({"question": question, "answer": answer, **told})
            status = DONE
    return status


def print_answer(events: Iterator[Event]) -> int:
    """Print the answer as it comes; notes go to stderr, so that a pipe gets the answer only."""
    text = ""
    plain = PlainText() if sys.stdout.isatty() else None
    try:
        for event in events:
            if event.kind == "token":
                # Blank lines wait for what follows them: the last ones separate nothing.
                shown = len(text.rstrip("\n"))
                text += event.data["text"]
                new = text[shown : len(text.rstrip("\n"))]
                click.echo(plain.feed(new) if plain else new, nl=False)
                sys.stdout.flush()
            elif event.kind == "stopped":
                click.echo()
                return FAILED
            elif event.kind == "done":
                click.echo()
                if notes := "\n".join(_notes(event.data, text)):
                    click.echo(f"\n{visible(notes)}", err=True)
    except CodeQAError:
        if text:
            click.echo()
        raise
    return DONE


def _notes(done: Mapping[str, Any], answer: str) -> Iterator[str]:
    """How the answer came about, a line each."""
    coverage = done.get("coverage", "")
    told = "" if coverage in answer else coverage
    yield from search_notes(told, done.get("stages") or (), done.get("reranker", ""))
    if model := done.get("model"):
        tokens, cost = done.get("tokens") or {}, ""
        if tokens:
            about = "about " if tokens.get("estimated") else ""
            cost = f", {about}{tokens['prompt']:,} tokens read and {tokens['completion']:,} written"
        yield f"Model: {model} at {done.get('host')}{cost}"
    if notice := done.get("notice"):
        yield str(notice)
    wrong = [c for c in done.get("citations", ()) if not c["verified"]]
    if wrong:
        places = []
        for one in wrong:
            last = f"-{one['end']}" if one["end"] != one["start"] else ""
            places.append(f"{one['path']}:{one['start']}{last}, {one['problem']}")
        yield f"Not verified: {'; '.join(places)}"
    grounding = done["grounding"]
    if claims := grounding["claims"]:
        shown = f"{grounding['supported']} of {claims}"
        yield f"Evidence in the code that was sent: {shown} sentences."
