"""How the context of a turn was found: the search's stages and hits, as they are kept and shown."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from codeqa.search import SearchResult, SearchSteps
from codeqa.types import Chunk, Event, Hit, StageTime

Values = Mapping[str, Any]
_T = TypeVar("_T")
Told = Generator[Event, None, _T]
"""Work that yields events while it goes on, and its result."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What a search did; values as JSON holds them.

    `stages`: {name, milliseconds, outcome, text, model, host} · `hits`, best first: {unit_id,
    path, start_line, end_line, kind, name, score, why, channels (name → rank)}.
    """

    hyde: str = ""
    """`off`, `one` or `two`; '' for a turn that did not search, or of an earlier version."""
    stages: tuple[Values, ...] = ()
    hits: tuple[Values, ...] = ()

    def brief(self) -> dict[str, Any]:
        """What is told with an answer: no drafts, which are long, and no hits."""
        names = ("name", "milliseconds", "outcome")
        stages = [{name: stage.get(name) for name in names} for stage in self.stages]
        return {"hyde": self.hyde, "stages": stages}

    def hit_of(self, chunk: Chunk) -> Values | None:
        """The hit that `chunk` shows, whole or cut; None for a place of use."""
        place = (chunk.unit_id, chunk.start_line)
        found = (hit for hit in self.hits if (hit["unit_id"], hit["start_line"]) == place)
        return next(found, None)

    def shown(self, chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
        """The hits, each with whether it is among `chunks`."""
        sent = {(chunk.unit_id, chunk.start_line) for chunk in chunks}
        return [
            {
                **{name: value for name, value in hit.items() if name != "unit_id"},
                "sent": (hit["unit_id"], hit["start_line"]) in sent,
            }
            for hit in self.hits
        ]


def trace_of(result: SearchResult) -> Trace:
    """The trace of a search: all that it returned, and what it kept of each table."""
    hits = {hit.unit.id: hit for hit in (*result.units, *result.methods, *result.classes)}
    ordered = sorted(hits.values(), key=lambda hit: -hit.score)
    return Trace(
        result.hyde, tuple(map(_stage, result.stages)), tuple(_hit(hit) for hit in ordered)
    )


def read_trace(details: Mapping[str, Any]) -> Trace:
    """The trace that a kept turn tells; an empty one for a turn of an earlier version."""
    return Trace(
        str(details.get("hyde") or ""),
        tuple(_rows(details.get("stages"))),
        tuple(_rows(details.get("hits"))),
    )


def told(steps: SearchSteps) -> Told[SearchResult]:
    """The result of a search; its stages are yielded as events meanwhile."""
    while True:
        try:
            stage = next(steps)
        except StopIteration as end:
            result: SearchResult = end.value
            return result
        yield _event(stage)


def _event(stage: StageTime) -> Event:
    """`drafting` for a stage that begins, `drafted` for one that has ended."""
    if not stage.outcome:
        data: dict[str, Any] = {"name": stage.name, "model": stage.model, "host": stage.host}
        return Event("drafting", data)
    took = round(stage.milliseconds)
    data = {"name": stage.name, "outcome": stage.outcome, "took": took, "text": stage.text}
    return Event("drafted", data)


def _stage(stage: StageTime) -> Values:
    return {
        "name": stage.name,
        "milliseconds": round(stage.milliseconds),
        "outcome": stage.outcome,
        "text": stage.text,
        "model": stage.model,
        "host": stage.host,
    }


def _hit(hit: Hit) -> Values:
    unit = hit.unit
    return {
        "unit_id": unit.id,
        "path": unit.path,
        "start_line": unit.start_line,
        "end_line": unit.end_line,
        "kind": unit.kind,
        "name": unit.qualified_name or unit.name,
        "score": round(hit.score, 4),
        "why": list(hit.why),
        "channels": dict(hit.channels),
    }


def _rows(value: Any) -> Iterable[Values]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
