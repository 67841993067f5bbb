"""The results of a search: hits, notices and how they were found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from codeqa.search.mentions import keep_guaranteed
from codeqa.search.query import Query
from codeqa.search.ranking import FileHit
from codeqa.types import Hit, HydeMode, StageTime

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_FILES = 10
"""Least number of files listed, where there are as many: people read a list of files to its end."""
OF_RESULT = ("milliseconds", "channels", "coverage", "reranker", "hyde")
OF_UNIT = (
    "path", "start_line", "end_line", "language", "kind", "name", "qualified_name", "signature",
)  # fmt: skip
"""Fields of a search, and of each unit in it, that programs get."""
COLUMNS = OF_UNIT + ("class_name", "doc_comment", "source_code")
"""Columns of the data frame of a search, after the score."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result for a question; units and files are two lists with orders of their own."""

    query: Query
    units: tuple[Hit, ...]
    files: tuple[FileHit, ...]
    methods: tuple[Hit, ...]
    classes: tuple[Hit, ...]
    mentioned: tuple[Hit, ...]
    """Hits that the question points at with `@`, which belong to every answer."""
    channels: tuple[str, ...]
    """Channels that were searched and found something."""
    coverage: str
    """A sentence: how much of the repository was searched, and how."""
    changed: Mapping[str, str]
    """Path → how the file differs from what was indexed (`changed`, `deleted`)."""
    milliseconds: float = 0.0
    reranker: str = ""
    """Name of the reranker that ordered the units; '' when they were not reranked."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user: that a name was misspelt, that no draft could be written, why another
    reranker was used or that it did not read all."""
    hyde: HydeMode = "off"
    """Number of drafts that were searched by."""
    stages: tuple[StageTime, ...] = ()
    """The steps of the search and how long each took, in order."""

    def to_pandas(self) -> DataFrame:
        """Return the units as a data frame, best first: a row each with span, names and code."""
        from pandas import DataFrame

        values_of = attrgetter(*COLUMNS)
        rows = [(hit.score, *values_of(hit.unit)) for hit in self.units]
        return DataFrame(rows, columns=["score"] + list(COLUMNS))

    def head(self, top: int) -> SearchResult:
        """Return the result that a search for `top` units would have."""
        units = keep_guaranteed(self.units, self.mentioned, top)
        return replace(self, units=units, files=self.files[: max(top, MOST_FILES)])
