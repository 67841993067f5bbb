"""What small commits changed, and in which functions: git's log, read without running anything.

A commit's subject says what somebody wanted; the functions that it changed are where it was
done. Wide commits are passed over: their subjects describe none of their functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codeqa.languages import detect
from codeqa.parsing import parse_file
from codeqa.repository.git import find_git, read_git
from codeqa.repository.roles import role_of
from codeqa.types import METHOD_KINDS

MAX_FILES = 3
MAX_FUNCTIONS = 3
MAX_BYTES = 300_000
LOG_SECONDS = 20.0
COMMIT_SECONDS = 5.0

_CONFIG = ("-c", "core.quotePath=false")
_SAFE_DIFF = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--relative",
    "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
"""Attributes and configuration can name commands for differences; none is run."""
_OBJECT = re.compile(r"[0-9a-f]{40,64}")
_HUNK = re.compile(rb"@@ -\S+ \+(\d+)(?:,(\d+))? @@")

LineRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """A small commit: its subject and the functions that it changed, as (path, qualified name)."""

    commit: str
    subject: str
    functions: tuple[tuple[str, str], ...]


def changes(root: Path, limit: int) -> Iterator[Change]:
    """Small commits among the last `limit` ones that touch `root`, the latest first.

    Nothing where there is no history, or git refuses. Raises RepositoryError without git.
    """
    top = root.resolve()
    git = find_git(top)
    log = read_git(
        git,
        top,
        (*_CONFIG, "log", f"-{limit}", "--no-merges", "--name-status", *_SAFE_DIFF,
         "--format=%x01%H%x02%s", "--", "."),
        LOG_SECONDS,
    )  # fmt: skip
    for entry in (log or b"").split(b"\x01")[1:]:
        head, _, rest = entry.decode("utf-8", "replace").partition("\n")
        commit, _, subject = head.partition("\x02")
        files = [line.split("\t", 1) for line in rest.split("\n") if "\t" in line]
        sources = [path for status, path in files if status == "M" and _is_source(path)]
        few = 1 <= len(sources) <= MAX_FILES and len(files) <= 2 * MAX_FILES
        if not few or not _OBJECT.fullmatch(commit):
            continue
        functions = [
            (path, name)
            for path, spans in _spans(git, top, commit, sources).items()
            for name in _touched(git, top, commit, path, spans)
        ]
        if 1 <= len(functions) <= MAX_FUNCTIONS:
            yield Change(commit, subject, tuple(functions))


def _is_source(path: str) -> bool:
    language = detect(path)
    return language is not None and bool(language.grammar) and role_of(path) == "source"


def _spans(git: str, top: Path, commit: str, paths: list[str]) -> dict[str, list[LineRange]]:
    """Path → the spans of lines, after the commit, that it changed."""
    patch = read_git(
        git,
        top,
        (*_CONFIG, "show", "--format=", "-U0", *_SAFE_DIFF, commit, "--", *paths),
        COMMIT_SECONDS,
    )
    spans: dict[str, list[LineRange]] = {}
    path = ""
    for line in (patch or b"").split(b"\n"):
        if line.startswith(b"+++ b/"):
            path = line[6:].decode("utf-8", "replace")
        elif match := _HUNK.match(line):
            first, count = int(match[1]), int(match[2] or 1)
            spans.setdefault(path, []).append((first, first + max(count, 1) - 1))
    return spans


def _touched(git: str, top: Path, commit: str, path: str, spans: list[LineRange]) -> list[str]:
    """Qualified names of the functions in that commit's `path` that `spans` lie in."""
    data = read_git(git, top, ("cat-file", "blob", f"{commit}:./{path}"), COMMIT_SECONDS)
    if data is None or len(data) > MAX_BYTES:
        return []
    return [
        unit.qualified_name
        for unit in parse_file(path, data).units
        if unit.kind in METHOD_KINDS
        and any(first <= unit.end_line and unit.start_line <= last for first, last in spans)
    ]
