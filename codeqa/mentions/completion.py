"""Completes what is typed after `@`, lists the files, and resolves the mentions of a question.

All names are kept in memory for one version of the index. After a change they are read again in
the background, while the older ones serve.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
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
"""How a name fits what was typed, best first: equal, the beginning, the beginning of its words or
their initials, inside it."""

_LINES = re.compile(r"(.+?):(?:(\d{1,7})(?:-(\d{0,7}))?)?", re.DOTALL)
_OWNED = re.compile(r"::|#|->|\.")


@dataclass(frozen=True, slots=True)
class MentionCompletion:
    """A file, a folder or a definition, and how it is mentioned."""

    kind: Kind
    text: str
    """The text after `@` that means it and nothing else, in quotes where it needs them."""
    label: str
    detail: str
    """Path of an entry, or the number of files in a folder."""
    path: str
    """With a `/` at the end for a folder."""
    line: int = 0
    end_line: int = 0
    """0 for a whole file and a folder."""
    what: str = ""
    """Kind of a definition: `class`, `method`, …"""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A mention in a question, and what it means."""

    text: str
    """The mention as written, without `@` and quotes."""
    kind: Kind | Literal[""]
    """'' for an unknown name."""
    path: str = ""
    """Path of the first file, folder or definition."""
    line: int = 0
    end_line: int = 0
    """0 for a whole file and a folder."""
    places: int = 0
    """Number of files, folders or definitions that it means."""


class MentionCompleter:
    """Completes mentions for one repository; threads may share it."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._reader = ThreadPoolExecutor(1, "names")
        self._reading: Future[MentionIndex] | None = None
        self._catalogue: Catalogue | None = None
        self._index: MentionIndex | None = None

    def complete(self, typed: str, limit: int = 20) -> tuple[MentionCompletion, ...]:
        """Return the best `limit` places for `typed`, the text after `@`."""
        typed, catalogue = typed[:LONGEST_MENTION], self._tables().catalogue()
        index = MentionIndex(catalogue, typed) if catalogue.large else self._current_index()
        return index.complete(typed, limit)

    def tree(self, folder: str = "") -> tuple[str, dict[str, int], list[str]]:
        """Return a folder with a final `/`, its folders with numbers of files, and its files."""
        tables = self._tables()
        prefix = f"{tables.plain_path(folder).strip('/')}/".lstrip("/")
        paths = tables.catalogue().paths
        inside = sorted(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
        if prefix and not inside:
            hint = "Only folders with indexed files are shown."
            raise NotFoundError(f"{folder!r} is not an indexed folder.", hint)
        folders = Counter(path.partition("/")[0] for path in inside if "/" in path)
        return prefix, dict(folders), [path for path in inside if "/" not in path]

    def mentioned(self, question: str) -> list[Mentioned]:
        """Resolve the mentions of `question`."""
        tables = self._tables()
        return [_resolve(tables, text) for text in take_mentions(strip_tag(question))[1]]

    def _current_index(self) -> MentionIndex:
        """Return the names of this version of the index, or the older ones while they are read."""
        catalogue = self._tables().catalogue()
        with self._lock:
            reading, changed = self._reading, self._catalogue is not catalogue
            # A rebuild that drops its tables while they are read fails: then once more.
            if reading is None or (reading.done() and (changed or reading.exception())):
                self._catalogue = catalogue
                reading = self._reading = self._reader.submit(MentionIndex, catalogue)
        if self._index is None or (reading.done() and not reading.exception()):
            self._index = reading.result()
        return self._index


class MentionIndex:
    """The places that can be mentioned, of a large repository those that fit `typed`."""

    def __init__(self, catalogue: Catalogue, typed: str = "") -> None:
        last = re.split(r"\W", typed.strip(' "“”/'))[-1]
        names = list(_files_and_folders(catalogue, last))
        names += _definitions(catalogue, last)
        # Source first, then the shorter, then by path.
        names.sort(key=lambda n: (n[0], len(n[2].label), len(n[2].path), n[2].path, n[2].line))
        self._entries = [entry for _, _, entry in names]
        """All places without their `text`; equal fits are offered in this order."""
        self._names = [fold(name) for _, name, _ in names]
        self._late = [late and entry.kind == "symbol" for late, _, entry in names]
        """Definitions outside of source code count as one fit worse."""
        self._words = [f" {' '.join(split_identifier(name))}" for _, name, _ in names]
        """The words of each name, with a blank before each."""
        self._file_names = {name.lower() for _, name, entry in names if entry.kind == "file"}
        self._definitions: dict[str, list[MentionCompletion]] = {}
        for _, name, entry in names:
            if entry.kind == "symbol":
                self._definitions.setdefault(name, []).append(entry)

    def complete(self, typed: str, limit: int) -> tuple[MentionCompletion, ...]:
        """Return the best `limit` places for `typed`; for '' those nearest to the root."""
        typed = typed.strip().strip('"“”')
        lines = _LINES.fullmatch(typed)
        first = last = 0
        if lines and not typed.endswith("::"):
            typed = lines[1]
            if lines[2]:
                first, last = int(lines[2]), int(lines[3] or lines[2])
        completions = []
        for entry in self._matches(typed):
            if first and entry.kind != "file":
                continue
            completion = self._written(entry, first, last)
            if completion.text:  # else it cannot be written after `@`
                completions.append(completion)
            if len(completions) >= limit:
                break
        return tuple(completions)

    def _matches(self, typed: str) -> Iterator[MentionCompletion]:
        """Return the entries that `typed` fits, best first; if none, those with a typing error."""
        if not typed:
            places = (entry for entry in self._entries if entry.kind != "symbol")
            return iter(sorted(places, key=_from_the_root))
        fits: dict[int, int] = {}
        if split_identifier(typed):  # signs alone are no name
            if "/" not in typed:
                fits = dict(self._by_name(typed))
            for number, fit in self._by_owner(typed):
                fits[number] = min(fit, fits.get(number, fit))
        best = sorted(fits, key=lambda number: (fits[number] + self._late[number], number))
        return (self._entries[number] for number in best or self._misspelt(fold(typed)))

    def _by_name(self, typed: str) -> Iterator[tuple[int, int]]:
        """Yield number and fit of the entries whose name `typed` fits."""
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

    def _by_owner(self, typed: str) -> Iterator[tuple[int, int]]:
        """Yield the same for the last part of `typed`, in the folders or owners before it."""
        is_path = "/" in typed
        typed = typed.lower().removeprefix("./").lstrip("/")
        *owners, last = typed.split("/") if is_path else _OWNED.split(typed)
        if not owners:
            return
        parts = [re.escape(owner) for owner in owners]
        direct = re.compile(f"/{'/'.join(parts)}/[^/]+/?$")
        deeper = re.compile(f"/{'.*/'.join(parts)}.*/[^/]+/?$") if is_path else direct
        for number, fit in self._by_name(last):
            entry = self._entries[number]
            if is_path is (entry.kind == "symbol"):
                continue
            place = f"/{entry.path}".lower()
            if not is_path:
                place = whole_name(entry.path, entry.label).replace(".", "/").lower()
            if place.endswith("/" + "/".join(owners + [last])):
                yield number, EXACT
            elif deeper.search(place):
                yield number, max(fit, PREFIX if direct.search(place) else WORDS)

    def _misspelt(self, key: str) -> list[int]:
        from rapidfuzz import process
        from rapidfuzz.distance import LCSseq

        edits = allowed_edits(key)
        if not edits:
            return []
        beginnings = [name[: len(key) + edits] for name in self._names]
        matches = process.extract(
            key, beginnings, scorer=LCSseq.similarity, score_cutoff=len(key) - edits, limit=None
        )
        return [number for _, _, number in matches]

    def _written(self, entry: MentionCompletion, first: int, last: int) -> MentionCompletion:
        """Return `entry`, or its lines, with the text that means it and nothing else."""
        path = entry.path
        if first:
            text = f"{path}:{first}-{last}" if last > first else f"{path}:{first}"
            return replace(entry, text=as_mention(text), line=first, end_line=max(first, last))
        if entry.kind != "symbol":
            # A definition may have the name of a file in the top folder that has no ending.
            return replace(entry, text=as_mention(path if looks_like_path(path) else f"/{path}"))
        name, module = entry.label, (path.rpartition(".")[0] or path).split("/")
        while module and not self._means(name, entry):
            name = f"{module.pop()}.{name}"
        text = as_mention(name) if self._means(name, entry) else ""
        return replace(entry, text=text or as_mention(f"{path}:{entry.line}-{entry.end_line}"))

    def _means(self, name: str, entry: MentionCompletion) -> bool:
        """Return whether `name` stands for the definition `entry` and for nothing else."""
        if name.rpartition("/")[2].lower() in self._file_names:
            return False  # it would mean the file
        dotted = re.sub(r"::|#|->|/", ".", name).strip(".")
        named = self._definitions.get(dotted.rpartition(".")[2], ())
        whole = [one for one in named if whole_name(one.path, one.label).endswith(f".{dotted}")]
        return whole == [entry]


def _from_the_root(entry: MentionCompletion) -> tuple[bool, int, bool, str]:
    """Return a key that sorts hidden places last and folders before files."""
    path = entry.path
    return "/." in f"/{path}", path[:-1].count("/"), entry.kind == "file", path


def fold(text: str) -> str:
    """Return `text` as names are compared: small letters, digits and the dots of file names."""
    return re.sub(r"[^\w.]|_", "", unicodedata.normalize("NFC", text)).lower()


_Name = tuple[bool, str, MentionCompletion]
"""Whether it comes after source code, the name, and its entry without `text`."""


def _files_and_folders(catalogue: Catalogue, holding: str) -> Iterator[_Name]:
    roles = catalogue.roles(holding)
    for path, role in roles.items():
        folder, slash, name = path.rpartition("/")
        yield role != "source", name, MentionCompletion("file", "", name, folder + slash, path)
    files = Counter(path[: slash.end()] for path in roles for slash in re.finditer("/", path))
    for path, number in files.items():
        parent, _, name = path[:-1].rpartition("/")
        detail = counted(number, "file")
        if parent:
            detail = f"{parent}/ · {detail}"
        yield False, name, MentionCompletion("folder", "", f"{name}/", detail, path)


def _definitions(catalogue: Catalogue, holding: str) -> Iterator[_Name]:
    """Yield the first definition of each qualified name in a file, but no module named like it."""
    rows = catalogue.definitions(holding).sort_by([("start_line", "descending")]).to_pylist()
    firsts = {(row["path"], row["qualified_name"]): row for row in rows}
    for (path, label), row in firsts.items():
        name, kind, first, last = row["name"], row["kind"], row["start_line"], row["end_line"]
        file = re.sub(r"(\.[^.]*){1,2}$", "", path.rpartition("/")[2])
        if kind != "module" or name != file:
            place = f"{path}:{first}"
            entry = MentionCompletion("symbol", "", label, place, path, first, last, kind)
            yield row["role"] != "source", name, entry


def _resolve(tables: Tables, text: str) -> Mentioned:
    mentions, _ = resolve_mentions(tables, [text])
    if not mentions:
        return Mentioned(text, "")
    mention = mentions[0]
    if mention.units:
        unit = tables.by_ids(mention.units)[0]
        units = len(mention.units)
        return Mentioned(text, "symbol", unit.path, unit.start_line, unit.end_line, units)
    first, last = mention.lines or (0, 0)
    paths = mention.files or mention.folders
    kind: Kind = "file" if mention.files else "folder"
    return Mentioned(text, kind, paths[0], first, last, len(paths))
