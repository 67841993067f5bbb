"""Parts of configuration files by their outermost keys, tables, stages and targets.

Only what line patterns tell with certainty is a section; a file that is laid out otherwise is
one section without a name, and is then cut by lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from codeqa.parsing.chunks import CHUNK_SIZE
from codeqa.parsing.sections import Heading, Section, clean_title, sections_below

MIN_LINES = 8
"""A shorter section is joined with the next one: single keys say little by themselves."""

_TOML_TABLE = re.compile(r"\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_INI_SECTION = re.compile(r"\[([^\]]+)\]\s*$")
_YAML_KEY = re.compile(
    r"""-\s+(?:name|id|alert|job_name)\s*:\s*(.+)|(["']?[\w$@./][\w$@./ -]*["']?)\s*:(?:\s|$)"""
)
_YAML_SCALAR = re.compile(r":\s+[|>][-+0-9]{0,2}\s*(?:#.*)?$")
_JSON_KEY = re.compile(r'([ \t]+)"((?:[^"\\]|\\.)*)"\s*:')
_DOCKER_STAGE = re.compile(r"FROM\s+(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_MAKE_RULE = re.compile(r"(?!\s|#|\.PHONY)([^=:#\s][^=:#]*?)\s*::?(?!=)")
_MAKE_DEFINE = re.compile(r"define\s+(\S+)")


def _matched(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def title(line: str) -> str:
        match = pattern.match(line)
        return next(filter(None, match.groups()), "") if match else ""

    return title


def _by_line(
    title: Callable[[str], str], comments: str = "#"
) -> Callable[[list[str]], list[Section]]:
    """Parts that begin on the lines for which `title` gives a name, or on their comments."""

    def sections(lines: list[str]) -> list[Section]:
        headings = [
            Heading(_with_comments(lines, number, comments), 1, clean_title(name))
            for number, line in enumerate(lines, 1)
            if (name := title(line.rstrip("\r")))
        ]
        return join_short(sections_below(headings, lines))

    return sections


def _with_comments(lines: list[str], line: int, marks: str) -> int:
    """First line of the comment that stands directly above `line`."""
    while line > 1 and lines[line - 2].startswith(tuple(marks)):
        line -= 1
    return line


def join_short(sections: list[Section]) -> list[Section]:
    """Short neighbours below one key as one section that carries up to three of their names."""
    groups: list[list[Section]] = []
    for section in sections:
        last = groups[-1] if groups else []
        short = bool(last) and last[-1].last - last[0].first + 1 < MIN_LINES
        if short and last[-1].titles[:-1] == section.titles[:-1]:
            last.append(section)
        else:
            groups.append([section])
    return [_one_section(group) for group in groups]


def _one_section(group: list[Section]) -> Section:
    named = [section.titles for section in group if section.titles]
    if not named:
        return Section(group[0].first, group[-1].last)
    shown = ", ".join(titles[-1] for titles in named[:3]) + (", …" if len(named) > 3 else "")
    return Section(group[0].first, group[-1].last, (*named[0][:-1], clean_title(shown)))


def _by_keys(lines: list[str], keys: list[Heading]) -> list[Section]:
    """By the outermost keys, and by the keys below where one of them is long.

    The level of a key is its indentation.
    """
    if not keys:
        return sections_below([], lines)
    outermost = [key for key in keys if key.level == keys[0].level]
    places = [key.line for key in keys]
    headings: list[Heading] = []
    ends = [key.line for key in outermost[1:]] + [len(lines) + 1]
    for key, end in zip(outermost, ends, strict=True):
        headings.append(Heading(_with_comments(lines, key.line, "#"), 1, key.title))
        if end - key.line > CHUNK_SIZE:
            below = keys[bisect_right(places, key.line) : bisect_left(places, end)]
            headings += [
                Heading(_with_comments(lines, inner.line, "#"), 2, inner.title)
                for inner in below
                if inner.level == below[0].level
            ]
    return join_short(sections_below(headings, lines))


def _yaml_sections(lines: list[str]) -> list[Section]:
    keys = []
    scalar = -1
    """Indentation of the key whose value is a block scalar, while inside of it."""
    for number, line in enumerate(lines, 1):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if scalar >= 0 and (indent > scalar or not text.strip()):
            continue
        scalar = indent if _YAML_SCALAR.search(line) else -1
        match = _YAML_KEY.match(text)
        if match:
            title = clean_title((match[1] or match[2]).strip("\"' \r"))
            # An item of a list lies below the key, even where it is not indented.
            keys.append(Heading(number, indent + (1 if match[1] else 0), title))
    return _by_keys(lines, keys)


def _json_sections(lines: list[str]) -> list[Section]:
    """For a file that begins with an object and is indented evenly."""
    if not lines or lines[0].strip("\ufeff \r") != "{":
        return sections_below([], lines)
    keys = [
        Heading(number, len(match[1]), clean_title(match[2]))
        for number, line in enumerate(lines, 1)
        if (match := _JSON_KEY.match(line))
    ]
    sections = _by_keys(lines, keys)
    if len(sections) > 1 and not sections[0].titles:  # the opening brace
        sections[:2] = [Section(sections[0].first, sections[1].last, sections[1].titles)]
    return sections


def _docker_stage(line: str) -> str:
    match = _DOCKER_STAGE.match(line)
    return (match[2] or match[1]) if match else ""


def _make_rule(line: str) -> str:
    match = _MAKE_DEFINE.match(line) or _MAKE_RULE.match(line)
    return match[1] if match else ""


CONFIG_SECTIONS: dict[str, Callable[[list[str]], list[Section]]] = {
    "toml": _by_line(_matched(_TOML_TABLE)),
    "ini": _by_line(_matched(_INI_SECTION), "#;"),
    "yaml": _yaml_sections,
    "json": _json_sections,
    "dockerfile": _by_line(_docker_stage),
    "makefile": _by_line(_make_rule),
    "justfile": _by_line(_make_rule),
}
"""Language → sections of its lines."""
