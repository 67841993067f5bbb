"""`codeqa ask`: one question and its answer, or a follow-up."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from codeqa.cli.command import MODEL_HELP, REPO_HELP, cli, command
from codeqa.cli.repository import open_repository
from codeqa.console import DONE, FAILED, PlainText
from codeqa.errors import NotFoundError, UsageError, error_from
from codeqa.types import Event

USER = "terminal"
"""Whose conversations the terminal's are; the page does not list them."""


@command(
    cli,
    "ask",
    [
        'codeqa ask "how are blueprints registered?"',
        'codeqa ask "what does the scrape loop do?" --repo ~/src/prometheus --rerank',
        'codeqa ask -c "and who calls it?"          goes on from the code found before',
        'codeqa ask "where are sessions opened?" --model ollama/qwen3',
    ],
)
@click.argument("question")
@click.option("--repo", help=REPO_HELP)
@click.option("--rerank", is_flag=True, help="Let the reranker order what is found.")
@click.option("--model", default="", metavar="MODEL", help=MODEL_HELP)
@click.option("--no-model", is_flag=True, help="Answer from the code alone; nothing is sent.")
@click.option("--mode", default="", metavar="MODE", help="explain, locate, review, plan or change.")
@click.option(
    "--continue", "-c", "go_on", is_flag=True, help="A follow-up: search nothing anew."
)  # fmt: skip
def ask_command(
    question: str,
    repo: str | None,
    rerank: bool,
    model: str,
    no_model: bool,
    mode: str,
    go_on: bool,
) -> int:
    """Answer QUESTION from the code, with citations of files and lines."""
    from codeqa.engine import MODES, parse_choice

    if not question.strip():
        raise UsageError("The question is empty.", "Write what you want to know, in quotes.")
    if model and no_model:
        raise UsageError("--model and --no-model exclude each other.", "Leave one out.")
    if mode and mode not in MODES:
        raise UsageError(f"There is no mode {mode}.", f"Choose one: {', '.join(MODES)}.")
    with open_repository(repo) as engine:
        if model:
            choice = parse_choice(model)
            engine.models.endpoint(choice)  # says now what is wrong with it
            engine.models.prefer(choice)
        # A name per repository: what is cached for a conversation belongs to one of them.
        conversation = f"{USER}-{engine.location.id}"
        if not go_on:  # a new question owes nothing to those before it
            with contextlib.suppress(NotFoundError):
                engine.chat.delete(conversation, USER)
        tagged = go_on or "@codebase" in question
        events = engine.chat.ask(
            question if tagged else f"@codebase {question}",
            rerank=rerank,
            conversation=conversation,
            user=USER,
            mode=mode,
            use_model=not no_model,
        )
        return _print_answer(events)


def _print_answer(events: Iterator[Event]) -> int:
    """Print the answer as it comes; notes go to stderr, so that a pipe gets the answer only."""
    text = ""
    plain = PlainText() if sys.stdout.isatty() else None
    for event in events:
        if event.kind == "token":
            # Blank lines wait for what follows them: the last ones separate nothing.
            shown = len(text.rstrip("\n"))
            text += event.data["text"]
            new = text[shown : len(text.rstrip("\n"))]
            click.echo(plain.feed(new) if plain else new, nl=False)
            sys.stdout.flush()
        elif event.kind == "error":
            if text:
                click.echo()
            raise error_from(event.data)
        elif event.kind == "stopped":
            click.echo()
            return FAILED
        elif event.kind == "done":
            click.echo()
            notes = [*_notes(event.data, text)]
            if notes:
                click.echo("\n" + "\n".join(notes), err=True)
    return DONE


def _notes(done: Mapping[str, Any], answer: str) -> Iterator[str]:
    """How the answer came about, a line each."""
    coverage = done.get("coverage", "")
    if coverage and coverage not in answer:
        yield f"Searched: {coverage}"
    if reranker := done.get("reranker"):
        yield f"Reranked: {reranker}"
    if model := done.get("model"):
        yield f"Model: {model} at {done.get('host')}{_tokens(done.get('tokens') or {})}"
    if notice := done.get("notice"):
        yield str(notice)


def _tokens(tokens: Mapping[str, Any]) -> str:
    if not tokens:
        return ""
    about = "about " if tokens.get("estimated") else ""
    return f", {about}{tokens['prompt']:,} tokens read and {tokens['completion']:,} written"
