"""Index the repositories of a list at the same time: `codeqa index names.txt --engine ray`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import click

from codeqa.cli.console import print_summary
from codeqa.errors import RepositoryError
from codeqa.indexing import Indexer
from codeqa.indexing.passes import Builder
from codeqa.repositories import open_location, report_on
from codeqa.settings import load_settings
from codeqa.types import IndexSummary

AT_ONCE = 8
"""Repositories of a list that are indexed at the same time: a small one has work for few machines.
This machine holds the manifest of each, commits its rows and builds its small indices."""


def index_list(names: Path, builder: Builder, how: dict[str, Any]) -> None:
    """Index the folders that the file `names` lists, some at a time.

    `how` are arguments of `Indexer.run`. The others are indexed even if one fails; then this raises
    RepositoryError with the names of those that failed.
    """
    with builder.running(open_location(load_settings(), names.absolute().parent)):
        _index_each(names, {**how, "builder": builder})


def _index_each(names: Path, how: dict[str, Any]) -> None:
    roots = dict.fromkeys(filter(None, map(str.strip, names.read_text("utf-8").splitlines())))
    indexers: list[Indexer] = []

    def index(root: str) -> IndexSummary:
        settings = load_settings(Path(root))
        location = open_location(settings, Path(root), anew=True)
        indexers.append(indexer := Indexer(settings, location))
        summary = indexer.run(**how)
        report_on(location)
        return summary

    failed = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {pool.submit(index, root): root for root in roots}
        try:
            for run in as_completed(runs):
                if error := run.exception():
                    failed.append(runs[run])
                    click.echo(f"{runs[run]}: {str(error) or repr(error)}", err=True)
                else:
                    print_summary(run.result())
        finally:  # also when somebody has enough of it
            pool.shutdown(wait=False, cancel_futures=True)
            for indexer in indexers:
                indexer.cancel()
    click.echo(f"{len(runs) - len(failed):,} of {len(runs):,} repositories were indexed.")
    if failed:
        raise RepositoryError(f"Not indexed: {', '.join(failed)}.", "The reasons are shown above.")
