"""What the steps' command lines share."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIST = HERE / "repositories.jsonl"
TUNING = HERE / "tuning_repositories.json"
SEED = 20_240


def parser(step: str, doc: str | None, examples: str) -> argparse.ArgumentParser:
    """An argument parser whose `--help` shows the module's own words and examples."""
    made = argparse.ArgumentParser(
        prog=f"python -m research.training.{step}",
        description=(doc or "").strip(),
        epilog="examples:\n" + examples.rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--out", type=Path, required=True, help="folder of everything that is made")
    return made


def say(text: str) -> None:
    """One line for the person who runs the step."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def bar(items: Iterable[Any], what: str, unit: str, total: int | None = None) -> Iterable[Any]:
    """`items` with a progress bar; in a log one line a minute instead of many."""
    from tqdm import tqdm

    often = 0.2 if sys.stderr.isatty() else 60.0
    shown: Iterable[Any] = tqdm(items, desc=what, unit=unit, total=total, mininterval=often)
    return shown


def file_name(repository: str) -> str:
    """`owner/name` as part of a file name."""
    return repository.replace("/", "+")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a `.jsonl` or `.jsonl.gz` file."""
    with path.open("rb") as raw:
        yield from map(json.loads, gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw)


def write_lines(path: Path, rows: Iterable[Any]) -> int:
    """Write objects as lines, the file appearing whole or not at all; how many there were."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    # No time stamp: the same rows give the same bytes.
    if path.suffix == ".gz":
        with part.open("wb") as raw, gzip.GzipFile("", "wb", 3, raw, mtime=0) as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
                count += 1
    else:
        with part.open("w", encoding="utf-8") as text:
            for row in rows:
                text.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
    part.replace(path)
    return count


def write_json(path: Path, value: Any) -> None:
    """Write one JSON value, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")
    part.replace(path)
