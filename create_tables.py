"""Index a repository: `python create_tables.py <repo>`."""

from __future__ import annotations

import sys
from pathlib import Path

from codeqa.cli.console import ProgressDisplay, front_door, print_summary, run_main
from codeqa.indexing import Indexer
from codeqa.settings import Settings, load_settings
from codeqa.state import State
from codeqa.store import locate
from codeqa.types import IndexSummary

__all__ = ["create_tables", "main"]

EXAMPLES = (
    "python create_tables.py ~/src/flask             index it, or bring its index up to date",
    "python create_tables.py --full ~/src/flask      read every file again",
    "CODEQA_EMBEDDING=openai/text-embedding-3-large python create_tables.py ~/src/flask",
)


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
    location = locate(settings, root)
    State(settings.data_dir).repositories.remember(location.root)
    indexer = Indexer(settings, location)
    if not progress:
        return indexer.run(full=full, refine=refine, wait=wait)
    with ProgressDisplay() as display:
        return indexer.run(display, full=full, refine=refine, wait=wait)


def main() -> None:
    """Command line of this script."""
    parser = front_door(
        "python create_tables.py",
        "Index a repository: parse it, write its tables, embed what the chosen embedding lacks.",
        EXAMPLES,
    )
    parser.add_argument("repo", type=Path, help="folder of the repository")
    parser.add_argument("--full", action="store_true", help="read every file again")
    parser.add_argument(
        "--no-refine", action="store_true", help="leave out the chosen embedding this time"
    )
    parser.add_argument("--no-wait", action="store_true", help="fail if another run is going on")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that parse (default: one per core)"
    )
    arguments = parser.parse_args()
    settings = load_settings(arguments.repo, workers=arguments.workers)
    summary = create_tables(
        arguments.repo,
        settings=settings,
        full=arguments.full,
        refine=not arguments.no_refine,
        wait=not arguments.no_wait,
        progress=True,
    )
    print_summary(summary)


if __name__ == "__main__":
    sys.exit(run_main(main, program="create_tables.py"))
