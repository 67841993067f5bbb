"""How well an embedding answers questions about repositories, through CodeQA itself.

Two ways: by the vectors alone (cosine; what is not source code counts half), and by CodeQA's
own search with all its channels. Questions and repositories are the reader's own; the lists are
judged by `research.evals.search`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codeqa.embeddings.registry import Embedding, chosen_embedding, fast_embedding
from codeqa.errors import UsageError
from codeqa.indexing import Indexer
from codeqa.search.channels import length_factor
from codeqa.search.hybrid import Search
from codeqa.search.query import parse_query
from codeqa.search.ranking import role_penalties
from codeqa.settings import Settings, load_settings
from codeqa.store import Tables, TextSearch, VectorSearch, locate
from codeqa.store.schema import EmbeddingRecord
from codeqa.text.unit_text import unit_text
from codeqa.types import Unit
from research.evals.search.questions import load_questions
from research.evals.search.ranked import load_ranked
from research.evals.search.scores import compare
from research.evals.search.scores import score as judge
from research.training.console import bar, say, write_lines

LISTED = 50
"""Units listed per question; more until there are LISTED_FILES files."""
LISTED_FILES = 10
BATCH = 4_096

FILE_FIGURES = ("ndcg@10", "hit@1", "recall@10")
LINE_FIGURES = ("line ndcg@10", "cover@500")


@dataclass(frozen=True, slots=True)
class Folder:
    """An exported table that is not installed, as an embedding."""

    encoder: Any
    name: str
    version: str
    dimension: int
    max_tokens: int = 8_191

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encoder.encode_query(text)
        return vector

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self.encoder.compute_source_embeddings(texts)
        return vectors


def open_embedding(given: str, settings: Settings) -> Embedding | Folder | None:
    """`none`, `fast` (what CodeQA ships), a folder with an export, or `provider/name`.

    Raises CodeQAError for one that cannot be had.
    """
    if given == "none":
        return None
    if given == "fast":
        return fast_embedding()
    folder = Path(given)
    if (folder / "manifest.json").is_file():
        from codeqa.embeddings.table import TableEncoder, load_weights

        weights = load_weights(folder)
        encoder = TableEncoder(weights)
        return Folder(encoder, "codeqa-evaluated", weights.version, weights.dimension)
    return chosen_embedding(settings.model_copy(update={"embedding": given}))


@dataclass(frozen=True, slots=True)
class Indexed:
    """One repository: its tables, its units, and the vectors of these."""

    tables: Tables
    units: list[Unit]
    vectors: NDArray[np.float32] | None
    """(units, dimension), each of length 1."""


class WithVectors:
    """Tables whose `vector` column is held in memory: another embedding, the same index."""

    def __init__(self, indexed: Indexed, embedding: Embedding | Folder | None) -> None:
        self._indexed = indexed
        self._embedding = embedding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._indexed.tables, name)

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        """The one column, when there is an embedding."""
        if self._embedding is None:
            return []
        held = self._embedding
        return [("vector", EmbeddingRecord(held.name, held.version, held.dimension))]

    def best(self, searches: Sequence[TextSearch | VectorSearch]) -> list[list[tuple[Unit, float]]]:
        """As `Tables.best`, vectors by looking at every one. Raises UsageError for a filter."""
        return [
            self._nearest(search)
            if isinstance(search, VectorSearch)
            else self._indexed.tables.best([search])[0]
            for search in searches
        ]

    def _nearest(self, search: VectorSearch) -> list[tuple[Unit, float]]:
        vectors = self._indexed.vectors
        if vectors is None:
            return []
        if search.where:
            raise UsageError(
                "A question has a filter, which vectors held in memory do not know.",
                "Ask questions without `lang:`, `path:` and the like.",
            )
        length = max(float(np.linalg.norm(search.vector)), 1e-12)
        scores = vectors @ (search.vector / length)
        found: list[tuple[Unit, float]] = []
        for place in np.argsort(-scores, kind="stable"):
            unit = self._indexed.units[place]
            if unit.is_method == (search.table == "methods"):
                found.append((unit, float(scores[place])))
                if len(found) == search.limit:
                    break
        return found


def index(root: Path, settings: Settings, embedding: Embedding | Folder | None) -> Indexed:
    """Bring the index of `root` up to date and embed its units."""
    location = locate(settings, root)
    Indexer(settings, location).run(refine=False)
    tables = Tables(location)
    units = tables.units()
    if embedding is None:
        return Indexed(tables, units, None)
    texts = [unit_text(unit) for unit in units]
    found = [
        embedding.embed_passages(texts[start : start + BATCH])
        for start in range(0, len(texts), BATCH)
    ]
    vectors = np.concatenate(found).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Indexed(tables, units, vectors / np.maximum(lengths, 1e-12))


def by_vectors(indexed: Indexed, question: str, embedding: Embedding | Folder) -> list[Unit]:
    """Units by cosine as the vector channel counts it; tests, examples and documents at half,
    unless asked for."""
    assert indexed.vectors is not None
    query = parse_query(question)
    vector = embedding.embed_query(query.text)
    scores = indexed.vectors @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
    for place, unit in enumerate(indexed.units):
        if scores[place] > 0:
            scores[place] *= length_factor(unit)
            for factor, _ in role_penalties(unit, query):
                scores[place] *= factor
    order = np.argsort(-scores, kind="stable")
    return enough(indexed.units[place] for place in order)


def enough(units: Iterable[Unit]) -> list[Unit]:
    """The first LISTED units, and more until LISTED_FILES files are named."""
    found: list[Unit] = []
    files: set[str] = set()
    for unit in units:
        if len(found) >= LISTED and len(files) >= LISTED_FILES:
            break
        found.append(unit)
        files.add(unit.path)
    return found


def answers(
    questions: Iterable[Mapping[str, Any]],
    trees: Path,
    work: Path,
    embedding: Embedding | Folder | None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ranked lists: `vectors` (units), `files` and `units` of the whole search."""
    settings = load_settings(data=work / "data")
    by_repository: dict[str, list[Mapping[str, Any]]] = {}
    for question in questions:
        by_repository.setdefault(question["repo"], []).append(question)
    for repository, asked in bar(sorted(by_repository.items()), "evaluate", "repo"):
        indexed = index(trees / repository, settings, embedding)
        tables: Any = WithVectors(indexed, embedding)
        search = Search(lambda tables=tables: tables, settings, lambda _: embedding)
        for question in asked:
            text = question["question"]
            if embedding is not None:
                started = time.perf_counter()
                units = by_vectors(indexed, text, embedding)
                yield "vectors", answer(question, units, started)
            started = time.perf_counter()
            result = search.search(text, top=LISTED)
            best = [file.best.unit for file in result.files]
            yield "files", answer(question, best, started)
            yield "units", answer(question, [hit.unit for hit in result.units], started)


def answer(question: Mapping[str, Any], units: Iterable[Unit], started: float) -> dict[str, Any]:
    """One line of ranked output."""
    return {
        "id": question["id"],
        "repo": question["repo"],
        "question": question["question"],
        "results": [
            {"path": unit.path, "start": unit.start_line, "end": unit.end_line} for unit in units
        ],
        "latency_ms": round((time.perf_counter() - started) * 1000, 2),
    }


def ask(
    questions: Path, trees: Path, out: Path, embedding: Embedding | Folder | None
) -> dict[str, Path]:
    """Answer all questions; the ranked lists written, by kind."""
    asked = [json.loads(line) for line in questions.read_text("utf-8").splitlines() if line]
    lists: dict[str, list[dict[str, Any]]] = {}
    for kind, line in answers(asked, trees, out.parent, embedding):
        lists.setdefault(kind, []).append(line)
    written = {kind: out.with_name(f"{out.name}.{kind}.jsonl") for kind in lists}
    for kind, path in written.items():
        write_lines(path, lists[kind])
    return written


def score(
    questions: Path, lists: Mapping[str, Path], versus: Mapping[str, Path] | None = None
) -> dict[str, dict[str, Any]]:
    """Figures of each kind of list, and differences to earlier ones with their intervals.

    {kind: {figure: value, …, "versus": {figure: [difference, low, high]}}}. Raises UsageError
    for files that cannot be read.
    """
    asked = load_questions(questions)
    found: dict[str, dict[str, Any]] = {}
    for kind, path in lists.items():
        wanted = {"files": FILE_FIGURES, "units": LINE_FIGURES}.get(
            kind, FILE_FIGURES + LINE_FIGURES
        )
        report = judge(asked, load_ranked(path))
        found[kind] = {name: report.figures[name].mean for name in wanted if name in report.figures}
        if versus and kind in versus:
            differences = compare(report, judge(asked, load_ranked(versus[kind])))
            found[kind]["versus"] = {
                name: [one.mean, one.low, one.high]
                for name, one in differences.items()
                if name in wanted
            }
    return found


def show(figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Say the figures, a line per way of asking."""
    ways = {"vectors": ("vectors",), "everything": ("files", "units")}
    for way, kinds in ways.items():
        parts = {kind: figures[kind] for kind in kinds if kind in figures}
        if not parts:
            continue
        values = {k: v for part in parts.values() for k, v in part.items() if k != "versus"}
        say(f"{way:11s}" + "  ".join(f"{key} {value:.3f}" for key, value in values.items()))
        for part in parts.values():
            for key, (difference, low, high) in part.get("versus", {}).items():
                star = " *" if low > 0 or high < 0 else ""
                say(f"{'':11s}{key:13s} {difference:+.3f} [{low:+.3f}, {high:+.3f}]{star}")
