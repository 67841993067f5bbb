"""The files of a repository, by the ways in which an import names them."""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import dirname, join, normpath


class PathIndex:
    """Paths of the indexed files; knows which ones end in a given address."""

    __slots__ = ("_by_ending", "_folders", "_paths")

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_ending: dict[str, list[str]] = {}
        self._folders: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            self._by_ending.setdefault(path.rsplit("/", 1)[-1], []).append(path)
            self._folders.setdefault(dirname(path), []).append(path)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def exact(self, *candidates: str) -> tuple[str, ...]:
        """Those candidates that exist, in their order."""
        return tuple(path for path in candidates if path in self._paths)

    def ending(self, suffix: str, near: str = "") -> tuple[str, ...]:
        """Files whose path is `suffix` or ends in `/suffix`; the nearest to `near` first."""
        found = [
            path
            for path in self._by_ending.get(suffix.rsplit("/", 1)[-1], ())
            if path == suffix or path.endswith("/" + suffix)
        ]
        return tuple(sorted(found, key=lambda path: (-_shared(path, near), len(path), path)))

    def in_folder(self, folder: str) -> tuple[str, ...]:
        """Files directly in a folder; '' is the repository's root."""
        return tuple(self._folders.get(folder, ()))

    def folders_ending(self, suffix: str) -> tuple[str, ...]:
        """Folders that are `suffix` or end in `/suffix`, shortest first."""
        found = [
            folder for folder in self._folders if folder == suffix or folder.endswith("/" + suffix)
        ]
        return tuple(sorted(found, key=lambda folder: (len(folder), folder)))


def relative(importer: str, address: str) -> str:
    """A path relative to the importing file as one relative to the root; '' if outside."""
    path = normpath(join(dirname(importer), address))
    return "" if path.startswith("..") else path


def _shared(path: str, near: str) -> int:
    """How many leading folders two paths share."""
    if not near:
        return 0
    parts, others = dirname(path).split("/"), dirname(near).split("/")
    shared = 0
    for part, other in zip(parts, others, strict=False):
        if part != other:
            break
        shared += 1
    return shared
