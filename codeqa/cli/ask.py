"""`codeqa ask`, `codeqa search` and `codeqa review`: what is asked of the code in words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import fields
from typing import Any, TextIO, get_args, get_type_hints

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
from codeqa.chat.options import QuestionOptions
from codeqa.chat.record import Done, TurnRecord
from codeqa.cli import served
from codeqa.cli.command import (
    DONE,
    FAILED,
    command,
    json_option,
    model_options,
    repos_option,
    rev_option,
    together,
    where_options,
)
from codeqa.cli.console import Line, PlainText, print_either, print_json, visible
from codeqa.errors import CodeQAError, UsageError, error_from
from codeqa.text import counted, has_tag
from codeqa.types import APP, EXTRACTIVE, KINDS

FAULT_OF_MODELS = ("model", "context_length", "settings")
"""Codes of errors that an answer without a model does not meet."""

DETAILS = (
    "mode", "model", "host", "tokens", "generator", "reranker", "hyde", "stages", "notice",
    "coverage", "citations",
)  # fmt: skip
"""What `--json` gives beside the question and the answer."""

WHY_SHOWN = 3
"""Reasons printed per hit; the rest is in `--json`."""
MOST_HITS = 300
MOST_LINES = 65
"""Lines of an answer without a model that a terminal shows at once."""
WITHOUT_MODEL = (EXTRACTIVE, APP)
"""What writes answers without a model."""


def question_options(*names: str) -> list[Callable[..., Any]]:
    """Return the options of the terminal for these fields of QuestionOptions; without `names` for
    all that have one."""
    hints, options = get_type_hints(QuestionOptions), []
    for field in fields(QuestionOptions):
        flag, help_text = field.metadata["flag"], field.metadata["help"]
        if not flag or (names and field.name not in names):
            continue
        if hints[field.name] is bool:
            options.append(click.option(flag, field.name, is_flag=True, help=help_text))
        else:
            choices = click.Choice([*filter(None, get_args(hints[field.name]))])
            options.append(click.option(flag, field.name, type=choices, help=help_text))
    return options


ranking_options = together(*question_options("rerank", "hyde"))


@command(
    "ask",
    [
        'codeqa ask "how are blueprints registered?"',
        'codeqa ask "what does the scrape loop do?" --repo ~/src/prometheus --rerank',
        'codeqa ask --repo flask --repo celery "how is configuration loaded?"   of both at once',
        'codeqa ask -c "and who calls it?"          goes on from what was found before',
        'codeqa ask "where are sessions opened?" --model ollama/qwen3',
        'codeqa ask --deep "why are tasks lost?"    the model looks further for longer',
        'codeqa ask --rev v2.3 "how are sessions signed?"   as it was at that tag',
        "pytest 2>&1 | codeqa ask -                  asks about the traceback in it",
    ],
)
@click.argument("question")
@where_options
@together(*question_options())
@click.option("--deep", "effort", flag_value="deep", help="The same as --effort deep.")
@model_options
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

    QUESTION may hold filters and point at files, folders and definitions, as in 'codeqa search';
    '-' reads it from standard input. With '/files' or '/all src/*.py' in front the answer is made
    from whole files.
    """
    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not question.strip():
        raise UsageError("The question is empty.", "Write what you want to know, in quotes.")
    options = {name: "" if value is None else value for name, value in options.items()}
    options |= {"question": question, "retrieval": "auto", "use_model": model != "none"}
    if not go_on:  # a first question is searched for unless it is small talk
        options |= {"question": f"@codebase {question}", "tag_is_default": not has_tag(question)}
    waiting = Line()
    waiting.show("Searching the code…")
    # Which model a server asks is not for the terminal to say.
    chosen = model if options["use_model"] else ""
    with closing(waiting):
        try:
            events = None if local or rev or chosen else served.ask(repos, options, go_on)
            if events is None:
                from codeqa.cli.local import ask

                events = ask(repos, rev, options, chosen, go_on)
            with closing(events):
                answering = watched(events, waiting, options["use_model"])
                if as_json:
                    return _print_whole(question, answering)
                return _print_answer(answering, options["whole_code"])
        except KeyboardInterrupt:
            waiting.close()
            click.echo()
            click.echo("Stopped; what was answered so far is kept for --continue.", err=True)
            return FAILED


@command(
    "search",
    [
        'codeqa search "parse the request body"',
        'codeqa search "Router.add" --kind method --lang go --top 5',
        'codeqa search "session cookie" --path src/flask --json',
        'codeqa search --repo flask --repo celery "session cookie"',
        'codeqa search "who may see a page?" --hyde two   with drafts by the chosen model',
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
@click.option("--lang", metavar="LANGUAGE", help="Only files in this language, as 'python'.")
@click.option("--path", default="", help="Only paths that begin so, or match this pattern.")
@click.option(
    "--top", type=click.IntRange(1, MOST_HITS), default=10, metavar="N", help="Hits; default 10."
)
@click.option(
    "--guess", default="", help="Code as you expect it, to search by; '-' reads standard input."
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
    filters = [f"{name}:{value}" for name in ("kind", "lang") if (value := values.pop(name))]
    values["question"] = " ".join([values["question"], *filters])
    values["hyde"] = values["hyde"] or "off"
    if values["guess"] == "-":
        values["guess"] = sys.stdin.read()
    found = served.call("/api/search", values, repos, rev, local)
    if as_json:
        print_json(found)
        return
    if not found["hits"]:
        click.echo("Nothing was found. Use other words or fewer filters.", err=True)
    for number, hit in enumerate(found["hits"], start=1):
        click.echo(_hit_text(number, hit))
    notes = [*_search_notes(found["coverage"], found["reranker"]), found["notice"]]
    if shown := "\n".join(filter(None, notes)):
        click.echo(f"\n{shown}", err=True)


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
    """Find out how hard an issue is, and what it takes: knowledge, and changes to which files.

    A language model reads the code for it; without one you get the files and tests that it likely
    concerns, and who wrote them. FILE holds the issue; '-' reads standard input.
    """
    from codeqa.cli.local import engine_of
    from codeqa.review.report import IssueReport
    from codeqa.review.reviewer import Reviewer

    title, _, body = file.read().strip().partition("\n")
    with engine_of(repos, rev) as engine:
        if model not in ("", "none"):
            engine.models.prefer(model)
        asked = None if model == "none" else engine.models.answer_model()
        reviewer = Reviewer(engine.toolbox, asked, engine.settings.config_dir)
        for piece in reviewer.review(title.lstrip("# "), body):
            if isinstance(piece, ToolStep):
                click.echo(f"  {visible(piece.summary)}", err=True)
            elif isinstance(piece, IssueReport):
                print_either(as_json, piece.model_dump(), visible(piece.text))


def watched(events: Iterator[Event], waiting: Line, use_model: bool) -> Iterator[Event]:
    """Yield the events; show what is going on meanwhile, and raise errors."""
    for event in events:
        waiting.close()
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
            waiting.show(f"{event.text}…")
        elif isinstance(event, Drafting | Generating | Thought | ToolStep | Waiting):
            waiting.show("Waiting for the language model…" if use_model else "Writing the answer…")
        yield event


def _print_whole(question: str, events: Iterator[Event]) -> int:
    """Print one object when the answer is complete."""
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


def _print_answer(events: Iterator[Event], all_of_it: bool) -> int:
    """Print the answer as it comes, without a model and on a terminal no more of it than is read at
    once unless `all_of_it`; notes go to stderr, so that a pipe gets the answer only."""
    text, room = "", MOST_LINES
    plain = PlainText() if sys.stdout.isatty() else None

    def show(shown: str) -> None:
        nonlocal room
        lines = shown.splitlines(keepends=True)
        if 0 < room <= len(lines):
            lines[room - 1 :] = ["… The rest: ask with --all."]
        click.echo("".join(lines[: max(0, room)]), nl=False)
        room -= shown.count("\n")

    try:
        for event in events:
            match event:
                case Generating(generator):
                    if all_of_it or not plain or generator != EXTRACTIVE:
                        room = sys.maxsize
                case Token(piece):
                    # Blank lines wait for what follows them: the last ones separate nothing.
                    shown = len(text.rstrip("\n"))
                    text += piece
                    new = text[shown : len(text.rstrip("\n"))]
                    show(plain.feed(new) if plain else new)
                case Stopped():
                    click.echo()
                    return FAILED
                case Done(record):
                    show(f"{plain.feed('', last=True) if plain else ''}\n")
                    if notes := "\n".join(_notes(record, text)):
                        click.echo(f"\n{visible(notes)}", err=True)
    except CodeQAError:
        if text:
            click.echo()
        raise
    return DONE


def _notes(record: TurnRecord, answer: str) -> Iterator[str]:
    """Yield how the answer came about, a line each."""
    coverage = record.coverage
    yield from _search_notes("" if coverage in answer else coverage, record.reranker)
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
    wrong = []
    for one in record.citations:
        last = f"-{one.end}" if one.end != one.start else ""
        if not one.verified:
            wrong.append(f"{one.path}:{one.start}{last}, {one.problem}")
    if wrong:
        yield f"Not verified: {'; '.join(wrong)}"


def _hit_text(number: int, hit: Mapping[str, Any]) -> str:
    place = f"{hit['path']}:{hit['start_line']}-{hit['end_line']}"
    name = hit["qualified_name"] or hit["name"]
    lines = [f"{number:>2}  {place}  {hit['kind']} {name}  {hit['score']:.3f}"]
    if signature := " ".join(hit["signature"].split()):
        lines.append(f"    {signature}")
    if hit["why"]:
        lines.append(f"    why: {'; '.join(hit['why'][:WHY_SHOWN])}")
    return visible("\n".join(lines))


def _search_notes(coverage: str, reranker: str) -> Iterator[str]:
    """Yield what was searched, and what ordered it; nothing for ''."""
    if coverage:
        yield f"Searched: {coverage}"
    if reranker:
        yield f"Reranked: {reranker}"
