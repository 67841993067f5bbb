"""All definitions of one version of an index, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from codeqa.search.mentions import whole_name
from codeqa.symbols.mention_completion.name_matcher import (
    INSIDE,
    MISSED,
    PREFIX,
    NameMatcher,
    apart,
    fold,
)
from codeqa.symbols.mention_completion.path_names import Rank

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

POOL = 200
"""Best rows that are compared with what was typed sign by sign."""

NAMES_KEPT = 64
"""Names whose definitions are kept with their whole names."""
MASKS_KEPT = 16
"""Owners and words for which it is kept which rows have them: 100 KB each."""

_OWNED = re.compile(r"(.*)(?:\.|::|#|->)([^.:#]*)", re.DOTALL)


class SymbolNames:
    """All definitions, by name; `rows` has the columns of the catalogue, one row for each path
    and qualified name, sorted by name."""

    def __init__(self, rows: pa.Table) -> None:
        import numpy as np

        names = rows["name"].to_pylist()
        self.matcher = NameMatcher(names)
        roles = rows["role"].combine_chunks()
        ranks = np.array([_role_rank(role) for role in roles.dictionary.to_pylist()], np.int8)
        self._roles = ranks[roles.indices.to_numpy()] if len(rows) else np.zeros(0, np.int8)
        codes = rows["name"].combine_chunks().dictionary_encode()
        self._code_of = {name: code for code, name in enumerate(codes.dictionary.to_pylist())}
        self._starts = np.searchsorted(codes.indices.to_numpy(), np.arange(len(self._code_of) + 1))
        self._rows = rows
        # A name such as `__init__` has thousands; while somebody types, it comes again and again,
        # and what stands before the last word stays as it is.
        self._called = lru_cache(maxsize=NAMES_KEPT)(self._all_called)
        self._owned_by = lru_cache(maxsize=MASKS_KEPT)(self._mask_of_owner)
        self._around = lru_cache(maxsize=MASKS_KEPT)(self._mask_of_words)
        self._paths = self._numbered_paths()
        self._owners = self._numbered_owners()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and of the table, without the names that Python holds."""
        arrays = (self._roles, self._starts, self._paths[0], self._owners[0])
        return int(self.matcher.nbytes + self._rows.nbytes + sum(one.nbytes for one in arrays))

    def at(self, row: int) -> dict[str, Any]:
        """All columns of one row."""
        found: dict[str, Any] = self._rows.slice(row, 1).to_pylist()[0]
        return found

    def best(self, typed: str, limit: int, *, loosely: bool) -> list[tuple[Rank, int]]:
        """Rows with their ranks (smaller is better), best first.

        Before a `.` the owners must stand as they are called; `loosely`, words of them or of
        the path.
        """
        import numpy as np

        owned, split = _OWNED.fullmatch(typed), typed.split()
        before, tail = (owned[1], owned[2]) if owned else ("", typed)
        fits = self.matcher.fits(tail)
        if loosely:
            *words, tail = [word for word in re.split(r"\W+", typed) if word] or [""]
            fits = self.matcher.fits(tail)
            fits = np.where(self._around(tuple(words)) & (fits < INSIDE), fits, MISSED)
        elif before.strip():
            fits = np.where(self._owned_by(before), fits, MISSED)
        elif len(split) > 1:
            tail = split[-1]
            last = np.where(self._around(tuple(split[:-1])), self.matcher.fits(tail), MISSED)
            fits = np.minimum(fits, last)
        rows = np.flatnonzero(fits < MISSED)
        lengths = np.minimum(self.matcher.lengths[rows], 255).astype(np.int64)
        ranks = (fits[rows].astype(np.int64) * 4 + self._roles[rows]) * 256 + lengths
        if len(rows) > POOL:
            kept = np.argpartition(ranks * len(self.matcher) + rows, POOL)[:POOL]
            rows, ranks = rows[kept], ranks[kept]
        names = self._rows["name"].take(rows).to_pylist()
        ranked: list[tuple[Rank, int]] = []
        for row, rank, name in zip(rows.tolist(), ranks.tolist(), names, strict=True):
            fit, role, length = rank // 1024, rank // 256 % 4, rank % 256
            ranked.append(((fit, role, apart(name, tail), length, row), row))
        return sorted(ranked)[:limit]

    def holds(self, name: str) -> bool:
        """Whether any definition is called `name`, in small or capital letters."""
        import numpy as np

        key = fold(name)
        if not key:
            return False
        return bool(np.any(self.matcher.fits(name) < PREFIX))

    def shortest(self, row: int, ways: Sequence[str]) -> str:
        """The first of `ways` that stands for the definition in `row` and nothing else, or ''."""
        for way in ways:
            dotted = re.sub(r"::|#|->|/", ".", way).strip(".")
            first, wholes = self._called(dotted.rpartition(".")[2])
            called = [first + at for at, one in enumerate(wholes) if one.endswith("." + dotted)]
            source = [one for one in called if self._roles[one] == 0] or called
            if source == [row]:
                return way
        return ""

    def _all_called(self, name: str) -> tuple[int, list[str]]:
        """The first row with exactly this name, and the whole names of all that have it."""
        code = self._code_of.get(name)
        if code is None:
            return 0, []
        first, end = int(self._starts[code]), int(self._starts[code + 1])
        same = self._rows.slice(first, end - first).select(["path", "qualified_name"])
        pairs = zip(*(column.to_pylist() for column in same.columns), strict=True)
        return first, [whole_name(*pair) for pair in pairs]

    def _mask_of_owner(self, owner: str) -> np.ndarray:
        """Rows whose owners, or module and owners, end with `owner`: (n,) bool."""
        import numpy as np

        text = re.sub(r"::|#|->", ".", owner).strip(". ").lower()
        paths, modules = self._paths
        owners, named = self._owners
        right = np.zeros(len(named), np.bool_)
        rests: dict[str, list[int]] = {}
        for code, name in enumerate(named):
            if name.endswith(text):
                right[code] = len(name) == len(text) or name[-len(text) - 1] == "."
            elif not name or text.endswith(f".{name}"):
                rests.setdefault(text[: len(text) - len(name)].rstrip("."), []).append(code)
        found: np.ndarray = right[owners]
        for rest, codes in rests.items():
            inside = np.array([f".{m}".endswith(f".{rest}") for m in modules], np.bool_)
            found |= np.isin(owners, codes) & inside[paths]
        return found

    def _mask_of_words(self, words: tuple[str, ...]) -> np.ndarray:
        """Rows whose path or owners hold all of `words`: (n,) bool."""
        import numpy as np

        paths, modules = self._paths
        owners, named = self._owners
        found = np.ones(len(self.matcher), np.bool_)
        for word in map(str.lower, words):
            in_path = np.array([word in module for module in modules], np.bool_)
            in_owner = np.array([word in name for name in named], np.bool_)
            found &= in_path[paths] | in_owner[owners]
        return found

    def _numbered_paths(self) -> tuple[np.ndarray, list[str]]:
        """Of each row the number of its path, and the paths as modules, in small letters."""
        encoded = self._rows["path"].combine_chunks()
        modules = [
            (path.rpartition(".")[0] or path).replace("/", ".").lower()
            for path in encoded.dictionary.to_pylist()
        ]
        return encoded.indices.to_numpy(), modules

    def _numbered_owners(self) -> tuple[np.ndarray, list[str]]:
        """The same of the owners: what stands before the name, `` for nothing."""
        import numpy as np

        qualified, names = self._rows["qualified_name"].to_pylist(), self._rows["name"].to_pylist()
        codes: dict[str, int] = {}
        rows = np.empty(len(names), np.int32)
        for row, (whole, name) in enumerate(zip(qualified, names, strict=True)):
            owner = whole[: len(whole) - len(name)] if whole.endswith(name) else ""
            rows[row] = codes.setdefault(owner, len(codes))
        known = [re.sub(r"::|#|->", ".", owner).strip(".").lower() for owner in codes]
        return rows, known


def distinct(rows: pa.Table) -> pa.Table:
    """`rows` by name and then by place, without what is only a file under its own name, and of
    each path and qualified name the first."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    stems = pc.replace_substring_regex(rows["path"], r"^.*/|\.[^./]*$", "")
    stems = pc.replace_substring_regex(stems, r"\.[^./]*$", "")
    whole_file = pc.and_(pc.equal(rows["kind"], "module"), pc.equal(rows["name"], stems))
    rows = rows.filter(pc.invert(whole_file))
    rows = rows.append_column("length", pc.utf8_length(rows["qualified_name"]))
    order = [(c, "ascending") for c in ("name", "length", "qualified_name", "path", "start_line")]
    rows = rows.sort_by(order).drop_columns(["length"]).combine_chunks()
    if not len(rows):
        first = np.zeros(0, np.bool_)
    else:
        columns = (
            rows[name].combine_chunks().dictionary_encode() for name in ("qualified_name", "path")
        )
        codes = [column.indices.to_numpy() for column in columns]
        changed = (codes[0][1:] != codes[0][:-1]) | (codes[1][1:] != codes[1][:-1])
        first = np.concatenate(([True], changed))
    rows = rows.filter(pa.array(first)).combine_chunks()
    for name in ("path", "kind", "role"):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, rows[name].combine_chunks().dictionary_encode())
    return rows


def _role_rank(role: str) -> int:
    """Source before what is written by hand, that before what is not."""
    return {"source": 0, "vendored": 2, "generated": 2}.get(role, 1)
