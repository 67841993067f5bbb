"""Keep the index that is searched up to date with the files on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from codeqa.indexing import BackgroundIndexer
from codeqa.store import Tables


@dataclass(frozen=True)
class IndexFreshness:
    """Updates `index` before and after a search; without one nothing is updated."""

    index: BackgroundIndexer | None = None
    updates_hits: bool = False
    """Whether to update changed files of the hits, as for several repositories together."""

    def before_search(self) -> str:
        """Index what changed; return a sentence for the user if that takes too long, else ''."""
        return self.index.update_before_question() if self.index else ""

    def after_search(self, tables: Tables, version: object, changed: Collection[str]) -> bool:
        """Index the `changed` files of the hits; return whether to search again.

        `version` is that of the tables before the search.
        """
        if self.index is None or not self.updates_hits:
            return False
        updated = bool(changed) and self.index.update_now(changed)
        # Also if the index was updated by others between the search and that check.
        return updated or tables.version() != version

    def note_hits(self, paths: Iterable[str]) -> None:
        """Let the files of hits be refined first."""
        if self.index is not None:
            self.index.hit_paths.update(paths)
