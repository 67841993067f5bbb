"""Files and folders of one version of an index: by what is typed, and as a tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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


class PathNames:
    """All indexed files and their folders; `roles` says what each file is for."""

    def __init__(self, roles: Mapping[str, str]) -> None:
        import numpy as np

        self._counts: dict[str, int] = {}
        self._children: dict[str, tuple[list[str], list[str]]] = {"": ([], [])}
        for path in sorted(roles):
            self._add(path)
        self._files, self._folders = sorted(roles), sorted(self._counts)
        self._roles = np.array([role_rank(roles[path]) for path in self._files], np.int8)
        names = [path.rpartition("/")[2] for path in self._files]
        self._file_names = NameMatcher(names)
        stems = [len(fold(name.rpartition(".")[0] or name)) for name in names]
        self._stems = np.array(stems, np.int32)
        self._folder_names = NameMatcher([path.split("/")[-2] for path in self._folders])
        self._low_files = [path.lower() for path in self._files]
        self._low_folders = [path.lower() for path in self._folders]
        self._endings = {path.rpartition("/")[2] for path in self._low_files}

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._file_names.nbytes + self._folder_names.nbytes

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
        return any(path == low or path.endswith("/" + low) for path in self._low_files)

    def best(self, typed: str, limit: int, *, folders: bool) -> list[tuple[Rank, str]]:
        """PathNames with their ranks (smaller is better), best first."""
        if not typed:
            return self._nearest(limit, folders)
        if "/" in typed:
            return self._by_path(typed, limit, folders)
        if " " in typed:
            return self.loosely(typed, limit, folders=folders)
        return sorted(self._by_name(typed, folders))[:limit]

    def loosely(self, typed: str, limit: int, *, folders: bool) -> list[tuple[Rank, str]]:
        """PathNames whose last part fits the last word of `typed`, and which hold the others."""
        words = [word for word in re.split(r"\W+", typed.lower()) if word]
        if len(words) < 2:
            return []
        known = self._folders if folders else self._files
        low = self._low_folders if folders else self._low_files
        matcher = self._folder_names if folders else self._file_names
        fits = matcher.fits(words[-1])
        found: list[tuple[Rank, str]] = [
            (
                (int(fits[row]), 0 if folders else int(self._roles[row]), 0, len(low[row]), row),
                known[row],
            )
            for row in (fits < INSIDE).nonzero()[0].tolist()
            if all(word in low[row] for word in words[:-1])
        ]
        return sorted(found)[:limit]

    def _nearest(self, limit: int, folders: bool) -> list[tuple[Rank, str]]:
        """Those nearest to the root, large folders and source first, hidden ones last."""
        known = self._folders if folders else self._files
        found: list[tuple[Rank, str]] = []
        for row, path in enumerate(known):
            hidden = int(path.startswith((".", "_")) or "/." in path)
            depth = path.rstrip("/").count("/") + hidden * HIDDEN
            size = -self._counts[path] if folders else int(self._roles[row])
            found.append(((EXACT, depth, size, len(path), row), path))
        return sorted(found)[:limit]

    def _by_name(self, typed: str, folders: bool) -> list[tuple[Rank, str]]:
        """PathNames whose last part fits `typed`."""
        import numpy as np

        known = self._folders if folders else self._files
        matcher = self._folder_names if folders else self._file_names
        fits = matcher.fits(typed)
        if not folders:
            fits[(fits == PREFIX) & (self._stems == len(fold(typed)))] = EXACT
        rows = np.flatnonzero(fits < MISSED)
        roles = np.zeros(len(rows), np.int8) if folders else self._roles[rows]
        lengths = matcher.lengths[rows]
        kept = np.lexsort((rows, lengths, roles, fits[rows]))[:POOL]
        found: list[tuple[Rank, str]] = []
        for row, role, length in zip(rows[kept], roles[kept], lengths[kept], strict=True):
            path = known[row]
            unlike = apart(path.rstrip("/").rpartition("/")[2], typed)
            if unlike == UNLIKE and "." in typed:
                continue  # `Flask.r` is no folder `flaskr/`
            rank = (int(fits[row]), int(role), unlike, int(length), len(path), int(row))
            found.append((rank, path))
        return found

    def _by_path(self, typed: str, limit: int, folders: bool) -> list[tuple[Rank, str]]:
        """PathNames that begin so, have a part that does, hold it, or hold its parts in order."""
        text = typed.lower().replace("\\", "/").removeprefix("./").lstrip("/")
        known = self._folders if folders else self._files
        low = self._low_folders if folders else self._low_files
        found: list[tuple[Rank, str]] = []
        for row, path in enumerate(low):
            inside = path.find(text)
            if inside < 0:
                continue
            if inside:
                part = path.find("/" + text)
                fit, inside = (WORD, part + 1) if part >= 0 else (INSIDE, inside)
            else:
                fit = EXACT if path == text else PREFIX
            found.append((self._path_rank(row, path, fit, inside + len(text), folders), known[row]))
        if not found:
            loose = re.compile(".*/.*".join(map(re.escape, text.split("/"))))
            rows = (row for row, path in enumerate(low) if loose.search(path))
            found = [
                (self._path_rank(row, low[row], MISSED, 0, folders), known[row]) for row in rows
            ]
        return sorted(found)[:limit]

    def _path_rank(self, row: int, path: str, fit: int, end: int, folders: bool) -> Rank:
        """What lies directly behind what was typed comes before what lies deeper."""
        role = 0 if folders else int(self._roles[row])
        length = len(path) if fit > PREFIX else 0  # what lies in a folder stands by its name
        return fit, role, path.rstrip("/").count("/", end), length, row

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


def role_rank(role: str) -> int:
    """Source before what else is written by hand, that before what is not."""
    return 0 if role == "source" else 2 if role in ROLES_LAST else 1
