"""What the embedding table takes: `python -m benchmarks.embedding FOLDER … [--table TABLE]`.

Without `--table` the table that is installed is measured; where there is none, one of random
numbers of the real size (`python -m tests.tables`), which takes the same time. Encoding runs in
one process on one core, over the text of every unit of the folders; a first run of the index
with vectors and one without each have a process of their own. Rates are given per second of
the processor and by the clock, because a busy machine stretches the latter.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
QUERIES = (
    "how does the request context get pushed before a view function runs?",
    "where are database migrations applied?",
    "getHTTPResponse",
    "retry with exponential backoff when the server closes the connection",
)
LABELS = {
    "load_ms": "load and verify, ms (fresh process)",
    "units": "units",
    "megabytes": "text of the units, MB",
    "units_per_s": "units per processor second",
    "mb_per_s": "MB per processor second",
    "units_per_s_clock": "units per second by the clock",
    "query_ms": "one question, ms (median)",
    "query_ms_95": "one question, ms (95 %)",
    "batch_difference": "greatest difference over batch sizes",
    "lines": "lines",
    "index_s": "first run, s, without vectors",
    "index_vectors_s": "first run, s, with vectors",
    "lines_per_s": "lines per second, with vectors",
    "index_processor_s": "processor seconds, without vectors",
    "index_vectors_processor_s": "processor seconds, with vectors",
    "peak_mb": "peak memory, MB, without vectors",
    "peak_vectors_mb": "peak memory, MB, with vectors",
    "bytes_per_unit": "bytes on disk per unit for its vector",
    "load": "load of the machine before",
}


def load_once(table: Path) -> float:
    """Milliseconds from nothing loaded but numpy to an encoder that is ready."""
    import numpy  # noqa: F401 (not the table's time)

    from codeqa.embeddings.table.encoder import TableEncoder
    from codeqa.embeddings.table.weights import load_weights

    started = time.perf_counter()
    TableEncoder(load_weights(table))
    return (time.perf_counter() - started) * 1000


def index_once(folder: Path, table: Path | None, data: Path) -> dict[str, Any]:
    """One first run in this process, with the vectors of `table` or without any."""
    from benchmarks.indexing import peak_memory
    from codeqa.embeddings import registry
    from codeqa.indexing import Indexer
    from codeqa.settings import load_settings
    from codeqa.store import locate

    registry.SHIPPED = table or data / "none"  # in the place of what is installed
    settings = load_settings(data=data)
    indexer = Indexer(settings, locate(settings, folder))
    started = time.perf_counter()
    summary = indexer.run()
    times = os.times()
    return {
        "seconds": time.perf_counter() - started,
        "processor": times.user + times.system + times.children_user + times.children_system,
        "peak": peak_memory() / 1e6,
        "disk": summary.bytes_on_disk,
        "units": summary.methods + summary.classes + summary.documents,
        "embedded": indexer.status().embedded,
        "paths": [file.path for file in _files(indexer.location)],
    }


def _files(location: Any) -> list[Any]:
    from codeqa.store import Tables

    return [file for file in Tables.open(location).files() if file.status == "indexed"]


def encode_all(folder: Path, table: Path) -> dict[str, float]:
    """Encoding the units of `folder` and asking questions, in this process."""
    import numpy as np

    from codeqa.embeddings.table.encoder import TableEncoder
    from codeqa.embeddings.table.weights import load_weights
    from codeqa.parsing.preprocess import preprocess
    from codeqa.text.unit_text import unit_text

    encoder = TableEncoder(load_weights(table))
    texts = [unit_text(unit) for parsed in preprocess(folder) for unit in parsed.units]
    best_processor = best_clock = float("inf")
    for _ in range(3):
        clock, processor = time.perf_counter(), time.process_time()
        for first in range(0, len(texts), 1_000):
            encoder.encode_documents(texts[first : first + 1_000])
        best_processor = min(best_processor, time.process_time() - processor)
        best_clock = min(best_clock, time.perf_counter() - clock)
    sample = texts[:: max(1, len(texts) // 500)]
    whole = encoder.encode_documents(sample)
    single = np.concatenate([encoder.encode_documents([text]) for text in sample])
    taken = []
    for number in range(400):
        started = time.perf_counter()
        encoder.encode_query(QUERIES[number % len(QUERIES)])
        taken.append((time.perf_counter() - started) * 1000)
    size = sum(map(len, texts)) / 1e6
    return {
        "units": len(texts),
        "megabytes": size,
        "units_per_s": len(texts) / best_processor,
        "mb_per_s": size / best_processor,
        "units_per_s_clock": len(texts) / best_clock,
        "query_ms": statistics.median(taken),
        "query_ms_95": statistics.quantiles(taken, n=20)[-1],
        "batch_difference": float(np.abs(whole - single).max()),
    }


def measure(folder: Path, table: Path) -> dict[str, Any]:
    """All figures of one folder."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0

    def child(*arguments: str) -> Any:
        command = [sys.executable, "-m", "benchmarks.embedding", str(folder), *arguments]
        return json.loads(subprocess.check_output(command, cwd=ROOT))

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        bare = child("--child", one)
        full = child("--child", other, "--table", str(table))
    assert full["embedded"] == full["units"], "a unit has no vector"
    lines = sum((folder / path).read_bytes().count(b"\n") for path in full["paths"])
    return {
        "repository": folder.name,
        "load_ms": min(child("--load", "--table", str(table)) for _ in range(5)),
        **encode_all(folder, table),
        "lines": lines,
        "index_s": bare["seconds"],
        "index_vectors_s": full["seconds"],
        "lines_per_s": lines / full["seconds"],
        "index_processor_s": bare["processor"],
        "index_vectors_processor_s": full["processor"],
        "peak_mb": bare["peak"],
        "peak_vectors_mb": full["peak"],
        "bytes_per_unit": (full["disk"] - bare["disk"]) / full["units"],
        "load": load,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--table", type=Path, help="folder of a table")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--load", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.load:
        print(json.dumps(load_once(options.table)))
        return 0
    if options.child:
        print(json.dumps(index_once(options.folder[0].resolve(), options.table, options.child)))
        return 0
    from codeqa.embeddings.registry import shipped_table
    from tests.tables import make_table

    with tempfile.TemporaryDirectory() as made:
        table = options.table or shipped_table() or make_table(Path(made))
        found = [measure(folder.resolve(), table.resolve()) for folder in options.folder]
    for figures in found:
        print(figures["repository"])
        for name, label in LABELS.items():
            value = figures[name]
            form = ",.0f" if value >= 100 else (",.2f" if value >= 0.01 or not value else ".1e")
            print(f"  {label:<42}{value:>14{form}}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
