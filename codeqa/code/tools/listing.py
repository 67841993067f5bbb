"""The tool that lists all of a kind: files, routes, tests, …, or the repository in a page.

They are found by their form, as widely used frameworks write them. Forms are data; what is written
in another way is not found, and the result says so.
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
from codeqa.code.tools.tool import LONGEST_LINE, CodeSpan, Toolbox, ToolResult, fitting, list_result
from codeqa.errors import CodeQAError
from codeqa.languages import language_called
from codeqa.repositories.files import FoundLines
from codeqa.store import Filter, Tables, path_patterns
from codeqa.text import counted
from codeqa.text.markdown import CITATION
from codeqa.text.tokens import name_key
from codeqa.types import CLASS_KINDS, ROLES, Reference, Unit

MOST_LISTED = 100
"""Places that are listed; of more, their files with counts."""
MOST_FILES = 80
"""Files that are named; of more, folders with counts."""
NO_LIMIT = 1_000_000
FORM_LINES = 4
"""Lines of a form, from the name on."""

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
"""Kind that is listed → kinds of units."""
_EXCEPTION = re.compile(r"(?:Error|Exception|Failure|Fault|Warning)$")

Kind = Annotated[
    Literal["overview", "files", "routes", "commands", "tests", "todos", "environment", "recursive",
            "classes", "exceptions", "functions", "methods", "interfaces", "enums", "types",
            "constants"],
    Field(description="What to list."),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """A form in which a framework writes a thing: a reference to a name, then certain code."""

    names: str
    """Names, one of which the reference has."""
    pattern: str
    """Pattern of the code from the reference on; its first group is the name."""
    files: str = ""
    """Pattern of the path."""
    decorator: bool = False
    """It stands after `@` or `[`; without a name of its own it has that of the decorated unit."""
    receiver: str = ""
    """Pattern of the receiver and its module."""


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
"""Kind → its forms at references, which are never in comments."""
LINE_FORMS = {
    "todos": r"(?:^|[^.\w/])(TODO|FIXME|XXX|HACK)\b",
    "environment": r"(?:\bprocess\.env\.|\bimport\.meta\.env\."
    r"|(?:\benviron(?:\.get\(|\.pop\(|\.setdefault\(|\[)"
    r"|\b(?:[gG]etenv|LookupEnv|env::var|env::var_os|env!|option_env!|GetEnvironmentVariable)\("
    r"|\bENV(?:\.fetch\(|\[)|\$_ENV\[|\bprocess\.env\[|\benv\.get\(|\benvvar\s*=)"
    r"\s*[\"'`]?)([\w.:-]+)",
}
"""Kind → its form in a line (RE2), for text and for code without a reference."""
_QUOTES = ("'", '"', "`", ".")
_ASSIGNED = re.compile(r"""["'`]\]\s*=[^=]""")
"""After a name that is set and not read."""
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


# A branch for each kind, then the words for its result.
def list_all(box: Toolbox, kind: Kind = "overview", path: Pattern = "") -> ToolResult:
    """List all of one kind, counted, and where.

    Kinds are files, routes, commands, tests, TODOs, environment variables that are read, recursive
    functions. `overview` says what the repository is, which folders it has, what most of it uses
    and where it starts.
    """
    if kind == "overview":
        return _overview(box)
    if kind == "files":
        return _list_files(box, path)
    records = box.files_in(path)
    roles = {record.path: record.role for record in records}
    searched = ""
    if kind in LINE_FORMS:
        if kind == "environment":
            records = [record for record in records if record.role != "document"]
        lines = box.files.find_lines(LINE_FORMS[kind], records, regex=True, limit=NO_LIMIT)
        searched = f" Searched: {lines.searched}."
        matches = _by_line(box, kind, roles, lines)
    else:
        matches = _by_index(box, kind, path, roles)
    places = list({(span.path, span.start_line, span.name): span for span in matches}.values())
    if not places:
        summary = "no environment variables found" if kind == "environment" else f"no {kind} found"
        forms = _HOW.get(kind, "definitions of the index")
        return list_result(summary, [], "", completeness=f"Looked for: {forms}.{searched}")
    by_name = kind == "environment"
    places.sort(key=lambda span: (span.name or "~" if by_name else "", span.path, span.start_line))
    places.sort(key=lambda span: ROLES.index(span.kind))
    completeness = _counts_by_part(kind, places)
    if kind in _HOW:
        completeness += f"Found by form: {_HOW[kind]}."
    completeness = f"{completeness}{searched}".strip()
    items = _by_file_where_many(places)
    parts = [f"{p.location} {p.name}{p.note}: {p.text}".rstrip(": ") for p in items[:MOST_LISTED]]
    return list_result(
        _summary(kind, places), parts, "Narrow it with `path`.", total=len(places),
        left=len(items) - len(parts), items=items, completeness=completeness,
    )  # fmt: skip


def _summary(kind: str, places: Sequence[CodeSpan]) -> str:
    files = counted(len({span.path for span in places}), "file")
    summary = f"{counted(len(places), _ONE[kind], kind if kind in DEFINED else '')} in {files}"
    if kind == "environment":
        names = {span.name for span in places if span.name}
        return f"{counted(len(names), 'environment variable')} read in {summary}"
    return summary


def _counts_by_part(kind: str, places: Sequence[CodeSpan]) -> str:
    """Return how many there are of each word or in each role, as sentences."""
    text = ""
    roles = Counter(span.kind for span in places)
    if kind == "todos":
        words = Counter(span.name for span in places)
        text = ", ".join(f"{number:,} {word}" for word, number in words.items()) + ". "
    elif len(roles) > 1:
        text = ", ".join(f"{number:,} in {role}" for role, number in roles.items()) + ". "
    unnamed = sum(not span.name for span in places)
    if kind == "environment" and unnamed:
        text += f"In {counted(unnamed, 'place')} the name is in a variable. "
    return text


def _by_file_where_many(places: Sequence[CodeSpan]) -> list[CodeSpan]:
    """Return the places of each role, or their files if they exceed MOST_LISTED."""
    items: list[CodeSpan] = []
    for role, number in Counter(span.kind for span in places).items():
        own = [span for span in places if span.kind == role]
        items += own if len(items) + number <= MOST_LISTED else _files(own)
    return items


def _overview(box: Toolbox) -> ToolResult:
    tables = box.tables()
    overview = overview_of(tables) or "Nothing in this repository describes it."
    places: list[CodeSpan] = []
    for path, first, last in CITATION.findall(overview):
        lines = int(first), int(last or first)
        units = (u for u in tables.in_file(path) if (u.start_line, u.end_line) == lines)
        places += map(CodeSpan.of, units)
    text, _ = fitting(overview.split("\n"))
    summary = f"overview of {tables.location.name}"
    return ToolResult(summary=summary, text=text, total=len(places), places=tuple(places))


def _list_files(box: Toolbox, pattern: str) -> ToolResult:
    """List the indexed files whose path matches; of many their folders with counts."""
    records = box.files_in(pattern)
    parts = [record.path for record in records]
    if len(records) > MOST_FILES:
        folders = Counter(record.path.rpartition("/")[0] + "/" for record in records)
        parts = [f"{folder} {counted(number, 'file')}" for folder, number in folders.items()]
    summary = f"{counted(len(records), 'file')}{' in ' + pattern if pattern else ''}"
    paths = tuple(record.path for record in records[:MOST_LISTED])
    return list_result(summary, parts, "Narrow it with `path`.", total=len(records), paths=paths)


def _files(places: Sequence[CodeSpan]) -> Iterator[CodeSpan]:
    """Yield the files of `places`, each with the number of them."""
    lines: dict[str, list[int]] = {}
    for span in places:
        lines.setdefault(span.path, []).append(span.start_line)
    for path, numbers in lines.items():
        yield CodeSpan(path=path, start_line=min(numbers), end_line=max(numbers),
                    note=f"{len(numbers):,} of them", times=len(numbers))  # fmt: skip


def _by_index(box: Toolbox, kind: str, path: str, roles: Mapping[str, str]) -> Iterator[CodeSpan]:
    """Yield definitions and references of `kind`."""
    if kind == "recursive":
        yield from _recursive(box.tables(), roles)
        return
    if kind in DEFINED:
        for unit in box.tables().units(Filter(paths=path_patterns(box.tables().plain_path(path)))):
            fits = kind != "exceptions" or _EXCEPTION.search(unit.name)
            if unit.path in roles and unit.kind in DEFINED[kind] and fits:
                yield CodeSpan.of(unit, kind=roles[unit.path])
        return
    if kind == "tests":
        yield from _tests(box.tables(), path)
    yield from _by_reference(box, kind, roles)


def _by_reference(box: Toolbox, kind: str, roles: Mapping[str, str]) -> Iterator[CodeSpan]:
    """Yield the references in one of the forms of `kind`."""
    tables = box.tables()
    forms = FORMS[kind]
    names = " ".join(form.names for form in forms).split()
    by_path: dict[str, list[Reference]] = {}
    ids: list[str] = []
    for reference in tables.references(kind=("call", "use"), name=sorted(set(names))):
        if reference.path in roles and any(re.search(form.files, reference.path) for form in forms):
            by_path.setdefault(reference.path, []).append(reference)
            ids.append(reference.unit_id)
    units = {unit.id: unit for unit in tables.by_ids(ids)}
    for path, references in by_path.items():
        lines: list[str] = []
        with suppress(CodeQAError):  # of a file that is gone
            lines = box.files.read(path).text.split("\n")
        for reference in references:
            if reference.line > len(lines):
                continue
            unit = units.get(reference.unit_id)
            names_of_it = (_name(form, reference, lines, unit) for form in forms)
            if name := next(filter(None, names_of_it), ""):
                role = "test" if unit and is_test(unit) else roles[path]
                yield _line(path, reference.line, name, lines[reference.line - 1], role)


def _name(form: Form, reference: Reference, lines: Sequence[str], unit: Unit | None) -> str:
    """Return the name of the thing that stands at the reference in this form, '' for none."""
    receiver = f"{reference.receiver} {reference.module}"
    if reference.name not in form.names.split() or not re.search(form.files, reference.path):
        return ""
    if not re.search(form.receiver, receiver):
        return ""
    line = lines[reference.line - 1].lstrip()
    if form.decorator and not line.startswith(("@", "#[", "[")):
        return ""
    code = "\n".join(lines[reference.line - 1 : reference.line - 1 + FORM_LINES])
    match = re.match(form.pattern, code[reference.column - 1 :])
    if not match:
        return ""
    decorated = unit.name if unit and form.decorator else ""
    return match[1] or decorated


def _by_line(
    box: Toolbox, kind: str, roles: Mapping[str, str], matches: FoundLines
) -> Iterator[CodeSpan]:
    """Yield the lines of `kind`; comments and documentation count only for TODOs."""
    pattern = re.compile(LINE_FORMS[kind])
    for path, lines in matches.lines.items():
        docs = ""
        if kind != "todos":
            docs = "\n".join(unit.doc_comment for unit in box.tables().in_file(path))
        for number, line in lines:
            text = line.strip()
            if kind != "todos" and (text.startswith(_COMMENT) or text in docs):
                continue
            for match in pattern.finditer(line):
                name = match[1]
                if kind == "environment" and line[match.start(1) - 1] not in _QUOTES:
                    name = _literal(box, path, name)
                if not _ASSIGNED.match(line, match.end()):
                    yield _line(path, number, name, line, roles[path])


def _literal(box: Toolbox, path: str, name: str) -> str:
    """Return the text of the constant `name`, of that file first; '' for a variable."""
    name = re.split(r"\.|::", name)[-1]
    value = re.compile(rf"\b{re.escape(name)}\b[^=\n]*=\s*[\"'`]([\w-]+)[\"'`]")
    units = [unit for unit in box.tables().named([name_key(name)], 20) if unit.kind == "constant"]
    units += box.tables().in_file(path)
    for unit in sorted(units, key=lambda unit: unit.path != path):
        if match := value.search(unit.source_code):
            return match[1]
    return ""


def _recursive(tables: Tables, roles: Mapping[str, str]) -> Iterator[CodeSpan]:
    calls = tables.catalogue().references("kind = 'call' AND target = unit_id", NO_LIMIT)
    line_of = {call.unit_id: call.line for call in reversed(calls)}
    for unit in tables.by_ids(list(line_of)):
        if unit.is_method and unit.path in roles:
            text = unit.source_code.split("\n")[line_of[unit.id] - unit.start_line].strip()
            yield CodeSpan.of(unit, text=text[:LONGEST_LINE], kind=roles[unit.path])


def _tests(tables: Tables, path: str) -> Iterator[CodeSpan]:
    """Yield tests with a mark, and in files without such marks those with a test's name."""
    by_name: list[Unit] = []
    files_with_marks = set()
    for unit in tables.units(Filter(paths=path_patterns(tables.plain_path(path)))):
        if not unit.is_method:
            continue
        head = unit.source_code.partition(unit.signature)[0] if unit.signature else ""
        if _MARKED_TEST.search(head):
            files_with_marks.add(unit.path)
            yield CodeSpan.of(unit, kind=unit.role)
        elif unit.role == "test" and not _FIXTURE.search(head):
            inner = unit.kind == "function" and "." in unit.qualified_name  # no runner sees those
            if not inner and re.match(language_called(unit.language).test_names, unit.name):
                by_name.append(unit)
    for unit in by_name:
        if unit.path not in files_with_marks:
            yield CodeSpan.of(unit, kind=unit.role)


def _line(path: str, number: int, name: str, line: str, role: str) -> CodeSpan:
    text = line.strip()[:LONGEST_LINE]
    return CodeSpan(path=path, start_line=number, end_line=number, name=name, text=text, kind=role)
