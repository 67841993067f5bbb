"""Questions to begin with, made from what the index of a repository really holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from codeqa.engine import Engine
from codeqa.errors import CodeQAError
from codeqa.types import CLASS_KINDS, METHOD_KINDS, Hit

MOST = 4
HITS = 8
"""Hits looked at; the first that fits is used."""

ALWAYS = (
    "What is this project, and how is it organised?",
    "Where does the program start?",
    "How are errors handled?",
    "How is the configuration loaded?",
)


def example_questions(engine: Engine) -> list[str]:
    """Up to MOST questions that this repository can answer, without an index the usual ones."""
    found: list[str] = []
    with contextlib.suppress(CodeQAError):
        found += _questions(engine)
    return [*found, *ALWAYS][:MOST]


def _questions(engine: Engine) -> Iterator[str]:
    hits = engine.search.search(engine.location.name, top=HITS).units
    central = next((hit for hit in hits if _fits(hit, CLASS_KINDS)), None)
    if central:
        yield f"What does `{central.unit.name}` do, and where is it used?"
    named = [hit for hit in hits if hit.unit.name.lower() != engine.location.name.lower()]
    function = next((hit for hit in named if _fits(hit, METHOD_KINDS)), None)
    if function:
        yield f"Who calls `{function.unit.name}`?"


def _fits(hit: Hit, kinds: frozenset[str]) -> bool:
    unit = hit.unit
    return (
        unit.kind in kinds
        and unit.role == "source"
        and unit.kind != "module"
        and len(unit.name) > 2
        and not unit.name.lower().startswith(("_", "test"))
    )
