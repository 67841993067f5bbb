"""The cases: questions, the lines that answer them, and the rules that an answer is judged by."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from codeqa.chat.pinned import parse_span
from codeqa.errors import UsageError
from codeqa.types import Chunk
from research.evals.search.questions import problem_in

CASES = Path(__file__).with_name("cases.jsonl")
Kind = Literal[
    "how", "where", "callers", "what if", "list", "error", "configuration", "tests", "overview",
    "trap", "follow-up",
]  # fmt: skip
"""`trap` asks about something that is not there; a `follow-up` goes on from `Case.after`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Lines that hold the answer or a part of it."""

    at: str
    """`path:first-last`."""
    necessary: bool = True
    """Else it helps, and nobody needs it."""

    @property
    def span(self) -> tuple[str, int, int]:
        """Path, first and last line."""
        return parse_span(self.at)


@dataclass(frozen=True, slots=True)
class Case:
    """One question, and what is asked of its answer."""

    id: str
    repository: str
    commit: str
    kind: Kind
    question: str
    lines: tuple[Place, ...] = ()
    must_cite: tuple[tuple[str, ...], ...] = ()
    """Of each group one is to be cited: a path, or `path:first-last`, one line of which will do."""
    must_mention: tuple[tuple[str, ...], ...] = ()
    """Of each group one is to be said, whatever its case."""
    must_not_say: tuple[str, ...] = ()
    """What only a wrong answer says."""
    after: tuple[str, ...] = ()
    """What was asked before in the same conversation."""

    @property
    def digest(self) -> str:
        """Changes with the case, so that its earlier results are not taken for those of today."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def load_cases(path: Path = CASES) -> list[Case]:
    """All cases of a file. Raises UsageError that names the line that cannot be read."""
    form, found = TypeAdapter(Case), []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            found.append(form.validate_json(line))
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {problem_in(error)}.") from None
    return found


def says(text: str, wanted: str) -> bool:
    """Whether `wanted` stands in `text` as words of its own, in any case and with any blanks."""
    return bool(_pattern(wanted).search(text))


@cache
def _pattern(wanted: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, wanted.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


def shown_lines(place: Place, chunks: Sequence[Chunk]) -> Iterator[tuple[int, int, str]]:
    """First line, last line and text of what `chunks` show of `place`."""
    path, first, last = place.span
    for chunk in chunks:
        start, end = max(first, chunk.start_line), min(last, chunk.end_line)
        if chunk.path == path and start <= end:
            lines = chunk.content.split("\n")[start - chunk.start_line : end - chunk.start_line + 1]
            yield start, end, "\n".join(lines)


def problems(case: Case, trees: Path | None = None) -> list[str]:
    """What is wrong with a case, each as a sentence; with `trees` the code is looked at as well:
    that the lines are there, and hold a word of each group that is to be mentioned, or their path
    does."""
    found = [name for name in ("id", "repository", "commit", "question") if not getattr(case, name)]
    found = [f"has no {name}" for name in found]
    if case.kind == "trap":
        found += ["is a trap, and labels what it says is not there"] if case.must_mention else []
        return found
    needed = {place.at for place in case.lines if place.necessary}
    found += [] if needed else ["labels no necessary line"]
    found += [] if case.must_cite else ["asks for no citation"]
    found += [] if case.must_mention else ["asks for no word"]
    found += ["has nothing before it"] if (case.kind == "follow-up") != bool(case.after) else []
    paths = {place.span[0] for place in case.lines}
    for group in case.must_cite:
        if not any(one in paths or _path_of(one) in paths for one in group):
            found.append(f"asks to cite {group}, which is not labelled")
    if trees is not None and not found:
        found += _problems_in_tree(case, trees / case.repository)
    return found


def _problems_in_tree(case: Case, tree: Path) -> Iterator[str]:
    texts = []
    for place in case.lines:
        path, first, last = place.span
        file = tree / path
        lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
        if not 1 <= first <= last <= len(lines):
            yield f"{place.at} is not there"
        texts.append("\n".join([path, *lines[first - 1 : last]]))
    for group in case.must_mention:
        if not any(says(text, word) for text in texts for word in group):
            yield f"asks for {group}, of which no labelled line says one"
    for word in case.must_not_say:
        if says(case.question, word):
            yield f"forbids {word!r}, which the question itself says"


def _path_of(cited: str) -> str:
    return cited.rpartition(":")[0]


def commits(repositories: Path) -> Mapping[str, str]:
    """Name of each repository of the sets of questions → the commit it is read at."""
    rows = map(json.loads, repositories.read_text("utf-8").splitlines())
    return {row["name"]: row["commit"] for row in rows}
