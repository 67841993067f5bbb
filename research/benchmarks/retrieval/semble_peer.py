"""semble's BM25 mode as a process of its own: questions as JSON in, ranked lists out.

Runs with semble alone (research/requirements-bench.txt), without CodeQA. In this mode (`alpha=0`)
its embedding has no say, so a stand-in takes the place of the model that it would download.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

RESULTS = 50


def main() -> int:
    # Its settings, caches and statistics lie below the home folder: none is to be read or left.
    home = tempfile.TemporaryDirectory()
    os.environ |= {"HOME": home.name, "XDG_CACHE_HOME": home.name, "HF_HUB_OFFLINE": "1"}
    try:
        import numpy as np
        from semble import SembleIndex
        from semble.index.create import create_index_from_path
    except ImportError as error:
        print(f"it is not installed ({error})", file=sys.stderr)
        return 1

    class StandIn:
        """In place of the embedding: gives every text the same vector."""

        dim = 2

        def encode(self, texts: list[str], **_: object) -> np.ndarray:
            return np.ones((len(texts), self.dim), np.float32)

    trees = Path(sys.argv[1])
    asked = json.load(sys.stdin)
    for repository in dict.fromkeys(one["repo"] for one in asked):
        folder = (trees / repository).resolve()
        model = StandIn()
        bm25, vectors, chunks, manifest = create_index_from_path(
            folder, model=model, display_root=folder
        )
        index = SembleIndex(
            model, bm25, vectors, chunks, "stand-in", root=folder, manifest=manifest
        )
        own = [one for one in asked if one["repo"] == repository]
        index.search(own[0]["question"], top_k=RESULTS, alpha=0.0)
        for one in own:
            started = time.perf_counter()
            found = index.search(one["question"], top_k=RESULTS, alpha=0.0)
            elapsed = (time.perf_counter() - started) * 1000
            results = [
                {
                    "path": hit.chunk.file_path.replace(os.sep, "/"),
                    "start": hit.chunk.start_line,
                    "end": hit.chunk.end_line,
                }
                for hit in found
            ]
            print(json.dumps({**one, "results": results, "latency_ms": round(elapsed, 2)}))
    home.cleanup()
    return 0


if __name__ == "__main__":
    sys.exit(main())
