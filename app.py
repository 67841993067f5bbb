"""Serve the page in which questions about a repository are asked: `python app.py [REPO]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from codeqa.cli.console import front_door, run_main
from codeqa.errors import IndexMissingError, UsageError
from codeqa.settings import load_settings, with_home
from codeqa.web.app import create_app

__all__ = ["create_app", "generate_context", "main"]


def generate_context(query: str, rerank: bool | str = False) -> str:
    """The context block for `query` from the repository used last.

    `rerank` may also be the text `true`, `True` or `1`, as forms send it. Raises
    IndexMissingError when none has been indexed.
    """
    from codeqa.engine import open_engine
    from codeqa.repositories import recent_repositories
    from codeqa.search import parse_rerank

    settings = load_settings()
    recent = recent_repositories(settings)
    if not recent:
        raise IndexMissingError(
            "No repository has been indexed.", "Run `python create_tables.py REPO` first."
        )
    with closing(open_engine(settings, recent[0])) as engine:
        return engine.chat.build_context(query, parse_rerank(rerank)).text


def main(arguments: Sequence[str] | None = None) -> None:
    """Index the repository if it has no index yet, then serve the page."""
    parser = front_door(
        "python app.py",
        "Serve the page in which questions about a repository are asked. A repository without "
        "an index is indexed first; without one the last one used is opened, else a list.",
        [
            "python app.py ~/src/flask",
            "python app.py ~/src/flask --port 8080 --open",
            "python app.py ~/src/flask --model ollama/qwen3",
            "python app.py                the repository used last",
        ],
    )
    parser.add_argument("repo", nargs="?", help="folder of the repository")
    parser.add_argument("--host", help="address to serve on; any but this machine's needs a token")
    parser.add_argument("--port", type=int, help="port to serve on; default 5001")
    parser.add_argument(
        "--model", default="", help="language model as provider/name; see 'codeqa models'"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument("--no-open", dest="open", action="store_false", help="do not (default)")
    given = parser.parse_args(arguments)
    repository = with_home(Path(given.repo)) if given.repo else None
    if repository is not None and not repository.is_dir():
        raise UsageError(
            f"{given.repo} is not a folder.", "Give the folder that holds the source code."
        )
    from codeqa.web.server import run_page

    settings = load_settings(repository, host=given.host, port=given.port)
    run_page(settings, repository, model=given.model, open_browser=given.open)


if __name__ == "__main__":
    sys.exit(run_main(main, program="app.py"))
