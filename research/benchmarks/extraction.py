"""How fast extraction is beside the bare grammar.

    python -m research.benchmarks.extraction FOLDER …

Each file is read once; for every language the same files are parsed and queried bare
(`Parser.parse`, then `QueryCursor.matches` with the language's own query) and extracted
(`parse_file`: units, references, ids), alternately and in the same process, and the best
of `--rounds` is taken (seconds of the processor, so that a busy machine matters less).
`--processes N` then times `parse_file` over all files in N processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import tree_sitter

from codeqa.languages import detect
from codeqa.parsing import Grammar, grammar, parse_file, query

MAX_BYTES = 1_000_000
SKIPPED_FOLDERS = {".git", "node_modules", ".venv", "__pycache__"}

Files = list[tuple[str, bytes]]


def collect(folders: Sequence[Path]) -> dict[str, Files]:
    """The files of the folders that have a grammar, by the key of their language."""
    found: dict[str, Files] = defaultdict(list)
    for folder in folders:
        for parent, names, entries in os.walk(folder):
            names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS)
            for entry in sorted(entries):
                path = Path(parent, entry)
                if not path.is_file() or path.stat().st_size > MAX_BYTES:
                    continue
                data = path.read_bytes()
                language = detect(entry, data)
                if language is not None and language.grammar and b"\0" not in data[:8192]:
                    found[language.key].append((str(path.relative_to(folder)), data))
    return dict(found)


def bare(compiled: Grammar, files: Files) -> int:
    """Parse and query alone; the number of matches."""
    matches = 0
    parser = tree_sitter.Parser(compiled.grammar)
    for _, data in files:
        tree = parser.parse(data)
        cursor = tree_sitter.QueryCursor(query(compiled.language.key)[0])
        matches += len(cursor.matches(tree.root_node))
    return matches


def full(files: Files) -> tuple[int, int]:
    """Extraction; the number of units and of references."""
    units = references = 0
    for path, data in files:
        parsed = parse_file(path, data, "source")
        units += len(parsed.units)
        references += len(parsed.references)
    return units, references


def timed(
    call: Callable[[], object], clock: Callable[[], float] = time.process_time
) -> tuple[float, object]:
    """Seconds (of the processor, unless another clock is given) and the result."""
    start = clock()
    result = call()
    return clock() - start, result


def measure(key: str, files: Files, rounds: int) -> dict[str, object]:
    """One line of the table."""
    compiled = grammar(key)
    size = sum(len(data) for _, data in files) / 1e6
    alone, whole = [], []
    counts: object = (0, 0)
    for _ in range(rounds):
        alone.append(timed(lambda: bare(compiled, files))[0])
        seconds, counts = timed(lambda: full(files))
        whole.append(seconds)
    assert isinstance(counts, tuple)
    return {
        "language": key, "files": len(files), "megabytes": round(size, 3),
        "bare_mb_per_s": round(size / min(alone), 2),
        "extraction_mb_per_s": round(size / min(whole), 2),
        "ratio": round(min(alone) / min(whole), 3),
        "seconds_bare": min(alone), "seconds_extraction": min(whole),
        "units": counts[0], "references": counts[1],
    }  # fmt: skip


def in_processes(files: Files, processes: int) -> float:
    """Megabytes per second of `parse_file` over all files in several processes."""
    files = sorted(files, key=lambda file: -len(file[1]))
    batches = [files[start::16] for start in range(16)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        list(pool.map(full, [files[:1]] * processes))  # imports and grammars
        seconds, _ = timed(lambda: list(pool.map(full, batches)), time.perf_counter)
    return sum(len(data) for _, data in files) / 1e6 / seconds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    by_language = collect(options.folder)
    lines = [measure(key, files, options.rounds) for key, files in sorted(by_language.items())]
    print(f"{'language':12}{'files':>7}{'MB':>8}{'bare MB/s':>11}{'extr. MB/s':>11}{'ratio':>7}")
    for line in lines:
        print(
            f"{line['language']:12}{line['files']:>7}{line['megabytes']:>8.2f}"
            f"{line['bare_mb_per_s']:>11.2f}{line['extraction_mb_per_s']:>11.2f}"
            f"{line['ratio']:>7.2f}"
        )
    size = sum(len(data) for files in by_language.values() for _, data in files) / 1e6
    alone = sum(float(str(line["seconds_bare"])) for line in lines)
    whole = sum(float(str(line["seconds_extraction"])) for line in lines)
    total = {"megabytes": size, "bare_mb_per_s": size / alone, "extraction_mb_per_s": size / whole,
             "ratio": alone / whole}  # fmt: skip
    print(f"{'all':19}{size:>8.2f}{size / alone:>11.2f}{size / whole:>11.2f}{alone / whole:>7.2f}")
    if options.processes:
        every = [file for files in by_language.values() for file in files]
        total["processes"] = options.processes
        total["processes_mb_per_s"] = in_processes(every, options.processes)
        print(f"{options.processes} processes: {total['processes_mb_per_s']:.2f} MB/s")
    if options.json:
        options.json.write_text(json.dumps({"languages": lines, "all": total}, indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
