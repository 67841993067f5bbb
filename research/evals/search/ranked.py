"""Ranked lists: what a search gave for each question, in a file that any system can write.

One JSON object a line; results best first, at least ten files where there are ten::

    {"id", "repo", "question", "results": [{"path", "start", "end", "symbol", "score"}, …],
     "latency_ms"}

and, where it was asked for, what would be sent to a language model::

    "context": [{"path", "start", "end"}, …], "tokens": 7890
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from codeqa.context.block import ContextBlock
from codeqa.errors import ModelError, UsageError
from codeqa.indexing import Indexer
from codeqa.llm.models import Models
from codeqa.search.hybrid import Search, open_search
from codeqa.search.result import SearchResult
from codeqa.selection import BUDGET_CHARACTERS_PER_TOKEN, UNITS_RANKED, budget_of, build_context
from codeqa.settings import Settings
from codeqa.store import Tables, locate, open_once
from codeqa.types import Effort, Hit, Progress
from research.evals.search.questions import Question, problem_in

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
    context: tuple[Mapping[str, Any], ...] | None = None
    """What would be sent, None where that was not asked for; `tokens` in all, estimated."""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """What one search gave for one question: its two lists."""

    units: Ranked
    files: Ranked


Kind = Literal["files", "units"]
"""Which of a search's two lists is written."""


def rank_repositories(
    settings: Settings,
    questions: Sequence[Question],
    trees: Path,
    progress: Callable[[Progress], None],
    *,
    kind: Kind = "units",
    rerank: bool = False,
    hyde: str = "off",
    effort: Effort | None = None,
) -> Iterator[Ranked]:
    """Ask `questions` of the repositories in the folder `trees`, indexing each one first.

    Questions of one repository are asked one after another, whatever their order, so that only
    one repository is open at a time. Raises UsageError before anything is indexed when a
    repository is not there, or when drafts are asked for without a language model;
    later as the indexer and the search do. With `effort` each list says what would be sent.
    """
    missing = sorted({q.repo for q in questions if not (trees / q.repo).is_dir()})
    if missing:
        raise UsageError(
            f"{trees} lacks the folders {', '.join(missing)}.",
            "Each repository that a question names has a folder of that name there.",
        )
    models = Models(settings)
    if hyde != "off":
        require_drafting(models)
    for repository in dict.fromkeys(question.repo for question in questions):
        location = locate(settings, trees / repository)
        Indexer(settings, location).run(progress=progress)
        tables = open_once(location)
        search = open_search(settings, tables, models=models)
        asked = [question for question in questions if question.repo == repository]
        sent = partial(_sent, tables, settings, effort) if effort else None
        for answered in ask_all(asked, search, rerank=rerank, hyde=hyde, context=sent):
            yield answered.files if kind == "files" else answered.units


def _sent(
    tables: Callable[[], Tables], settings: Settings, effort: Effort, found: SearchResult
) -> ContextBlock:
    return build_context(tables(), found, settings, budget_of(effort, settings))


def require_drafting(models: Models) -> None:
    """Raises UsageError when there is no model that could write drafts."""
    if models.small_model() is None:
        raise UsageError(
            "Drafts need a language model, and none is chosen.",
            "Choose one by CODEQA_MODEL or `codeqa models use`, or do without drafts.",
        )


def ask_all(
    questions: Sequence[Question],
    search: Search,
    *,
    rerank: bool = False,
    hyde: str = "off",
    context: Callable[[SearchResult], ContextBlock] | None = None,
) -> Iterator[Answered]:
    """Ask `questions` of one repository, each once; `context` makes what would be sent.

    Raises what the search raises, and ModelError when a draft of the first question fails.
    """
    if questions:  # what is loaded once is not timed
        search.search(questions[0].question, top=RESULTS, rerank=rerank)
    top = UNITS_RANKED if context else RESULTS
    for question in questions:
        started = time.perf_counter()
        found = search.search(question.question, top=top, rerank=rerank, hyde=hyde)
        block = context(found) if context else None
        elapsed = round((time.perf_counter() - started) * 1000, 2)
        failed = next((stage for stage in found.stages if stage.failed), None)
        if failed and question is questions[0]:
            # What a search gives without any drafts would pass for what it gives with them.
            raise ModelError(f"A draft {failed.outcome}", "Ask again when the model answers.")
        files = [file.best for file in found.files]
        by_units, by_files = (_listed(question, h, elapsed, block) for h in (found.units, files))
        yield Answered(by_units, by_files)


def _listed(
    question: Question, hits: Iterable[Hit], elapsed: float, block: ContextBlock | None
) -> Ranked:
    results = tuple(map(_result, islice(hits, RESULTS)))
    one = Ranked(question.id, question.repo, question.question, results, elapsed)
    if block is None:
        return one
    places = ({"path": c.path, "start": c.start_line, "end": c.end_line} for c in block.chunks)
    return replace(
        one, context=tuple(places), tokens=round(len(block.text) / BUDGET_CHARACTERS_PER_TOKEN)
    )


def _result(hit: Hit) -> dict[str, Any]:
    unit = hit.unit
    return {"path": unit.path, "start": unit.start_line, "end": unit.end_line,
            "symbol": unit.qualified_name, "score": round(hit.score, 4)}  # fmt: skip


def save_ranked(path: Path, ranked: Iterable[Ranked]) -> int:
    """Write a file of ranked lists, whole or not at all; how many lists.

    Raises OSError as writing does.
    """
    count, partial = 0, path.with_name(path.name + ".part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as lines:
            for one in ranked:
                count += 1
                row = asdict(one)
                if one.context is None:
                    del row["context"], row["tokens"]
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
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
