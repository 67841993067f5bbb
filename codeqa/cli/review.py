"""`codeqa review`."""

from __future__ import annotations

from typing import TextIO

import click

from codeqa.cli.command import command, json_option, model_options, repos_option, rev_option
from codeqa.cli.console import print_either, visible


@command(
    "review",
    [
        'codeqa review --title "Sessions are lost after a restart" --body "Since 3.1 …"',
        "codeqa review issue.md                 the first line is the title",
        "gh issue view 12 | codeqa review -     from standard input",
    ],
)
@click.argument("file", required=False, type=click.File(encoding="utf-8", errors="replace"))
@click.option("--title", default="", help="Title of the issue.")
@click.option("--body", default="", help="Text of the issue.")
@repos_option
@rev_option
@model_options
@json_option
def review_command(
    file: TextIO | None,
    title: str,
    body: str,
    repos: tuple[str, ...],
    rev: str,
    model: str,
    as_json: bool,
) -> None:
    """Find out what an issue takes: how hard it is, what one has to know, which files change.

    A language model searches the code with tools, where one is chosen; else the likely files,
    tests and people are told. FILE holds the issue, '-' reads it from standard input.
    """
    from codeqa.cli.local import engine_of
    from codeqa.review import IssueReport, Reviewer

    if file:
        first, _, rest = file.read().strip().partition("\n")
        title, body = title or first.lstrip("# "), "\n\n".join(filter(None, (body, rest)))
    with engine_of(repos, rev) as (engine, _):
        if model not in ("", "none"):
            engine.models.prefer_named(model)
        asked = None if model == "none" else engine.models.answer_model()
        reviewer = Reviewer(engine.toolbox, asked, engine.settings.config_dir)
        for told in reviewer.review(title, body):
            if not isinstance(told, IssueReport):
                click.echo(f"  {visible(told.summary)}", err=True)
            else:
                print_either(as_json, told.model_dump(), visible(told.text))
