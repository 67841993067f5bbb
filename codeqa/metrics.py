"""Measure what a running server does, where a setting asks for it; else nothing happens."""

from __future__ import annotations

from typing import Protocol

from codeqa.extensions import load_extension


class Metrics(Protocol):
    """An object that measures: that of `codeqa_server.metrics` does so for Prometheus."""

    def measure(self, name: str, value: float, labels: dict[str, str]) -> None: ...

    def process_ended(self, process: int) -> None:
        """Leave a process that ended out of what is being done now."""

    def as_text(self) -> bytes:
        """Return everything that was measured, as Prometheus reads it."""


_metrics: Metrics | None = None


def start(processes: int = 1) -> None:
    """Begin to measure, in this process and in the others of several `processes` that it forks.

    Raises SettingsError where the package for it is not installed.
    """
    global _metrics
    _metrics = _metrics or load_extension("metrics")(processes)


def started() -> Metrics | None:
    """Return what measures; None before `start`."""
    return _metrics


def measure(name: str, value: float = 1, **labels: str) -> None:
    """Add `value` to the metric called `name`, or note so many seconds."""
    if _metrics:
        _metrics.measure(name, value, labels)
