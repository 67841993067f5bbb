"""Which of a hundred thousand names begin like, or hold, what was typed so far.

Names are compared folded: small letters and digits, without blanks, underscores and other
signs. They stand in columns of Arrow, which looks through all of them in a few milliseconds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

EXACT, PREFIX, WORD, INSIDE, MISSED = range(5)
"""How well a name fits, the best first: it is what was typed, begins so, one of its words or
their first letters do, it holds it anywhere, it does not."""

UNLIKE = 3

MAX_NAME = 200
"""Characters of a name that are looked through; generated names can have thousands."""

_WORD = re.compile(r"U+(?=UL)|U?L+|U+|DD*L*|O")
"""A word in the classes of a name's characters: upper, lower, digit, of a script without case."""


def fold(text: str) -> str:
    """`text` as names are compared: letters and digits only, small."""
    normal = unicodedata.normalize("NFC", text)
    return "".join(_small(sign) for sign in normal if sign.isalnum())


def parts(text: str) -> list[str]:
    """The words of a name or of what was typed: `getUrl`, `get_url`, `get url`: `get`, `url`."""
    normal = unicodedata.normalize("NFC", text)
    classes = normal.translate(_CLASSES)
    return [fold(normal[found.start() : found.end()]) for found in _WORD.finditer(classes)]


def apart(name: str, typed: str) -> int:
    """How far `name` is from what was typed, sign by sign: 0 to UNLIKE, less is nearer.

    Capitals count where some were typed.
    """
    low, small = name.lower(), typed.lower()
    if low.startswith(small):
        return 0 if typed == small or name.startswith(typed) else 1
    return 2 if small in low else UNLIKE


class NameMatcher:
    """A list of names, and how well each of its rows fits what is typed."""

    def __init__(self, names: Sequence[str]) -> None:
        import numpy as np
        import pyarrow as pa

        known: dict[str, int] = {}
        # Most repositories have each name twice or more: it is looked at once.
        self._row_names = np.array([known.setdefault(name, len(known)) for name in names], np.int32)
        words = [parts(name[:MAX_NAME]) for name in known]
        self._folded = pa.array(["".join(some) for some in words], pa.string())
        self._words = pa.array(
            ["".join(f" {word}" for word in some) for some in words], pa.string()
        )
        """Each word behind a blank."""
        self._initials = pa.array(
            ["".join(word[0] for word in some) for some in words], pa.string()
        )
        self._name_lengths = np.array([sum(map(len, some)) for some in words], np.int16)
        self.lengths: np.ndarray = self._name_lengths[self._row_names]
        """Letters and digits of each row's name."""

    def __len__(self) -> int:
        return len(self.lengths)

    def fits(self, typed: str) -> np.ndarray:
        """How well the name of each row fits `typed`, EXACT to MISSED: (n,) uint8.

        All are EXACT to nothing at all, and none to signs alone.
        """
        import numpy as np
        import pyarrow.compute as pc

        key, words = fold(typed), parts(typed)
        if not key:
            return np.full(len(self), MISSED if typed.strip() else EXACT, np.uint8)
        fits = np.full(len(self._folded), MISSED, np.uint8)
        if len(key) == 1:  # everything holds a letter
            rows = _true(pc.match_substring(self._words, f" {key}"))
            fits[rows] = WORD
        else:
            rows = _true(pc.match_substring(self._folded, key))
            fits[rows] = INSIDE
            fits[self._with_words([key], rows)] = WORD
            fits[_true(pc.starts_with(self._initials, key))] = WORD
        if len(words) > 1:
            fits[self._with_words(words, self._holding(words))] = WORD
        rows = rows[_true(pc.starts_with(self._folded.take(rows), key))]
        fits[rows] = np.where(self._name_lengths[rows] == len(key), EXACT, PREFIX)
        row_fits: np.ndarray = fits[self._row_names]
        return row_fits

    def _with_words(self, words: Iterable[str], rows: np.ndarray) -> np.ndarray:
        """Those of `rows` in which each of `words` begins a word, in their order.

        It may reach into the words behind it: `geturl` begins one of `do_get_url`.
        """
        import pyarrow.compute as pc

        pattern = ".*".join(" " + " ?".join(map(re.escape, word)) for word in words)
        kept: np.ndarray = rows[_true(pc.match_substring_regex(self._words.take(rows), pattern))]
        return kept

    def _holding(self, words: Sequence[str]) -> np.ndarray:
        """Rows that hold all of `words`: few, so that few are looked at closely."""
        import pyarrow.compute as pc

        rows = _true(pc.match_substring(self._folded, words[0]))
        for word in words[1:]:
            rows = rows[_true(pc.match_substring(self._folded.take(rows), word))]
        return rows


def _true(mask: pa.BooleanArray) -> np.ndarray:
    """Rows in which a mask is true."""
    import numpy as np

    rows: np.ndarray = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
    return rows


def _small(sign: str) -> str:
    """The small form of a letter, itself where that is longer (`İ`)."""
    low = sign.lower()
    return low if len(low) == 1 else sign


class _Classes(dict[int, str]):
    """Code point → class of the character, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        if sign.isupper():
            return "U"
        if sign.islower():
            return "L"
        if sign.isdigit():
            return "D"
        return "O" if sign.isalnum() else " "


_CLASSES = _Classes()
_CLASSES.update({code: _CLASSES[code] for code in range(128)})
