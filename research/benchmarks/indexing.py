"""How fast a repository is indexed.

    python -m research.benchmarks.indexing FOLDER … [--json FILE]

Each folder is indexed from nothing and then once more with nothing changed, each time by a
process of its own, into a temporary place. Beside the figures stands the bare grammar
(parse and query, one process) over the same source, measured in the same run, so that
runs on machines of different speed can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codeqa.parsing import grammar
from research.benchmarks.extraction import bare, collect, timed
from research.benchmarks.machine import ROOT

LABELS = {
    "files": "files",
    "lines": "lines",
    "megabytes": "MB of text",
    "seconds": "first run, s",
    "searchable": "until every file is searchable, s",
    "mb_per_s": "MB/s",
    "lines_per_s": "lines/s",
    "processor": "processor seconds, all processes",
    "bare_mb_per_s": "bare grammar, MB/s of one process",
    "share_of_bare": "MB per processor second, share of bare",
    "second_run": "second run with start-up, s",
    "peak_memory_mb": "peak memory, MB",
    "disk_mb": "on disk, MB",
    "units": "units",
    "references": "references",
    "load": "load of the machine before",
}


def peak_memory() -> int:
    """Bytes: of this process, and of the largest of its workers."""
    import resource

    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(1024 * resource.getrusage(kind).ru_maxrss for kind in kinds)


def child(folder: Path, data: Path, workers: int) -> dict[str, Any]:
    """Index `folder` in this process; runs in one of its own."""
    from codeqa.indexing import Indexer
    from codeqa.settings import load_settings
    from codeqa.store import Tables, locate
    from codeqa.types import Progress

    started = time.perf_counter()
    searchable = 0.0

    def listen(progress: Progress) -> None:
        nonlocal searchable
        if progress.phase == "building the text index":
            searchable = time.perf_counter() - started

    settings = load_settings(data=data, workers=workers)
    indexer = Indexer(settings, locate(settings, folder))
    summary = indexer.run(listen)
    seconds = time.perf_counter() - started
    files = [file for file in Tables(indexer.location).files() if file.status == "indexed"]
    times = os.times()
    return {
        "files": summary.files,
        "paths": [file.path for file in files],
        "megabytes": sum(file.size for file in files) / 1e6,
        "seconds": seconds,
        "searchable": searchable,
        "processor": times.user + times.system + times.children_user + times.children_system,
        "peak_memory_mb": peak_memory() / 1e6,
        "disk_mb": summary.bytes_on_disk / 1e6,
        "units": summary.methods + summary.classes + summary.documents,
        "references": summary.references,
    }


def measure(folder: Path, workers: int) -> dict[str, Any]:
    """All figures of one folder."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "research.benchmarks.indexing", str(folder)]
        command += ["--child", data, "--workers", str(workers)]
        first = json.loads(subprocess.check_output(command, cwd=ROOT))
        started = time.perf_counter()
        subprocess.check_output(command, cwd=ROOT)
        second = time.perf_counter() - started
    lines = 0
    for path in first.pop("paths"):
        lines += (folder / path).read_bytes().count(b"\n")
    seconds = bytes_parsed = 0.0
    for key, files in collect([folder]).items():
        seconds += timed(lambda key=key, files=files: bare(grammar(key), files))[0]
        bytes_parsed += sum(len(data) for _, data in files)
    bare_speed = bytes_parsed / 1e6 / seconds if seconds else 0.0
    figures = {
        **first,
        "lines": lines,
        "mb_per_s": first["megabytes"] / first["seconds"],
        "lines_per_s": lines / first["seconds"],
        "bare_mb_per_s": bare_speed,
        "share_of_bare": first["megabytes"] / first["processor"] / bare_speed if bare_speed else 0,
        "second_run": second,
        "load": load,
    }
    return {"repository": folder.name, **{name: figures[name] for name in LABELS}}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=0, help="0: one per core, at most 4")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(child(options.folder[0].resolve(), options.child, options.workers)))
        return 0
    found = [measure(folder.resolve(), options.workers) for folder in options.folder]
    for figures in found:
        print(figures["repository"])
        for name, label in LABELS.items():
            print(f"  {label:<42}{figures[name]:>14,.{0 if figures[name] >= 100 else 2}f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
