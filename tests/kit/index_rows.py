"""What tests of the index share: all rows of an index, and reading while it is written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codeqa.indexing import Indexer
from codeqa.settings import load_settings
from codeqa.store import Location, Tables, locate
from codeqa.store.schema import TABLES
from codeqa.store.writer import TableWriter

Rows = dict[str, list[dict[str, Any]]]


def age(root: Path, seconds: float = 3600) -> None:
    """Make all files look as if they were written `seconds` ago."""
    then = time.time() - seconds
    for file in root.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


def opened(location: Location) -> TableWriter:
    """The tables as they are, every version at once visible."""
    meta = Tables(location).meta()
    return TableWriter.open(location, meta.parser, meta.vector)


def versions(location: Location) -> dict[str, int]:
    """Table → its version, which every commit raises."""
    tables = opened(location).tables
    return {table: int(tables[table].version) for table in TABLES}


def rows(location: Location) -> Rows:
    """All rows of all tables but for times, sorted: what two equal indices share."""
    tables, result = opened(location).tables, {}
    for table in TABLES:
        records = tables[table].to_arrow().to_pylist()
        for record in records:
            record.pop("indexed_at", None)
            record.pop("mtime_ns", None)
        result[table] = sorted(records, key=lambda record: str(record.get("id", record["path"])))
    return result


def clean_rows(repository: Path, folder: Path) -> Rows:
    """The rows of a fresh index of the repository as it is now, kept below `folder`."""
    settings = load_settings(data=folder / f"clean-{time.time_ns()}", workers=1)
    location = locate(settings, repository)
    Indexer(settings, location).run()
    return rows(location)


@contextmanager
def read_meanwhile(read: Callable[[], None], threads: int = 1) -> Iterator[None]:
    """Call `read` again and again while the block runs; an error in it fails the test."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            read()

    with ThreadPoolExecutor(threads) as pool:
        readers = [pool.submit(work) for _ in range(threads)]
        try:
            yield
        finally:
            done.set()
    for reader in readers:
        reader.result()
