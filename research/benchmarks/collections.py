"""Many repositories in one collection, from one to a thousand:
`python -m research.benchmarks.collections TREES --work FOLDER [--repositories 1 10] [--json FILE]`.

The repositories are **copies**: the trees (folders of source) are indexed once each, and their
indices are put into the collection again and again under other names, by the function that does so
for real ones. Texts and vectors are those of the trees, so a word is as common among a thousand
copies as in the trees themselves, and each hit has as many twins as there are copies. *Quality* is
therefore asked of the trees alone (`--quality`), and the *recall* of the vector index of rows
(`--recall`) whose vectors are those of the trees with noise: cosine .96 to the original.

Recorded for each number of repositories: seconds and processor time of the copying with the indices
built, lines a second and core, bytes a unit; the median and the 95th percentile of a search over
one of them, ten and all; what the catalogue takes in memory; and, where CHANGED of the rows are
new, how long the question that finds them waits, and how long indices are built behind it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from codeqa.engine import open_multi_repo
from codeqa.indexing import Indexer
from codeqa.repositories.collection import Collection
from codeqa.repositories.multi_repo import MultiRepoTables
from codeqa.search.hybrid import open_search
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, Tables, locate
from codeqa.store.location import local_bytes, short_id
from codeqa.store.writer import index_config
from research.benchmarks.machine import conditions, memory_mb
from research.benchmarks.retrieval.sets import questions_of

ROUNDS = 3
QUESTIONS = (
    "how are blueprints registered?", "where is the session cookie opened?",
    "how does the router match a path?", "how is a multipart body parsed?",
    "what happens when the request body is too large?", "how is json parsed into objects?",
    "where are log lines written?", "how does middleware wrap a handler?",
    "which type adapter serializes enums?", "how are headers written to a response?",
)  # fmt: skip
NPROBES = (10, 20, 50, 100, 200)
NOISE = 0.3
CHANGED = 0.03
"""Share of the repositories that come at last: indices are built anew from 2 % on."""


def indexed(settings: Settings, folders: Sequence[Path]) -> list[Location]:
    """The indices of `folders`, made where they are not there."""
    places = [locate(settings, folder) for folder in folders]
    for place in places:
        if not Path(place.tables).exists():
            Indexer(settings, place).run(refine=False)
    return places


def lines_of(place: Location) -> int:
    """Lines of the indexed files."""
    paths = Tables(place).catalogue().paths
    return sum((place.root / path).read_bytes().count(b"\n") for path in paths)


def copies(places: Sequence[Location], number: int) -> list[Location]:
    """`number` repositories that are none: each is one of `places`, under an id of its own."""
    cycle = itertools.cycle(places)
    return [replace(next(cycle), id=f"copy-{number:08x}") for number in range(number)]


def opened(collection: Collection, asked: Sequence[Location]) -> MultiRepoTables:
    """The tables of `collection` as who asks these reads them."""
    collection._sound = True  # what is not asked is no repository: it would be removed
    return MultiRepoTables(collection, "", asked).opened()


def times(settings: Settings, tables: MultiRepoTables) -> dict[str, float]:
    """Milliseconds of a search."""
    search = open_search(settings, lambda: tables)
    found = []
    for question in QUESTIONS:
        search.search(question)
    processor = time.process_time()
    for question in QUESTIONS * ROUNDS:
        started = time.perf_counter()
        search.search(question)
        found.append((time.perf_counter() - started) * 1000)
    spent = (time.process_time() - processor) * 1000 / len(found)
    return {
        "p50_ms": round(statistics.median(found), 1),
        "p95_ms": round(sorted(found)[math.ceil(len(found) * 0.95) - 1], 1),
        "processor_ms": round(spent, 1),
    }


def catalogue(tables: MultiRepoTables) -> dict[str, Any]:
    """Megabytes of Python's own memory (Arrow's is not counted) and seconds of each part."""
    told: dict[str, Any] = {}
    own = tables.catalogue()
    for part in ("counts", "manifest", "paths", "by_file_name", "folders", "names", "_rows"):
        tracemalloc.start()
        started = time.perf_counter()
        getattr(own, part)
        seconds = time.perf_counter() - started
        told[part] = {
            "mb": round(tracemalloc.get_traced_memory()[0] / 1e6, 1),
            "seconds": round(seconds, 2),
        }
        tracemalloc.stop()
    told["manifest"]["arrow_mb"] = round(own.manifest.nbytes / 1e6, 1)
    told["distinct_names"] = len(own.names)
    return told


def sizes(settings: Settings, places: Sequence[Location], numbers: Sequence[int]) -> list[Any]:
    """What is recorded for each number of repositories, in one collection that grows."""
    collection = Collection(settings)
    location = collection.location
    location.folder.mkdir(parents=True, exist_ok=True)
    lines = {place.root: lines_of(place) for place in places}
    told, before = [], 0
    for number in numbers:
        every = copies(places, number)
        named = {short_id(one.id): one for one in every}
        began, processor = time.perf_counter(), time.process_time()
        collection._fill(named, named, lambda step: None)
        collection.tidy()
        seconds, spent = time.perf_counter() - began, time.process_time() - processor
        added = sum(lines[one.root] for one in every[before:])
        added_repositories, before = number - before, number
        whole = opened(collection, every)
        counts, size = whole.counts(), local_bytes(location)
        one = {
            "repositories": number,
            "files": counts.files,
            "units": counts.units,
            "references": counts.references,
            "built": {
                "added_repositories": added_repositories,
                "added_lines": added,
                "seconds": round(seconds, 1),
                "processor_seconds": round(spent, 1),
                "lines_per_second_and_core": round(added / spent),
            },
            "bytes_per_unit": round(size / counts.units),
            "gigabytes": round(size / 1e9, 2),
            "catalogue": catalogue(whole),
            "search_all": times(settings, whole),
            "search_one": times(settings, opened(collection, every[:1])),
        }
        if number > 10:
            one["search_ten"] = times(settings, opened(collection, every[:10]))
        more = copies(places, number + math.ceil(number * CHANGED))
        named = {short_id(each.id): each for each in more}
        began = time.perf_counter()
        collection._fill(named, named, lambda step: None)
        waited = time.perf_counter()
        one["changed"] = {"question_waits_seconds": round(waited - began, 1)}
        one["changed"]["search_all_meanwhile"] = times(settings, opened(collection, more))
        began = time.perf_counter()
        collection.tidy()
        one["changed"]["indices_seconds"] = round(time.perf_counter() - began, 1)
        before = len(more)
        one["memory_mb"] = round(memory_mb())
        told.append(one)
        print(json.dumps(one), flush=True)
    return told


def recall(settings: Settings, places: Sequence[Location], rows: int, work: Path) -> dict[str, Any]:
    """Of the ten units nearest to a question by exact search, those that the index finds."""
    import lancedb
    import pyarrow as pa

    from codeqa.embeddings.registry import fast_embedding

    random = np.random.default_rng(1)
    parts = []
    for place in places:
        own = Tables(place)._reader
        for table in ("methods", "classes"):
            column = own.arrow(table, ("vector",), "vector IS NOT NULL")["vector"].combine_chunks()
            parts.append(column.flatten().to_numpy().reshape(len(column), -1))
    real = np.concatenate(parts).astype(np.float32)
    real = real[np.linalg.norm(real, axis=1) > 0]
    dimension = real.shape[1]
    database = lancedb.connect(work / f"vectors-{rows}")
    database.drop_all_tables()
    kind = pa.list_(pa.float16(), dimension)
    schema = pa.schema([pa.field("repository", pa.string()), pa.field("vector", kind)])
    table = database.create_table("vectors", schema=schema)
    per = 2_000  # units of one made-up repository
    for at in range(0, rows, 100_000):
        picked = real[random.integers(len(real), size=min(100_000, rows - at))]
        scale = NOISE * np.linalg.norm(picked, axis=1, keepdims=True) / math.sqrt(dimension)
        noisy = picked + scale * random.standard_normal(picked.shape, dtype=np.float32)
        flat = pa.array(noisy.astype(np.float16).reshape(-1))
        names = pa.array([f"r{(at + row) // per}" for row in range(len(picked))])
        vectors = pa.FixedSizeListArray.from_arrays(flat, dimension)
        table.add(pa.table([names, vectors], schema=schema))
    began = time.perf_counter()
    table.create_index("vector", config=index_config("vector"))
    table.create_index("repository", config=index_config("repository"))
    told: dict[str, Any] = {"rows": rows, "index_seconds": round(time.perf_counter() - began, 1)}
    fast = fast_embedding()
    assert fast is not None
    asked = [one.question for one in questions_of("development", places[0].root.parent)[0]][::4]
    vectors = [fast.embed_query(one) for one in asked]
    for scope, condition in (
        ("all", ""), ("one of them", "repository = 'r1'"),
        ("ten of them", "repository IN (" + ", ".join(f"'r{n}'" for n in range(10)) + ")"),
    ):  # fmt: skip

        def query(vector: Any, condition: str = condition) -> Any:
            one = table.search(vector, vector_column_name="vector").distance_type("cosine")
            one = one.select(["_distance"]).with_row_id(True).limit(10)
            return one.where(condition, prefilter=True) if condition else one

        exact = [_ids(query(one).bypass_vector_index()) for one in vectors]
        for probes, refine in itertools.product(NPROBES, (0, 2)):
            shares, spent = [], []
            for vector, right in zip(vectors, exact, strict=True):
                one = query(vector).minimum_nprobes(probes)
                one = one.maximum_nprobes(0 if condition else probes)
                began = time.perf_counter()
                got = _ids(one.refine_factor(refine) if refine else one)
                spent.append((time.perf_counter() - began) * 1000)
                shares.append(len(got & right) / len(right))
            told[f"{scope}, nprobes {probes}, refine {refine}"] = {
                "recall@10": round(statistics.mean(shares), 3),
                "p50_ms": round(statistics.median(spent), 1),
            }
    print(json.dumps(told), flush=True)
    return told


def _ids(query: Any) -> set[int]:
    return {*query.to_arrow()["_rowid"].to_pylist()}


def quality(settings: Settings, trees: Path) -> dict[str, Any]:
    """hit@1 and ndcg@10 of the files that answer the development questions, all asked together."""
    questions, _ = questions_of("development", trees)
    names = sorted({one.repo for one in questions})
    places = indexed(settings, [trees / name for name in names])
    first, gains = 0, 0.0
    with open_multi_repo(settings, places) as together:
        for one in questions:
            wanted = {f"{one.repo}/{path}" for path in one.main_files}
            found = [file.path in wanted for file in together.search.search(one.question).files]
            found = found[:10]
            ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
            first += found[:1] == [True]
            gains += sum(hit / math.log2(at + 2) for at, hit in enumerate(found)) / ideal
    return {
        "repositories": names,
        "questions": len(questions),
        "hit@1": round(first / len(questions), 4),
        "ndcg@10": round(gains / len(questions), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--repositories", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--recall", type=int, nargs="*", default=[])
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = conditions([*sys.orig_argv])
    own = load_settings(data=given.work / "trees")
    folders = sorted(one for one in given.trees.iterdir() if one.is_dir())
    if given.quality:
        found["quality"] = quality(own, given.trees)
    places = indexed(own, folders)
    if given.repositories:
        copied = load_settings(data=given.work / "copies")
        found["sizes"] = sizes(copied, places, given.repositories)
    found["recall"] = [recall(own, places, rows, given.work) for rows in given.recall]
    print(json.dumps(found, indent=2))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
