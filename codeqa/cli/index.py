"""`codeqa index` and `codeqa serve`."""

from __future__ import annotations

import contextlib

import click

from codeqa.cli.command import command, model_option
from codeqa.cli.comments import describe_methods, embed_again, model_for_comments
from codeqa.cli.console import ProgressDisplay, print_summary
from codeqa.cli.repository import chosen_repository, repository_at_hand
from codeqa.errors import UsageError
from codeqa.indexing import Indexer
from codeqa.llm import Models
from codeqa.repositories import take_up
from codeqa.settings import load_settings


@command(
    "index",
    [
        "codeqa index                    the repository of the current folder",
        "codeqa index ~/src/flask        another one; later runs read only what changed",
        "codeqa index ~/src/flask --full build everything anew",
        "codeqa index --comments         and let the chosen language model describe the methods",
    ],
)
@click.argument("repo", required=False)
@click.option("--full", is_flag=True, help="Read every file again and rebuild the tables.")
@click.option("--no-refine", is_flag=True, help="Leave the chosen embedding's vectors for later.")
@click.option(
    "--comments",
    is_flag=True,
    help="Let a language model describe the methods in two or three lines each, which are searched "
    "with the code. Says what is sent where, and asks, before anything is.",
)
@click.option(
    "--model",
    default="",
    metavar="MODEL",
    help="With --comments: the model to ask, as provider/name; default: the chosen one.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --comments: describe at most N more methods.",
)
@click.option("--yes", is_flag=True, help="With --comments: send without asking.")
def index_command(
    repo: str | None,
    full: bool,
    no_refine: bool,
    comments: bool,
    model: str,
    limit: int | None,
    yes: bool,
) -> None:
    """Index a repository, or bring its index up to date."""
    if not comments and (model or limit or yes):
        raise UsageError("--model, --limit and --yes go with --comments.", "Add --comments.")
    root = chosen_repository(load_settings(), repo)
    settings = load_settings(root)
    location, models = take_up(settings, root), Models(settings)
    describing = model_for_comments(models, model, yes=yes) if comments else None
    with contextlib.closing(models), ProgressDisplay() as show:
        refine = not no_refine and not comments
        summary = Indexer(settings, location).run(progress=show, refine=refine, full=full)
        show.close()
        print_summary(summary)
        if describing is not None:
            describe_methods(settings, location, describing, limit=limit, yes=yes)
            if not no_refine:
                embed_again(settings, location)


@command(
    "serve",
    [
        "codeqa serve                    the repository of the current folder or the last one",
        "codeqa serve ~/src/flask        index it first if needed, then serve the page",
        "codeqa serve --port 8080 --model ollama/qwen3",
    ],
)
@click.argument("repo", required=False)
@click.option("--host", help="Address to serve on; any but this machine's own needs a token.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port to serve on.")
@model_option
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
def serve_command(
    repo: str | None, host: str | None, port: int | None, model: str, open_browser: bool
) -> None:
    """Serve the page in which questions are asked.

    Without any repository the page lets you choose one.
    """
    from codeqa.web.server import run_page

    settings = load_settings()
    repository = (
        chosen_repository(settings, repo) if repo is not None else repository_at_hand(settings)
    )
    settings = load_settings(repository, host=host, port=port)
    run_page(settings, repository, model=model, open_browser=open_browser)
