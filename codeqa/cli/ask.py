"""`codeqa ask`, `codeqa search` and `codeqa review`: questions about the code in words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import fields
from typing import Any, Literal, TextIO, get_args, get_origin, get_type_hints

import click

from codeqa.chat.options import QuestionOptions
from codeqa.cli import served
from codeqa.cli.command import (
    FAILED,
    command,
    json_option,
    model_options,
    repos_option,
    rev_option,
    together,
    where_options,
)
from codeqa.cli.console import Line, print_either, print_json, search_notes, visible
from codeqa.errors import UsageError
from codeqa.text import has_tag
from codeqa.types import KINDS

WHY_SHOWN = 3
"""Reasons printed per hit; the rest is in `--json`."""
MOST_HITS = 300


def question_options(*names: str) -> list[Callable[..., Any]]:
    """Return the options of the terminal for the fields `names` of QuestionOptions, or for all."""
    hints, options = get_type_hints(QuestionOptions), []
    for field in fields(QuestionOptions):
        flag, help_text = field.metadata["flag"], field.metadata["help"]
        if not flag or (names and field.name not in names):
            continue
        form = option_form(hints[field.name])
        options.append(click.option(flag, field.name, help=help_text, **form))
    return options


def option_form(hint: Any) -> dict[str, Any]:
    """Return click's arguments for an option with this type. Raises TypeError for other types."""
    if hint is bool:
        return {"is_flag": True}
    if hint is str:
        return {"type": str}
    if hint == tuple[str, ...]:
        return {"multiple": True}
    if get_origin(hint) is Literal:
        return {"type": click.Choice(list(filter(None, get_args(hint))))}
    raise TypeError(f"The terminal has no option for {hint}: teach it to option_form.")


ranking_options = together(*question_options("rerank", "hyde"))


@command(
    "ask",
    [
        'codeqa ask "how are blueprints registered?"',
        'codeqa ask "what does the scrape loop do?" --repo ~/src/prometheus --rerank',
        'codeqa ask --repo flask --repo celery "how is configuration loaded?"   both at once',
        'codeqa ask -c "and who calls it?"          continues the last conversation',
        'codeqa ask "where are sessions opened?" --model ollama/qwen3',
        'codeqa ask --deep "why are tasks lost?"    the model reads more and takes longer',
        'codeqa ask --rev v2.3 "how are sessions signed?"   as it was at that tag',
        "pytest 2>&1 | codeqa ask -                  explains the traceback in it",
    ],
)
@click.argument("question")
@where_options
@together(*question_options())
@click.option("--deep", "effort", flag_value="deep", help="The same as --effort deep.")
@model_options
@click.option("--continue", "-c", "go_on", is_flag=True, help="Continue the last conversation.")
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

    QUESTION may hold filters and point at files, folders and definitions, as in 'codeqa search';
    '-' reads it from standard input. If it begins with '/files' or '/all src/*.py', whole files
    are read for the answer.
    """
    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not question.strip():
        raise UsageError("The question is empty.", "Write what you want to know, in quotes.")
    options = {name: "" if value is None else value for name, value in options.items()}
    options |= {"question": question, "retrieval": "auto", "use_model": model != "none"}
    if not go_on:  # a first question searches the code unless it is small talk
        options |= {"question": f"@codebase {question}", "tag_is_default": not has_tag(question)}
    progress = Line()
    progress.show("Searching the code…")
    # The terminal cannot choose the model of a running server.
    chosen = model if options["use_model"] else ""
    with closing(progress):
        try:
            events = None if local or rev or chosen else served.ask(repos, options, go_on)
            if events is None:
                from codeqa.cli.local import ask

                events = ask(repos, rev, options, chosen, go_on)
            from codeqa.cli.answers import print_answer, print_whole, watched

            with closing(events):
                answering = watched(events, progress, options["use_model"])
                if as_json:
                    return print_whole(question, answering)
                return print_answer(answering, options["whole_code"])
        except KeyboardInterrupt:
            progress.close()
            click.echo()
            click.echo("Stopped. --continue goes on from the answer so far.", err=True)
            return FAILED


@command(
    "search",
    [
        'codeqa search "parse the request body"',
        'codeqa search "Router.add" --kind method --lang go --top 5',
        'codeqa search "session cookie" --path src/flask --json',
        'codeqa search --repo flask --repo celery "session cookie"',
        'codeqa search "who may see a page?" --hyde two   with drafts of the chosen model',
        'codeqa search "who may see a page?" --guess - < draft.py   with a draft of your own',
    ],
)
@click.argument("question")
@where_options
@click.option(
    "--kind",
    type=click.Choice(sorted(KINDS)),
    metavar="KIND",
    help=f"Only this kind: {', '.join(sorted(KINDS))}.",
)
@click.option("--lang", metavar="LANGUAGE", help="Only files in this language, such as 'python'.")
@click.option(
    "--path", default="", help="Only paths that begin with this or match it as a pattern."
)
@click.option(
    "--top",
    type=click.IntRange(1, MOST_HITS),
    default=10,
    metavar="N",
    help="How many hits; default 10.",
)
@click.option(
    "--guess", default="", help="Code that you expect to find; '-' reads it from standard input."
)
@ranking_options
def search_command(
    repos: tuple[str, ...], rev: str, local: bool, as_json: bool, **values: Any
) -> None:
    """Find the code that QUESTION is about.

    QUESTION may hold filters (lang:go, path:src/, -path:tests, kind:class) and point at files,
    folders and definitions (@src/app.py, @src/flask/, @Flask.route).
    """
    if not values["question"].strip():
        raise UsageError("The question is empty.", "Write what to look for, in quotes.")
    for name in ("kind", "lang"):
        if value := values.pop(name):
            values["question"] += f" {name}:{value}"
    values["hyde"] = values["hyde"] or "off"
    if values["guess"] == "-":
        values["guess"] = sys.stdin.read()
    result = served.call("/api/search", values, repos, rev, local)
    if as_json:
        print_json(result)
        return
    if not result["hits"]:
        click.echo("Nothing was found. Use other words or fewer filters.", err=True)
    for number, hit in enumerate(result["hits"], start=1):
        click.echo(_hit_text(number, hit))
    notes = list(search_notes(result["coverage"], result["reranker"]))
    notes.append(result["notice"])
    if text := "\n".join(filter(None, notes)):
        click.echo(f"\n{text}", err=True)


@command(
    "review",
    [
        "codeqa review issue.md                 the first line is the title",
        "gh issue view 12 | codeqa review -     from standard input",
    ],
)
@click.argument("file", type=click.File(encoding="utf-8", errors="replace"))
@repos_option
@rev_option
@model_options
@json_option
def review_command(
    file: TextIO, repos: tuple[str, ...], rev: str, model: str, as_json: bool
) -> None:
    """Say how hard an issue is, what one must know for it, and which files it changes.

    A language model reads the code for that; without one you get the files and tests that the
    issue likely concerns, and who wrote them. FILE holds the issue; '-' reads standard input.
    """
    from codeqa.chat.events import ToolStep
    from codeqa.cli.local import engine_of
    from codeqa.review.report import IssueReport
    from codeqa.review.reviewer import Reviewer

    title, _, body = file.read().strip().partition("\n")
    with engine_of(repos, rev) as engine:
        if model not in ("", "none"):
            engine.models.prefer(model)
        responder = None if model == "none" else engine.models.answer_model()
        reviewer = Reviewer(engine.toolbox, responder, engine.settings.config_dir)
        for event in reviewer.review(title.lstrip("# "), body):
            if isinstance(event, ToolStep):
                click.echo(f"  {visible(event.summary)}", err=True)
            elif isinstance(event, IssueReport):
                print_either(as_json, event.model_dump(), visible(event.text))


def _hit_text(number: int, hit: Mapping[str, Any]) -> str:
    span = f"{hit['path']}:{hit['start_line']}-{hit['end_line']}"
    name = hit["qualified_name"] or hit["name"]
    lines = [f"{number:>2}  {span}  {hit['kind']} {name}  {hit['score']:.3f}"]
    if signature := " ".join(hit["signature"].split()):
        lines.append(f"    {signature}")
    if hit["why"]:
        lines.append(f"    why: {'; '.join(hit['why'][:WHY_SHOWN])}")
    return visible("\n".join(lines))
