"""Ranked lists: what a search gave for each question, in a file that any system can write.

One JSON object a line; results best first, at least ten files where there are ten::

    {"id", "repo", "question", "results": [{"path", "start", "end", "symbol", "score"}, …],
     "latency_ms"}
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from codeqa.errors import ModelError, UsageError
from codeqa.evaluation.questions import Question, problem_in
from codeqa.indexing import Indexer
from codeqa.llm import Models
from codeqa.search import Search, open_search, parse_hyde
from codeqa.settings import Settings
from codeqa.store import locate, open_once
from codeqa.types import Hit, Progress

RESULTS = 50
"""Results kept of each question: more than anybody reads, and enough for ten files."""

_UNNAMED = {"id": "", "repo": "", "question": ""}


@dataclass(frozen=True, slots=True)
class Ranked:
    """The results of one question, best first; `id` or (`repo`, `question`) says which."""

    id: str
    repo: str
    question: str
    results: tuple[Mapping[str, Any], ...]
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What one search gave for one question: its two lists."""

    units: Ranked
    files: Ranked


def rank_repositories(
    settings: Settings,
    questions: Sequence[Question],
    trees: Path,
    progress: Callable[[Progress], None],
    *,
    rerank: bool = False,
    hyde: str = "off",
) -> Iterator[Ranked]:
    """Ask `questions` of the repositories in the folder `trees`, indexing each one first.

    Questions of one repository are asked one after another, whatever their order, so that only
    one repository is open at a time. Raises UsageError before anything is done when a repository
    is not there, or when drafts are asked for without a language model; later as the indexer and
    the search do.
    """
    missing = sorted({q.repo for q in questions if not (trees / q.repo).is_dir()})
    if missing:
        raise UsageError(
            f"{trees} lacks the folders {', '.join(missing)}.",
            "Each repository that a question names has a folder of that name there.",
        )
    models = Models(settings)
    if parse_hyde(hyde) != "off":
        require_drafting(models)
    by_repository: dict[str, list[Question]] = {}
    for question in questions:
        by_repository.setdefault(question.repo, []).append(question)

    def ranked() -> Iterator[Ranked]:
        for repository, asked in by_repository.items():
            location = locate(settings, trees / repository)
            Indexer(settings, location).run(progress=progress)
            search = open_search(settings, open_once(location), models=models)
            for answered in ask_all(asked, search, rerank=rerank, hyde=hyde):
                yield answered.units

    return ranked()


def require_drafting(models: Models) -> None:
    """Raises UsageError when there is no model that could write drafts."""
    if models.connect_small() is None:
        raise UsageError(
            "Drafts need a language model, and none is chosen.",
            "Choose one by CODEQA_MODEL or `codeqa models use`, or do without drafts.",
        )


def ask_all(
    questions: Sequence[Question], search: Search, *, rerank: bool = False, hyde: str = "off"
) -> Iterator[Answered]:
    """Ask `questions` of one repository, each once. Raises what the search raises, and
    ModelError when a draft of the first question fails."""
    if questions:  # what is loaded once is not timed
        search.search(questions[0].question, top=RESULTS, rerank=rerank)
    for question in questions:
        started = time.perf_counter()
        found = search.search(question.question, top=RESULTS, rerank=rerank, hyde=hyde)
        elapsed = round((time.perf_counter() - started) * 1000, 2)
        failed = next((stage for stage in found.stages if stage.failed), None)
        if failed and question is questions[0]:
            # What a search gives without any drafts would pass for what it gives with them.
            raise ModelError(f"A draft {failed.outcome}", "Ask again when the model answers.")
        files = [file.best for file in found.files]
        yield Answered(_listed(question, found.units, elapsed), _listed(question, files, elapsed))


def _listed(question: Question, hits: Iterable[Hit], elapsed: float) -> Ranked:
    results = tuple(map(_result, islice(hits, RESULTS)))
    return Ranked(question.id, question.repo, question.question, results, elapsed)


def _result(hit: Hit) -> dict[str, Any]:
    unit = hit.unit
    return {
        "path": unit.path,
        "start": unit.start_line,
        "end": unit.end_line,
        "symbol": unit.qualified_name,
        "score": round(hit.score, 4),
    }


def save_ranked(path: Path, ranked: Iterable[Ranked]) -> int:
    """Write a file of ranked lists, whole or not at all; how many lists.

    Raises OSError as writing does.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with part.open("w", encoding="utf-8") as lines:
            for one in ranked:
                lines.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
                count += 1
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return count


def load_ranked(path: Path) -> list[Ranked]:
    """The ranked lists of a file, plain or packed with gzip.

    Raises UsageError that names the line for what cannot be read, OSError as reading does.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    form = TypeAdapter(Ranked)
    found = []
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                ranked = form.validate_python(_UNNAMED | json.loads(line))
                if not all("path" in one for one in ranked.results):
                    raise ValueError("a result names no path")
            except (ValueError, TypeError) as error:
                raise UsageError(
                    f"{path}, line {number}, is no ranked list: {problem_in(error)}.",
                    "Each line is an object with id or repo and question, and results.",
                ) from None
            found.append(ranked)
    return found
