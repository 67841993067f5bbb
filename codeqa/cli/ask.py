"""`codeqa ask`: one question and its answer, or a follow-up."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import click

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
from codeqa.cli.somewhere import done
from codeqa.errors import UsageError
from codeqa.types import MODES


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
    values = {**chosen, "question": question, "mode": mode or "", "go_on": go_on}
    waiting = Waiting()
    waiting.show("Opening the index…")
    with (
        closing(waiting),
        closing(done("ask", repos, values, local or bool(chosen["model"]), rev)) as events,
    ):
        told = watched(events, waiting)
        try:
            return print_whole(question, told) if as_json else print_answer(told)
        except KeyboardInterrupt:
            waiting.close()
            click.echo()
            click.echo("Stopped; what was answered so far is kept for --continue.", err=True)
            return FAILED
