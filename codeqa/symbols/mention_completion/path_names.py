"""Files and folders of one version of an index: by what is typed, and as a tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeqa.symbols.mention_completion.name_matcher import (
    EXACT,
    INSIDE,
    MISSED,
    PREFIX,
    UNLIKE,
    WORD,
    NameMatcher,
    apart,
    fold,
)

if TYPE_CHECKING:
    import numpy as np

ROLES_LAST = ("vendored", "generated")

POOL = 200
"""Best paths that are compared with what was typed sign by sign."""

HIDDEN = 50
"""Levels by which a hidden folder seems to lie deeper."""

Rank = tuple[int, ...]
"""How well a place fits and what it is for, then what decides between equals: less is better."""


@dataclass(frozen=True, slots=True)
class FolderListing:
    """What lies directly in a folder."""

    path: str
    """With a `/` at the end, '' for the root."""
    folders: tuple[tuple[str, int], ...]
    """Names with the number of indexed files below."""
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Places:
    """All files or all folders, a row for each."""

    paths: list[str]
    low: list[str]
    """The paths in small letters."""
    names: NameMatcher
    """The last parts of the paths."""
    stems: np.ndarray
    """(n,) int32: letters and digits of a file's name without its ending, -1 for a folder."""
    roles: np.ndarray
    """(n,) int8: what a file is for, 0 for a folder."""


class PathNames:
    """All indexed files and their folders; `roles` says what each file is for."""

    def __init__(self, roles: Mapping[str, str]) -> None:
        import numpy as np

        self._counts: dict[str, int] = {}
        self._children: dict[str, tuple[list[str], list[str]]] = {"": ([], [])}
        files = sorted(roles)
        for path in files:
            self._add(path)
        folders = sorted(self._counts)
        names = [path.rpartition("/")[2] for path in files]
        stems = [len(fold(name.rpartition(".")[0] or name)) for name in names]
        self._files = _Places(
            files,
            [path.lower() for path in files],
            NameMatcher(names),
            np.array(stems, np.int32),
            np.array([role_rank(roles[path]) for path in files], np.int8),
        )
        self._folders = _Places(
            folders,
            [path.lower() for path in folders],
            NameMatcher([path.split("/")[-2] for path in folders]),
            np.full(len(folders), -1, np.int32),
            np.zeros(len(folders), np.int8),
        )
        self._endings = {path.rpartition("/")[2] for path in self._files.low}

    def count(self, folder: str) -> int:
        """Indexed files at any depth of `folder`."""
        return self._counts[folder]

    def branch(self, folder: str) -> FolderListing | None:
        """What lies in `folder` ('' for the root); None when no indexed file is in it."""
        path = folder.strip("/") + "/" if folder.strip("/") else ""
        if path not in self._children:
            return None
        folders, files = self._children[path]
        return FolderListing(
            path, tuple((f, self._counts[f"{path}{f}/"]) for f in folders), tuple(files)
        )

    def ends_with(self, text: str) -> bool:
        """Whether a file's path ends with `text` after a `/`, so that it would be meant."""
        low = text.lower().replace("\\", "/").lstrip("/")
        if low.rpartition("/")[2] not in self._endings:
            return False
        return any(path == low or path.endswith("/" + low) for path in self._files.low)

    def best(self, typed: str, limit: int, *, folders: bool) -> list[tuple[Rank, str]]:
        """Paths with their ranks (smaller is better), best first."""
        places = self._folders if folders else self._files
        if not typed:
            found = self._nearest(places)
        elif "/" in typed:
            found = _by_path(places, typed)
        elif " " in typed:
            found = _by_words(places, typed)
        else:
            found = _by_name(places, typed)
        return sorted(found)[:limit]

    def loosely(self, typed: str, limit: int, *, folders: bool) -> list[tuple[Rank, str]]:
        """Paths whose last part fits the last word of `typed`, and which hold the others."""
        return sorted(_by_words(self._folders if folders else self._files, typed))[:limit]

    def _nearest(self, places: _Places) -> list[tuple[Rank, str]]:
        """Those nearest to the root, large folders and source first, hidden ones last."""
        found: list[tuple[Rank, str]] = []
        for row, path in enumerate(places.paths):
            hidden = int(path.startswith((".", "_")) or "/." in path)
            depth = path.rstrip("/").count("/") + hidden * HIDDEN
            size = -self._counts[path] if path in self._counts else int(places.roles[row])
            found.append(((EXACT, depth, size, len(path), row), path))
        return found

    def _add(self, path: str) -> None:
        folder, slash, name = path.rpartition("/")
        self._children.setdefault(folder + slash, ([], []))[1].append(name)
        while folder:
            known = folder + "/" in self._counts
            self._counts[folder + "/"] = self._counts.get(folder + "/", 0) + 1
            parent, slash, name = folder.rpartition("/")
            if not known:
                self._children.setdefault(parent + slash, ([], []))[0].append(name)
            folder = parent


def _by_words(places: _Places, typed: str) -> list[tuple[Rank, str]]:
    words = [word for word in re.split(r"\W+", typed.lower()) if word]
    if len(words) < 2:
        return []
    fits = places.names.fits(words[-1])
    return [
        ((int(fits[row]), int(places.roles[row]), 0, len(path), row), places.paths[row])
        for row, path in enumerate(places.low)
        if fits[row] < INSIDE and all(word in path for word in words[:-1])
    ]


def _by_name(places: _Places, typed: str) -> list[tuple[Rank, str]]:
    """Paths whose last part fits `typed`."""
    import numpy as np

    fits = places.names.fits(typed)
    fits[(fits == PREFIX) & (places.stems == len(fold(typed)))] = EXACT
    rows = np.flatnonzero(fits < MISSED)
    lengths = places.names.lengths
    kept = rows[np.lexsort((rows, lengths[rows], places.roles[rows], fits[rows]))[:POOL]]
    found: list[tuple[Rank, str]] = []
    for row in kept.tolist():
        path = places.paths[row]
        unlike = apart(path.rstrip("/").rpartition("/")[2], typed)
        if unlike == UNLIKE and "." in typed:
            continue  # `Flask.r` is no folder `flaskr/`
        role, length = int(places.roles[row]), int(lengths[row])
        found.append(((int(fits[row]), role, unlike, length, len(path), row), path))
    return found


def _by_path(places: _Places, typed: str) -> list[tuple[Rank, str]]:
    """Paths that begin so, have a part that does, hold it, or hold its parts in order."""
    text = typed.lower().replace("\\", "/").removeprefix("./").lstrip("/")

    def ranked(row: int, fit: int, end: int) -> tuple[Rank, str]:
        """What lies directly behind what was typed comes before what lies deeper."""
        path = places.low[row]
        length = len(path) if fit > PREFIX else 0  # what lies in a folder stands by its name
        rank = (fit, int(places.roles[row]), path.rstrip("/").count("/", end), length, row)
        return rank, places.paths[row]

    found: list[tuple[Rank, str]] = []
    for row, path in enumerate(places.low):
        if path.startswith(text):
            found.append(ranked(row, EXACT if path == text else PREFIX, len(text)))
        elif (part := path.find("/" + text)) >= 0:
            found.append(ranked(row, WORD, part + 1 + len(text)))
        elif (inside := path.find(text)) >= 0:
            found.append(ranked(row, INSIDE, inside + len(text)))
    if found:
        return found
    loose = re.compile(".*/.*".join(map(re.escape, text.split("/"))))
    return [ranked(row, MISSED, 0) for row, path in enumerate(places.low) if loose.search(path)]


def role_rank(role: str) -> int:
    """Source before what else is written by hand, that before what is not."""
    return 0 if role == "source" else 2 if role in ROLES_LAST else 1
