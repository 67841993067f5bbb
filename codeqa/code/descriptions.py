"""Describe definitions, files and the whole repository in Markdown.

A definition has its name, its place and its first sentence. The repository in a page has its
README, its folders and what they depend on, the definitions that the most files use, and where it
starts.
"""

from __future__ import annotations

import re
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

from codeqa.asked import line_pattern, word_list
from codeqa.code.imports import IMPORTED, import_evidence
from codeqa.code.names import language_name
from codeqa.context.statements import COMMENT_LINE
from codeqa.languages import language_called, package_heads
from codeqa.store import INDEXED, FileRecord, Filter, Tables
from codeqa.text import counted
from codeqa.text.doc_comment import inline, prose
from codeqa.text.markdown import block_quote, cite, code_span, escape, joined
from codeqa.text.tokens import name_key
from codeqa.types import TEXT_KINDS, Unit

SENTENCE_CHARACTERS = 140
_SENTENCE = re.compile(r"(.+?[.!?])(?=\s+[A-Z`(]|\s*$)", re.DOTALL)
_RULE = re.compile(r"\s*([=\-~^*+#_.:])\1{2,}\s*")
COMMENT_MARKS = re.compile(r"^\s*(?:///?!?|/\*\*?|\*/|\*(?!\w)|#+:?|--+|;+|\"\"\"|'''|%+)?\s?")

README_NAMES = ("README", "readme", "Readme")
README_UNITS = 2
"""Sections of the README that are quoted: the first says what it is, the next often how."""
MOST_FOLDERS = 12
DOMINANT_SHARE = 0.6
"""A folder with more than this part of the source is opened rather than named: `src/x/`."""
OFTEN_IMPORTED = 200
"""Names that the most files import, among which are those of libraries."""
MOST_CENTRAL = 8
"""Definitions named that many files import."""
MOST_NEEDED = 5
"""Folders named that a folder depends on."""
MOST_IMPORTS = 200_000
FILES_ALIKE = 100
"""Files of one name (`index.ts`) that are tried for an import."""
RESOLVE_SECONDS = 10.0
"""Time to find out what imports mean, after which the overview does without them."""
Import = tuple[str, str, str]
"""The file that imports, the name, and the file that it is imported from."""


def first_sentence(text: str) -> str:
    """Return the first sentence of a doc comment on one line, '' when it has none."""
    lines = text.strip().split("\n\n", 1)[0].split("\n")
    lines = [line for line in lines if not _RULE.fullmatch(line)]
    paragraph = " ".join(" ".join(lines).split())
    match = _SENTENCE.match(paragraph)
    sentence = match[1] if match else paragraph
    return textwrap.shorten(sentence, SENTENCE_CHARACTERS, placeholder=" …")


def leading_doc(unit: Unit) -> str:
    """Return the doc comment; for the head of a file only one that stands before all code.

    A comment further down speaks about the line below it rather than about the file.
    """
    if not unit.is_head:
        return unit.doc_comment
    doc = doc_lines(unit)
    for line in unit.source_code.split("\n"):
        bare = line.strip()
        if bare and doc and (is_doc(line, doc) or bare.lstrip("rRuU")[:3] in ('"""', "'''")):
            return unit.doc_comment
        if bare and not COMMENT_LINE.match(line) and not bare.startswith(("package ", "<?php")):
            return ""
    return ""


def doc_lines(unit: Unit) -> set[str]:
    """Collect the lines of a unit's doc comment for `is_doc`, runs of blanks made one."""
    return {" ".join(line.split()) for line in unit.doc_comment.split("\n")} - {""}


def is_doc(line: str, doc: set[str]) -> bool:
    """Return whether a line of code is one of the lines `doc`, or an empty line of a comment."""
    plain = " ".join(line.split())
    bare = " ".join(COMMENT_MARKS.sub("", line).rstrip("*/\"' \r").split())
    return bare in doc or plain in doc or (not bare and plain[:1] in tuple("*/#\"'"))


def cite_unit(unit: Unit) -> str:
    """Cite where a unit stands."""
    return cite(unit.path, unit.start_line, unit.end_line)


def unit_title(unit: Unit) -> str:
    """Name a unit; the head of a file is named after its file."""
    if unit.kind in TEXT_KINDS:
        return inline(" ".join((unit.qualified_name or unit.name or unit.path).split()))
    if unit.is_head:
        return code_span(unit.path)
    return code_span(unit.qualified_name or unit.name)


def unit_item(unit: Unit, note: str = "") -> str:
    """Write a unit as an item of a list, in a line: its title, place and first sentence."""
    text = inline(first_sentence(leading_doc(unit)))
    if not text and unit.kind in TEXT_KINDS and unit.start_line == unit.end_line:
        text = code_span(textwrap.shorten(unit.source_code, 80, placeholder=" …"))
    title = unit_title(unit)
    name = "" if title == code_span(unit.path) else f"{title} "  # the place says the path
    return f"- {name}{cite_unit(unit)}{f': {text}' if text else ''}{note}"


def bullet_list(title: str, items: Iterable[str], more: int = 0, note: str = "") -> str:
    """Put `items` below their title, '' for none; `more` are left out, `note` says which."""
    lines = "\n".join(items)
    left = f"\n- and {more:,} more{note}" if more else ""
    return joined([title, f"{lines}{left}"]) if lines else ""


LISTED, VERSIONS = 60, 8
"""Definitions of a file, and lines of manifests, that are listed."""


def versions_of(tables: Tables, subjects: Sequence[str]) -> str:
    """List the lines of manifests that say which versions are required; '' for none.

    They are about the language or one of `subjects`; the highest manifest comes first.
    """
    names = "|".join(map(re.escape, subjects)) or "$^"
    about = re.compile(rf"(?<![\w-])(?:{names})(?![\w-]).*\d", re.IGNORECASE)
    requirements: dict[tuple[int, str, int], str] = {}
    for unit in tables.units(Filter(paths=_anywhere(word_list("manifests")))):
        for number, line in enumerate(unit.source_code.split("\n"), unit.start_line):
            has_version = about.search(line) or line_pattern("version").search(line)
            if has_version and not COMMENT_LINE.match(line):
                requirements[unit.path.count("/"), unit.path, number] = line.strip()[:160]
    items = [f"- {cite(path, n, n)}: {code_span(text)}"
             for (_, path, n), text in sorted(requirements.items())]  # fmt: skip
    return bullet_list("**The manifest says:**", items[:VERSIONS], len(items[VERSIONS:]))


def _anywhere(names: Iterable[str], ending: str = "") -> tuple[str, ...]:
    """Return the path patterns of these file names, at the top and in any folder."""
    patterns = [f"{name}{ending}" for name in names]
    patterns += [f"**/{pattern}" for pattern in patterns]
    return tuple(patterns)


def outline_of(tables: Tables, path: str) -> str:
    """Return what a file says of itself, and its definitions in a line each."""
    units = sorted(tables.in_file(path), key=lambda unit: (unit.start_line, -unit.end_line))
    heads = [unit for unit in units if unit.is_head]
    about = next(filter(None, map(leading_doc, heads)), "")
    methods = tuple(f"{unit.qualified_name}." for unit in units if unit.is_method)
    listed = [u for u in units if u.signature and not u.qualified_name.startswith(methods)]
    listed = listed or [unit for unit in units if unit not in heads]
    items = [f"{'  ' if unit.class_name else ''}{unit_item(unit)}" for unit in listed]
    numbers: list[str] = []
    for kind, number in Counter(unit.kind for unit in listed).most_common():
        numbers.append(counted(number, kind, f"{kind}es" if kind.endswith("s") else ""))
    title = f"**{code_span(path)}** holds {', '.join(numbers)}:"
    definitions = bullet_list(title, items[:LISTED], len(items[LISTED:]))
    return joined([block_quote(prose(about)) if about else "", definitions])


def overview_of(tables: Tables) -> str:
    """Describe the repository by its README, files and module heads; '' where it has none."""
    files = [record for record in tables.files() if record.status == INDEXED]
    source = [record for record in files if record.role == "source"] or files
    prefix = _opened(source)
    folders = _folders(files, prefix)
    imports = _imports(tables, source)
    organised = ""
    languages = Counter(r.language for r in source if r.language).most_common(6)
    if languages:
        numbers = ", ".join(f"{escape(name)} ({number:,})" for name, number in languages)
        organised = f"### How it is organised\n\nSource files by language: {numbers}."
    central = (unit_item(unit, f" Used in {n:,} files.") for unit, n in _central(tables, imports))
    sections = [
        *_readme(tables),
        organised,
        "\n".join(_folder_items(tables, folders, imports)),
        bullet_list("### What most of it uses", central),
        bullet_list("### Where it starts", map(unit_item, _entries(tables, source, prefix))),
    ]
    return joined(sections)


def _imports(tables: Tables, source: Iterable[FileRecord]) -> list[Import]:
    """Return what the files of `source` surely import from each other."""
    paths = {record.path for record in source}
    files_named: dict[str, list[str]] = {}
    folders: set[str] = set()
    heads = package_heads()
    for path in sorted(paths, key=lambda path: (path.rpartition("/")[2] not in heads, path)):
        folder, _, name = path.rpartition("/")
        words = {name.rpartition(".")[0]}
        # One file stands for its folder: among all of a large one the search would take minutes.
        if folder not in folders:
            folders.add(folder)
            words.add(folder.rpartition("/")[2])
        for word in words:
            files_named.setdefault(word, []).append(path)
    imports: list[Import] = []
    until = time.monotonic() + RESOLVE_SECONDS
    for path, name, module in sorted(tables.imported(MOST_IMPORTS)):
        if time.monotonic() > until:
            return []  # numbers of a part of the files would be wrong
        if path in paths and (file := _file_of(path, name, module, files_named)):
            imports.append((path, name, file))
    return imports


def _file_of(path: str, name: str, module: str, files_named: Mapping[str, Sequence[str]]) -> str:
    """Return the file that `module`, of which `path` imports `name`, surely leads to, or ''.

    For a package of Java it is the file that is called like the class.
    """
    language = language_name(path)
    words = list(filter(None, re.split(r"\W+", module)))
    for word in (name, *reversed(words[-2:])):
        for file in files_named.get(word, ())[:FILES_ALIKE]:
            if import_evidence(language, path, module, file) >= IMPORTED:
                return file
    return ""


def _folder_items(
    tables: Tables, folders: Mapping[str, Sequence[FileRecord]], imports: Iterable[Import]
) -> Iterator[str]:
    """Yield a line for each folder: its own words, and the folders that its files import from."""

    @cache
    def folder_of(path: str) -> str:
        return max((folder for folder in folders if path.startswith(folder)), key=len, default="")

    pairs = {(path, folder_of(file)) for path, _, file in imports}
    needs: dict[str, Counter[str]] = {}
    for path, other in pairs:
        if other and other != folder_of(path):
            needs.setdefault(folder_of(path), Counter())[other] += 1
    names = list(package_heads())
    names += [f"src/{name}" for name in names]
    patterns: list[str] = []
    for path in folders:
        patterns += [path + name for name in names]
    heads = tables.units(Filter(kinds=("module",), paths=tuple(patterns))) if folders else []
    heads = list(filter(leading_doc, heads))
    for path, records in folders.items():
        language = Counter(r.language for r in records).most_common(1)[0][0] or "other"
        text = f"- {code_span(path)}: {counted(len(records), 'file')}, mostly {escape(language)}"
        own_paths = {path + name for name in names}
        head = next((unit for unit in heads if unit.path in own_paths), None)
        if head:
            text += f". {inline(first_sentence(head.doc_comment))} {cite_unit(head)}"
        others = sorted(needs.get(path, {}).items(), key=lambda pair: (-pair[1], pair[0]))[
            :MOST_NEEDED
        ]
        if others:
            numbers = ", ".join(f"{code_span(other)} ({number:,})" for other, number in others)
            text += f"\n  - imports from {numbers}"
        yield text


def _central(tables: Tables, imports: Iterable[Import]) -> list[tuple[Unit, int]]:
    """Return the definitions that the most files import, each with the number of these files.

    They are imported from their file or a package around it. Of several with one name it is the one
    that is imported from its own file most.
    """
    users: dict[str, dict[str, set[str]]] = {}
    for path, name, file in imports:
        users.setdefault(name, {}).setdefault(file, set()).add(path)
    often = sorted(users, key=lambda name: -sum(map(len, users[name].values())))[:OFTEN_IMPORTED]
    keys = [name_key(name) for name in often]
    modules = {PurePosixPath(path).stem for path, _, _ in imports}
    best: dict[str, tuple[tuple[int, int, bool], Unit]] = {}
    for unit in tables.named(keys, 10 * OFTEN_IMPORTED, Filter(roles=("source",))):
        own_file = unit.signature and PurePosixPath(unit.path).stem == unit.name  # as in Java
        if unit.class_name or unit.name not in users or (unit.name in modules and not own_file):
            continue
        own, every = users[unit.name].get(unit.path, set()), set[str]()
        for file, paths in users[unit.name].items():
            if file == unit.path or _hands_on(file, unit.path):
                every |= paths
        # Of a class and the head of the file that is called like it the class is meant.
        worth = (len(own), len(every), bool(unit.signature))
        if unit.name not in best or worth > best[unit.name][0]:
            best[unit.name] = (worth, unit)
    central = [(unit, files) for (_, files, _), unit in best.values() if files > 1]
    return sorted(central, key=lambda pair: (-pair[1], pair[0].path))[:MOST_CENTRAL]


def _hands_on(file: str, path: str) -> bool:
    """Return whether an import of `file` may mean what is defined in `path`, further down."""
    folder, _, name = file.rpartition("/")
    is_package = language_called(language_name(file)).import_rule == "folder"
    return (is_package or name in package_heads()) and path.startswith(f"{folder}/")


def _readme(tables: Tables) -> Iterator[str]:
    """Yield the first sections of the highest README that hold a sentence."""
    names = _anywhere(README_NAMES, "*")
    units = tables.units(Filter(kinds=tuple(sorted(TEXT_KINDS)), paths=names))
    paths = [unit.path for unit in units]
    first = min(paths, key=lambda path: (path.count("/"), len(path), path), default="")
    sections = [u for u in units if u.path == first and len(u.source_code.split()) > 8]
    for unit in sections[:README_UNITS]:
        if text := prose(unit.source_code):
            yield f"From {cite_unit(unit)}:\n\n{block_quote(text)}"


def _opened(source: Sequence[FileRecord]) -> str:
    """Return the folder that holds most of the source, opened as long as one dominates."""
    prefix = ""
    while True:
        inside = [r.path[len(prefix) :] for r in source if r.path.startswith(prefix)]
        children = Counter(path.split("/", 1)[0] for path in inside if "/" in path)
        name, count = max(children.items(), key=lambda child: child[1], default=("", 0))
        if count <= DOMINANT_SHARE * len(source):
            return prefix
        prefix += name + "/"


def _folders(files: Iterable[FileRecord], prefix: str) -> dict[str, list[FileRecord]]:
    """Return the folders inside `prefix`, then those beside it, each with its files.

    Those with the most files come first.
    """
    groups: dict[str, list[FileRecord]] = {}
    for record in files:
        base = prefix if record.path.startswith(prefix) else ""
        inside, slash, _ = record.path[len(base) :].partition("/")
        folder = base + inside + slash if slash else base
        groups.setdefault(folder or "./", []).append(record)
    ordered = sorted(groups, key=lambda path: (not path.startswith(prefix), -len(groups[path])))
    return {path: groups[path] for path in ordered[:MOST_FOLDERS]}


def _entries(tables: Tables, source: Iterable[FileRecord], prefix: str) -> list[Unit]:
    """Return the first unit of each file whose name says that a program starts there.

    Those inside `prefix` come first. Files much deeper than the first one are left out: a `main.py`
    far down is a part of something.
    """
    starting = word_list("starting")
    paths = [r.path for r in source if r.path.rpartition("/")[2] in starting]
    paths.sort(key=lambda path: (not path.startswith(prefix), path.count("/"), path))
    paths = [path for path in paths if path.count("/") <= paths[0].count("/") + 1]
    units: list[Unit] = []
    for path in paths[:4]:
        units += tables.in_file(path)[:1]
    return units
