"""What a search found, for programs: on the terminal and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from codeqa.errors import UsageError
from codeqa.search.hybrid import Search
from codeqa.search.query import language_named
from codeqa.store import Tables
from codeqa.types import Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundUnit:
    path: str
    start_line: int
    end_line: int
    language: str
    kind: str
    name: str
    qualified_name: str
    signature: str
    score: float
    why: tuple[str, ...]
    channels: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: str
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    question: str
    milliseconds: float
    channels: tuple[str, ...]
    coverage: str
    reranker: str
    hyde: str
    stages: tuple[dict[str, Any], ...]
    notice: str
    hits: tuple[FoundUnit, ...]
    files: tuple[FoundFile, ...]


def search_for_programs(
    search: Search, tables: Tables, language: str = "", **options: Any
) -> Found:
    """What a search with these options finds. Raises UsageError when no indexed file is in that
    language."""
    if language:
        known = sorted({file.language for file in tables.files() if file.units})
        if language_named(language) not in known:
            raise UsageError(f"No indexed file is in {language}.", f"There is: {', '.join(known)}.")
    result = search.search(language=language, **options)
    return Found(
        result.question,
        result.milliseconds,
        result.channels,
        result.coverage,
        result.reranker,
        result.hyde,
        tuple(asdict(stage) for stage in result.stages),
        " ".join(result.warnings),
        tuple(map(_unit, result.units)),
        tuple(FoundFile(file.path, file.score) for file in result.files),
    )


def _unit(hit: Hit) -> FoundUnit:
    of_hit: dict[str, Any] = {"score": hit.score, "why": hit.why, "channels": dict(hit.channels)}
    names = [one.name for one in fields(FoundUnit) if one.name not in of_hit]
    return FoundUnit(**{name: getattr(hit.unit, name) for name in names}, **of_hit)
