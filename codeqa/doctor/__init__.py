"""Checks of an installation and its indices, and what each index holds.

Every check runs on its own: one that fails, whatever the reason, is reported and the
next one goes on. No check prints or returns a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codeqa.doctor import indices, installation, services
from codeqa.doctor.check import Check, run
from codeqa.doctor.indices import RepositoryReport, report_repositories
from codeqa.settings import Settings
from codeqa.store import list_locations

__all__ = ["Check", "RepositoryReport", "examine", "report_repositories"]


def examine(settings: Settings, only: Path | None = None) -> Iterator[Check]:
    """Run all checks; `only` is the root of the one index to look at."""
    yield run("Python", installation.python)
    yield run("git", installation.git)
    yield run("settings", lambda: installation.chosen(settings))
    yield run("data", lambda: installation.data(settings))
    yield run("languages", installation.grammars)
    yield run("LanceDB", installation.tables)
    yield run("embedding", installation.embedding)
    yield run("port", lambda: installation.port(settings))
    yield run("model", lambda: services.model(settings))
    yield run("reranker", lambda: services.reranker(settings))
    if settings.redis_url:
        yield run("Redis", lambda: services.redis(settings))
    for location in list_locations(settings):
        if only is None or location.root == only:
            yield run(f"index of {location.name}", indices.check(location))
