"""What is measured of a running server, for Prometheus: how much and how long it took, by how it
ended. No names, no paths, no text.

Nothing is measured until `start`, and prometheus-client is not imported before.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from typing import Any

from codeqa.environment import shared_metrics
from codeqa.errors import SettingsError

SECONDS = (.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1_800)  # fmt: skip
"""Upper ends of what is counted together."""
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

_metrics: dict[str, Any] = {}
_registry: Any = None


def measure(name: str, value: float = 1, **labels: str) -> None:
    """Add `value` to one of MEASURED, or note so many seconds; nothing where `start` was not
    called."""
    if metric := _metrics.get(name):
        metric = metric.labels(**labels) if labels else metric
        (metric.observe if name.endswith("_seconds") else metric.inc)(value)


def start(processes: int = 1) -> None:
    """Measure from now on, in this process and, with several `processes`, in those that it forks:
    they add up in a folder of their own, or in the one that PROMETHEUS_MULTIPROC_DIR names.

    Raises SettingsError where prometheus-client is not installed.
    """
    global _registry
    if _metrics:
        return
    if processes > 1 and not shared_metrics():  # read when prometheus-client is imported
        folder = shared_metrics(tempfile.mkdtemp(prefix="codeqa-metrics-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        from prometheus_client.multiprocess import MultiProcessCollector
    except ImportError:
        raise SettingsError(
            "CODEQA_METRICS needs prometheus-client, which is not installed.",
            "Install `codeqa[server]`, or unset it.",
        ) from None
    _registry = CollectorRegistry()
    if shared := shared_metrics():
        MultiProcessCollector(_registry)  # type: ignore[no-untyped-call]
    own = None if shared else _registry
    for name, (what, labels) in MEASURED.items():
        about: dict[str, Any] = {"labelnames": labels, "registry": own}
        full, what = f"codeqa_{name}", f"{what}."
        if name.endswith("_seconds"):
            _metrics[name] = Histogram(full, what, buckets=SECONDS, **about)
        elif name.endswith("_open"):
            _metrics[name] = Gauge(full, what, multiprocess_mode="livesum", **about)
        else:
            _metrics[name] = Counter(full, what, **about)


def process_ended(process: int) -> None:
    """One of several that measured together answers nothing any more."""
    if _metrics and shared_metrics():
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(process)  # type: ignore[no-untyped-call]


def as_text() -> bytes:
    """All that was measured, in Prometheus' text format."""
    from prometheus_client import generate_latest

    return generate_latest(_registry)
