"""The names of an index, and those nearest to one that is misspelt.

Two names of a few differing letters share almost all of their letters whatever the order, and
numpy counts letters of 100,000 names in a millisecond; only what passes is compared in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

BUCKETS = 40
"""Letters, digits, and four for all other signs together."""


class Names:
    """Names with their keys (`tokens.name_key`): `spelled` maps name → key."""

    def __init__(self, spelled: Mapping[str, str]) -> None:
        self._names: dict[str, list[str]] = {}
        for name, key in spelled.items():
            self._names.setdefault(key, []).append(name)
        self._keys = sorted(filter(None, self._names), key=lambda key: (len(key), key))

    def __len__(self) -> int:
        """Number of distinct keys."""
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def nearest(self, key: str, most: int) -> list[str]:
        """Names whose keys are fewest edits from `key`, at most `most`; [] when none is.

        An edit inserts, deletes or replaces a letter or swaps two neighbours. Names of equal
        distance come with those first that begin as `key` does, then by the alphabet.
        """
        if not key or most < 1:
            return []
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        alike = self._alike(key, most)
        found = process.extract(key, alike, scorer=OSA.distance, score_cutoff=most, limit=None)
        best = [one for one, distance, _ in found if distance == found[0][1]]
        best.sort(key=lambda one: (one[0] != key[0], one))
        return [name for one in best for name in sorted(self._names[one])]

    def _alike(self, key: str, most: int) -> list[str]:
        """Keys of about this length whose letters differ by no more than `most` edits could."""
        import numpy as np

        first, last = np.searchsorted(self._lengths, [len(key) - most, len(key) + most + 1])
        if first == last:
            return []
        letters = _letters([key])[0].astype(np.int16)
        apart = np.abs(self._counts[first:last] - letters).sum(axis=1)
        # A replaced letter differs twice: one is missing, another too many.
        return [self._keys[first + place] for place in np.flatnonzero(apart <= 2 * most)]

    @cached_property
    def _lengths(self) -> np.ndarray:
        import numpy as np

        return np.fromiter(map(len, self._keys), np.int32, len(self._keys))

    @cached_property
    def _counts(self) -> np.ndarray:
        return _letters(self._keys)


def _letters(keys: list[str]) -> np.ndarray:
    """How often each letter stands in each of `keys`: (n, BUCKETS), at most 255."""
    import numpy as np

    codes = np.frombuffer("".join(keys).encode("utf-32-le", "replace"), np.uint32)
    bucket = np.where(
        (codes >= 97) & (codes < 123),
        codes - 97,
        np.where((codes >= 48) & (codes < 58), codes - 48 + 26, 36 + codes % 4),
    ).astype(np.int64)
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    place = np.repeat(np.arange(len(keys), dtype=np.int64) * BUCKETS, lengths) + bucket
    counts = np.bincount(place, minlength=len(keys) * BUCKETS)
    return np.minimum(counts, 255).astype(np.uint8).reshape(len(keys), BUCKETS)
