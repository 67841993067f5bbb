"""`codeqa index` and `codeqa serve`."""

from __future__ import annotations

import click

from codeqa.cli.command import MODEL_HELP, cli, command
from codeqa.cli.comments import describe_methods, embed_again, model_for_comments
from codeqa.cli.console import ProgressDisplay, print_summary
from codeqa.cli.repository import chosen_repository, open_repository
from codeqa.errors import UsageError
from codeqa.settings import load_settings


@command(
    cli,
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
    with open_repository(repo) as engine:
        describing = model_for_comments(engine, model, yes=yes) if comments else None
        with ProgressDisplay() as show:
            refine = not no_refine and not comments
            summary = engine.index.run(progress=show, refine=refine, full=full)
        print_summary(summary)
        if describing is not None:
            describe_methods(engine, describing, limit=limit, yes=yes)
            if not no_refine:
                embed_again(engine)


@command(
    cli,
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
@click.option("--model", default="", metavar="MODEL", help=MODEL_HELP)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
def serve_command(
    repo: str | None, host: str | None, port: int | None, model: str, open_browser: bool
) -> None:
    """Serve the page in which questions are asked.

    Without any repository the page lets you choose one.
    """
    from codeqa.web.server import run_page

    repository = chosen_repository(load_settings(), repo, required=False)
    settings = load_settings(repository, host=host, port=port)
    run_page(settings, repository, model=model, open_browser=open_browser)
