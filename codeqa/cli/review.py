"""`codeqa review`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click

from codeqa.cli.command import command, json_option, model_option, repo_option
from codeqa.cli.console import print_either, visible
from codeqa.cli.repos import chosen_repository
from codeqa.errors import UsageError
from codeqa.settings import load_settings


@command(
    "review",
    [
        'codeqa review --title "Sessions are lost after a restart" --body "Since 3.1 …"',
        "codeqa review issue.md                 the first line is the title",
        "gh issue view 12 | codeqa review -     from standard input",
    ],
)
@click.argument("file", required=False)
@click.option("--title", default="", help="Title of the issue.")
@click.option("--body", default="", help="Text of the issue.")
@repo_option
@model_option
@click.option("--no-model", is_flag=True, help="Likely files, tests and people alone.")
@json_option
def review_command(
    file: str | None,
    title: str,
    body: str,
    repo: str | None,
    model: str,
    no_model: bool,
    as_json: bool,
) -> None:
    """Find out what an issue takes: how hard it is, what one has to know, which files change.

    A language model searches the code with tools, where one is chosen; else the likely files,
    tests and people are told. FILE holds the issue, '-' reads it from standard input.
    """
    if model and no_model:
        raise UsageError("--model and --no-model exclude each other.", "Leave one out.")
    from codeqa.engine import open_engine
    from codeqa.review import IssueReport, Reviewer

    if file:
        first, _, rest = _read(file).strip().partition("\n")
        title, body = title or first.lstrip("# "), "\n\n".join(filter(None, (body, rest)))
    root = chosen_repository(load_settings(), repo)
    settings = load_settings(root)
    with closing(open_engine(settings, root)) as engine:
        if model:
            engine.models.prefer_named(model)
        asked = None if no_model else engine.models.answer_model()
        for told in Reviewer(engine.toolbox, asked, settings.config_dir).review(title, body):
            if not isinstance(told, IssueReport):
                click.echo(f"  {visible(told.summary)}", err=True)
            else:
                print_either(as_json, told.model_dump(), visible(told.text))


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return Path(file).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.", "Give a text file.") from None
