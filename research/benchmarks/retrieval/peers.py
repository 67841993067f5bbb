"""Other ways to search, asked the same questions on the same trees in the same run.

Each gives ranked lists in the form of `research.evals.search`, with its own time for each question.
A peer that is not on this machine says so in one line, and the others go on.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from codeqa.languages import detect
from codeqa.store import Tables
from codeqa.text.tokens import split_identifier
from codeqa.types import METHOD_KINDS
from research.evals.search.questions import Question
from research.evals.search.ranked import RESULTS, Ranked

HERE = Path(__file__).resolve().parent
STORED = HERE / "baselines"
SEMBLE_PYTHON = HERE.parents[2] / ".venv-bench" / "bin" / "python"
SEMBLE_SECONDS = 900.0
RIPGREP_SECONDS = 60.0
WINDOW = 50
"""Lines that ripgrep's result shows of a file, around where most keywords stand."""
PIECE = 60
"""Lines of a piece of what lies between functions."""

_STOP = """
    a an and are as at be by can do does for from has have how i if in into is it its me my not
    of on or so that the their there these they this to was what when where which who why will
    with would you your we our should could about after before between each every only one use
    used using get gets got happens happen done make makes made
"""
STOP_WORDS = frozenset(_STOP.split())
_WORDS = re.compile(r"\w+")


class PeerMissingError(Exception):
    """The peer cannot run here; its text says why."""


# --- BM25 over functions ----------------------------------------------------------------------


class Bm25Functions:
    """Plain BM25 (LanceDB's full-text index) over functions, identifiers split into words.

    A function is one document: its path and source. What lies between the functions of a source
    file is cut into pieces of PIECE lines. Files without functions' grammar are not looked at.
    """

    name = "BM25, functions"

    def __init__(self, tables: Tables, tree: Path, folder: Path) -> None:
        import lancedb
        from lancedb.index import FTS

        self._places: list[dict[str, Any]] = []
        rows = []
        for path, spans in _functions(tables).items():
            lines = (tree / path).read_text("utf-8", "replace").splitlines()
            for start, end in [*spans, *_between(spans, len(lines))]:
                text = _bag(f"{path} {' '.join(lines[start - 1 : end])}")
                rows.append({"number": len(rows), "text": text})
                self._places.append({"path": path, "start": start, "end": end})
        self._table: Any = lancedb.connect(folder).create_table("functions", rows)
        self._table.create_index(
            "text",
            config=FTS(
                base_tokenizer="whitespace",
                stem=False,
                remove_stop_words=False,
                ascii_folding=False,
                lower_case=False,
            ),
        )

    def search(self, question: str) -> list[dict[str, Any]]:
        """The best functions for the words of `question`."""
        from lancedb.query import MatchQuery

        text = _bag(question)
        if not text:
            return []
        query = self._table.search(MatchQuery(text, "text"), query_type="fts")
        rows = query.select(["number", "_score"]).limit(RESULTS).to_arrow().to_pylist()
        rows.sort(key=lambda row: (-row["_score"], row["number"]))
        return [self._places[row["number"]] for row in rows[:RESULTS]]


def _functions(tables: Tables) -> dict[str, list[tuple[int, int]]]:
    """Path of each file that a grammar read → the lines of its functions."""
    found: dict[str, list[tuple[int, int]]] = {}
    for unit in tables.units():
        if _is_code(unit.path):
            spans = found.setdefault(unit.path, [])
            if unit.kind in METHOD_KINDS:
                spans.append((unit.start_line, unit.end_line))
    return found


def _is_code(path: str) -> bool:
    language = detect(path)
    return language is not None and bool(language.grammar)


def _between(spans: Sequence[tuple[int, int]], lines: int) -> Iterator[tuple[int, int]]:
    """Pieces of the lines that lie in no span."""
    taken = {line for start, end in spans for line in range(start, end + 1)}
    start = 0
    for line in range(1, lines + 2):
        free = line <= lines and line not in taken
        if start and (not free or line - start == PIECE):
            yield start, line - 1
            start = 0
        if free and not start:
            start = line


def _bag(text: str) -> str:
    """Words in lower case without stop words, identifiers as they are and in parts."""
    parts = []
    for word in _WORDS.findall(text):
        split = [part.lower() for part in split_identifier(word)]
        parts += split if len(split) == 1 else [word.lower(), *split]
    return " ".join(part for part in parts if part not in STOP_WORDS)


# --- ripgrep ----------------------------------------------------------------------------------


class Ripgrep:
    """`rg` with the question's keywords: source files by how many different ones they hold, then
    by how many lines do; of each file the WINDOW lines in which most stand."""

    name = "ripgrep, keywords"

    def __init__(self, tree: Path) -> None:
        command = shutil.which("rg")
        if command is None:
            raise PeerMissingError("ripgrep is not installed (`rg` is not on the path)")
        self._command = command
        self._tree = tree

    def search(self, question: str) -> list[dict[str, Any]]:
        """Files for the keywords of `question`."""
        wanted = keywords(question)
        if not wanted:
            return []
        arguments = ["--json", "--ignore-case", "--fixed-strings", "--no-config", "--sort", "path"]
        for word in wanted:
            arguments += ["-e", word]
        done = subprocess.run(
            [self._command, *arguments, "--", "."],
            cwd=self._tree,
            capture_output=True,
            timeout=RIPGREP_SECONDS,
            check=False,
        )
        lines: dict[str, list[tuple[int, frozenset[str]]]] = defaultdict(list)
        for line in done.stdout.splitlines():
            event = json.loads(line)
            data = event.get("data", {})
            if event["type"] == "match" and "text" in data["path"]:
                words = {m["match"].get("text", "").lower() for m in data["submatches"]}
                path = data["path"]["text"].removeprefix("./")
                lines[path].append((data["line_number"], frozenset(words)))
        found = []
        for path, places in lines.items():
            if not _is_code(path):
                continue
            different = frozenset().union(*(words for _, words in places))
            found.append((len(different), len(places), path, _densest(places)))
        found.sort(key=lambda one: (-one[0], -one[1], one[2]))
        return [
            {"path": path, "start": start, "end": start + WINDOW - 1}
            for _, _, path, start in found[:RESULTS]
        ]


def keywords(question: str) -> list[str]:
    """Words of a question that somebody would search for."""
    words = [word for word in _WORDS.findall(question) if len(word) > 2]
    return list(dict.fromkeys(w.lower() for w in words if w.lower() not in STOP_WORDS))


def _densest(places: Sequence[tuple[int, frozenset[str]]]) -> int:
    """First line of the window that holds most different keywords, then most lines."""
    best, start = (-1, -1), 1
    for at, (first, _) in enumerate(places):
        within = [words for line, words in places[at:] if line < first + WINDOW]
        held = (len(frozenset().union(*within)), len(within))
        if held > best:
            best, start = held, first
    return start


# --- semble -----------------------------------------------------------------------------------


def semble_lists(
    questions: Sequence[Question], trees: Path, python: Path | None = None
) -> list[Ranked]:
    """semble's BM25 with its own ranking, in a process of the environment that has it.

    Raises PeerMissingError when no environment has it, or when it fails.
    """
    interpreter = python or (SEMBLE_PYTHON if SEMBLE_PYTHON.exists() else Path(sys.executable))
    asked = [{"id": q.id, "repo": q.repo, "question": q.question} for q in questions]
    try:
        done = subprocess.run(
            [str(interpreter), str(HERE / "semble_peer.py"), str(trees)],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=SEMBLE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerMissingError(f"semble could not be run ({error})") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise PeerMissingError(f"semble: {last}")
    found = []
    for line in done.stdout.splitlines():
        one = json.loads(line)
        results = tuple(one["results"])
        found.append(Ranked(one["id"], one["repo"], one["question"], results, one["latency_ms"]))
    return found


# --- asking -----------------------------------------------------------------------------------


def asked(
    questions: Sequence[Question], search: Callable[[str], list[dict[str, Any]]]
) -> Iterator[Ranked]:
    """Ask a peer about one repository; the first question is asked twice, and timed once."""
    if questions:
        search(questions[0].question)
    for question in questions:
        started = time.perf_counter()
        results = search(question.question)
        elapsed = round((time.perf_counter() - started) * 1000, 2)
        yield Ranked(question.id, question.repo, question.question, tuple(results), elapsed)


def stored_lists() -> dict[str, Path]:
    """Name → file of the lists that are kept beside the questions (see their README)."""
    return {path.name.removesuffix(".jsonl.gz"): path for path in sorted(STORED.glob("*.gz"))}
