"""Write the tables of a repository: `python create_tables.py [REPO]`.

tree-sitter parses it into methods, classes and cross-references; two LanceDB tables (methods;
classes and all other files) take them with vectors and a full-text index. Later runs read what
changed. The same as `codeqa index [REPO]`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

try:
    from codeqa.cli import main as codeqa
    from codeqa.cli.console import ProgressDisplay
    from codeqa.extensions import load_extension
    from codeqa.indexing import Indexer
    from codeqa.repositories import open_location
    from codeqa.settings import Settings, load_settings
    from codeqa.types import IndexSummary
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: run `make setup`, then .venv/bin/python create_tables.py")

__all__ = ["create_tables", "main"]


def create_tables(
    repo: str | Path,
    *,
    settings: Settings | None = None,
    full: bool = False,
    refine: bool = True,
    wait: bool = True,
    progress: bool = False,
    engine: str = "",
) -> IndexSummary:
    """Parse `repo` and write its tables; later runs only do what changed.

    `repo` is then the repository used last, which `app.py` opens. `progress` shows bars on
    stderr. `engine` is `ray` or `ray=HOST:PORT`, where a cluster reads and builds. Raises the
    errors of `Indexer.run` and `RayBuilder`.
    """
    root = Path(repo)
    settings = settings or load_settings(root)
    builder = None
    if engine:
        builder = load_extension("ray_builder", "cluster")(engine)
    indexer = Indexer(settings, open_location(settings, root, anew=True))
    if not progress:
        return indexer.run(full=full, refine=refine, wait=wait, builder=builder)
    with ProgressDisplay() as display:
        return indexer.run(display, full=full, refine=refine, wait=wait, builder=builder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `codeqa index` with its arguments; return the exit status."""
    status = codeqa(["index", *(sys.argv[1:] if arguments is None else arguments)])
    if status == 0 and sys.stderr.isatty():
        print("Next: run python app.py and ask questions on its page.", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
