"""Batches of rows for training: which rows stand together, and what is left out of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from research.training.features import BAGS, Features
from research.training.model import DOCUMENT, QUERY, TokenBags

OPENINGS = (
    "how does",
    "how do",
    "how is",
    "how are",
    "how to",
    "how can i",
    "where is",
    "where are",
    "where does",
    "where do we",
    "what does",
    "what is",
    "what happens when",
    "which function",
    "which code",
    "which class",
    "why does",
    "when does",
    "find the code that",
    "show me where",
)
"""How people begin a question about code; a doc comment never begins so."""


BORROWED = 0.6
"""Share of a name's or a path's words that go into a query."""
PLACE_WORDS = 3
"""Last words of a path that may: the file's name and the end of its folder's."""


@dataclass(frozen=True, slots=True)
class Mixing:
    """How batches are put together, and what is dropped from a row, as shares of the rows."""

    batch: int = 2_048
    group: int = 512
    """Rows of one repository that stand side by side: the negatives that are hard to tell."""
    path_dropped: float = 0.3
    name_dropped: float = 0.4
    doc_dropped: float = 0.4
    token_dropped: float = 0.2
    """Share of a query's tokens."""
    body_dropped: float = 0.4
    """Share of a body's tokens: without, rows are learnt by heart in the second epoch."""
    opened: float = 0.35
    """Share of queries that get a question's opening."""
    named: float = 0.25
    """Share of queries that get words of the definition's owner and name: people ask with the
    names that they know, doc comments leave them out."""
    placed: float = 0.15
    """Share of queries that get words of the path's end, likewise."""


def order_rows(
    rows: NDArray[np.int64], repository: NDArray[np.int32], group: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """`rows` in random order, `group` of one repository side by side."""
    shuffled = rng.permutation(rows)
    shuffled = shuffled[np.argsort(repository[shuffled], kind="stable")]
    owners = repository[shuffled]
    first = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    sizes = np.diff(np.r_[first, len(owners)])
    place = np.arange(len(owners)) - np.repeat(first, sizes)
    groups = np.cumsum(place % group == 0) - 1
    if not len(groups):
        return shuffled
    ranks = rng.permutation(groups[-1] + 1)
    return shuffled[np.argsort(ranks[groups], kind="stable")]


class Batches:
    """All batches of an epoch. The same seed, epoch and step give the same batch."""

    def __init__(
        self, features: Features, rows: NDArray[np.int64], mixing: Mixing, seed: int
    ) -> None:
        self.features = features
        self.rows = rows
        self.mixing = mixing
        self.seed = seed
        self.openings = opening_ids(features.pieces)

    @property
    def steps(self) -> int:
        """Batches in one epoch; rows that fill none are left for another epoch's order."""
        return max(1, len(self.rows) // self.mixing.batch)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[TokenBags]:
        """The batches of `epoch` from step `start` on."""
        rng = np.random.default_rng((self.seed, epoch))
        owners = self.features.repository
        mixing = self.mixing
        ordered = order_rows(self.rows, owners, mixing.group, rng)
        for step in range(start, self.steps):
            part = ordered[step * mixing.batch : (step + 1) * mixing.batch]
            yield self.batch(part, np.random.default_rng((self.seed, epoch, step)))

    def batch(self, rows: NDArray[np.int64], rng: np.random.Generator) -> TokenBags:
        """The bags of `rows`, with everything left out that chance says."""
        shares = (
            self.mixing.path_dropped,
            self.mixing.name_dropped,
            0.0,
            self.mixing.doc_dropped,
            0.0,
        )
        dropped = {
            bag: rng.random(len(rows)) < share for bag, share in zip(BAGS, shares, strict=True)
        }
        added = self._openings(len(rows), rng)
        self._borrow(added, "name", self.mixing.named, rows, rng)
        self._borrow(added, "path", self.mixing.placed, rows, rng)
        return gather(
            self.features,
            rows,
            dropped=dropped,
            kept={
                "query": 1.0 - self.mixing.token_dropped,
                "body": 1.0 - self.mixing.body_dropped,
            },
            added=added,
            rng=rng,
        )

    def _openings(self, rows: int, rng: np.random.Generator) -> list[Sequence[int]]:
        if not self.openings:
            return [()] * rows
        chosen = rng.integers(len(self.openings), size=rows)
        opened = rng.random(rows) < self.mixing.opened
        return [self.openings[c] if o else () for c, o in zip(chosen, opened, strict=True)]

    def _borrow(
        self,
        added: list[Sequence[int]],
        bag: str,
        share: float,
        rows: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        """Give the queries of a `share` of `rows` some words of another field."""
        starts, ids, _ = self.features.bags[bag].take(rows)
        for row in np.flatnonzero(rng.random(len(rows)) < share):
            words = ids[starts[row] : starts[row + 1]]
            if bag == "path":
                words = words[-PLACE_WORDS:]
            chosen = words[rng.random(len(words)) < BORROWED]
            added[row] = (*added[row], *chosen.tolist())


def opening_ids(pieces: Sequence[str]) -> list[tuple[int, ...]]:
    """The openings as token ids; an opening with a word that is no piece is left out."""
    ids = {piece: number for number, piece in enumerate(pieces)}
    found = [[ids.get(word, -1) for word in opening.split()] for opening in OPENINGS]
    return [tuple(opening) for opening in found if -1 not in opening]


def gather(
    features: Features,
    rows: NDArray[np.int64],
    *,
    bags: Sequence[str] = BAGS,
    dropped: Mapping[str, NDArray[np.bool_]] | None = None,
    kept: Mapping[str, float] | None = None,
    added: Sequence[Sequence[int]] = (),
    rng: np.random.Generator | None = None,
) -> TokenBags:
    """The bags of `rows`, field after field.

    `dropped`: rows whose bag is left empty; `kept`: share of a bag's tokens that stay;
    `added`: tokens that each row's query gets besides its own.
    """
    ids, sides, counts, lengths = [], [], [], []
    for bag in bags:
        starts, bag_ids, bag_counts = features.bags[bag].take(rows)
        length = np.diff(starts)
        stays = np.ones(len(bag_ids), bool)
        if dropped is not None and dropped[bag].any():
            stays &= np.repeat(~dropped[bag], length)
        if kept is not None and rng is not None and kept.get(bag, 1.0) < 1.0:
            stays &= rng.random(len(bag_ids)) < kept[bag]
        if not stays.all():
            owner = np.repeat(np.arange(len(rows)), length)[stays]
            length = np.bincount(owner, minlength=len(rows))
            bag_ids, bag_counts = bag_ids[stays], bag_counts[stays]
        if bag == "query" and added:
            bag_ids, bag_counts, length = _with(bag_ids, bag_counts, length, added)
        ids.append(bag_ids)
        counts.append(bag_counts)
        lengths.append(length)
        sides.append(np.full(len(bag_ids), QUERY if bag == "query" else DOCUMENT, np.int32))
    all_lengths = np.concatenate(lengths).astype(np.int64)
    starts = np.cumsum(all_lengths) - all_lengths
    return TokenBags(
        ids=torch.from_numpy(np.concatenate(ids).astype(np.int32)),
        sides=torch.from_numpy(np.concatenate(sides)),
        coefficients=torch.from_numpy(1.0 + np.log(np.concatenate(counts).astype(np.float32))),
        starts=torch.from_numpy(starts.astype(np.int32)),
        lengths=torch.from_numpy(all_lengths),
        rows=len(rows),
    )


def _with(
    ids: NDArray[np.uint16],
    counts: NDArray[np.uint16],
    length: NDArray[np.int64],
    added: Sequence[Sequence[int]],
) -> tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.int64]]:
    """Put `added` before each row's own tokens. A token may then stand twice, once counted."""
    lengths = np.array([len(tokens) for tokens in added])
    where = np.repeat(np.cumsum(length) - length, lengths)
    new = np.array([token for tokens in added for token in tokens], np.uint16)
    return (
        np.insert(ids, where, new),
        np.insert(counts, where, np.ones(len(new), np.uint16)),
        length + lengths,
    )
