"""What may be typed behind `@`, the tree of files, and what a question mentions.

Names are kept in memory for one version of the index and read again, in the background, when
somebody types after it has changed: until then the older names serve.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codeqa.errors import NotFoundError
from codeqa.store import Tables
from codeqa.store.catalogue import Catalogue
from codeqa.symbols.mention_completion.mention_index import (
    KINDS,
    Kind,
    MentionCompletion,
    MentionIndex,
)
from codeqa.symbols.mention_completion.path_names import FolderListing
from codeqa.symbols.mention_coverage import MentionCoverage, mention_coverage
from codeqa.types import Chunk

__all__ = [
    "KINDS",
    "FolderListing",
    "Kind",
    "MentionCompleter",
    "MentionCompletion",
    "MentionCompletions",
    "MentionCoverage",
]

PATIENCE = 2.0
"""Seconds that the first to ask waits for the names: a hundred thousand take less than one."""
MOST_TYPED = 300
"""Signs of what is typed that are looked at: a mention may have no more."""

_log = logging.getLogger(__name__)


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
        self._known: tuple[Catalogue, MentionIndex] | None = None
        self._reading: threading.Event | None = None

    def complete(
        self, typed: str, *, kinds: Sequence[Kind] = KINDS, limit: int = 20
    ) -> MentionCompletions:
        """The best `limit` places for `typed`, which stands behind `@`."""
        index = self._index()
        if index is None:
            return MentionCompletions((), ready=False)
        return MentionCompletions(tuple(index.complete(typed[:MOST_TYPED], kinds, limit)))

    def tree(self, folder: str = "") -> FolderListing | None:
        """What lies directly in `folder`, '' for the root; None while the names are being read.

        Raises NotFoundError when no indexed file is in it.
        """
        index = self._index()
        if index is None:
            return None
        branch = index.paths.branch(folder)
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
        """The names of the current version, else of the one before; None when none are read."""
        catalogue = self._open_tables().catalogue()
        known = self._known
        if known is not None and known[0] is catalogue:
            return known[1]
        with self._lock:
            reading = self._reading
            if reading is None:
                reading = self._reading = threading.Event()
                threading.Thread(
                    target=self._read, args=(catalogue, reading), name="names", daemon=True
                ).start()
        if known is None:
            reading.wait(PATIENCE)
            known = self._known
        return known[1] if known else None

    def _read(self, catalogue: Catalogue, done: threading.Event) -> None:
        try:
            import pyarrow as pa

            self._known = (catalogue, MentionIndex(catalogue))
            pa.default_memory_pool().release_unused()  # the columns that were read
        except Exception:  # a rebuild dropped its tables: whoever asks next reads the new ones
            _log.debug("the names were not read", exc_info=True)
        finally:
            with self._lock:
                self._reading = None
            done.set()
