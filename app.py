"""Serve the chat about a repository in the browser: `python app.py [REPO]`.

A message with `@codebase` goes through HyDE query expansion, hybrid search (BM25 and vectors) over
the two LanceDB tables and, if switched on in the page, ColBERT reranking. The context is cached, in
Redis if there is one, for later messages. The same as `codeqa serve`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

try:
    from codeqa.cli import main as codeqa
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: run `make setup`, then .venv/bin/python app.py")

if TYPE_CHECKING:
    from flask import Flask

    from codeqa.engine import Engine
    from codeqa.settings import Settings

__all__ = ["create_app", "generate_context", "main"]


def create_app(
    settings: Settings | None = None, repository: Path | None = None, engine: Engine | None = None
) -> Flask:
    """Create the WSGI application: `codeqa.web.app.create_app`."""
    from codeqa.web.app import create_app

    return create_app(settings, repository, engine)


def generate_context(query: str, rerank: bool | str = False) -> str:
    """Return the context block for `query` from the repository used last.

    `rerank` may also be a text, as forms send it: `true`, `True` or `1`. Raises IndexMissingError
    when no repository has been indexed.
    """
    from codeqa.engine import open_engine
    from codeqa.errors import IndexMissingError
    from codeqa.repositories import last_used
    from codeqa.search.rerank import parse_rerank
    from codeqa.settings import load_settings

    settings = load_settings()
    repository = last_used(settings)
    if repository is None:
        raise IndexMissingError(
            "No repository has been indexed.", "Run `python create_tables.py REPO` first."
        )
    with closing(open_engine(settings, repository)) as engine:
        return engine.chat.gatherer.context_for(query, parse_rerank(rerank)).text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `codeqa serve` with its arguments; return the exit status."""
    return codeqa(["serve", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
