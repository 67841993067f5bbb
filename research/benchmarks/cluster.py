"""What docs/scale.md says of an index that a Ray cluster builds: the rows of one machine, also for
edits, a list and tables on S3, and when a machine, the command or the head of the cluster dies.

`python -m research.benchmarks.cluster REPOSITORY --killed REPOSITORY --kills 10 --json FILE`, in an
environment with the extra `cluster`; what dies builds the second repository. The machines are
processes of this one, so nothing here shows how an index is built faster by more of them. FILE
has each part as soon as it is over.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from codeqa.cli import main as codeqa
from codeqa.errors import IndexMissingError
from codeqa.indexing import Indexer
from codeqa.settings import load_settings
from codeqa.store import Tables, locate
from codeqa.store.schema import TABLES
from codeqa.store.writer import TableWriter
from codeqa.types import Progress
from research.benchmarks.machine import ROOT, conditions
from tests.kit.s3_server import BUCKET, ENVIRONMENT, s3_stores
from tests.server.test_ray_builder import HEADLESS, KILLED

SMALL_CHUNKS = 32_000, 32_000
TIMES = ("indexed_at", "mtime_ns")


def hash_of(location: Any) -> tuple[str, int]:
    """A digest of all rows of all tables, in whatever order they lie, but for times; how many."""
    meta = Tables(location).meta()
    writer = TableWriter.open(location, meta.parser, meta.vector)
    digest, count = hashlib.sha256(), 0
    for table in TABLES:
        rows = writer.tables[table].to_arrow().drop_columns(TIMES if table == "files" else ())
        lines = sorted(json.dumps(row, sort_keys=True) for row in rows.to_pylist())
        digest.update("\n".join(lines).encode())
        count += len(lines)
    return digest.hexdigest()[:16], count


def built(repository: Path, data: Path, engine: Any, on_step: Any = None) -> dict[str, Any]:
    """One run for `repository`: the rows of its index, and the seconds of each part."""
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
    summary = Indexer(settings, location).run(listen, refine=False, builder=engine)
    seconds = time.monotonic() - started
    digest, rows = hash_of(location)
    reading = ended[0] - began[0]
    return {
        "rows": rows, "hash": digest, "seconds": round(seconds, 1), "changed": summary.changed,
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
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    os.environ["TMPDIR"] = "/tmp"  # Ray's sockets want a short one
    import ray
    from ray.cluster_utils import Cluster

    from codeqa_server import ray_builder

    found = conditions(["python", "-m", "research.benchmarks.cluster", *sys.argv[1:]])
    found["repository"] = arguments.repository.name

    def note(part: str, made: Any) -> None:
        found[part] = made
        print(f"{part}: {made}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=2) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        note("single", built(arguments.repository, data / "single", None))
        options = {"include_dashboard": False, "object_store_memory": 100_000_000}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
            ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
            engine = ray_builder.RayBuilder("ray")
            for name in ("ray_cold", "ray_warm"):  # one task at a time
                note(name, built(arguments.repository, data / name, engine))
            note("same_rows", found["single"]["hash"] == found["ray_warm"]["hash"])
            small = arguments.killed or arguments.repository
            note("incremental", edited(small, data, engine))
            note("list", listed(small, data))
            note("driver_killed", ended(KILLED, [cluster.address, "2"], small, data, engine))
            note("head_lost", ended(HEADLESS, [], small, data, engine))
            note("s3", on_s3(small, data))
            if arguments.killed:
                note("kills", kills(cluster, arguments, data, ray_builder, engine))
        finally:
            ray.shutdown()
            cluster.shutdown()


def edited(repository: Path, data: Path, engine: Any) -> dict[str, Any]:
    """A run after one file was changed, one added and one removed."""
    copy = data / "edited"
    shutil.copytree(repository, copy)
    before = built(copy, data / "incremental", engine)
    first, second = sorted(copy.rglob("*.py"), key=lambda file: file.stat().st_size)[-2:]
    with first.open("a") as text:
        text.write("\n\ndef added():\n    return 1\n")
    (copy / "new.py").write_text("def new():\n    return 2\n")
    second.unlink()
    made = built(copy, data / "incremental", engine)
    same = made["hash"] == built(copy, data / "clean", None)["hash"]
    return {"files_before": before["changed"], "files_written": made["changed"],
            "seconds": made["seconds"], "same_rows": same}  # fmt: skip


def listed(repository: Path, data: Path) -> dict[str, Any]:
    """A list of three repositories and one that is not there."""
    roots = [data / name for name in ("one", "two", "three")]
    for root in roots:
        shutil.copytree(repository, root)
    (data / "list.txt").write_text("\n".join(map(str, [*roots, data / "nowhere"])))
    os.environ["CODEQA_DATA"] = str(data / "listed")
    started = time.monotonic()
    status = codeqa(["index", str(data / "list.txt"), "--engine", "ray", "--no-refine"])
    seconds = round(time.monotonic() - started, 1)
    settings, wanted = load_settings(), built(repository, data / "alone", None)["hash"]
    same = [hash_of(locate(settings, root))[0] == wanted for root in roots]
    return {"repositories": 3, "not_there": 1, "exit_status": status, "same_rows": all(same),
            "seconds": seconds}  # fmt: skip


def ended(
    script: str, arguments: list[str], repository: Path, data: Path, engine: Any
) -> dict[str, Any]:
    """A run that `script` ends, what readers see of it, and the next run."""
    folder = data / f"ended-{len(script)}"
    done = subprocess.run(
        [sys.executable, "-c", script, str(repository), *arguments],
        env={**os.environ, "CODEQA_DATA": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    seen = True
    try:
        Tables(locate(load_settings(data=folder), repository)).files()
    except IndexMissingError:
        seen = False
    made = built(repository, folder, engine)
    wanted = built(repository, data / f"clean-{len(script)}", None)["hash"]
    return {
        "exit_status": done.returncode, "said": done.stdout.strip(), "seen_by_readers": seen,
        "seconds_of_the_next": made["seconds"], "same_rows": made["hash"] == wanted,
    }  # fmt: skip


def on_s3(repository: Path, data: Path) -> dict[str, Any]:
    """Tables on moto's server, by a Ray of this machine."""
    with s3_stores() as stores:
        given = {
            **ENVIRONMENT, "AWS_ENDPOINT_URL": stores.careful, "CODEQA_DATA": str(data / "s3"),
            "AWS_EC2_METADATA_DISABLED": "true", "CODEQA_TABLES": f"s3://{BUCKET}/tables",
        }  # fmt: skip
        os.environ |= given
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "codeqa", "index", str(repository), "--engine", "ray"],
            check=True, capture_output=True,
        )  # fmt: skip
        seconds = round(time.monotonic() - started, 1)
        digest, rows = hash_of(locate(load_settings(), repository))
        for name in given:
            del os.environ[name]
    same = digest == built(repository, data / "not-s3", None)["hash"]
    return {"rows": rows, "seconds": seconds, "same_rows": same}


def kills(
    cluster: Any, arguments: argparse.Namespace, data: Path, ray_builder: Any, engine: Any
) -> dict[str, Any]:
    """Runs of each of which one machine of three is killed at any moment."""
    ray_builder.CHUNK_BYTES = SMALL_CHUNKS
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
