"""The seam where a language model takes the place of the extractive answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from codeqa.answering.evidence import Evidence
from codeqa.types import ContextBlock


class Generator(Protocol):
    """Writes an answer from evidence."""

    @property
    def name(self) -> str:
        """What the surfaces call it: the model, or `extractive`."""
        ...

    def generate(self, evidence: Evidence, block: ContextBlock) -> Iterator[str]:
        """Yield the answer as Markdown in small pieces, citing as `[path:12-34]`.

        Closing the iterator stops the work behind it. Raises ModelError.
        """
        ...
