"""All definitions of one version of an index, by name."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
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
from codeqa.symbols.mention_completion.path_names import Rank, role_rank

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

POOL = 200
"""Best rows that are compared with what was typed sign by sign."""

NAMES_KEPT = 64
"""Names whose definitions are kept with their whole names."""

_OWNED = re.compile(r"(.*)(?:\.|::|#|->)([^.:#]*)", re.DOTALL)


class SymbolNames:
    """All definitions, by name; `rows` has the columns of the catalogue, one row for each path
    and qualified name, sorted by name."""

    def __init__(self, rows: pa.Table) -> None:
        import numpy as np
        import pyarrow as pa

        self._rows = rows
        self._names: list[str] = rows["name"].to_pylist()
        self.matcher = NameMatcher(self._names)
        roles = rows["role"].combine_chunks()
        ranks = np.array([role_rank(role) for role in roles.dictionary.to_pylist()], np.int8)
        self._roles = ranks[roles.indices.to_numpy()] if len(rows) else np.zeros(0, np.int8)
        pairs = zip(rows["path"].to_pylist(), rows["qualified_name"].to_pylist(), strict=True)
        wholes = [whole_name(*pair) for pair in pairs]
        self._wholes = pa.array(wholes, pa.string())
        owners = (whole.rpartition(".")[0].lower() for whole in wholes)
        self._owners = pa.array(owners, pa.string())
        """What stands before the name: the module's path and the owners, with `.` before each."""
        # A name such as `__init__` has thousands; while somebody types, it comes again and again.
        self._called = lru_cache(maxsize=NAMES_KEPT)(self._all_called)

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
            fits = np.where(self._around(words) & (fits < INSIDE), fits, MISSED)
        elif before.strip():
            fits = np.where(self._owned_by(before), fits, MISSED)
        elif len(split) > 1:
            tail = split[-1]
            last = np.where(self._around(split[:-1]), self.matcher.fits(tail), MISSED)
            fits = np.minimum(fits, last)
        rows = np.flatnonzero(fits < MISSED)
        lengths = np.minimum(self.matcher.lengths[rows], 255).astype(np.int64)
        ranks = (fits[rows].astype(np.int64) * 4 + self._roles[rows]) * 256 + lengths
        if len(rows) > POOL:
            kept = np.argpartition(ranks * len(self.matcher) + rows, POOL)[:POOL]
            rows, ranks = rows[kept], ranks[kept]
        ranked: list[tuple[Rank, int]] = []
        for row, rank in zip(rows.tolist(), ranks.tolist(), strict=True):
            fit, role, length = rank // 1024, rank // 256 % 4, rank % 256
            ranked.append(((fit, role, apart(self._names[row], tail), length, row), row))
        return sorted(ranked)[:limit]

    def holds(self, name: str) -> bool:
        """Whether any definition is called `name`, in small or capital letters."""
        import numpy as np

        return bool(fold(name)) and bool(np.any(self.matcher.fits(name) < PREFIX))

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
        first, end = bisect_left(self._names, name), bisect_right(self._names, name)
        return first, self._wholes.slice(first, end - first).to_pylist()

    def _owned_by(self, owner: str) -> np.ndarray:
        """Rows whose owners, or module and owners, end with `owner`: (n,) bool."""
        import pyarrow.compute as pc

        text = re.sub(r"::|#|->", ".", owner).strip(". ").lower()
        mask: np.ndarray = pc.ends_with(self._owners, f".{text}").to_numpy(zero_copy_only=False)
        return mask

    def _around(self, words: Sequence[str]) -> np.ndarray:
        """Rows whose module or owners hold all of `words`: (n,) bool."""
        import numpy as np
        import pyarrow.compute as pc

        found = np.ones(len(self.matcher), np.bool_)
        for word in words:
            mask = pc.match_substring(self._owners, word.lower())
            found &= mask.to_numpy(zero_copy_only=False)
        return found


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
