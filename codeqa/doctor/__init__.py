"""Checks of an installation and its indices.

Every check runs on its own: one that fails, whatever the reason, is reported and the
next one goes on. No check prints or returns a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from codeqa.doctor import indices, installation
from codeqa.doctor.check import Check, run_check
from codeqa.search import reranker_status
from codeqa.settings import Settings
from codeqa.store import list_locations

__all__ = ["Check", "examine"]


def examine(settings: Settings, only: Path | None = None) -> Iterator[Check]:
    """Run all checks; `only` is the root of the one index to look at."""
    yield run_check("Python", installation.python)
    yield run_check("git", installation.git)
    yield run_check("settings", partial(installation.chosen, settings))
    yield run_check("data", partial(installation.data, settings))
    yield run_check("languages", installation.grammars)
    yield run_check("LanceDB", installation.tables)
    yield run_check("embedding", installation.embedding)
    yield run_check("port", partial(installation.port, settings))
    yield run_check("model", partial(installation.model, settings))
    yield run_check("reranker", partial(reranker_status, settings))
    if settings.redis_url:
        yield run_check("Redis", partial(installation.redis, settings))
    for location in list_locations(settings):
        if only is None or location.root == only:
            yield run_check(f"index of {location.name}", partial(indices.index, location))
