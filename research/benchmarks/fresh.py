"""How fresh a followed index is.

    python -m research.benchmarks.fresh FOLDER latency`, `mutate` or `trees

All work in a copy of FOLDER whose index is followed, as it is while the page is served.

- `latency`: a new file is written, and the index asked every 20 ms until it holds what is in it.
- `mutate`: a file is changed near a function and that function asked about at once; every unit of
  the answer must be, line for line, what its file holds now. Counted are the stale ones, and
  whether the answer told that their file has changed.
- `trees` (FOLDER with its git history): thousands of files change at once: branches far apart,
  stash, folders moved and deleted, ignore files, names of other case, a file that becomes a folder.
  After each the index must hold, row for row, what a clean index of the same files holds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from codeqa.engine import Engine, open_engine
from codeqa.settings import load_settings
from codeqa.store import Tables
from research.benchmarks.machine import conditions
from research.benchmarks.soak import definition, git
from tests.kit.index_rows import clean_rows, rows

LONGEST = 600.0
"""Seconds after which a change counts as lost."""
KINDS = ("above", "inside", "deleted")


@contextmanager
def followed(source: Path, history: bool) -> Iterator[Engine]:
    """An engine over a copy of `source`, once its first run is over."""
    with tempfile.TemporaryDirectory() as folder:
        root, ignored = Path(folder) / source.name, () if history else (".git",)
        shutil.copytree(source, root, symlinks=True, ignore=shutil.ignore_patterns(*ignored))
        settings = load_settings(data=Path(folder) / "data", hyde="off", watch=True)
        with closing(open_engine(settings, root)) as engine:
            engine.index.run()
            engine.index.start()
            until(lambda: engine.index.status().state == "ready")
            time.sleep(2.0)  # the first look of the watcher
            yield engine


def until(met: Callable[[], bool]) -> float:
    """Seconds until `met()`; LONGEST when that is never."""
    began = time.monotonic()
    while not met() and time.monotonic() - began < LONGEST:
        time.sleep(0.02)
    return time.monotonic() - began


def latency(engine: Engine, edits: int, dice: random.Random) -> dict[str, Any]:
    took = []
    for number in range(edits):
        name = f"brandnew{number}"
        (engine.location.root / f"{name}.py").write_text(definition(name))
        took.append(until(partial(found_by_name, engine, name)))
        time.sleep(dice.uniform(1.0, 3.0))
    return {"edits": edits, **spread(took)}


def found_by_name(engine: Engine, name: str) -> bool:
    return bool(engine.tables().named([name]))


def mutate(engine: Engine, edits: int, dice: random.Random) -> dict[str, Any]:
    """Counts the units shown, and those whose text is not what their lines hold."""
    found = engine.tables().units()
    units = [one for one in found if one.is_method and one.role == "source" and len(one.name) > 6]
    root, took, shown, stale = engine.location.root, [], 0, []
    for number in range(edits):
        unit = dice.choice(units)
        path = root / unit.path
        lines = path.read_text("utf-8").split("\n")
        at, kind = dice.randrange(len(lines)), dice.choice(KINDS)
        if kind == "above":
            lines[:0] = [f"# edit {number}"] * dice.randint(1, 9)
        elif kind == "inside":
            lines[at:at] = [f"# edit {number}"]
        else:
            del lines[at : at + 3]
        path.write_text("\n".join(lines), "utf-8")
        began = time.monotonic()
        answer = engine.search.search(f"where is {unit.name}?")
        took.append(time.monotonic() - began)
        for hit in answer.units:
            shown += 1
            text = (root / hit.unit.path).read_text("utf-8").split("\n")
            now = "\n".join(text[hit.unit.start_line - 1 : hit.unit.end_line])
            if now.strip() != hit.unit.source_code.strip() and "***" not in hit.unit.source_code:
                known = "told" if hit.unit.path in answer.changed else "NOT TOLD"
                stale.append(f"{hit.unit.span} after {kind} in {unit.path}: {known}")
                print(f"{stale[-1]}, {took[-1]:.1f} s", flush=True)
        if number % 100 == 99:
            print(f"{number + 1} edits, {shown} units shown, {len(stale)} stale", flush=True)
    return {"edits": edits, "units_shown": shown, "stale": stale, **spread(took)}


def trees(engine: Engine, edits: int, dice: random.Random) -> dict[str, Any]:
    """Seconds until each change stands in the index; `equal` after it."""
    root, figures = engine.location.root, {}
    tags = git(root, "tag", "--sort=creatordate").split()
    folder = max((one for one in root.iterdir() if one.is_dir() and one.name[0] != "."), key=size)
    *_, other, file = sorted(folder.glob("*.py"), key=lambda one: one.stat().st_size)
    steps: dict[str, Callable[[], object]] = {
        f"branch: {tags[0]}": lambda: git(root, "checkout", "-qf", tags[0]),
        f"branch: {tags[-1]}": lambda: git(root, "checkout", "-qf", tags[-1]),
        "every file edited": lambda: edit_all(root),
        "stash": lambda: git(root, "stash", "-q"),
        "stash pop": lambda: git(root, "stash", "pop", "-q"),
        "folder moved": lambda: folder.rename(root / "elsewhere"),
        "and back": lambda: (root / "elsewhere").rename(folder),
        ".gitignore": lambda: (root / ".gitignore").write_text(f"{folder.name}/new/\n"),
        "a new ignored folder": lambda: write_new(folder / "new"),
        ".gitignore emptied": lambda: (root / ".gitignore").write_text(""),
        ".git/info/exclude": lambda: exclude(root, f"{folder.name}/new/"),
        "name of other case": lambda: file.rename(file.with_name(file.name.upper())),
        "a file becomes a folder": lambda: write_new(other),
        "folder deleted": lambda: shutil.rmtree(folder),
        "all put back": lambda: git(root, "checkout", "-qf", tags[-1]),
    }
    for name, step in islice(steps.items(), edits):
        step()
        took = until(lambda: settled(engine))
        changed = len(rows_of_files(engine))
        equal = rows(engine.location) == clean_rows(root, root.parent)
        figures[name] = {"seconds": round(took, 2), "files": changed, "equal": equal}
        print(name, figures[name], flush=True)
    return figures


def settled(engine: Engine) -> bool:
    """Whether the index holds the files as they are, by their names, sizes and times."""
    from codeqa.repository.walk import walk

    found = walk(engine.location.root, max_file_bytes=engine.settings.max_file_bytes)
    now = {one.path: (one.size, one.mtime_ns) for one in found.files}
    listed = {one.path: (one.size, one.mtime_ns) for one in rows_of_files(engine) if one.hash}
    return now == listed and engine.index.status().state == "ready"


def rows_of_files(engine: Engine) -> list[Any]:
    return Tables(engine.location).files()


def size(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.py"))


def edit_all(root: Path) -> None:
    for name in git(root, "ls-files", "*.py").splitlines():
        with (root / name).open("a", encoding="utf-8") as file:
            file.write(f"\n\n{definition('edited_everywhere')}")


def write_new(folder: Path) -> None:
    """A folder with two files, also where a file had its name."""
    folder.unlink(missing_ok=True)
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(definition(f"new_{name}"))


def exclude(root: Path, pattern: str) -> None:
    (root / ".git" / "info" / "exclude").write_text(f"{pattern}\n")


def spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "median_seconds": round(statistics.median(ordered), 2),
        "p95_seconds": round(ordered[int(0.95 * len(ordered))], 2),
        "most_seconds": round(ordered[-1], 2),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=("latency", "mutate", "trees"))
    parser.add_argument("--edits", type=int, default=100, help="or kinds of changes")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    options = parser.parse_args(arguments)
    measure = {"latency": latency, "mutate": mutate, "trees": trees}[options.what]
    load = os.getloadavg()[0]
    with followed(options.folder.resolve(), options.what == "trees") as engine:
        figures = measure(engine, options.edits, random.Random(options.seed))
    figures = {"repository": options.folder.name, "what": options.what, "load": load, **figures}
    print(json.dumps(figures, indent=1))
    if options.json:
        kept = json.loads(options.json.read_text()) if options.json.exists() else []
        command = ["python", "-m", "research.benchmarks.fresh", *sys.argv[1:]]
        kept.append({**conditions(command), **figures})
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
