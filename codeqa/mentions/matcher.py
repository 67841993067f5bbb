"""Which of a hundred thousand names begin like, or hold, what was typed so far.

Names are compared folded: small letters and digits, without blanks, underscores and other
signs. They stand in columns of Arrow, which looks through all of them in a few milliseconds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from codeqa.text.tokens import split_identifier

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

EXACT, PREFIX, WORD, INSIDE, MISSED = range(5)
"""How well a name fits, the best first: it is what was typed, begins so, one of its words or
their first letters do, it holds it anywhere, it does not."""
UNLIKE = 3
MAX_NAME = 200
"""Characters of a name that are looked through; generated names can have thousands."""
POOL = 200
"""Best rows that are compared with what was typed sign by sign."""

Rank = tuple[Any, ...]
"""How well a place fits and what it is for, then what decides between equals: less is better."""


def fold(text: str) -> str:
    """`text` as names are compared: letters and digits only, small."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", text)).lower()


def parts(text: str) -> list[str]:
    """The words of a name or of what was typed: `getUrl`, `get_url`, `get url`: `get`, `url`.

    In a script without small letters every sign is a word.
    """
    words = split_identifier(unicodedata.normalize("NFC", text))
    return [
        part
        for word in words
        for part in (word if not word.isascii() and word.upper() == word else [word])
    ]


def apart(name: str, typed: str) -> int:
    """How far `name` is from what was typed, sign by sign: 0 to UNLIKE, less is nearer.

    Capitals count where some were typed.
    """
    low, small = name.lower(), typed.lower()
    if low.startswith(small):
        return 0 if typed == small or name.startswith(typed) else 1
    return 2 if small in low else UNLIKE


class NameMatcher:
    """The names of all files, folders or definitions: a row for each, and how well it fits."""

    def __init__(
        self, names: list[str], around: Sequence[str] = (), roles: Sequence[str] = ()
    ) -> None:
        """`around` is the whole path of a file or folder, of a definition its module and owners
        with `.` before each; `roles` say what each is for."""
        import numpy as np
        import pyarrow as pa

        self.names = names
        ranks = [_role_rank(role) for role in roles] or [0] * len(names)
        self.roles: np.ndarray = np.array(ranks, np.int64)
        self._around = pa.array([text.lower() for text in around], pa.string())
        known: dict[str, int] = {}
        # Most repositories have each name twice or more: it is looked at once.
        self._row_names = np.array([known.setdefault(name, len(known)) for name in names], np.int32)
        folded = [fold(name[:MAX_NAME]) for name in known]
        words = [parts(name[:MAX_NAME]) for name in known]
        self._folded = pa.array(folded, pa.string())
        self._words = pa.array(["".join(f" {one}" for one in some) for some in words], pa.string())
        """Each word behind a blank."""
        self._initials = pa.array(["".join(one[0] for one in some) for some in words], pa.string())
        stems = [name.rpartition(".")[0] or name for name in known]
        self._stem_lengths = np.array([len(fold(stem[:MAX_NAME])) for stem in stems], np.int64)
        lengths = np.array(list(map(len, folded)), np.int64)
        self._lengths: np.ndarray = lengths[self._row_names]

    def best(self, typed: str, owner: str = "", name: str | None = None) -> list[Rank]:
        """Those that fit best, best first: fit, role, how they are apart, length and row.

        With `owner` and `name` those called `name` whose owners are; of several words the last
        may be the name, and the others stand around it.
        """
        import numpy as np
        import pyarrow.compute as pc

        tail = typed if name is None else name
        fits = self.fits(tail)
        *before, last = typed.split()
        if owner.strip():
            ending = re.sub(r"::|#|->", ".", owner).strip(". ").lower()
            fits[~_mask(pc.ends_with(self._around, f".{ending}"))] = MISSED
        elif before:
            tail, by_last = last, self.fits(last)
            for word in before:
                by_last[~_mask(pc.match_substring(self._around, word.lower()))] = MISSED
            fits = np.minimum(fits, by_last)
        rows = np.flatnonzero(fits < MISSED)
        lengths = np.minimum(self._lengths[rows], 255)
        order = (fits[rows].astype(np.int64) * 4 + self.roles[rows]) * 256 + lengths
        kept = np.argsort(order, kind="stable")[:POOL]
        columns = (fits[rows], self.roles[rows], lengths, rows)
        return sorted(
            (fit, role, apart(self.names[row], tail), length, row)
            for fit, role, length, row in zip(*(c[kept].tolist() for c in columns), strict=True)
        )

    def fits(self, typed: str) -> np.ndarray:
        """How well the name of each row fits `typed`, EXACT to MISSED: (n,) uint8.

        All are EXACT to nothing at all, and none to signs alone.
        """
        import numpy as np
        import pyarrow.compute as pc

        key, words = fold(typed), parts(typed)
        if not key:
            return np.full(len(self._row_names), MISSED if typed.strip() else EXACT, np.uint8)
        fits = np.full(len(self._folded), MISSED, np.uint8)
        if len(key) > 1:  # everything holds a letter
            holding = np.flatnonzero(_mask(pc.match_substring(self._folded, key)))
            fits[holding] = INSIDE
            fits[self._with_words([key], holding)] = WORD
            fits[_mask(pc.starts_with(self._initials, key))] = WORD
        else:
            fits[_mask(pc.match_substring(self._words, f" {key}"))] = WORD
        if len(words) > 1:
            longest = max(words, key=len)
            holding = np.flatnonzero(_mask(pc.match_substring(self._folded, longest)))
            fits[self._with_words(words, holding)] = WORD
        fits[_mask(pc.starts_with(self._folded, key))] = PREFIX
        # `app` is the whole name of `app.py`.
        whole = _mask(pc.equal(self._folded, key)) | (self._stem_lengths == len(key))
        fits[(fits == PREFIX) & whole] = EXACT
        row_fits: np.ndarray = fits[self._row_names]
        return row_fits

    def _with_words(self, words: Iterable[str], rows: np.ndarray) -> np.ndarray:
        """Those of `rows` in which each of `words` begins a word, in their order.

        It may reach into the words behind it: `geturl` begins one of `do_get_url`.
        """
        import pyarrow.compute as pc

        pattern = ".*".join(" " + " ?".join(map(re.escape, word)) for word in words)
        kept: np.ndarray = rows[_mask(pc.match_substring_regex(self._words.take(rows), pattern))]
        return kept


def _mask(found: pa.BooleanArray) -> np.ndarray:
    mask: np.ndarray = found.to_numpy(zero_copy_only=False)
    return mask


def _role_rank(role: str) -> int:
    """Source before what else is written by hand, that before what is not."""
    return 0 if role == "source" else 2 if role in ("vendored", "generated") else 1
