"""Tables on an S3 store: `python -m research.benchmarks.object_store --out results.json`.

How often the probe takes a store that ignores `If-None-Match` for a good one, and a good one for
one that ignores it; and what an index there takes beside the same on this disk. The stores are
moto's server on this machine and a proxy of it: their times are moto's, not S3's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from codeqa.engine import open_engine
from codeqa.settings import load_settings
from codeqa.store.reader import run_on_loop
from codeqa_server import object_store
from research.benchmarks.machine import conditions
from tests.kit.s3_server import BUCKET, ENVIRONMENT, s3_stores


def probed(address: str, times: int) -> dict[str, Any]:
    """Kept rows → how often, of `times` probes of the store at `address`."""
    os.environ["AWS_ENDPOINT_URL"] = address
    kept, began = Counter[int](), time.perf_counter()
    for _ in range(times):
        kept[run_on_loop(object_store._race(f"s3://{BUCKET}/probed"))] += 1
    seconds = (time.perf_counter() - began) / times
    return {"rows_kept": dict(sorted(kept.items())), "seconds_each": round(seconds, 2)}


def indexed(repository: Path, data: Path, tables: str) -> dict[str, Any]:
    """Seconds of a first index, one without changes, and a search."""
    with closing(open_engine(load_settings(data=data, tables=tables), repository)) as engine:
        took = {}
        for name in ("first", "unchanged"):
            began = time.perf_counter()
            found = engine.index.run()
            took[name] = round(time.perf_counter() - began, 2)
        began = time.perf_counter()
        engine.search.search("where is a token compared")
        took["search"] = round(time.perf_counter() - began, 3)
    return {"files": found.files, "methods": found.methods, "seconds": took}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--repository", type=Path, default=Path("codeqa/web"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    with s3_stores() as stores, tempfile.TemporaryDirectory() as folder:
        report = {
            **conditions(["python", "-m", "research.benchmarks.object_store", *sys.argv[1:]]),
            "writers": object_store.WRITERS,
            "careful": probed(stores.careful, given.times),
            "careless": probed(stores.careless, given.times),
        }
        os.environ["AWS_ENDPOINT_URL"] = stores.careful
        data = Path(folder)
        report["disk"] = indexed(given.repository, data / "disk", "")
        report["moto"] = indexed(given.repository, data / "moto", f"s3://{BUCKET}/tables")
    text = json.dumps(report, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
