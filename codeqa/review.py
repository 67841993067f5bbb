"""Reviews of issues: what an issue takes, found out by a model that searches the code; without a
model the files, tests and people that it is likely to concern.

`ChunkIndex` is the small index of lines that such reviewers are usually built on, to the letter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codeqa.chat.agent import AgentGenerator
from codeqa.chat.cited_code import CitedCode
from codeqa.chat.generation import GenerationInput, ModelRequest, ToolStep
from codeqa.errors import CodeQAError, ModelError, UsageError
from codeqa.llm import Model
from codeqa.parsing.chunks import chunk_by_lines
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.tools import TOOLS, Toolbox
from codeqa.types import TEXT_KINDS, Hit

REVIEW_TOOLS = ("search_code", "grep", "open_file", "outline", "find_definition", "callers")
MOST_CHARACTERS = 20_000
"""Of an issue."""
_HEADS = TEXT_KINDS | {"module"}
"""They say less than a definition of the same file."""
LIKELY_FILES = 6
LIKELY_TESTS = 3
OWNERS = 3
"""Authors named, by how many of the latest commits to as many likely files are theirs."""
HISTORY = 15
SHOWN_RAW = 300
"""Characters of an answer that could not be read, to be looked at."""
CHARACTERS_PER_TOKEN = 4
AGAIN = (
    "That could not be read: {}. Respond with ONLY the JSON object, as described at the beginning."
)
WITHOUT = (
    "No language model was asked: these are the files, tests and people that the search and the "
    "history connect with the words of the issue, and no judgement of it."
)


class LikelyFile(BaseModel):
    """A file that is likely to change."""

    path: str
    lines: str = ""
    """As 120-180; '' for none in particular."""
    why: str = ""
    indexed: bool = True
    """Whether there is such a file."""


class IssueReview(BaseModel):
    """What a model found out about an issue."""

    model_config = ConfigDict(extra="ignore")

    summary: str = Field(min_length=1)
    difficulty_score: int = Field(ge=1, le=5)
    recommended_level: Literal["Junior", "Mid", "Senior", "Senior+"]
    concepts_required: list[str]
    mentoring_advice: str
    files_likely_to_change: list[LikelyFile] = []
    chunks_used: int = 0
    """Pieces of code that it was shown, counted by us."""


class IssueReport(BaseModel):
    """All that there is to say of an issue."""

    review: IssueReview | None = None
    """None where no model was asked."""
    note: str = ""
    files: list[LikelyFile] = []
    tests: list[LikelyFile] = []
    owners: list[str] = []
    tokens_sent: int = 0
    """Of code, estimated at four characters a token."""
    tokens_of_whole_files: int = 0
    """What the files would have cost that this code is from."""

    @property
    def text(self) -> str:
        """The report as lines for people and models."""
        lines: list[str] = []
        review = self.review
        if review:
            lines += [
                review.summary,
                "",
                f"Difficulty   {review.difficulty_score}/5, {review.recommended_level}",
                f"Concepts     {', '.join(review.concepts_required)}",
                f"Advice       {review.mentoring_advice}",
                f"Chunks used  {review.chunks_used}, about {self.tokens_sent:,} tokens; the whole "
                f"files would have been {self.tokens_of_whole_files:,}",
            ]
        for title, files in (
            ("Files likely to change", review.files_likely_to_change if review else []),
            ("Likely files, by the search", self.files),
            ("Tests", self.tests),
        ):
            if files:
                lines += ["", title] if lines else [title]
            for one in files:
                there = "" if one.indexed else "  (there is no such file)"
                lines.append(
                    f"  {one.path}{':' + one.lines if one.lines else ''}  {one.why}{there}"
                )
        if self.owners:
            lines += ["", f"Who knows them: {', '.join(self.owners)}"]
        return "\n".join([*lines, "", self.note] if self.note else lines)


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Reviews issues of one repository; `model` is None for none."""

    toolbox: Toolbox
    model: Model | None = None
    config_dir: Path | None = None

    def review(self, title: str, body: str = "") -> Iterator[ToolStep | IssueReport]:
        """What is looked up, as it happens, and at last the report.

        Raises UsageError for an issue without words, ModelError where the model fails or its
        answer cannot be read, also after it was asked once more.
        """
        issue = mask_secrets(f"{title.strip()}\n\n{body.strip()}".strip())[:MOST_CHARACTERS]
        if not re.search(r"\w", issue):
            raise UsageError("The issue is empty.", "Give a title, a body, or both.")
        report = self._likely(issue)
        if self.model is None:
            yield report.model_copy(update={"note": WITHOUT})
            return
        yield from self._by_model(self.model, issue, report)

    def _by_model(
        self, model: Model, issue: str, report: IssueReport
    ) -> Iterator[ToolStep | IssueReport]:
        title, _, body = issue.partition("\n\n")
        opening: list[Mapping[str, Any]] = [
            {"role": "system", "content": render_prompt("review_system", self.config_dir)},
            {"role": "user",
             "content": render_prompt("review_user", self.config_dir, title=title, body=body)},
        ]  # fmt: skip
        problem, text, sent = "", "", ModelRequest()
        for _ in range(2):
            if problem:
                opening = [*opening, {"role": "assistant", "content": text or "…"},
                           {"role": "user", "content": AGAIN.format(problem)}]  # fmt: skip
            agent = AgentGenerator(model, self.toolbox, self._cited, self.config_dir,
                                   tools=REVIEW_TOOLS, opening=opening)  # fmt: skip
            text = ""
            for piece in agent.generate(GenerationInput(issue, "review")):
                if isinstance(piece, ToolStep):
                    yield piece
                elif isinstance(piece, ModelRequest):
                    sent = piece if len(piece.block.chunks) >= len(sent.block.chunks) else sent
                elif isinstance(piece, str):
                    text += piece
            review, problem = read_review(text)
            if review is not None:
                yield self._told(report, review, sent)
                return
        raise ModelError(
            f"The model's review could not be read: {problem}.",
            f"It began: {' '.join(text.split())[:SHOWN_RAW]}",
        )

    def _cited(self, chunks: Any) -> CitedCode:
        return CitedCode(self.toolbox.files, self.toolbox.tables(), chunks)

    def _told(self, report: IssueReport, review: IssueReview, sent: ModelRequest) -> IssueReport:
        known = self.toolbox.tables().catalogue().paths
        files = [
            one.model_copy(update={"indexed": one.path in known})
            for one in review.files_likely_to_change
        ]
        chunks = sent.block.chunks
        whole = {chunk.path for chunk in chunks}
        sizes = (self.toolbox.tables().file(path) for path in whole)
        return report.model_copy(
            update={
                "review": review.model_copy(
                    update={"files_likely_to_change": files, "chunks_used": len(chunks)}
                ),
                "tokens_sent": sum(len(c.content) for c in chunks) // CHARACTERS_PER_TOKEN,
                "tokens_of_whole_files": sum(r.size for r in sizes if r) // CHARACTERS_PER_TOKEN,
            }
        )

    def _likely(self, issue: str) -> IssueReport:
        """Files, tests and people by search and history, without a model."""
        result = self.toolbox.search.search(issue, top=30)
        best: dict[str, Hit] = {}
        for hit in sorted(result.units, key=lambda hit: hit.unit.kind in _HEADS):
            best.setdefault(hit.unit.path, hit)
        ranked = [file.path for file in result.files if file.path in best]
        roles = {path: best[path].unit.role for path in ranked}
        files = [_likely_file(best[p]) for p in ranked if roles[p] == "source"][:LIKELY_FILES]
        tests = [_likely_file(best[p]) for p in ranked if roles[p] == "test"][:LIKELY_TESTS]
        return IssueReport(files=files, tests=tests, owners=self._owners(files))

    def _owners(self, files: list[LikelyFile]) -> list[str]:
        authors: Counter[str] = Counter()
        for file in files[:OWNERS]:
            try:
                told = TOOLS["git_log"].call(
                    self.toolbox, {"path_or_name": file.path, "limit": HISTORY}
                )
            except CodeQAError:  # no history here
                return []
            authors.update(commit.author for commit in told.commits)
        return [author for author, _ in authors.most_common(OWNERS)]


def _likely_file(hit: Hit) -> LikelyFile:
    unit = hit.unit
    named = unit.qualified_name or unit.name
    why = f"{unit.kind} {named}" if named else unit.kind
    return LikelyFile(path=unit.path, lines=f"{unit.start_line}-{unit.end_line}", why=why)


def read_review(text: str) -> tuple[IssueReview | None, str]:
    """The review that `text` holds, or None and what is wrong with it."""
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        return None, "it holds no JSON object"
    try:
        return IssueReview.model_validate_json(text[begin : end + 1]), ""
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, wrong["loc"]))
        return None, f"{place}: {wrong['msg']}" if place else str(wrong["msg"])


# The index of the system that reviews of issues come from.

_WORD = re.compile(r"\b[a-z_][a-z0-9_]*\b")


@dataclass
class ChunkIndex:
    """Chunks of 50 lines, found by the cosine of their words; in memory, without any model."""

    chunk_size: int = 50
    overlap: int = 5
    _chunks: list[tuple[dict[str, Any], Counter[str]]] = field(default_factory=list)

    def add_file(self, path: str, content: str) -> int:
        """Add the chunks of a file; returns how many."""
        added = chunk_by_lines(content, self.chunk_size, self.overlap)
        for chunk in added:
            described = {"path": path, "content": chunk.content,
                         "start_line": chunk.start_line, "end_line": chunk.end_line}  # fmt: skip
            self._chunks.append((described, _words(chunk.content)))
        return len(added)

    def ingest(self, toolbox: Toolbox, pattern: str = "") -> int:
        """Add every indexed file of a repository, or those of a glob; returns how many chunks."""
        return sum(self.add_file(f.path, f.text) for f in toolbox.files.read_all(pattern))

    def search(self, query: str, k: int = 3) -> list[dict[str, Any]]:
        """The best `k` chunks as {path, content, start_line, end_line, score}; none without a word
        of the query."""
        wanted = _words(query)
        scored = [{**chunk, "score": _cosine(wanted, words)} for chunk, words in self._chunks]
        found = [one for one in scored if one["score"] > 0]
        return sorted(found, key=lambda one: -one["score"])[:k]


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    dot = sum(count * other[word] for word, count in one.items())
    lengths = math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))
    return dot / lengths if lengths else 0.0
