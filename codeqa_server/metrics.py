"""Measure a running server for Prometheus: how much was done and how long it took, by how it ended.

No names, no paths, no text.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

from codeqa.extensions import not_installed

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Variable that names the folder where processes add up; prometheus-client reads it on import."""
SECONDS = (.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1_800)  # fmt: skip
"""Upper bounds of the histograms' buckets."""
MEASURED = {
    "questions": ("Questions that were asked", ()),
    "answers_open": ("Answers that are being made", ()),
    "first_text_seconds": ("From a question to the first text of its answer", ()),
    "answer_seconds": ("From a question to the end of its answer, by how it ended", ("end",)),
    "search_seconds": ("Searches of the index", ()),
    "model_call_seconds": ("Requests to language models", ("provider", "end")),
    "model_tokens": ("Tokens, as providers count them", ("provider", "kind")),
    "index_run_seconds": ("Runs that bring an index up to date", ("end",)),
}
"""Name → what it is and its labels. An end is `done`, `stopped` or `error`."""


class PrometheusMetrics:
    """Hold the values of MEASURED. Raises SettingsError without prometheus-client.

    Several `processes`, which this one forks, add their values up in the folder that SHARED names,
    or in a temporary one.
    """

    def __init__(self, processes: int) -> None:
        if processes > 1 and not os.environ.get(SHARED):
            os.environ[SHARED] = folder = tempfile.mkdtemp(prefix="codeqa-metrics-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
            from prometheus_client.multiprocess import MultiProcessCollector
        except ImportError:
            raise not_installed("metrics", "prometheus-client", "server") from None
        self._registry = CollectorRegistry()
        self._shared = bool(os.environ.get(SHARED))
        if self._shared:
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._metrics: dict[str, Any] = {}
        for name, (what, labels) in MEASURED.items():
            about: dict[str, Any] = {"labelnames": labels}
            about["registry"] = None if self._shared else self._registry
            full, what = f"codeqa_{name}", f"{what}."
            if name.endswith("_seconds"):
                self._metrics[name] = Histogram(full, what, buckets=SECONDS, **about)
            elif name.endswith("_open"):
                self._metrics[name] = Gauge(full, what, multiprocess_mode="livesum", **about)
            else:
                self._metrics[name] = Counter(full, what, **about)

    def measure(self, name: str, value: float, labels: dict[str, str]) -> None:
        metric = self._metrics[name]
        metric = metric.labels(**labels) if labels else metric
        (metric.observe if name.endswith("_seconds") else metric.inc)(value)

    def process_ended(self, process: int) -> None:
        if self._shared:
            from prometheus_client.multiprocess import mark_process_dead

            mark_process_dead(process)  # type: ignore[no-untyped-call]

    def as_text(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self._registry)
