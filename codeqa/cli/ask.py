"""`codeqa ask`: one question and its answer, or a follow-up."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import click

from codeqa.chat import AskOptions
from codeqa.chat.features import is_greeting
from codeqa.cli.command import (
    DONE,
    FAILED,
    command,
    effort_option,
    hyde_option,
    json_option,
    model_option,
    repo_option,
    rerank_option,
)
from codeqa.cli.console import PlainText, Waiting, print_json, search_notes, visible
from codeqa.cli.repos import chosen_repository
from codeqa.engine import open_engine
from codeqa.errors import CodeQAError, NotFoundError, UsageError, error_from
from codeqa.intents import MODES
from codeqa.llm import parse_choice
from codeqa.settings import load_settings
from codeqa.text.tag import has_tag
from codeqa.types import Event

USER = "terminal"
"""Whose conversations the terminal's are; the page does not list them."""

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
        'codeqa ask -c "and who calls it?"          goes on from what was found before',
        'codeqa ask "where are sessions opened?" --model ollama/qwen3',
        'codeqa ask --deep "why are tasks lost?"    the model reads on with tools first',
        "pytest 2>&1 | codeqa ask -                  asks about the traceback in it",
    ],
)
@click.argument("question")
@repo_option
@effort_option
@click.option("--deep", is_flag=True, help="The same as --effort deep.")
@rerank_option
@hyde_option
@model_option
@click.option("--no-model", is_flag=True, help="Answer from the code alone, without any.")
@click.option("--mode", type=click.Choice(MODES), help="What the answer is to be.")
@click.option("--strict", is_flag=True, help="Let the model say only what the code shows.")
@click.option("--continue", "-c", "go_on", is_flag=True, help="A follow-up: searches if it must.")
@json_option
def ask_command(
    question: str,
    repo: str | None,
    effort: str | None,
    deep: bool,
    rerank: bool,
    hyde: str | None,
    model: str,
    no_model: bool,
    mode: str | None,
    strict: bool,
    go_on: bool,
    as_json: bool,
) -> int:
    """Answer QUESTION from the code, with citations of files and lines.

    QUESTION may hold filters and point at files, folders and definitions, as in 'codeqa search';
    '-' reads it from standard input. With '/files' or '/all src/*.py' in front the answer is made
    from whole files.
    """
    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not question.strip():
        raise UsageError("The question is empty.", "Write what you want to know, in quotes.")
    if deep and effort not in (None, "deep"):
        raise UsageError("--deep and --effort exclude each other.", "Leave one out.")
    if model and no_model:
        raise UsageError("--model and --no-model exclude each other.", "Leave one out.")
    root = chosen_repository(load_settings(), repo)
    waiting = Waiting()
    waiting.show("Opening the index…")
    with closing(waiting), closing(open_engine(load_settings(root), root)) as engine:
        if model:
            engine.models.prefer(parse_choice(model))
            if choice := engine.models.current():
                engine.models.endpoint(choice)  # says now what is wrong with it
        # A name per repository: what is cached for a conversation belongs to one of them.
        conversation = f"{USER}-{engine.location.id}"
        # A new question owes nothing to those before it; thanks for an answer do not put it away.
        if not go_on and not is_greeting(question):
            with suppress(NotFoundError):
                engine.conversations.delete(conversation, USER)
        options = AskOptions(
            question if go_on else f"@codebase {question}",
            user=USER,
            conversation=conversation,
            mode=mode or "",
            effort="deep" if deep else effort or "",
            rerank=rerank,
            hyde=hyde or "",
            strict=strict,
            tag_is_default=not has_tag(question),
            use_model=not no_model,
            retrieval="auto",
        )
        current = None if no_model else engine.models.current()
        events = _watched(engine.chat.ask(options), waiting, str(current or ""))
        try:
            return _print_json(question, events) if as_json else _print_answer(events)
        except KeyboardInterrupt:
            waiting.close()
            click.echo()
            click.echo("Stopped; what was answered so far is kept for --continue.", err=True)
            return FAILED


def _watched(events: Iterator[Event], waiting: Waiting, model: str) -> Iterator[Event]:
    """The events; what is going on meanwhile is shown, and errors are raised."""
    for event in events:
        if event.kind in ("classified", "drafted"):
            waiting.show("Searching the code…")
        elif event.kind == "drafting":
            does = "puts the files in order" if event.data["name"] == "order" else "drafts"
            waiting.show(f"{event.data['model']} {does}…")
        elif event.kind == "generating":
            waiting.show(f"Waiting for {model}…" if model else "Putting the answer together…")
        elif event.kind == "looked_up":
            waiting.close()
            click.echo(f"  {visible(event.data['summary'])}", err=True)
            waiting.show(f"Waiting for {model}…")
        else:
            waiting.close()
        if event.kind == "error":
            error = error_from(event.data)
            if model and error.code in FAULT_OF_MODELS:
                error.hint = f"{error.hint} Or ask with --no-model.".strip()
            raise error
        yield event


def _print_json(question: str, events: Iterator[Event]) -> int:
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


def _print_answer(events: Iterator[Event]) -> int:
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
                if evidence := _evidence(event.data["grounding"]):
                    click.secho(evidence, dim=True, err=True)
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


def _evidence(grounding: Mapping[str, Any]) -> str:
    """How much of the answer is shown by the code that was sent; '' where nothing was claimed."""
    supported, claims = grounding["supported"], grounding["claims"]
    if not claims:
        return ""
    return f"{supported} of {claims} sentences have their evidence in the code that was sent."
