"""Serve the page in which questions about a repository are asked: `python app.py [REPO]`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click

from codeqa.cli.command import front_door, model_option
from codeqa.environment import with_home
from codeqa.errors import IndexMissingError, UsageError
from codeqa.settings import load_settings
from codeqa.web.app import create_app

__all__ = ["create_app", "generate_context", "main"]


def generate_context(query: str, rerank: bool | str = False) -> str:
    """The context block for `query` from the repository used last.

    `rerank` may also be the text `true`, `True` or `1`, as forms send it. Raises
    IndexMissingError when none has been indexed.
    """
    from codeqa.engine import open_engine
    from codeqa.repositories import last_used
    from codeqa.search import parse_rerank

    settings = load_settings()
    repository = last_used(settings)
    if repository is None:
        raise IndexMissingError(
            "No repository has been indexed.", "Run `python create_tables.py REPO` first."
        )
    with closing(open_engine(settings, repository)) as engine:
        return engine.chat.build_context(query, parse_rerank(rerank)).text


@front_door(
    "app.py",
    [
        "python app.py ~/src/flask",
        "python app.py ~/src/flask --port 8080 --open",
        "python app.py ~/src/flask --model ollama/qwen3",
        "python app.py                the repository used last",
    ],
)
@click.argument("repo", required=False)
@click.option("--host", help="Address to serve on; any but this machine's needs a token.")
@click.option("--port", type=int, help="Port to serve on; default 5001.")
@model_option
@click.option("--open/--no-open", "open_browser", help="Open the page in the browser.")
def main(
    repo: str | None, host: str | None, port: int | None, model: str, open_browser: bool
) -> None:
    """Serve the page in which questions about a repository are asked.

    A repository without an index is indexed first. Without REPO the last one used is opened,
    else a list.
    """
    from codeqa.cli.serve import run_page

    repository = with_home(Path(repo)) if repo else None
    if repository is not None and not repository.is_dir():
        raise UsageError(f"{repo} is not a folder.", "Give the folder that holds the source code.")
    settings = load_settings(repository, host=host, port=port)
    run_page(settings, repository, model=model, open_browser=open_browser)


if __name__ == "__main__":
    sys.exit(main())
