"""Files, folders and definitions of one version of an index, by what is typed behind `@`."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from codeqa.mentions.matcher import (
    EXACT,
    INSIDE,
    MISSED,
    PREFIX,
    UNLIKE,
    WORD,
    NameMatcher,
    Rank,
    fold,
)
from codeqa.search.mentions import LONGEST_MENTION, looks_like_path, whole_name

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from codeqa.store.catalogue import Catalogue

Kind = Literal["file", "folder", "symbol"]
KINDS: tuple[Kind, ...] = ("file", "folder", "symbol")

RESERVED = {"file": 3, "folder": 6}
"""Of so many places one is kept for a file, and one for a folder, however many symbols fit."""
HIDDEN = 50
"""Levels by which a hidden folder seems to lie deeper."""

_PLAIN = re.compile(rf"[^\s\"“”`<>@]{{1,{LONGEST_MENTION}}}")
_QUOTES = (('"', '"'), ("“", "”"))
_LINES = re.compile(r"(.+?):(?:(\d{1,7})(?:-(\d{0,7}))?)?", re.DOTALL)
_OWNED = re.compile(r"(.*)(?:\.|::|#|->)([^.:#]*)", re.DOTALL)
_SEPARATOR = re.compile(r"::|#|->|/")


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
class FolderListing:
    """What lies directly in a folder."""

    path: str
    """With a `/` at the end, '' for the root."""
    folders: tuple[tuple[str, int], ...]
    """Names with the number of indexed files below."""
    files: tuple[str, ...]


class MentionIndex:
    """Everything that can be mentioned; reads the catalogue once, when it is made."""

    def __init__(self, catalogue: Catalogue) -> None:
        import pyarrow as pa

        roles = catalogue.roles()
        self._files = sorted(roles, key=lambda path: (len(path), path))
        self._below = Counter(folder for path in self._files for folder in _folders(path))
        self._folders = sorted(self._below, key=lambda path: (len(path), path))
        names = [path.rpartition("/")[2] for path in self._files]
        self._file_names = {name.lower() for name in names}
        self.definitions = rows = _distinct(catalogue.definitions())
        pairs = zip(rows["path"].to_pylist(), rows["qualified_name"].to_pylist(), strict=True)
        wholes = [whole_name(*pair) for pair in pairs]
        self._whole_names = pa.array(wholes, pa.string())
        self._names: dict[Kind, NameMatcher] = {
            "file": NameMatcher(names, self._files, [roles[path] for path in self._files]),
            "folder": NameMatcher([path.split("/")[-2] for path in self._folders], self._folders),
            "symbol": NameMatcher(
                rows["name"].to_pylist(),
                [whole.rpartition(".")[0] for whole in wholes],
                rows["role"].to_pylist(),
            ),
        }
        pa.default_memory_pool().release_unused()  # the columns that were read

    def complete(self, typed: str, kinds: Iterable[Kind], limit: int) -> list[MentionCompletion]:
        """The best `limit` places for `typed`, best first; for '' those nearest to the root."""
        typed = typed.strip().lstrip('"“').rstrip('"”')
        if typed and not fold(typed):
            return []  # signs alone are nobody's name
        lines = _LINES.fullmatch(typed)
        wanted = list(kinds)
        if lines and not typed.endswith("::"):
            typed = lines[1]
            wanted = ["file"] if lines[2] and "file" in wanted else wanted
        found = {kind: self._found(kind, typed, limit) for kind in wanted}
        words = re.findall(r"\w+", typed)
        if not any(found.values()) and len(words) > 1 and "/" not in typed:
            found = {kind: self._found(kind, " ".join(words), limit) for kind in wanted}
        chosen = _shared(found, limit, by_path="/" in typed or not typed)
        if lines and lines[2]:
            return [_at_lines(place, int(lines[2]), int(lines[3] or lines[2])) for place in chosen]
        return chosen

    def listing(self, folder: str) -> FolderListing | None:
        """What lies in `folder` ('' for the root); None when no indexed file is in it."""
        prefix = folder.strip("/") + "/" if folder.strip("/") else ""
        inside = sorted(p.removeprefix(prefix) for p in self._files if p.startswith(prefix))
        if prefix and not inside:
            return None
        folders = Counter(path.partition("/")[0] for path in inside if "/" in path)
        files = tuple(path for path in inside if "/" not in path)
        return FolderListing(prefix, tuple(folders.items()), files)

    def _found(self, kind: Kind, typed: str, limit: int) -> list[tuple[Rank, MentionCompletion]]:
        names = self._names[kind]
        if kind == "symbol":
            if not typed or "/" in typed:
                return []
            owned = _OWNED.fullmatch(typed)
            ranks = names.best(typed, *(owned.groups() if owned else ()))
            return [(rank, self._symbol(rank[-1])) for rank in ranks[:limit]]
        paths = self._files if kind == "file" else self._folders
        if not typed:
            found = [(self._depth(path, names.roles[row]), path) for row, path in enumerate(paths)]
        elif "/" in typed:
            found = _by_path(paths, names.roles, typed)
        else:
            # `Flask.r` is no folder `flaskr/`, and of two words the last begins one of the name.
            ranks = [
                one
                for one in names.best(typed)
                if (one[2] != UNLIKE or "." not in typed) and (one[0] < INSIDE or " " not in typed)
            ]
            found = [(rank, paths[rank[-1]]) for rank in ranks]
        return [(rank, self._path(path)) for rank, path in sorted(found)[:limit]]

    def _depth(self, path: str, role: int) -> Rank:
        """Nearest to the root, large folders and source first, hidden ones last."""
        hidden = path.startswith((".", "_")) or "/." in path
        depth = path.rstrip("/").count("/") + hidden * HIDDEN
        return EXACT, depth, -self._below[path] if path in self._below else role, len(path)

    def _path(self, path: str) -> MentionCompletion:
        kind: Kind = "folder" if path.endswith("/") else "file"
        parent, slash, name = path.removesuffix("/").rpartition("/")
        if kind == "file":
            # A file without an ending, in the top folder, is called as a definition may be, too.
            text = path if looks_like_path(path) else f"/{path}"
            return MentionCompletion(kind, as_mention(text), name, parent + slash, path)
        files = self._below[path]
        detail = f"{files} file{'' if files == 1 else 's'}"
        detail = f"{parent}/ · {detail}" if parent else detail
        return MentionCompletion(kind, as_mention(path), f"{name}/", detail, path)

    def _symbol(self, row: int) -> MentionCompletion:
        (found,) = self.definitions.slice(row, 1).to_pylist()
        path, first, last = found["path"], found["start_line"], found["end_line"]
        ways = [found["qualified_name"]]  # then with more and more of its module before it
        for part in reversed((path.rpartition(".")[0] or path).split("/")):
            ways.append(f"{part}.{ways[-1]}")
        text = next((way for way in ways if self._means(way, row)), "")
        return MentionCompletion(
            kind="symbol",
            text=as_mention(text) or as_mention(f"{path}:{first}-{last}"),
            label=found["qualified_name"],
            detail=f"{path}:{first}",
            path=path,
            line=first,
            end_line=last,
            what=found["kind"],
        )

    def _means(self, way: str, row: int) -> bool:
        """Whether `way` stands for the definition in `row` and for nothing else."""
        import numpy as np
        import pyarrow.compute as pc

        if way.rpartition("/")[2].lower() in self._file_names:
            return False  # the file would be meant
        dotted = _SEPARATOR.sub(".", way).strip(".")
        names, name = self._names["symbol"], dotted.rpartition(".")[2]
        first, end = bisect_left(names.names, name), bisect_right(names.names, name)
        ends = pc.ends_with(self._whole_names.slice(first, end - first), f".{dotted}")
        called = first + np.flatnonzero(ends.to_numpy(zero_copy_only=False))
        source = called[names.roles[called] == 0]
        return bool((source if len(source) else called).tolist() == [row])


def as_mention(text: str) -> str:
    """What stands behind `@` for `text`: in quotes where it must, '' where nothing would do."""
    if _PLAIN.fullmatch(text):
        return text
    if not text or len(text) > LONGEST_MENTION or "\n" in text:
        return ""
    return next((f"{a}{text}{z}" for a, z in _QUOTES if a not in text and z not in text), "")


def _by_path(paths: Sequence[str], roles: np.ndarray, typed: str) -> list[tuple[Rank, str]]:
    """Paths that begin so, have a part that does, hold it, or hold its parts in order."""
    text = typed.lower().replace("\\", "/").removeprefix("./").lstrip("/")
    loose = re.compile(".*/.*".join(map(re.escape, text.split("/"))))
    found: list[tuple[Rank, str]] = []
    for path, role in zip(paths, roles.tolist(), strict=True):
        low = path.lower()
        if (part := f"/{low}".find(f"/{text}")) >= 0:
            fit = WORD if part else EXACT if low == text else PREFIX
            end = part + len(text)
        elif (inside := low.find(text)) >= 0:
            fit, end = INSIDE, inside + len(text)
        elif loose.search(low):
            fit, end = MISSED, 0
        else:
            continue
        # What lies directly behind what was typed comes before what lies deeper, and what lies
        # in a folder stands by its name.
        depth = path.rstrip("/").count("/", end)
        found.append(((fit, role, depth, len(path) if fit > PREFIX else 0), path))
    return [one for one in found if one[0][0] < MISSED] or found


def _shared(
    found: dict[Kind, list[tuple[Rank, MentionCompletion]]], limit: int, *, by_path: bool
) -> list[MentionCompletion]:
    """The best of all kinds together, with room kept for those that are few."""
    order = ("folder", "file", "symbol") if by_path else ("file", "symbol", "folder")
    at = 2 if by_path else 3  # a name that is more like what was typed comes before its kind
    ranked = sorted(
        ((*rank[:at], order.index(kind), *rank[at:], number), number, place)
        for kind, places in found.items()
        for number, (rank, place) in enumerate(places)
        if place.text  # what cannot be written behind `@` cannot be mentioned
    )
    kept = [one for one in ranked if one[1] < limit // RESERVED.get(one[2].kind, limit + 1)]
    kept += [one for one in ranked if one not in kept][: max(0, limit - len(kept))]
    return [place for _, _, place in sorted(kept)][:limit]


def _at_lines(place: MentionCompletion, first: int, last: int) -> MentionCompletion:
    text = as_mention(f"{place.path}:{first}" + (f"-{last}" if last > first else ""))
    return replace(place, text=text, line=first, end_line=max(first, last))


def _folders(path: str) -> Iterable[str]:
    """The folders that `path` lies in, with a `/` at the end."""
    return (path[: found.end()] for found in re.finditer("/", path))


def _distinct(rows: pa.Table) -> pa.Table:
    """`rows` by name and then by place, without what is only a file under its own name, and of
    each path and qualified name the first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stems = pc.replace_substring_regex(rows["path"], r"^.*/", "")
    stems = pc.replace_substring_regex(stems, r"(\.[^./]*){1,2}$", "")
    whole_file = pc.and_(pc.equal(rows["kind"], "module"), pc.equal(rows["name"], stems))
    rows = rows.filter(pc.invert(whole_file))
    rows = rows.append_column("length", pc.utf8_length(rows["qualified_name"]))
    order = [(c, "ascending") for c in ("name", "length", "qualified_name", "path", "start_line")]
    rows = rows.sort_by(order)
    rows = rows.append_column("row", pa.array(range(len(rows)), pa.int64()))
    firsts = rows.group_by(["path", "qualified_name"]).aggregate([("row", "min")])["row_min"]
    return rows.take(firsts.sort()).combine_chunks()
