"""`codeqa ask`: one question and its answer, or a follow-up."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import click

from codeqa.cli import served
from codeqa.cli.command import DONE, FAILED, command, model_options, ranking_options, where_options
from codeqa.cli.console import PlainText, Waiting, print_json, search_notes, visible
from codeqa.errors import CodeQAError, UsageError, error_from
from codeqa.text.tag import has_tag
from codeqa.types import EFFORTS, MODES, Event

FAULT_OF_MODELS = ("model", "context_length", "settings")
"""Codes of errors that an answer without a model does not meet."""

TOLD = (
    "mode", "model", "host", "tokens", "generator", "reranker", "hyde", "stages", "notice",
    "coverage", "citations", "grounding",
)  # fmt: skip
"""What `--json` gives beside the question and the answer."""


@command(
    "ask",
    [
        'codeqa ask "how are blueprints registered?"',
        'codeqa ask "what does the scrape loop do?" --repo ~/src/prometheus --rerank',
        'codeqa ask --repo flask --repo celery "how is configuration loaded?"   of both at once',
        'codeqa ask -c "and who calls it?"          goes on from what was found before',
        'codeqa ask "where are sessions opened?" --model ollama/qwen3',
        'codeqa ask --deep "why are tasks lost?"    the model reads on with tools first',
        'codeqa ask --rev v2.3 "how are sessions signed?"   as it was at that tag',
        "pytest 2>&1 | codeqa ask -                  asks about the traceback in it",
    ],
)
@click.argument("question")
@where_options
@click.option(
    "--effort",
    type=click.Choice(EFFORTS),
    help="How much code the answer is given: fast (12,000 characters), normal (8,000 tokens, files "
    "ordered by the model) or deep (24,000; the model reads on with tools); default as "
    "CODEQA_EFFORT says.",
    metavar="NAME",
)
@click.option("--deep", "effort", flag_value="deep", help="The same as --effort deep.")
@ranking_options
@model_options
@click.option("--strict", is_flag=True, help="Let the model say only what the code shows.")
@click.option("--mode", type=click.Choice(MODES), help="What the answer is to be.")
@click.option("--continue", "-c", "go_on", is_flag=True, help="A follow-up: searches if it must.")
def ask_command(
    question: str,
    repos: tuple[str, ...],
    rev: str,
    local: bool,
    as_json: bool,
    model: str,
    go_on: bool,
    **options: Any,
) -> int:
    """Answer QUESTION from the code, with citations of files and lines.

    QUESTION may hold filters and point at files, folders and definitions, as in 'codeqa search',
    and at repositories (@repo:flask); '-' reads it from standard input. With '/files' or
    '/all src/*.py' in front the answer is made from whole files.
    """
    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not question.strip():
        raise UsageError("The question is empty.", "Write what you want to know, in quotes.")
    for name in ("effort", "hyde", "mode"):
        options[name] = options[name] or ""
    options |= {"question": question, "retrieval": "auto", "use_model": model != "none"}
    if not go_on:  # a first question is searched for unless it is small talk
        options |= {"question": f"@codebase {question}", "tag_is_default": not has_tag(question)}
    waiting = Waiting()
    waiting.show("Opening the index…")
    # Which model a server asks is not for the terminal to say.
    chosen = model if options["use_model"] else ""
    with closing(waiting):
        try:
            events = None if local or rev or chosen else served.ask(repos, options, go_on)
            if events is None:
                from codeqa.cli.local import ask

                events = ask(repos, rev, options, chosen, go_on)
            with closing(events):
                told = _watched(events, waiting, options["use_model"])
                return (_print_whole if as_json else _print_answer)(question, told)
        except KeyboardInterrupt:
            waiting.close()
            click.echo()
            click.echo("Stopped; what was answered so far is kept for --continue.", err=True)
            return FAILED


def _watched(events: Iterator[Event], waiting: Waiting, use_model: bool) -> Iterator[Event]:
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


def _print_whole(question: str, events: Iterator[Event]) -> int:
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


def _print_answer(_: str, events: Iterator[Event]) -> int:
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
    wrong = [
        f"{one['path']}:{one['start']}{last}, {one['problem']}"
        for one in done.get("citations", ())
        if not one["verified"]
        for last in [f"-{one['end']}" if one["end"] != one["start"] else ""]
    ]
    if wrong:
        yield f"Not verified: {'; '.join(wrong)}"
    grounding = done["grounding"]
    if claims := grounding["claims"]:
        shown = f"{grounding['supported']} of {claims}"
        yield f"Evidence in the code that was sent: {shown} sentences."
