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

MAX_RULE_BYTES = 10_000_000
"""A larger rule file is no rule file; git stops at 100 MB."""

_CLASSES = {
    b"alnum": re.compile(rb"[A-Za-z0-9]"),
    b"alpha": re.compile(rb"[A-Za-z]"),
    b"blank": re.compile(rb"[ \t]"),
    b"cntrl": re.compile(rb"[\x00-\x1f\x7f]"),
    b"digit": re.compile(rb"[0-9]"),
    b"graph": re.compile(rb"[\x21-\x7e]"),
    b"lower": re.compile(rb"[a-z]"),
    b"print": re.compile(rb"[\x20-\x7e]"),
    b"punct": re.compile(rb"[!-/:-@\[-`{-~]"),
    b"space": re.compile(rb"[ \t\n\r\f\v]"),
    b"upper": re.compile(rb"[A-Z]"),
    b"xdigit": re.compile(rb"[A-Fa-f0-9]"),
}

_STAR, _DEEP, _REST = "*", "**/", "**"


class _BadPatternError(ValueError):
    """git lets such a pattern match nothing."""


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
        regex = _translate(_tokens(line, by_name))
    except _BadPatternError:
        return None
    return Pattern(regex, negated, directory_only, by_name)


def _without_trailing_blanks(line: bytes) -> bytes:
    end = len(line.rstrip(b" "))
    backslashes = len(line[:end]) - len(line[:end].rstrip(b"\\"))
    if end < len(line) and backslashes % 2:
        end += 1  # "\ " at the end keeps its blank
    return line[:end]


def _tokens(glob: bytes, by_name: bool) -> list[str | bytes]:
    """Split a glob into regexes of one byte each and the three kinds of star."""
    tokens: list[str | bytes] = []
    i = 0
    while i < len(glob):
        byte = glob[i : i + 1]
        if byte == b"*":
            end = i
            while glob[end : end + 1] == b"*":
                end += 1
            whole = end - i > 1 and not by_name and (i == 0 or glob[i - 1 : i] == b"/")
            if whole and glob[end : end + 1] == b"/":
                tokens.append(_DEEP)
                end += 1
            else:
                tokens.append(_REST if whole and end == len(glob) else _STAR)
            i = end
        elif byte == b"?":
            tokens.append(rb"[^/]")
            i += 1
        elif byte == b"[":
            regex, i = _bracket(glob, i + 1)
            tokens.append(regex)
        elif byte == b"\\":
            if i + 1 == len(glob):
                raise _BadPatternError
            tokens.append(re.escape(glob[i + 1 : i + 2]))
            i += 2
        else:
            tokens.append(re.escape(byte))
            i += 1
    return tokens


def _bracket(glob: bytes, i: int) -> tuple[bytes, int]:
    """Regex of the bracket expression whose content begins at `i`, and what follows it."""
    negated = glob[i : i + 1] in (b"!", b"^")
    i += negated
    members: set[int] = set()
    previous = -1
    first = True
    while first or glob[i : i + 1] != b"]":
        first = False
        if i >= len(glob):
            raise _BadPatternError
        byte = glob[i]
        if glob.startswith(b"[:", i):
            end = glob.find(b":]", i + 2)
            if end < 0 or glob[i + 2 : end] not in _CLASSES:
                raise _BadPatternError
            match = _CLASSES[glob[i + 2 : end]].match
            members.update(code for code in range(256) if match(bytes([code])))
            previous, i = -1, end + 2
            continue
        if byte == ord("-") and previous >= 0 and glob[i + 1 : i + 2] not in (b"]", b""):
            i += 1
            if glob[i : i + 1] == b"\\":
                i += 1
                if i >= len(glob):
                    raise _BadPatternError
            members.update(range(previous, glob[i] + 1))
            previous, i = -1, i + 1
            continue
        if byte == ord("\\"):
            i += 1
            if i >= len(glob):
                raise _BadPatternError
            byte = glob[i]
        members.add(byte)
        previous, i = byte, i + 1
    chosen = (set(range(256)) - members if negated else members) - {ord("/")}
    if not chosen:
        raise _BadPatternError
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(chosen)) + b"]", i + 1


def _translate(tokens: list[str | bytes]) -> bytes:
    """Join the tokens to one regex that takes no more than quadratic time.

    What stands between two stars of one component, or between two `**/`, is matched at its
    leftmost place and never tried again (an atomic group): the star after it can take up
    whatever a later place would have skipped, so nothing is lost, and a hostile pattern such
    as `*a*a*a*a*b` cannot run for ever.
    """
    if tokens and tokens[-1] == _REST:
        return _translate([*tokens[:-1], rb"[\s\S]"]) + rb"[\s\S]*"
    stretches: list[list[str | bytes]] = [[]]
    for token in tokens:
        if token == _DEEP:
            stretches.append([])
        else:
            stretches[-1].append(token)
    regex = _stretch(stretches[0])
    for number, stretch in enumerate(stretches[1:], 1):
        inner = rb"(?:[^/]+/)*?" + _stretch(stretch)
        regex += inner if number == len(stretches) - 1 else rb"(?>" + inner + rb")"
    return regex


def _stretch(tokens: list[str | bytes]) -> bytes:
    """Regex of whole components without `**`, each with its stars made atomic."""
    components: list[list[list[bytes]]] = [[[]]]
    for token in tokens:
        if isinstance(token, str):
            components[-1].append([])
        elif token == b"/":
            components.append([[]])
        else:
            components[-1][-1].append(token)
    return b"/".join(_component(pieces) for pieces in components)


def _component(pieces: list[list[bytes]]) -> bytes:
    joined = [b"".join(piece) for piece in pieces]
    if len(joined) == 1:
        return joined[0]
    middle = b"".join(rb"(?>[^/]*?" + piece + rb")" for piece in joined[1:-1] if piece)
    return joined[0] + middle + rb"[^/]*" + joined[-1]
