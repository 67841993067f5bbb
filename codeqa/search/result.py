"""What a search returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codeqa.search.mentions import keep_guaranteed
from codeqa.search.query import Query
from codeqa.search.ranking import FileHit
from codeqa.types import Hit, HydeMode, StageTime

if TYPE_CHECKING:
    from pandas import DataFrame

FILES = 10
"""Files listed at least, where there are as many: a list of files is read to its end."""
OF_RESULT = ("milliseconds", "channels", "coverage", "reranker", "hyde")
OF_UNIT = (
    "path", "start_line", "end_line", "language", "kind", "name", "qualified_name", "signature",
)  # fmt: skip
"""What programs are told of a search, and of each unit that it found."""
COLUMNS = (*OF_UNIT, "class_name", "doc_comment", "source_code")
"""Of the frame of a search, behind the score."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a question found; units and files are two lists with orders of their own."""

    query: Query
    units: tuple[Hit, ...]
    files: tuple[FileHit, ...]
    methods: tuple[Hit, ...]
    classes: tuple[Hit, ...]
    mentioned: tuple[Hit, ...]
    """Hits that the question points at with `@`, which belong to every answer."""
    channels: tuple[str, ...]
    """Channels that were asked and gave something."""
    coverage: str
    """How much of the repository was searched, and by what, as a sentence."""
    changed: Mapping[str, str]
    """Path → how the file differs from what was indexed (`changed`, `deleted`)."""
    milliseconds: float = 0.0
    reranker: str = ""
    """Name of the reranker that ordered the units; '' when they were not reranked."""
    warnings: tuple[str, ...] = ()
    """What the user should know, as sentences: that a name was misspelt, that no hypothetical
    answer could be written, why another reranker was used or that it did not read all."""
    hyde: HydeMode = "off"
    """How many hypothetical answers were searched by."""
    stages: tuple[StageTime, ...] = ()
    """What was done and how long it took, in order."""

    def to_pandas(self) -> DataFrame:
        """Return the units as a frame, best first: a row each with its place, names and code."""
        from pandas import DataFrame

        rows = [(hit.score, *(getattr(hit.unit, name) for name in COLUMNS)) for hit in self.units]
        return DataFrame(rows, columns=["score", *COLUMNS])

    def head(self, top: int) -> SearchResult:
        """Return the same as a search for `top` units would."""
        units = keep_guaranteed(self.units, self.mentioned, top)
        return replace(self, units=units, files=self.files[: max(top, FILES)])
