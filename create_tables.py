"""Index a repository: `python create_tables.py <repo>`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from codeqa.cli.command import front_door
from codeqa.cli.console import ProgressDisplay, print_summary
from codeqa.indexing import Indexer
from codeqa.repositories import open_location
from codeqa.settings import Settings, load_settings
from codeqa.types import IndexSummary

__all__ = ["create_tables", "main"]


def create_tables(
    repo: str | Path,
    *,
    settings: Settings | None = None,
    full: bool = False,
    refine: bool = True,
    wait: bool = True,
    progress: bool = False,
) -> IndexSummary:
    """Parse `repo` and write its tables; later runs only do what changed.

    `repo` is then the repository used last, which `app.py` opens. `progress` shows bars on
    stderr. Raises the errors of `Indexer.run`.
    """
    root = Path(repo)
    settings = settings or load_settings(root)
    indexer = Indexer(settings, open_location(settings, root))
    if not progress:
        return indexer.run(full=full, refine=refine, wait=wait)
    with ProgressDisplay() as display:
        return indexer.run(display, full=full, refine=refine, wait=wait)


@front_door(
    "create_tables.py",
    [
        "python create_tables.py ~/src/flask             index it, or bring its index up to date",
        "python create_tables.py --full ~/src/flask      read every file again",
        "CODEQA_EMBEDDING=openai/text-embedding-3-large python create_tables.py ~/src/flask",
    ],
)
@click.argument("repo", type=Path)
@click.option("--full", is_flag=True, help="Read every file again.")
@click.option("--no-refine", is_flag=True, help="Leave out the chosen embedding this time.")
@click.option("--no-wait", is_flag=True, help="Fail if another run is going on.")
@click.option(
    "--workers", type=int, metavar="N", help="Processes that parse (default: one per core)."
)
def main(repo: Path, full: bool, no_refine: bool, no_wait: bool, workers: int | None) -> None:
    """Index a repository.

    Parses it, writes its tables, and embeds what the chosen embedding lacks.
    """
    summary = create_tables(
        repo,
        settings=load_settings(repo, workers=workers),
        full=full,
        refine=not no_refine,
        wait=not no_wait,
        progress=True,
    )
    print_summary(summary)


if __name__ == "__main__":
    sys.exit(main())
