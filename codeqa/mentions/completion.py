"""What may be typed behind `@`, the tree of files, and what a question points at with `@`.

Files, folders and definitions stand in one list, in the order in which equals are offered. It is
kept in memory for one version of the index and read again, in the background, when somebody types
after that has changed: until then the older one serves.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from codeqa.errors import NotFoundError
from codeqa.search.channels import allowed_edits
from codeqa.search.mentions import (
    LONGEST_MENTION,
    as_mention,
    looks_like_path,
    resolve_mentions,
    take_mentions,
    whole_name,
)
from codeqa.store import Tables
from codeqa.store.catalogue import Catalogue
from codeqa.text import counted, strip_tag
from codeqa.text.tokens import split_identifier

Kind = Literal["file", "folder", "symbol"]
EXACT, PREFIX, WORDS, INSIDE = range(4)
"""How well a name fits, the best first: it is what was typed, begins so, its words or their first
letters do, it holds it anywhere."""

_LINES = re.compile(r"(.+?):(?:(\d{1,7})(?:-(\d{0,7}))?)?", re.DOTALL)
_OWNED = re.compile(r"::|#|->|\.")


@dataclass(frozen=True, slots=True)
class MentionCompletion:
    """A file, a folder or a definition, and how it is mentioned."""

    kind: Kind
    text: str
    """What stands behind `@`, in quotes where it must: it means this place and no other."""
    label: str
    detail: str
    """Where it is, and what."""
    path: str
    """Of a folder with a `/` at the end."""
    line: int = 0
    end_line: int = 0
    """Lines of a definition, 0 for a whole file and a folder."""
    what: str = ""
    """Kind of a definition: `class`, `method`, …"""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """What a question points at."""

    text: str
    """As written, without `@` and quotes."""
    kind: Kind | Literal[""]
    """'' for what nothing in the index is called."""
    path: str = ""
    """Of the first file, folder or definition that is meant."""
    line: int = 0
    end_line: int = 0
    """Lines that are meant, 0 for a whole file and a folder."""
    places: int = 0
    """How many files, folders or definitions are meant."""


class MentionCompleter:
    """Completes what is typed, for one repository; threads may share it.

    `tables` gives the index; what it raises before there is one, every method raises.
    """

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._reader = ThreadPoolExecutor(1, "names")
        self._reading: Future[MentionIndex] | None = None
        self._catalogue: Catalogue | None = None
        self._known: MentionIndex | None = None

    def complete(self, typed: str, limit: int = 20) -> tuple[MentionCompletion, ...]:
        """The best `limit` places for `typed`, which stands behind `@`."""
        typed, catalogue = typed[:LONGEST_MENTION], self._tables().catalogue()
        index = MentionIndex(catalogue, typed) if catalogue.large else self._index()
        return index.complete(typed, limit)

    def tree(self, folder: str = "") -> tuple[str, dict[str, int], list[str]]:
        """Of what lies directly in `folder` ('' for the root), which is given with a `/` at the
        end: folders with the number of files below, and files. Raises NotFoundError for nothing."""
        tables = self._tables()
        prefix = f"{tables.plain_path(folder).strip('/')}/".lstrip("/")
        paths = tables.catalogue().paths
        inside = sorted(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
        if prefix and not inside:
            why = "Only folders with indexed files are shown."
            raise NotFoundError(f"{folder!r} is not an indexed folder.", why)
        folders = Counter(path.partition("/")[0] for path in inside if "/" in path)
        return prefix, dict(folders), [path for path in inside if "/" not in path]

    def mentioned(self, question: str) -> list[Mentioned]:
        """Look up what each mention of `question` stands for."""
        tables = self._tables()
        return [_look(tables, text) for text in take_mentions(strip_tag(question))[1]]

    def _index(self) -> MentionIndex:
        """The names of the current version, else of the one before. Raises what reading the first
        ones raised."""
        catalogue = self._tables().catalogue()
        with self._lock:
            reading, changed = self._reading, self._catalogue is not catalogue
            # A rebuild that drops its tables while they are read fails: then once more.
            if reading is None or (reading.done() and (changed or reading.exception())):
                self._catalogue = catalogue
                reading = self._reading = self._reader.submit(MentionIndex, catalogue)
        if self._known is None or (reading.done() and not reading.exception()):
            self._known = reading.result()
        return self._known


class MentionIndex:
    """Everything that can be mentioned, where that is too much what holds the last word of
    `typed`; reads the catalogue once, when it is made."""

    def __init__(self, catalogue: Catalogue, typed: str = "") -> None:
        last = re.split(r"\W", typed.strip(' "“”/'))[-1]
        found = [*_files_and_folders(catalogue, last), *_definitions(catalogue, last)]
        # Source first, then the shorter, then by path.
        found.sort(key=lambda f: (f[0], len(f[2].label), len(f[2].path), f[2].path, f[2].line))
        self._entries = [entry for _, _, entry in found]
        """All places, in the order of equals, without their `text`."""
        self._names = [fold(name) for _, name, _ in found]
        self._late = [late and entry.kind == "symbol" for late, _, entry in found]
        """Of definitions in tests and the like, which stand one step further back than they fit."""
        self._words = [f" {' '.join(split_identifier(name))}" for _, name, _ in found]
        """Of each name, each word behind a blank."""
        self._file_names = {name.lower() for _, name, entry in found if entry.kind == "file"}
        self._called: dict[str, list[MentionCompletion]] = {}
        for _, name, entry in found:
            if entry.kind == "symbol":
                self._called.setdefault(name, []).append(entry)

    def complete(self, typed: str, limit: int) -> tuple[MentionCompletion, ...]:
        """The best `limit` places for `typed`, best first; for '' those nearest to the root."""
        typed = typed.strip().strip('"“”')
        lines = _LINES.fullmatch(typed)
        first = last = 0
        if lines and not typed.endswith("::"):
            typed = lines[1]
            if lines[2]:
                first, last = int(lines[2]), int(lines[3] or lines[2])
        found = (one for one in self._found(typed) if not first or one.kind == "file")
        written = (self._written(one, first, last) for one in found)
        # What cannot be written behind `@` cannot be mentioned.
        return tuple(islice((one for one in written if one.text), limit))

    def _found(self, typed: str) -> Iterator[MentionCompletion]:
        """What `typed` fits, best first; where there is nothing, what begins so but for typing
        errors."""
        if not typed:
            places = (entry for entry in self._entries if entry.kind != "symbol")
            return iter(sorted(places, key=_from_the_root))
        fits: dict[int, int] = {}
        if split_identifier(typed):  # signs alone are nobody's name
            fits = {} if "/" in typed else dict(self._by_name(typed))
            fits |= {number: min(fit, fits.get(number, fit)) for number, fit in self._owned(typed)}
        best = sorted(fits, key=lambda number: (fits[number] + self._late[number], number))
        return (self._entries[number] for number in best or self._misspelt(fold(typed)))

    def _by_name(self, typed: str) -> Iterator[tuple[int, int]]:
        """Number and fit of the entries whose name `typed` fits; all names begin with ''."""
        key, words = fold(typed), split_identifier(unicodedata.normalize("NFC", typed))
        longest = max(words, key=len, default="")
        # `geturl` begins a word of `do_get_url`.
        begin = re.compile(".*".join(" " + " ?".join(map(re.escape, word)) for word in words))
        initials = re.compile("".join(rf" {re.escape(letter)}[^ ]*" for letter in key))
        for number, name in enumerate(self._names):
            if name.startswith(key):
                yield number, EXACT if name == key else PREFIX
            elif (begin.search if longest in name else initials.match)(self._words[number]):
                yield number, WORDS
            elif key in name:
                yield number, INSIDE

    def _owned(self, typed: str) -> Iterator[tuple[int, int]]:
        """The same for the last part of `typed`, of the files and folders that lie in its other
        parts, or of the definitions whose owners and module these are."""
        path = "/" in typed
        typed = typed.lower().removeprefix("./").lstrip("/")
        *around, last = typed.split("/") if path else _OWNED.split(typed)
        parts = [re.escape(part) for part in around]
        direct = re.compile(f"/{'/'.join(parts)}/[^/]+/?$")
        deeper = re.compile(f"/{'.*/'.join(parts)}.*/[^/]+/?$") if path else direct
        for number, fit in self._by_name(last) if around else ():
            entry = self._entries[number]
            if path is (entry.kind == "symbol"):
                continue
            place = f"/{entry.path}".lower()
            if not path:
                place = whole_name(entry.path, entry.label).replace(".", "/").lower()
            if place.endswith("/".join(("", *around, last))):
                yield number, EXACT
            elif deeper.search(place):
                yield number, max(fit, PREFIX if direct.search(place) else WORDS)

    def _misspelt(self, key: str) -> list[int]:
        from rapidfuzz import process
        from rapidfuzz.distance import LCSseq

        if not (edits := allowed_edits(key)):
            return []
        begun = [name[: len(key) + edits] for name in self._names]
        alike = process.extract(
            key, begun, scorer=LCSseq.similarity, score_cutoff=len(key) - edits, limit=None
        )
        return [number for _, _, number in alike]

    def _written(self, entry: MentionCompletion, first: int, last: int) -> MentionCompletion:
        """`entry`, or its lines, with what means it and nothing else."""
        path = entry.path
        if first:
            text = f"{path}:{first}" + (f"-{last}" if last > first else "")
            return replace(entry, text=as_mention(text), line=first, end_line=max(first, last))
        if entry.kind != "symbol":
            # A file without an ending, in the top folder, is called as a definition may be, too.
            return replace(entry, text=as_mention(path if looks_like_path(path) else f"/{path}"))
        ways = [entry.label]  # then with more and more of its module before it
        for part in reversed((path.rpartition(".")[0] or path).split("/")):
            ways.append(f"{part}.{ways[-1]}")
        text = next((as_mention(way) for way in ways if self._means(way, entry)), "")
        return replace(entry, text=text or as_mention(f"{path}:{entry.line}-{entry.end_line}"))

    def _means(self, way: str, entry: MentionCompletion) -> bool:
        """Tell whether `way` stands for the definition `entry` and for nothing else."""
        if way.rpartition("/")[2].lower() in self._file_names:
            return False  # the file would be meant
        dotted = re.sub(r"::|#|->|/", ".", way).strip(".")
        named = self._called.get(dotted.rpartition(".")[2], ())
        whole = (one for one in named if whole_name(one.path, one.label).endswith(f".{dotted}"))
        return [*whole] == [entry]


def _from_the_root(place: MentionCompletion) -> tuple[bool, int, bool, str]:
    """Hidden ones stand last, folders before files."""
    path = place.path
    return "/." in f"/{path}", path[:-1].count("/"), place.kind == "file", path


def fold(text: str) -> str:
    """Fold `text` as names are compared: small letters, digits and the dots of file names."""
    return re.sub(r"[^\w.]|_", "", unicodedata.normalize("NFC", text)).lower()


_Found = tuple[bool, str, MentionCompletion]
"""Whether it stands behind source code; its name; and itself, without `text`."""


def _files_and_folders(catalogue: Catalogue, holding: str) -> Iterator[_Found]:
    roles = catalogue.roles(holding)
    for path, role in roles.items():
        folder, slash, name = path.rpartition("/")
        yield role != "source", name, MentionCompletion("file", "", name, folder + slash, path)
    below = Counter(path[: slash.end()] for path in roles for slash in re.finditer("/", path))
    for path, files in below.items():
        around, slash, name = path[:-1].rpartition("/")
        detail = f"{around}{slash}{' · ' if around else ''}{counted(files, 'file')}"
        yield False, name, MentionCompletion("folder", "", f"{name}/", detail, path)


def _definitions(catalogue: Catalogue, holding: str) -> Iterator[_Found]:
    """Yield the first of each path and qualified name, but no file under its own name alone."""
    rows = catalogue.definitions(holding).sort_by([("start_line", "descending")]).to_pylist()
    firsts = {(row["path"], row["qualified_name"]): row for row in rows}
    for (path, label), row in firsts.items():
        name, kind, first, last = row["name"], row["kind"], row["start_line"], row["end_line"]
        file = re.sub(r"(\.[^.]*){1,2}$", "", path.rpartition("/")[2])
        if kind != "module" or name != file:
            place = f"{path}:{first}"
            entry = MentionCompletion("symbol", "", label, place, path, first, last, kind)
            yield row["role"] != "source", name, entry


def _look(tables: Tables, text: str) -> Mentioned:
    found, _ = resolve_mentions(tables, [text])
    if not found:
        return Mentioned(text, "")
    mention = found[0]
    if mention.units:
        unit = tables.by_ids(mention.units)[0]
        place = unit.path, unit.start_line, unit.end_line
        return Mentioned(text, "symbol", *place, len(mention.units))
    paths = mention.files or mention.folders
    kind: Kind = "file" if mention.files else "folder"
    return Mentioned(text, kind, paths[0], *(mention.lines or (0, 0)), len(paths))
