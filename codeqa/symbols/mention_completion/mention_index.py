"""Files, folders and definitions of one version of an index, by what is typed behind `@`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from codeqa.search.mentions import looks_like_path
from codeqa.symbols.mention_completion.name_matcher import fold
from codeqa.symbols.mention_completion.path_names import PathNames, Rank
from codeqa.symbols.mention_completion.symbol_names import SymbolNames, distinct

if TYPE_CHECKING:
    from codeqa.store.catalogue import Catalogue

Kind = Literal["file", "folder", "symbol"]
KINDS: tuple[Kind, ...] = ("file", "folder", "symbol")

RESERVED = {"file": 3, "folder": 6}
"""Of so many places one is kept for a file, and one for a folder, however many symbols fit."""

MAX_MENTION = 300
"""Characters of a mention; `search.mentions` reads no more."""

_PLAIN = re.compile(r"[^\s\"“”`<>@]{1,300}")
_QUOTES = (('"', '"'), ("“", "”"))
_LINES = re.compile(r"(.+?):(?:(\d{1,7})(?:-(\d{0,7}))?)?", re.DOTALL)


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


class MentionIndex:
    """Everything that can be mentioned; reads the catalogue once, when it is made."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.paths = PathNames(catalogue.roles())
        self._symbols = SymbolNames(distinct(catalogue.definitions()))

    def __len__(self) -> int:
        """Number of definitions."""
        return len(self._symbols.matcher)

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
        found = self._found(typed, wanted, limit)
        if not any(found.values()) and len(re.findall(r"\w+", typed)) > 1:
            found = self._found(typed, wanted, limit, loosely=True)
        chosen = _shared(found, limit, by_path="/" in typed or not typed)
        if lines and lines[2]:
            return [_at_lines(place, int(lines[2]), int(lines[3] or lines[2])) for place in chosen]
        return chosen

    def _found(
        self, typed: str, kinds: Iterable[Kind], limit: int, *, loosely: bool = False
    ) -> dict[Kind, list[tuple[Rank, MentionCompletion]]]:
        found: dict[Kind, list[tuple[Rank, MentionCompletion]]] = {}
        for kind in kinds:
            if kind == "symbol":
                rows: list[tuple[Rank, int]] = []
                if typed and "/" not in typed:
                    rows = self._symbols.best(typed, limit, loosely=loosely)
                found[kind] = [(rank, self._symbol(row)) for rank, row in rows]
            else:
                best = self.paths.loosely if loosely else self.paths.best
                paths = best(typed, limit, folders=kind == "folder")
                found[kind] = [(rank, self._path(path)) for rank, path in paths]
        return found

    def _path(self, path: str) -> MentionCompletion:
        kind: Kind = "folder" if path.endswith("/") else "file"
        parent, _, name = path.removesuffix("/").rpartition("/")
        plain = kind == "file" and not looks_like_path(path)
        # A file without an ending, in the top folder, is called as a definition may be, too.
        text = f"/{path}" if plain and self._symbols.holds(path) else path
        files = self.paths.count(path) if kind == "folder" else 0
        many = f"{files} file{'' if files == 1 else 's'}" if files else ""
        detail = " · ".join(filter(None, (f"{parent}/" if parent else "", many)))
        label = name + ("/" if kind == "folder" else "")
        return MentionCompletion(kind, as_mention(text), label, detail, path)

    def _symbol(self, row: int) -> MentionCompletion:
        found = self._symbols.at(row)
        path, first, last = found["path"], found["start_line"], found["end_line"]
        ways = _ways(path, found["qualified_name"])
        ways = [way for way in ways if not self.paths.ends_with(way)]
        text = as_mention(self._symbols.shortest(row, ways))
        return MentionCompletion(
            kind="symbol",
            text=text or as_mention(f"{path}:{first}-{last}"),
            label=found["qualified_name"],
            detail=f"{path}:{first}",
            path=path,
            line=first,
            end_line=last,
            what=found["kind"],
        )


def as_mention(text: str) -> str:
    """What stands behind `@` for `text`: in quotes where it must, '' where nothing would do."""
    if _PLAIN.fullmatch(text):
        return text
    if not text or len(text) > MAX_MENTION or "\n" in text:
        return ""
    return next((f"{a}{text}{z}" for a, z in _QUOTES if a not in text and z not in text), "")


def _ways(path: str, qualified_name: str) -> list[str]:
    """How a definition may be called, the shortest first: `Flask.route`, `app.Flask.route`, …"""
    found = [qualified_name]
    for part in reversed((path.rpartition(".")[0] or path).split("/")):
        found.append(f"{part}.{found[-1]}")
    return found


def _shared(
    found: dict[Kind, list[tuple[Rank, MentionCompletion]]], limit: int, *, by_path: bool
) -> list[MentionCompletion]:
    """The best of all kinds together, with room kept for those that are few."""
    order = ("folder", "file", "symbol") if by_path else ("file", "symbol", "folder")
    at = 2 if by_path else 3  # a name that is more like what was typed comes before its kind
    ranked = [
        ((*rank[:at], order.index(kind), *rank[at:]), number, place)
        for kind, places in found.items()
        for number, (rank, place) in enumerate(places)
        if place.text  # what cannot be written behind `@` cannot be mentioned
    ]
    ranked.sort(key=lambda one: one[0])
    kept = [
        one for one in ranked if one[2].kind in RESERVED and one[1] < limit // RESERVED[one[2].kind]
    ]
    kept += [one for one in ranked if one not in kept][: max(0, limit - len(kept))]
    return [place for _, _, place in sorted(kept, key=lambda one: one[0])][:limit]


def _at_lines(place: MentionCompletion, first: int, last: int) -> MentionCompletion:
    text = as_mention(f"{place.path}:{first}" + (f"-{last}" if last > first else ""))
    last = max(first, last)
    return MentionCompletion(place.kind, text, place.label, place.detail, place.path, first, last)
