"""How well a table finds, among all definitions of a repository, the one that was described."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from research.training.batches import gather
from research.training.features import FIELDS, Features
from research.training.model import TableModel, unit

CANDIDATES = ("doc", "name", "class")
"""Rows that are definitions. The others show a definition again, under another question."""
QUERIES = ("doc", "class")
"""Rows whose question a person wrote about exactly this definition."""
PER_REPOSITORY = 1_000
"""Questions asked of one repository at most, so that none of them decides the figure."""
ROWS_AT_ONCE = 4_096


@dataclass(frozen=True, slots=True)
class Ranks:
    """Reciprocal rank of every question; its repository, language and source, as numbers."""

    with_name: NDArray[np.float64]
    without_name: NDArray[np.float64]
    repository: NDArray[np.int64]
    language: NDArray[np.int64]
    source: NDArray[np.int64]

    @property
    def figures(self) -> dict[str, float]:
        """The two means that trainings are compared by."""
        return {
            "mrr": round(float(self.with_name.mean()), 4),
            "mrr_without_name": round(float(self.without_name.mean()), 4),
            "questions": len(self.with_name),
        }


def held_out_ranks(
    sides: TableSides,
    features: Features,
    *,
    part: str = "held_out",
    queries: Sequence[str] = QUERIES,
    seed: int = 0,
) -> Ranks:
    """Ask the questions of `part`, each of its own repository."""
    candidates = features.where(part, dict.fromkeys((*CANDIDATES, *queries)))
    if not len(candidates):
        raise ValueError(f"{features.folder} has no rows of the part {part!r}")
    asked = set(features.where(part, queries).tolist())
    found: list[tuple[list[float], list[float], NDArray[np.int64]]] = []
    rng = np.random.default_rng(seed)
    for rows in _by_repository(candidates, features.repository):
        questions = np.array([row for row in rows.tolist() if row in asked], np.int64)
        if len(questions) > PER_REPOSITORY:
            questions = np.sort(rng.choice(questions, PER_REPOSITORY, replace=False))
        if not len(questions):
            continue
        query = sides.queries(questions)
        own = torch.from_numpy(np.searchsorted(rows, questions)).to(query.device)
        whole, nameless = (
            _reciprocal_ranks(query, sides.documents(rows, fields), own)
            for fields in (FIELDS, [field for field in FIELDS if field != "name"])
        )
        found.append((whole, nameless, questions))
    rows = np.concatenate([questions for _, _, questions in found])
    return Ranks(
        with_name=np.array([value for whole, _, _ in found for value in whole]),
        without_name=np.array([value for _, nameless, _ in found for value in nameless]),
        repository=features.repository[rows].astype(np.int64),
        language=features.language[rows].astype(np.int64),
        source=features.source[rows].astype(np.int64),
    )


class TableSides:
    """The vectors that a table gives."""

    def __init__(self, model: TableModel, features: Features) -> None:
        self._model = model
        self._features = features

    def queries(self, rows: NDArray[np.int64]) -> torch.Tensor:
        """(rows, dimension)"""
        return torch.cat([unit(self._bags(part, ("query",))[0]) for part in _parts(rows)])

    def documents(self, rows: NDArray[np.int64], fields: Sequence[str] = FIELDS) -> torch.Tensor:
        """(rows, dimension), of the given fields only."""
        found = []
        for part in _parts(rows):
            bags = self._bags(part, fields)
            whole = torch.zeros(len(FIELDS), len(part), bags.shape[2], device=bags.device)
            for field, vectors in zip(fields, bags, strict=True):
                whole[FIELDS.index(field)] = vectors
            with torch.no_grad():
                found.append(self._model.document(whole))
        return torch.cat(found)

    def _bags(self, rows: NDArray[np.int64], bags: Sequence[str]) -> torch.Tensor:
        batch = gather(self._features, rows, bags=bags).to(self._model.table.device)
        with torch.no_grad():
            return self._model.vectors(batch).view(len(bags), len(rows), -1)


def interval(
    differences: NDArray[np.float64],
    repository: NDArray[np.int64],
    *,
    repetitions: int = 2_000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Mean of paired differences and its 95 % interval.

    Drawn by repository, not by question: questions of one repository share its style, and
    an interval that takes them for independent is too narrow.
    """
    owners, places = np.unique(repository, return_inverse=True)
    sums = np.bincount(places, weights=differences)
    sizes = np.bincount(places)
    drawn = np.random.default_rng(seed).integers(len(owners), size=(repetitions, len(owners)))
    means = sums[drawn].sum(1) / sizes[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(differences.mean()), float(low), float(high)


def _reciprocal_ranks(
    query: torch.Tensor, documents: torch.Tensor, own: torch.Tensor
) -> list[float]:
    """1 / rank of each question's own document; documents of equal score share their ranks."""
    found: list[float] = []
    for start in range(0, len(query), ROWS_AT_ONCE):
        scores = query[start : start + ROWS_AT_ONCE] @ documents.T
        mine = scores.gather(1, own[start : start + ROWS_AT_ONCE, None])
        better = (scores > mine).sum(1)
        equal = (scores == mine).sum(1)
        found += (1.0 / (1.0 + better + (equal - 1) / 2)).tolist()
    return found


def _by_repository(
    rows: NDArray[np.int64], repository: NDArray[np.int32]
) -> Iterator[NDArray[np.int64]]:
    owners = repository[rows]
    for owner in np.unique(owners):
        yield rows[owners == owner]


def _parts(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]
