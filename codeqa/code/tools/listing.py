"""A tool that lists all of a kind: files, routes, commands, tests, TODOs, environment variables;
and the repository in a page.

They are found by their form: how such a thing is written in the frameworks that are in wide use. A
form is data; what is written in another way is not found, and the result says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from codeqa.code.calls import is_test
from codeqa.code.descriptions import overview_of
from codeqa.code.tools.search import Pattern
from codeqa.code.tools.tool import LONGEST_LINE, Place, Toolbox, ToolResult, fitting, list_result
from codeqa.errors import CodeQAError
from codeqa.languages import language_called
from codeqa.repositories.files import FoundLines
from codeqa.store import Filter, Tables, path_patterns
from codeqa.text import counted
from codeqa.text.markdown import CITATION
from codeqa.text.tokens import name_key
from codeqa.types import CLASS_KINDS, ROLES, Reference, Unit

MOST_LISTED = 100
"""Things that are listed; of more, their files with counts."""
MOST_FILES = 80
"""Files that are named; of more, folders with counts."""
ALL = 1_000_000
LINES = 4
"""Lines from a name on in which its form stands."""

DEFINED = {
    "classes": {"class", "struct"},
    "exceptions": {"class", "struct", "enum"},
    "functions": {"function", "method", "constructor"},
    "methods": {"method", "constructor"},
    "interfaces": {"interface", "trait"},
    "enums": {"enum"},
    "types": CLASS_KINDS - {"module"},
    "constants": {"constant"},
}
"""What is listed of the definitions → their kinds."""
_EXCEPTION = re.compile(r"(?:Error|Exception|Failure|Fault|Warning)$")

Kind = Annotated[
    Literal[
        "overview",
        "files",
        "routes",
        "commands",
        "tests",
        "todos",
        "environment",
        "recursive",
        "classes",
        "exceptions",
        "functions",
        "methods",
        "interfaces",
        "enums",
        "types",
        "constants",
    ],
    Field(description="What to list."),
]


@dataclass(frozen=True, slots=True)
class Form:
    """How a thing is written: a reference to one of `names`, and code from there on that begins as
    `pattern`, whose first group names the thing."""

    names: str
    pattern: str
    files: str = ""
    """What the path has to match."""
    decorator: bool = False
    """It has to stand behind `@` or `[`; without a name of its own it goes by what it decorates."""
    receiver: str = ""
    """What the receiver and its module have to match."""


_TEXT = r"""["'`]([^"'`\n]+)["'`]"""
_PATH = (
    r"""\w+\(\s*(?:["'`][A-Z]+["'`],\s*)?(?:\w+\s*=\s*)?[rbuf]?"""
    r"""["'`](?:[A-Z]+ )?([/{][^"'`\n]*)["'`]"""
)
_HANDLER = r"""\s*,\s*(?!\w+\s*[=:])[^\s)"'`{]"""
_PATH_FIRST = "route add_url_rule add_route add_api_route websocket HandleFunc Handle"
_VERBS = "get post put patch delete head options all any"
_ANY_VERB = f"{_VERBS} {_VERBS.upper()} {_VERBS.title()}"
_MAPPINGS = "GetMapping PostMapping PutMapping PatchMapping DeleteMapping RequestMapping"
_HTTP = "HttpGet HttpPost HttpPut HttpPatch HttpDelete Route Path"
_SCRIPT = r"\.[cm]?[jt]sx?$"
FORMS = {
    "routes": (
        Form(_PATH_FIRST, _PATH),
        Form(_ANY_VERB, _PATH + _HANDLER),
        Form(f"{_ANY_VERB} {_MAPPINGS} {_HTTP}", _PATH, decorator=True),
        Form("path re_path url", rf"\w+\(\s*r?{_TEXT}{_HANDLER}", r"(?:^|/)urls\.py$"),
        Form(f"{_VERBS} resources resource root", r"\w+[\s(]+[:\"']([^\s\"',]+)", r"routes\.rb$"),
    ),
    "commands": (
        Form("command group", rf"\w+\((?:\s*(?:name\s*=\s*)?{_TEXT})?", r"\.py$", decorator=True),
        Form("add_parser", rf"\w+\(\s*{_TEXT}"),
        Form("Command", r"\w+\s*\{[^{}]*?Use:\s*\"([\w-]+)", r"\.go$"),
        Form("new", rf"\w+\(\s*{_TEXT}", receiver=r"Command.*\bclap\b|\bclap\b.*Command"),
        Form("command", r"\w+\(\s*[\"'`]([\w:-]+)", _SCRIPT),
    ),
    "tests": (
        Form("it test specify", rf"\w+[\s(]+{_TEXT}", rf"{_SCRIPT}|\.rb$"),
        Form("each only skip", rf"\w+[(\[`].*?\(?{_TEXT}", _SCRIPT, receiver=r"^(?:it|test)\b"),
    ),
}
"""Kind → its forms at references, which are code and never a comment."""
LINE_FORMS = {
    "todos": r"(?:^|[^.\w/])(TODO|FIXME|XXX|HACK)\b",
    "environment": r"(?:\bprocess\.env\.|\bimport\.meta\.env\."
    r"|(?:\benviron(?:\.get\(|\.pop\(|\.setdefault\(|\[)"
    r"|\b(?:[gG]etenv|LookupEnv|env::var|env::var_os|env!|option_env!|GetEnvironmentVariable)\("
    r"|\bENV(?:\.fetch\(|\[)|\$_ENV\[|\bprocess\.env\[|\benv\.get\(|\benvvar\s*=)"
    r"\s*[\"'`]?)([\w.:-]+)",
}
"""Kind → its form in a line, for what is written in text or has no reference: RE2."""
_QUOTES = ("'", '"', "`", ".")
_WRITTEN = re.compile(r"""["'`]\]\s*=[^=]""")
"""Behind a name: it is set and not read."""
_COMMENT = ("#", "//", "/*", "*", "--", ";", "<!--")
_FIXTURE = re.compile(r"@(?:\w+\.)*fixture\b")
_MARKED_TEST = re.compile(
    r"^\s*(?:#\[(?:\w+::)*\w*test\b|@(?:\w*Test)\b|\[(?:Fact|Theory|Test\w*)\b)", re.MULTILINE
)
_ONE = {"routes": "route", "commands": "command", "tests": "test", "todos": "line",
        "environment": "place", "recursive": "recursive function"}  # fmt: skip
_ONE |= {kind: kind.removesuffix("es" if kind == "classes" else "s") for kind in DEFINED}
_HOW = {
    "routes": "calls and decorators with a path (route, get, HandleFunc, GetMapping, urls.py)",
    "commands": "click, argparse's add_parser, cobra's Command, clap's Command::new, .command(…)",
    "tests": "their names, their marks (#[test], @Test), it(…) and test(…); one that runs with "
    "several values counts once",
    "todos": "the words TODO, FIXME, XXX and HACK",
    "recursive": "calls that their own file decides to mean the function that they are in; through "
    "another function is not seen",
    "environment": "os.environ, getenv, env::var, process.env, ENV and the like, the name literal "
    "or a constant",
}


def list_all(box: Toolbox, kind: Kind = "overview", path: Pattern = "") -> ToolResult:
    """All there are of one kind, counted, and where: files, routes, commands, tests, TODOs,
    environment variables that are read, recursive functions. `overview` says what the repository
    is, which folders it has, what most of it uses and where it starts."""
    if kind == "overview":
        return _overview(box)
    if kind == "files":
        return _list_files(box, path)
    records = box.files_in(path)
    paths, searched = {record.path: record.role for record in records}, ""
    if kind == "tests":
        found = [*_tests(box.tables(), path), *_by_reference(box, kind, paths)]
    elif kind == "recursive":
        found = list(_recursive(box.tables(), paths))
    elif kind in DEFINED:
        found = [
            Place.of(unit, kind=paths[unit.path])
            for unit in box.tables().units(
                Filter(paths=path_patterns(box.tables().plain_path(path)))
            )
            if unit.path in paths
            and unit.kind in DEFINED[kind]
            and (kind != "exceptions" or _EXCEPTION.search(unit.name))
        ]
    elif kind in LINE_FORMS:
        records = [one for one in records if kind == "todos" or one.role != "document"]
        lines = box.files.find_lines(LINE_FORMS[kind], records, regex=True, kept=ALL)
        searched = f" Searched: {lines.searched}."
        found = list(_by_line(box, kind, paths, lines))
    else:
        found = list(_by_reference(box, kind, paths))
    found = list({(one.path, one.start_line, one.name): one for one in found}.values())
    by_name = kind == "environment"
    found.sort(key=lambda p: (ROLES.index(p.kind), p.path, p.start_line))
    if by_name:
        found.sort(key=lambda p: (ROLES.index(p.kind), p.name or "~"))
    roles = Counter(place.kind for place in found)
    told = ", ".join(f"{number:,} in {role}" for role, number in roles.items())
    files = counted(len({place.path for place in found}), "file")
    summary = f"{counted(len(found), _ONE[kind], kind if kind in DEFINED else '')} in {files}"
    if by_name:
        names = len({place.name for place in found} - {""})
        summary = f"{counted(names, 'environment variable')} read in {summary}"
    if kind == "todos":
        told = ", ".join(f"{n:,} {word}" for word, n in Counter(p.name for p in found).items())
    told = f"{told}. " if len(roles) > 1 or kind == "todos" else ""
    if by_name and (unnamed := sum(not place.name for place in found)):
        told += f"In {counted(unnamed, 'place')} the name is in a variable. "
    how = f"Found by form: {_HOW[kind]}." if kind in _HOW else ""
    known = f"{told}{how}{searched}".strip()
    if not found:
        summary = f"no {kind}{' variables' if by_name else ''} found"
        known = f"Looked for: {_HOW.get(kind, 'definitions of the index')}.{searched}"
    places = list[Place]()
    for role, number in roles.items():
        held = [place for place in found if place.kind == role]
        singly = len(places) + number <= MOST_LISTED
        places += held if singly else _files(held)
    parts = [f"{p.location} {p.name}{p.note}: {p.text}".rstrip(": ") for p in places[:MOST_LISTED]]
    left = len(places) - len(parts)
    return list_result(summary, parts, "Narrow it with `path`.", total=len(found), left=left,
                       told=places, completeness=known)  # fmt: skip


def _overview(box: Toolbox) -> ToolResult:
    tables = box.tables()
    told = overview_of(tables)
    places = tuple(
        Place.of(unit)
        for path, first, last in CITATION.findall(told)
        for unit in tables.in_file(path)
        if (unit.start_line, unit.end_line) == (int(first), int(last or first))
    )
    text, _ = fitting((told or "Nothing here says what it is.").split("\n"))
    summary = f"overview of {tables.location.name}"
    return ToolResult(summary=summary, text=text, total=len(places), places=places)


def _list_files(box: Toolbox, pattern: str) -> ToolResult:
    """The indexed files whose path matches; of many their folders with counts."""
    records = box.files_in(pattern)
    parts = [record.path for record in records]
    if len(records) > MOST_FILES:
        folders = Counter(record.path.rpartition("/")[0] + "/" for record in records)
        parts = [f"{folder} {counted(number, 'file')}" for folder, number in folders.items()]
    summary = f"{counted(len(records), 'file')}{' in ' + pattern if pattern else ''}"
    paths = tuple(record.path for record in records[:MOST_LISTED])
    return list_result(summary, parts, "Narrow it with `path`.", total=len(records), paths=paths)


def _files(found: Sequence[Place]) -> Iterator[Place]:
    """The files of `found`, with how many of them each has."""
    for path, number in Counter(place.path for place in found).items():
        lines = [place.start_line for place in found if place.path == path]
        first, last = min(lines), max(lines)
        yield Place(path=path, start_line=first, end_line=last, note=f"{number:,} of them",
                    times=number)  # fmt: skip


def _by_reference(box: Toolbox, kind: str, paths: Mapping[str, str]) -> Iterator[Place]:
    """What stands at references in one of the forms of `kind`."""
    tables = box.tables()
    forms = FORMS[kind]
    names = sorted({name for form in forms for name in form.names.split()})
    places: dict[str, list[Reference]] = {}
    for one in tables.references(kind=("call", "use"), name=names):
        if one.path in paths and any(re.search(form.files, one.path) for form in forms):
            places.setdefault(one.path, []).append(one)
    units = tables.by_ids([one.unit_id for held in places.values() for one in held])
    around = {unit.id: unit for unit in units}
    for path, held in places.items():
        with suppress(CodeQAError):  # a file that is gone holds nothing
            lines = box.files.read(path).text.split("\n")
            for one in held:
                unit = around.get(one.unit_id)
                if one.line > len(lines):
                    continue
                called = (_named(form, one, lines, unit) for form in forms)
                if name := next(filter(None, called), ""):
                    inside = "test" if unit and is_test(unit) else paths[path]
                    yield _line(path, one.line, name, lines[one.line - 1], inside)


def _named(form: Form, one: Reference, lines: Sequence[str], unit: Unit | None) -> str:
    """The name of the thing that stands at the reference `one`, '' for none."""
    fits = one.name in form.names.split() and re.search(form.files, one.path)
    if not fits or not re.search(form.receiver, f"{one.receiver} {one.module}"):
        return ""
    if form.decorator and not lines[one.line - 1].lstrip().startswith(("@", "#[", "[")):
        return ""
    code = "\n".join(lines[one.line - 1 : one.line - 1 + LINES])[one.column - 1 :]
    found = re.match(form.pattern, code)
    decorated = unit.name if unit and form.decorator else ""
    return (found[1] or decorated) if found else ""


def _by_line(
    box: Toolbox, kind: str, roles: Mapping[str, str], found: FoundLines
) -> Iterator[Place]:
    """Those lines of `found` that are of `kind`; no comments and documentation but for TODOs."""
    pattern = re.compile(LINE_FORMS[kind])
    for path, held in found.lines.items():
        docs = "" if kind == "todos" else "\n".join(
            unit.doc_comment for unit in box.tables().in_file(path)
        )  # fmt: skip
        for number, line in held:
            text = line.strip()
            if kind != "todos" and (text.startswith(_COMMENT) or text in docs):
                continue
            for match in pattern.finditer(line):
                name = match[1]
                if kind == "environment" and line[match.start(1) - 1] not in _QUOTES:
                    name = _literal(box, path, name)
                if not _WRITTEN.match(line, match.end()):
                    yield _line(path, number, name, line, roles[path])


def _literal(box: Toolbox, path: str, name: str) -> str:
    """The text that the constant `name` stands for, in that file or alone of this name; '' for a
    variable."""
    name = re.split(r"\.|::", name)[-1]
    named = (unit for unit in box.tables().named([name_key(name)], 20) if unit.kind == "constant")
    for unit in sorted([*named, *box.tables().in_file(path)], key=lambda one: one.path != path):
        if found := re.search(
            rf"\b{re.escape(name)}\b[^=\n]*=\s*[\"'`]([\w-]+)[\"'`]", unit.source_code
        ):
            return found[1]
    return ""


def _recursive(tables: Tables, roles: Mapping[str, str]) -> Iterator[Place]:
    calls = tables.catalogue().references("kind = 'call' AND target = unit_id", ALL)
    line_of = {one.unit_id: one.line for one in reversed(calls)}
    for unit in tables.by_ids(list(line_of)):
        if unit.is_method and unit.path in roles:
            text = unit.source_code.split("\n")[line_of[unit.id] - unit.start_line].strip()
            yield Place.of(unit, text=text[:LONGEST_LINE], kind=roles[unit.path])


def _tests(tables: Tables, where: str) -> Iterator[Place]:
    by_name, marked = list[Unit](), list[Unit]()
    for unit in tables.units(Filter(paths=path_patterns(tables.plain_path(where)))):
        if not unit.is_method:
            continue
        inner = unit.kind == "function" and "." in unit.qualified_name  # no runner sees those
        form = language_called(unit.language).test_names
        named = unit.role == "test" and not inner and re.match(form, unit.name)
        head = unit.source_code.partition(unit.signature)[0] if unit.signature else ""
        if _MARKED_TEST.search(head):
            marked.append(unit)
        elif named and not _FIXTURE.search(head):
            by_name.append(unit)
    marking = {unit.path for unit in marked}  # there a name alone makes no test
    for unit in (*marked, *(unit for unit in by_name if unit.path not in marking)):
        yield Place.of(unit, kind=unit.role)


def _line(path: str, number: int, name: str, line: str, role: str) -> Place:
    text = line.strip()[:LONGEST_LINE]
    return Place(path=path, start_line=number, end_line=number, name=name, text=text, kind=role)
