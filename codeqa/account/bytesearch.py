"""Looking for many byte strings at once in files of any size.

Every place of a file is looked at as a number of eight bytes, whose hash says in a table of truth
values whether a needle may begin there: so the time depends on the bytes, hardly on the needles.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

LEAST_BYTES = 8
"""Shorter needles cannot be told from other bytes."""
LONGEST_BYTES = 256
"""Longer needles are cut: their beginnings are as telling."""
BLOCK_BYTES = 1 << 20
_SPREAD = 0x9E3779B97F4A7C15
"""Odd, near 2^64 divided by the golden ratio: products spread over the upper bits."""
_LEAST_BITS, _MOST_BITS = 16, 26
"""Size of the table, as a power of two."""
_ROOM = 6
"""Bits of the table beyond one place per needle: one place in 64 is taken at most."""


@dataclass(slots=True)
class Searched:
    """What was looked through, and which needles are where."""

    files: int = 0
    size: int = 0
    """In bytes."""
    found: dict[bytes, set[Path]] = field(default_factory=dict)
    """Needle → files that hold it."""
    unread: list[Path] = field(default_factory=list)
    """Files that could not be read, or for which there was no time."""


class Needles:
    """Byte strings of at least LEAST_BYTES each; shorter ones are left out."""

    def __init__(self, needles: Iterable[bytes]) -> None:
        import numpy as np

        self.all = {needle[:LONGEST_BYTES] for needle in needles if len(needle) >= LEAST_BYTES}
        self.overlap = max(map(len, self.all), default=1) - 1
        self._by_head: dict[int, list[bytes]] = {}
        for needle in self.all:
            head = int.from_bytes(needle[:LEAST_BYTES], "little")
            self._by_head.setdefault(head, []).append(needle)
        bits = min(_MOST_BITS, max(_LEAST_BITS, len(self._by_head).bit_length() + _ROOM))
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, dtype=bool)
        heads = np.fromiter(self._by_head, dtype=np.uint64, count=len(self._by_head))
        self._table[(heads * np.uint64(_SPREAD)) >> self._shift] = True

    def in_block(self, block: bytes) -> set[bytes]:
        """The needles that `block` holds."""
        import numpy as np

        found: set[bytes] = set()
        if not self.all:
            return found
        for start in range(min(LEAST_BYTES, len(block) - LEAST_BYTES + 1)):
            count = (len(block) - start) // LEAST_BYTES
            heads = np.frombuffer(block, "<u8", count, start)
            taken = self._table[(heads * np.uint64(_SPREAD)) >> self._shift]
            for place in np.flatnonzero(taken).tolist():
                for needle in self._by_head.get(int(heads[place]), ()):
                    if block.startswith(needle, start + LEAST_BYTES * place):
                        found.add(needle)
        return found


def search_files(files: Iterable[Path], needles: Needles, searched: Searched, until: float) -> None:
    """Look through `files` in turn, block by block, and note in `searched` what is found.

    What is not reached before `until` (`time.monotonic`) is noted as unread; files that are
    gone by now hold nothing.
    """
    for path in files:
        try:
            with path.open("rb") as file:
                searched.files += 1
                rest = b""
                while block := file.read(BLOCK_BYTES):
                    if time.monotonic() > until:
                        searched.unread.append(path)
                        break
                    searched.size += len(block)
                    block = rest + block
                    for needle in needles.in_block(block):
                        searched.found.setdefault(needle, set()).add(path)
                    rest = block[-needles.overlap :] if needles.overlap else b""
        except FileNotFoundError:
            continue
        except OSError:
            searched.unread.append(path)
