"""`codeqa ask`: one question and its answer, or a follow-up."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import click

from codeqa.cli import served
from codeqa.cli.answer import print_answer, print_whole, watched
from codeqa.cli.command import (
    FAILED,
    command,
    json_option,
    local_option,
    question_options,
    repos_option,
    rev_option,
)
from codeqa.cli.console import Waiting
from codeqa.errors import UsageError
from codeqa.text.tag import has_tag
from codeqa.types import MODES, Events


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
@repos_option
@rev_option
@question_options
@click.option("--mode", type=click.Choice(MODES), help="What the answer is to be.")
@click.option("--continue", "-c", "go_on", is_flag=True, help="A follow-up: searches if it must.")
@local_option
@json_option
def ask_command(
    question: str,
    repos: tuple[str, ...],
    rev: str,
    chosen: Mapping[str, Any],
    mode: str | None,
    go_on: bool,
    local: bool,
    as_json: bool,
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
    options = {**chosen, "mode": mode or "", **_question(question, go_on)}
    model = options.pop("model")
    waiting = Waiting()
    waiting.show("Opening the index…")
    with (
        closing(waiting),
        closing(_events(repos, rev, options, model, go_on, local)) as events,
    ):
        told = watched(events, waiting, options["use_model"])
        try:
            return print_whole(question, told) if as_json else print_answer(told)
        except KeyboardInterrupt:
            waiting.close()
            click.echo()
            click.echo("Stopped; what was answered so far is kept for --continue.", err=True)
            return FAILED


def _question(typed: str, go_on: bool) -> dict[str, Any]:
    """A first question is searched for unless it is small talk, those that follow where they need
    code."""
    if go_on:
        return {"question": typed, "retrieval": "auto"}
    by_us = {"tag_is_default": not has_tag(typed)}
    return {"question": f"@codebase {typed}", "retrieval": "auto", **by_us}


def _events(
    repos: tuple[str, ...],
    rev: str,
    options: Mapping[str, Any],
    model: str,
    go_on: bool,
    local: bool,
) -> Events:
    """The events of the answer, from a running server or made here. Raises CodeQAError."""
    asked_here = local or rev or model
    events = None if asked_here else served.ask(repos, options, go_on)
    if events is None:
        from codeqa.cli.local import ask

        events = ask(repos, rev, options, model, go_on)
    with closing(events):
        yield from events
