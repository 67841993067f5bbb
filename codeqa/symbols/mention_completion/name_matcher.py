"""Which of a hundred thousand names begin like, or hold, what was typed so far.

All names stand behind one another in one array of letters, folded: small, without blanks,
underscores and other signs. Beside it stands where each pair of letters occurs: of what is typed
the rarest pair leaves a few thousand places out of two million to compare, so that no tree of
prefixes is needed, and every part of a name is found alike.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

EXACT, PREFIX, WORD, INSIDE, MISSED = range(5)
"""How well a name fits, the best first: it is what was typed, begins so, one of its words or
their first letters do, it holds it anywhere, it does not."""

UNLIKE = 3

LONGEST = 200
"""Letters of a name that are looked through; generated names can have thousands."""


def fold(text: str) -> str:
    """`text` as names are compared: letters and digits only, small."""
    normal = unicodedata.normalize("NFC", text)
    return "".join(_small(sign) for sign in normal if sign.isalnum())


def parts(text: str) -> list[str]:
    """The words of what was typed: `getUrl`, `get_url` and `get url` are `get` and `url`."""
    normal = unicodedata.normalize("NFC", text)
    _, _, begins = _signs(_codes(normal))
    bounds = [*begins.nonzero()[0].tolist(), len(normal)]
    return [fold(normal[a:b]) for a, b in pairwise(bounds)]


def apart(name: str, typed: str) -> int:
    """How far `name` is from what was typed, sign by sign: 0 to UNLIKE, less is nearer.

    Capitals count where some were typed.
    """
    low, small = name.lower(), typed.lower()
    if low.startswith(small):
        return 0 if typed == small or name.startswith(typed) else 1
    return 2 if small in low else UNLIKE


class NameMatcher:
    """Names, and how well each fits what is typed; row numbers are places in the list given."""

    def __init__(self, names: Sequence[str]) -> None:
        import numpy as np

        plain = [
            name[:LONGEST] if name.isascii() else unicodedata.normalize("NFC", name)[:LONGEST]
            for name in names
        ]
        plain = [name.replace("\n", " ") if "\n" in name else name for name in plain]
        written = _codes("\n".join(["", *plain, ""]))
        kept, small, begins = _signs(written)
        ends = np.flatnonzero(written == ord("\n"))
        before = np.concatenate(([0], np.cumsum(kept)))
        bounds = before[ends]  # of each name the number of letters before it, and of all
        self.lengths: np.ndarray = np.diff(bounds)
        """Letters and digits of each name."""
        # A sign that is no letter stands between names, so that none is found across two.
        places = np.arange(len(names)) + bounds[:-1] + 1
        self._first = places
        rows = np.repeat(np.arange(len(names)), self.lengths)
        at = np.arange(len(rows)) + rows + 1
        largest = int(small.max()) if small.size else 0
        self._letters = np.zeros(len(rows) + len(names) + 1, np.min_scalar_type(largest))
        self._letters[at] = small[kept]
        self._begins = np.zeros(len(self._letters), np.bool_)
        self._begins[at] = begins[kept]
        self._begins[self._first[self.lengths > 0]] = True
        self._words = np.flatnonzero(self._begins).astype(np.int32)
        self._initials = self._letters[self._words]
        counted = np.concatenate(([0], np.cumsum(self._begins)))
        self._initial = counted[self._first].astype(np.int32)
        self._initial_counts = counted[self._first + self.lengths] - self._initial
        self._first = self._first.astype(np.int32)
        self.lengths = self.lengths.astype(np.int16)
        # Where each pair of letters stands: most names are never looked at.
        pairs = _pairs(self._letters)
        self._at = np.argsort(pairs, kind="stable").astype(np.int32)
        self._pairs, starts = np.unique(pairs[self._at], return_index=True)
        self._starts = np.append(starts, len(pairs)).astype(np.int32)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        return sum(value.nbytes for value in vars(self).values())

    def fits(self, typed: str) -> np.ndarray:
        """How well each name fits `typed`, EXACT to MISSED: (n,) uint8.

        All are EXACT to nothing at all, and none to signs alone.
        """
        import numpy as np

        key = fold(typed)
        found = np.full(len(self), MISSED if typed.strip() else EXACT, np.uint8)
        letters = self._encoded(key)
        if letters is None or not key:
            return found
        places = self._places(letters, words_only=len(key) == 1)
        rows, begin = self._rows(places), self._begins[places]
        found[rows[~begin]] = INSIDE
        found[rows[begin]] = WORD
        found[self._by_words(typed)] = WORD
        found[self._by_initials(letters)] = WORD
        ahead = rows[places == self._first[rows]]
        found[ahead] = np.where(self.lengths[ahead] == len(key), EXACT, PREFIX)
        return found

    def _by_words(self, typed: str) -> np.ndarray:
        """Rows whose words begin as those of `typed`, in their order: `getUrl`, `get_the_url`."""
        import numpy as np

        words = parts(typed)
        if len(words) < 2:
            return np.zeros(0, np.int64)
        last = np.full(len(self), -1, np.int64)
        for word in words:
            encoded = self._encoded(word)
            if encoded is None or not word:
                return np.zeros(0, np.int64)
            places = self._places(encoded, words_only=True)
            rows = self._rows(places)
            later = (places > last[rows]) & (last[rows] > -2)
            rows, at = np.unique(rows[later], return_index=True)
            places = places[later][at]
            last[:] = -2  # what lacks this word is out
            last[rows] = places + len(word) - 1
        return np.flatnonzero(last > -2)

    def _by_initials(self, letters: np.ndarray) -> np.ndarray:
        """Rows whose words' first letters these are, or begin with: `gtu` for `get_the_url`."""
        import numpy as np

        if len(letters) < 2:
            return np.zeros(0, np.int64)
        rows = np.flatnonzero(self._initial_counts >= len(letters))
        for step, letter in enumerate(letters):
            rows = rows[self._initials[self._initial[rows] + step] == letter]
        return rows

    def _places(self, letters: np.ndarray, *, words_only: bool) -> np.ndarray:
        """Where `letters` stand, in order; with `words_only` where a word begins with them."""
        places: np.ndarray
        if len(letters) == 1:
            places = self._words[self._initials == letters[0]]
            return places
        spans = [self._span(pair) for pair in _pairs(letters)]
        step = min(range(len(spans)), key=lambda one: spans[one][1] - spans[one][0])
        places = self._at[slice(*spans[step])] - step
        places = places[(places >= 0) & (places <= len(self._letters) - len(letters))]
        for step, letter in enumerate(letters):
            places = places[self._letters[places + step] == letter]
        return places[self._begins[places]] if words_only else places

    def _span(self, pair: np.integer[Any]) -> tuple[int, int]:
        """Where in `_at` the places of a pair of letters stand."""
        import numpy as np

        found = int(np.searchsorted(self._pairs, pair))
        if found == len(self._pairs) or self._pairs[found] != pair:
            return 0, 0
        return int(self._starts[found]), int(self._starts[found + 1])

    def _rows(self, places: np.ndarray) -> np.ndarray:
        import numpy as np

        return np.searchsorted(self._first, places, side="right") - 1

    def _encoded(self, key: str) -> np.ndarray | None:
        """`key` as letters of the array; None when it holds one that no name has."""
        import numpy as np

        codes = _codes(key)
        if codes.size and int(codes.max()) > np.iinfo(self._letters.dtype).max:
            return None
        return codes.astype(self._letters.dtype)


def _pairs(letters: np.ndarray) -> np.ndarray:
    """Each letter with the next one as a number: another pair may have the same one."""
    import numpy as np

    pairs: np.ndarray
    if letters.dtype == np.uint8:  # numpy sorts numbers of 16 bits ten times as fast
        pairs = letters[:-1].astype(np.uint16) * np.uint16(256) + letters[1:]
    else:
        wide = letters.astype(np.uint32) % np.uint32(65536)
        pairs = wide[:-1] * np.uint32(65536) + wide[1:]
    return pairs


def _codes(text: str) -> np.ndarray:
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)


def _small(sign: str) -> str:
    """The small form of a letter, itself where that is longer (`İ`)."""
    low = sign.lower()
    return low if len(low) == 1 else sign


def _signs(written: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each sign: whether it is a letter or digit, its small form, whether a word begins."""
    import numpy as np

    small = written.copy()
    upper = (written >= 65) & (written <= 90)
    small[upper] += 32
    digit = (written >= 48) & (written <= 57)
    lower = (written >= 97) & (written <= 122)
    other = np.zeros(len(written), np.bool_)  # letters of scripts without small and capital ones
    foreign = np.flatnonzero(written > 127)
    codes, back = np.unique(written[foreign], return_inverse=True)
    signs = [chr(code) for code in codes]
    for wanted, target in (
        ([sign.isupper() for sign in signs], upper),
        ([sign.islower() for sign in signs], lower),
        ([sign.isdigit() for sign in signs], digit),
        ([sign.isalnum() and not sign.isdigit() and sign.lower() == sign.upper() for sign in signs],
         other),
    ):  # fmt: skip
        target[foreign] = np.array(wanted, np.bool_)[back]
    small[foreign] = np.array([ord(_small(sign)) for sign in signs], np.uint32)[back]
    kept = upper | lower | digit | other
    last_upper, last_lower, last_digit, last_kept = (
        np.concatenate(([False], mask[:-1])) for mask in (upper, lower, digit, kept)
    )
    next_lower = np.concatenate((lower[1:], [False]))
    begins = ~last_kept | other
    begins |= upper & (last_lower | last_digit | (last_upper & next_lower))
    begins |= digit & ~last_digit
    return kept, small, begins & kept
