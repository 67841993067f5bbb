"""What an answer is made of: the hits that matter, where they are used, what is missing; and of a
question about the whole repository its README, its folders and where it starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeqa.extractive.call_path import CallPath, asks_how, find_path, is_thin
from codeqa.extractive.excerpt import leading_doc
from codeqa.extractive.uses import Uses, find_uses
from codeqa.search import Query, SearchResult, written_forms
from codeqa.store import INDEXED, FileRecord, Filter, Tables
from codeqa.text.citation_format import ShownLines
from codeqa.types import TEXT_KINDS, Chunk, Hit, Unit

SHOWN = 3
"""Units shown in full; more would be a list, not an answer."""
SHOWN_SCORE = 0.7
"""A unit is shown in full when it scores at least this part of the best."""
OTHERS = 5
MORE_FILES = 3
"""Further units, and best units of further files, named in one line each."""
WEAK_COVERAGE = 0.4
"""When no hit holds at least this part of the question's words, the evidence is weak."""

_ASKS_USES = re.compile(
    r"\b(?:who|what|which|where)\b.*\b(?:calls?|called|uses?|used|invoke[sd]?|references?)\b"
    r"|\b(?:callers?|usages?|references?|uses) (?:of|to)\b|\bcall sites?\b",
    re.IGNORECASE,
)
README_NAMES = ("README", "readme", "Readme")
README_UNITS = 2
"""Sections of the README that are quoted: the first says what it is, the next often how."""
FOLDERS = 12
DOMINANT = 0.6
"""A folder with more than this part of the source is opened rather than named: `src/x/`."""

NO_USES = Uses()

_HEADS = ("__init__.py", "mod.rs", "lib.rs", "doc.go", "index.ts", "index.js", "package-info.java")
_ENTRY_NAMES = """
__main__.py main.py app.py cli.py manage.py wsgi.py main.go main.rs lib.rs main.c main.cpp
index.js index.ts main.ts main.js server.js server.ts Main.java Program.cs
"""
_ENTRIES = frozenset(_ENTRY_NAMES.split())


@dataclass(frozen=True, slots=True)
class Finding:
    """A unit that is shown in full, with the places that use it."""

    hit: Hit
    uses: Uses = NO_USES


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with its files, the language most of them are in, and its own words."""

    path: str
    files: int
    language: str
    about: Unit | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The repository in a page."""

    readme: tuple[Unit, ...]
    folders: tuple[Folder, ...]
    entries: tuple[Unit, ...]
    languages: tuple[tuple[str, int], ...]
    """Languages of the source files with their number, most first."""


@dataclass(frozen=True, slots=True)
class QuotedEvidence:
    """All that a generator may draw on."""

    query: Query
    findings: tuple[Finding, ...] = ()
    others: tuple[Hit, ...] = ()
    """What is named in a line each: further units, then the best of further files."""
    missing: tuple[str, ...] = ()
    """Words of the question that no hit holds."""
    weak: bool = False
    asks_uses: bool = False
    overview: Overview | None = None
    cached: tuple[Chunk, ...] = ()
    """Context of an earlier question; nothing was searched when this is what there is."""
    chosen: bool = False
    """`cached` is what the user chose of what was found, in that order."""
    coverage: str = ""
    channels: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    path: CallPath | None = None
    """Of the first finding, when the question is how something works."""

    def spans(self) -> list[ShownLines]:
        """Every line that may be cited."""
        units = [hit.unit for hit in (*(one.hit for one in self.findings), *self.others)]
        units += self.path.units() if self.path else []
        if self.overview:
            about = (folder.about for folder in self.overview.folders)
            units += [*self.overview.readme, *filter(None, about), *self.overview.entries]
        spans = [ShownLines(u.path, u.start_line, u.end_line, u.qualified_name) for u in units]
        spans += [span for finding in self.findings for span in finding.uses.spans()]
        return spans + [ShownLines(c.path, c.start_line, c.end_line) for c in self.cached]


def gather_evidence(
    tables: Tables, result: SearchResult, further: Sequence[Hit] = ()
) -> QuotedEvidence:
    """Choose from `result` what is shown in full, and look up where it is used.

    What explains a flow may be among `further` hits, behind those of `result`.
    """
    query, hits = result.query, result.units
    if query.symbol_like and hits and "symbol" in hits[0].channels:
        # The question is a name that is defined: only what has it.
        hits = tuple(hit for hit in hits if "symbol" in hit.channels)
    asks_uses = _ASKS_USES.search(query.text) is not None
    main = _main(hits)
    path = None
    if asks_how(query.text) and not query.overview:
        path = find_path(tables, query, (*hits, *further))
        named = {unit.id for unit in path.units()} if path else set()
        # What the path leads through before what only has the words, wrappers and stubs last.
        near = [h for h in hits if h in main or (h.unit.id in named and _is_near(h, hits))]
        near.sort(key=lambda hit: (hit.unit.id not in named, is_thin(hit.unit)))
        first = [path.leader] if path else []
        main = [*first, *(hit for hit in near if hit.unit.id not in _ids(first))][:SHOWN]
    findings = (
        Finding(hit)
        if hit.unit.kind in TEXT_KINDS
        else Finding(hit, find_uses(tables, hit, asked=asks_uses, listed=hit is main[0]))
        for hit in main
    )
    shown = _ids(main) | ({unit.id for unit in path.units()} if path else set())
    others = [hit for hit in result.units if hit.unit.id not in shown][:OTHERS]
    named = {hit.unit.path for hit in (*main, *others)}
    others += [file.best for file in result.files if file.path not in named][:MORE_FILES]
    held = [_held(hit.unit, query) for hit in result.units]
    best = max((len(words) for words in held[:SHOWN]), default=0)
    return QuotedEvidence(
        query=query,
        findings=tuple(findings),
        others=tuple(others),
        missing=tuple(w for w in query.words if not any(w in words for words in held)),
        weak=not result.units or best < WEAK_COVERAGE * len(query.words),
        asks_uses=asks_uses,
        overview=_overview_of(tables) if query.overview else None,
        coverage=result.coverage,
        channels=result.channels,
        changed=frozenset(result.changed),
        path=path,
    )


def _ids(hits: Iterable[Hit]) -> set[str]:
    return {hit.unit.id for hit in hits}


def _main(hits: Sequence[Hit]) -> list[Hit]:
    """The first hits that score near the best, none inside another that is shown."""
    main: list[Hit] = []
    for hit in hits[: 2 * SHOWN]:
        if len(main) == SHOWN or not _is_near(hit, hits):
            break
        if main and hit.unit.kind == "chunk" and hit.unit.start_line == hit.unit.end_line:
            continue  # a line between definitions; it is named below
        if not any(_overlap(hit.unit, other.unit) for other in main):
            main.append(hit)
    return main


def _is_near(hit: Hit, hits: Sequence[Hit]) -> bool:
    return hit.score >= SHOWN_SCORE * hits[0].score


def _overlap(one: Unit, other: Unit) -> bool:
    inside = one.path == other.path and (
        one.start_line <= other.end_line and other.start_line <= one.end_line
    )
    # A member beside its long class is no repetition: of the class only the head is shown.
    return inside and (one.is_method == other.is_method)


def _held(unit: Unit, query: Query) -> frozenset[str]:
    text = "\n".join((unit.path, unit.qualified_name, unit.source_code)).lower()
    return frozenset(w for w in query.words if any(form in text for form in written_forms(w)))


def _overview_of(tables: Tables) -> Overview:
    """What README, list of files and module heads say."""
    files = [record for record in tables.files() if record.status == INDEXED]
    source = [record for record in files if record.role == "source"] or files
    return Overview(
        readme=tuple(_readme(tables)),
        folders=tuple(_folders(tables, files, _opened(source))),
        entries=tuple(_entries(tables, source)),
        languages=tuple(Counter(r.language for r in source if r.language).most_common(6)),
    )


def _readme(tables: Tables) -> list[Unit]:
    """The first sections of the highest README that hold a sentence."""
    names = tuple(f"{place}{name}*" for place in ("", "**/") for name in README_NAMES)
    units = tables.units(Filter(kinds=tuple(sorted(TEXT_KINDS)), paths=names))
    first = min({unit.path for unit in units}, key=lambda p: (p.count("/"), len(p), p), default="")
    told = [u for u in units if u.path == first and len(u.source_code.split()) > 8]
    return told[:README_UNITS]


def _opened(source: Sequence[FileRecord]) -> str:
    """The folder that holds most of the source, opened as long as one dominates."""
    prefix = ""
    while True:
        inside = [r.path[len(prefix) :] for r in source if r.path.startswith(prefix)]
        children = Counter(path.split("/", 1)[0] for path in inside if "/" in path)
        name, count = max(children.items(), key=lambda child: child[1], default=("", 0))
        if count <= DOMINANT * len(source):
            return prefix
        prefix += name + "/"


def _folders(tables: Tables, files: Iterable[FileRecord], prefix: str) -> list[Folder]:
    """Folders inside `prefix`, then those beside it, those with the most files first."""
    groups: dict[str, list[FileRecord]] = {}
    for record in files:
        base = prefix if record.path.startswith(prefix) else ""
        inside, slash, _ = record.path[len(base) :].partition("/")
        folder = base + inside + slash if slash else base
        groups.setdefault(folder or "./", []).append(record)
    chosen = sorted(groups, key=lambda path: (not path.startswith(prefix), -len(groups[path])))
    chosen = chosen[:FOLDERS]
    patterns = [f"{path}{src}{name}" for path in chosen for src in ("", "src/") for name in _HEADS]
    heads = tables.units(Filter(kinds=("module",), paths=tuple(patterns))) if chosen else []
    told = [unit for unit in heads if leading_doc(unit)]
    folders = []
    for path in chosen:
        own = [r for r in groups[path] if r.role == "source" and r.language] or groups[path]
        language = Counter(r.language for r in own).most_common(1)[0][0]
        about = next((unit for unit in told if _is_head(unit.path, path)), None)
        folders.append(Folder(path, len(groups[path]), language, about))
    return folders


def _is_head(path: str, folder: str) -> bool:
    """Whether a file speaks about `folder`: its `__init__.py`, `src/lib.rs`, …"""
    return path.startswith(folder) and "/" not in path.removeprefix(folder).removeprefix("src/")


def _entries(tables: Tables, source: Iterable[FileRecord]) -> list[Unit]:
    """The first unit of each file whose name says that a program starts there.

    Not those much deeper than the first: a `main.py` far down is a part of something.
    """
    paths = [r.path for r in source if r.path.rpartition("/")[2] in _ENTRIES]
    paths.sort(key=lambda path: (path.count("/"), path))
    paths = [path for path in paths if path.count("/") <= paths[0].count("/") + 1]
    first = [tables.in_file(path)[:1] for path in paths[:4]]
    return [unit for units in first for unit in units]
