"""One machine beside a Ray cluster on the same repository, and clusters that lose a machine.

`python -m benchmarks.cluster REPOSITORY --killed REPOSITORY --kills 10 --json FILE`, in an
environment with the extra `cluster`. The machines are processes of this one, so nothing here shows
how an index is built faster by more of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import secrets
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.machine import conditions
from codeqa.indexing import Indexer
from codeqa.settings import load_settings
from codeqa.store import Tables, locate
from codeqa.store.schema import TABLES
from codeqa.store.writer import Writer
from codeqa.types import Progress

SMALL_CHUNKS = 32_000, 32_000
TIMES = ("indexed_at", "mtime_ns")


def hash_of(location: Any) -> tuple[str, int]:
    """A digest of all rows of all tables, in whatever order they lie, but for times; how many."""
    meta = Tables(location).meta()
    writer, digest, count = Writer.open(location, meta.parser, meta.vector), hashlib.sha256(), 0
    for table in TABLES:
        rows = writer.tables[table].to_arrow().drop_columns(TIMES if table == "files" else ())
        lines = sorted(json.dumps(row, sort_keys=True) for row in rows.to_pylist())
        digest.update("\n".join(lines).encode())
        count += len(lines)
    return digest.hexdigest()[:16], count


def built(repository: Path, data: Path, engine: Any, on_step: Any = None) -> dict[str, Any]:
    """One index of `repository` from nothing: its rows, and the seconds of each part."""
    settings = load_settings(data=data, workers=1)
    location = locate(settings, repository)
    began, ended = [0.0], [0.0]

    def listen(step: Progress) -> None:
        now = time.monotonic()
        if step.phase == "indexing":
            began[0] = began[0] or now
            ended[0] = now
        if on_step:
            on_step(step)

    started = time.monotonic()
    Indexer(settings, location).run(listen, refine=False, engine=engine)
    seconds = time.monotonic() - started
    digest, rows = hash_of(location)
    reading = ended[0] - began[0]
    return {
        "rows": rows, "hash": digest, "seconds": round(seconds, 1),
        "seconds_reading": round(reading, 1), "rows_per_second_reading": round(rows / reading),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--killed", type=Path, help="Repository of the runs that lose a machine.")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ |= {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0", "CODEQA_EMBEDDING": "",
        "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
    }  # fmt: skip
    import ray
    from ray.cluster_utils import Cluster

    from codeqa.cluster import ray_engine

    found = conditions(["python", "-m", "benchmarks.cluster", *sys.argv[1:]])
    found["repository"] = arguments.repository.name
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        print("one process that parses:", flush=True)
        found["single"] = built(arguments.repository, data / "single", None)
        print(found["single"], flush=True)
        options = {"include_dashboard": False, "object_store_memory": 100_000_000}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
            ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
            engine = ray_engine.RayEngine("ray")
            print("one task of Ray at a time, its worker cold, then warm:", flush=True)
            for name in ("ray_cold", "ray_warm"):
                found[name] = built(arguments.repository, data / name, engine)
                print(found[name], flush=True)
            found["same_rows"] = found["single"]["hash"] == found["ray_warm"]["hash"]
            if arguments.killed:
                found["kills"] = kills(cluster, arguments, data, ray_engine, engine)
        finally:
            ray.shutdown()
            cluster.shutdown()
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


def kills(
    cluster: Any, arguments: argparse.Namespace, data: Path, ray_engine: Any, engine: Any
) -> dict[str, Any]:
    """Runs of each of which one machine of three is killed at any moment."""
    ray_engine.CHUNK_BYTES = SMALL_CHUNKS
    chance, repository = random.Random(28), arguments.killed
    wanted = built(repository, data / "wanted", None)["hash"]
    seconds, runs = 0.0, []
    for number in range(-1, arguments.kills):
        while len(cluster.worker_nodes) < 3:
            cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
        cluster.wait_for_nodes()
        lost = chance.choice(sorted(cluster.worker_nodes, key=lambda node: node.unique_id))
        after, where = chance.uniform(0, seconds), ["before it began"]

        def note(step: Progress, where: list[str] = where) -> None:
            where[0] = f"{step.phase} {step.done}/{step.total}"

        def kill(lost: Any = lost, where: list[str] = where) -> None:
            where.append(where[0])
            cluster.remove_node(lost, allow_graceful=False)

        timer = threading.Timer(after, kill)
        if number >= 0:
            timer.start()
        made = built(repository, data / f"killed-{number}", engine, note)
        if number < 0:  # how long one takes that loses nothing
            seconds = made["seconds"]
            continue
        timer.join()
        run = {
            "killed_after": round(after, 1), "while": where[-1], "seconds": made["seconds"],
            "same_rows": made["hash"] == wanted,
        }  # fmt: skip
        runs.append(run)
        print(run, flush=True)
    same = sum(run["same_rows"] for run in runs)
    print(f"{same} of {len(runs)} with the same rows as one machine", flush=True)
    return {"repository": repository.name, "unharmed_seconds": seconds, "same": same, "runs": runs}


if __name__ == "__main__":
    main()
