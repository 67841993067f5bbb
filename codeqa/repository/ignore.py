"""Ignore rules: git's pattern language, matched as git matches it.

Patterns and paths are bytes, because git compares bytes and file names need not be UTF-8.
A rule file is a `Patterns`; a place in the tree has a chain of them, the most general first.
The last pattern of the deepest file that matches a path decides, and nothing below an
excluded directory is looked at, exactly as in gitignore(5).

`pathspec` is not used for it: its patterns also match everything below a directory they
name, so that with nested files a `!folder/` re-includes files that git keeps excluded.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from codeqa.repository.globs import BadPatternError, glob_regex

MAX_RULE_BYTES = 10_000_000
"""A larger rule file is no rule file; git stops at 100 MB."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of a rule file."""

    regex: bytes
    negated: bool
    directory_only: bool
    by_name: bool
    """Matched against the last component alone (the line has no slash inside)."""


class Patterns:
    """The patterns of one rule file, relative to the directory that holds it."""

    __slots__ = ("_filters", "_rules")

    def __init__(self, patterns: list[Pattern]) -> None:
        self._rules = [
            (re.compile(rb"(?s:" + p.regex + rb")"), p.negated, p.directory_only, p.by_name)
            for p in reversed(patterns)
        ]
        # Most paths match no pattern: one alternation for each case says so in one call.
        self._filters = {
            (is_directory, by_name): _alternation(
                [
                    p.regex
                    for p in patterns
                    if p.by_name == by_name and (is_directory or not p.directory_only)
                ]
            )
            for is_directory in (False, True)
            for by_name in (False, True)
        }

    def decide(self, path: bytes, name: bytes, is_directory: bool) -> bool | None:
        """True: excluded, False: included again, None: no pattern matches `path`."""
        by_name = self._filters[is_directory, True]
        by_path = self._filters[is_directory, False]
        if not (
            (by_name is not None and by_name.fullmatch(name))
            or (by_path is not None and by_path.fullmatch(path))
        ):
            return None
        for regex, negated, directory_only, named in self._rules:
            if (is_directory or not directory_only) and regex.fullmatch(name if named else path):
                return not negated
        return None


Chain = tuple[tuple[int, Patterns], ...]
"""(length of the prefix that the patterns are relative to, patterns), the deepest last."""


def excluded(chain: Chain, path: bytes, is_directory: bool) -> bool:
    """Whether `path` itself is excluded; its parents are taken to be included."""
    if not chain:
        return False
    name = path[path.rfind(b"/") + 1 :]
    for base, patterns in reversed(chain):
        decision = patterns.decide(path[base:], name, is_directory)
        if decision is not None:
            return decision
    return False


def parse_patterns(data: bytes) -> Patterns | None:
    """Read a rule file; None when it holds no pattern."""
    found = [
        pattern
        for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if (pattern := _parse_line(line.removesuffix(b"\r"))) is not None
    ]
    return Patterns(found) if found else None


def read_patterns(path: bytes, *, follow: bool = False) -> Patterns | None:
    """Read the rule file at `path`; None when there is none that can be read.

    Inside a work tree links are not followed (nor does git), and nothing but a regular
    file is read, so that a pipe cannot make us wait.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    try:
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_RULE_BYTES:
                return None
            return parse_patterns(file.read(MAX_RULE_BYTES))
    except OSError:
        return None


def global_excludes() -> Patterns | None:
    """The user's own excludes file: `core.excludesFile`, else git's default place for it."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (Path.home may raise)
    base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    chosen = os.environ.get("GIT_CONFIG_GLOBAL")
    configs = [Path(chosen)] if chosen is not None else [home / ".gitconfig", base / "config"]
    if "GIT_CONFIG_NOSYSTEM" not in os.environ:
        configs.append(Path(os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"))
    for config in configs:
        found = _configured_excludes(config)
        if found is not None:
            place = home / found[2:] if found.startswith("~/") else Path(found)
            return read_patterns(os.fsencode(place), follow=True) if found else None
    return read_patterns(os.fsencode(base / "ignore"), follow=True)


def _configured_excludes(config: Path) -> str | None:
    try:
        text = config.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    section, value = "", None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section, _, line = line[1:].partition("]")
            section, line = section.strip().lower(), line.strip()
        key, separator, given = line.partition("=")
        if section == "core" and separator and key.strip().lower() == "excludesfile":
            value = given.strip().strip('"').replace("\\\\", "\\")
    return value


def _alternation(regexes: list[bytes]) -> re.Pattern[bytes] | None:
    return re.compile(rb"(?s:" + b"|".join(regexes) + rb")") if regexes else None


def _parse_line(line: bytes) -> Pattern | None:
    line = _without_trailing_blanks(line)
    if not line or line.startswith(b"#"):
        return None
    negated = line.startswith(b"!")
    if negated:
        line = line[1:]
    directory_only = line.endswith(b"/")
    if directory_only:
        line = line[:-1]
    by_name = b"/" not in line
    line = line.removeprefix(b"/")
    if not line:
        return None
    try:
        regex = glob_regex(line, by_name)
    except BadPatternError:
        return None
    return Pattern(regex, negated, directory_only, by_name)


def _without_trailing_blanks(line: bytes) -> bytes:
    end = len(line.rstrip(b" "))
    backslashes = len(line[:end]) - len(line[:end].rstrip(b"\\"))
    if end < len(line) and backslashes % 2:
        end += 1  # "\ " at the end keeps its blank
    return line[:end]
