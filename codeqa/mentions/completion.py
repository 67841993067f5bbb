"""What may be typed behind `@`, the tree of files, and what a question mentions.

Names are kept in memory for one version of the index and read again, in the background, when
somebody types after it has changed: until then the older names serve.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from codeqa.errors import NotFoundError
from codeqa.mentions.coverage import MentionCoverage, mention_coverage
from codeqa.mentions.index import (
    KINDS,
    FolderListing,
    Kind,
    MentionCompletion,
    MentionIndex,
)
from codeqa.search.mentions import LONGEST_MENTION
from codeqa.store import Tables
from codeqa.store.catalogue import Catalogue
from codeqa.types import Chunk

PATIENCE = 2.0
"""Seconds that the first to ask waits for the names: a hundred thousand take less than one."""


@dataclass(frozen=True, slots=True)
class MentionCompletions:
    """Completions of what is typed, best first."""

    items: tuple[MentionCompletion, ...]
    ready: bool = True
    """False while the names are being read for the first time."""


class MentionCompleter:
    """Completes what is typed, for one repository; threads may share it.

    `open_tables` gives the index; what it raises before there is one, every method raises.
    """

    def __init__(self, open_tables: Callable[[], Tables]) -> None:
        self._open_tables = open_tables
        self._lock = threading.Lock()
        self._reader = ThreadPoolExecutor(1, "names")
        self._reading: Future[MentionIndex] | None = None
        self._catalogue: Catalogue | None = None
        self._known: MentionIndex | None = None

    def complete(
        self, typed: str, *, kinds: Sequence[Kind] = KINDS, limit: int = 20
    ) -> MentionCompletions:
        """The best `limit` places for `typed`, which stands behind `@`."""
        index = self._index()
        if index is None:
            return MentionCompletions((), ready=False)
        return MentionCompletions(tuple(index.complete(typed[:LONGEST_MENTION], kinds, limit)))

    def tree(self, folder: str = "") -> FolderListing | None:
        """What lies directly in `folder`, '' for the root; None while the names are being read.

        Raises NotFoundError when no indexed file is in it.
        """
        index = self._index()
        if index is None:
            return None
        branch = index.listing(folder)
        if branch is None:
            raise NotFoundError(
                f"{folder!r} is not an indexed folder.",
                "Only folders with indexed files are shown.",
            )
        return branch

    def coverage(
        self, question: str, chunks: Sequence[Chunk] | None = None
    ) -> list[MentionCoverage]:
        """What `question` points at with `@`, and how much of it `chunks` hold, None for no
        context yet."""
        return mention_coverage(self._open_tables(), question, chunks)

    def _index(self) -> MentionIndex | None:
        """The names of the current version, else of the one before; None when none are read.

        Raises what reading the first ones raised.
        """
        catalogue = self._open_tables().catalogue()
        with self._lock:
            reading = self._reading
            changed = self._catalogue is not catalogue
            # A rebuild that drops its tables while they are read fails: then once more.
            if reading is None or (reading.done() and (changed or reading.exception())):
                self._catalogue = catalogue
                reading = self._reading = self._reader.submit(MentionIndex, catalogue)
        if self._known is None:
            wait([reading], PATIENCE)
        if reading.done() and (self._known is None or reading.exception() is None):
            self._known = reading.result()
        return self._known
