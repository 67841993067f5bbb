"""The code that a conversation already has, kept so that a follow-up need not search."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from codeqa.chat.generation import NO_CONTEXT
from codeqa.chat.record import block_of, chunks_as_data, read_chunks
from codeqa.errors import StorageError
from codeqa.state.cache import Cache, context_key
from codeqa.types import ContextBlock

CONTEXT_SECONDS = 24 * 3600.0
"""Lifetime of a cached context: a working day and the night after it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContextCache:
    """The contexts of the conversations about one repository.

    The cache may lose them at any time, which costs a follow-up its code but never the turn.
    """

    cache: Cache
    repository: str

    def keep(self, user: str, conversation: str, block: ContextBlock) -> None:
        """Make `block` the context of the conversation, in place of what it had."""
        value = {"repository": self.repository, "chunks": chunks_as_data(block.chunks)}
        try:
            self.cache.set(context_key(user, conversation), json.dumps(value), CONTEXT_SECONDS)
        except StorageError as error:
            log.warning("a context could not be cached: %s", error)

    def recall(self, user: str, conversation: str) -> ContextBlock:
        """The conversation's context; empty when there is none, or of another repository."""
        try:
            value = self.cache.get(context_key(user, conversation))
            stored: Any = json.loads(value) if value else {}
            if stored.get("repository") == self.repository:
                return block_of(read_chunks(stored.get("chunks", ()), stored.get("context", "")))
        except (StorageError, ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("a cached context could not be read: %s", type(error).__name__)
        return NO_CONTEXT

    def forget(self, user: str, conversation: str) -> None:
        """Drop the conversation's context."""
        self.cache.delete(context_key(user, conversation))
