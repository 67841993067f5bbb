"""Finds out what an issue takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeqa.chat.reader import Reader
from codeqa.chat.values import Gathered, ModelRequest, Piece
from codeqa.code.calls import tests_of
from codeqa.code.tools import TOOLS, Toolbox
from codeqa.context.block import ContextBlock, unit_chunk
from codeqa.errors import CodeQAError, UsageError
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, never
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.review.report import IssueReport, IssueReview, LikelyFile, Owner, read_review
from codeqa.text.markdown import code_block, pieces
from codeqa.types import EXTRACTIVE, TEXT_KINDS, Chunk, Hit, Unit

REVIEW_TOOLS = ("search_code", "symbol", "grep", "open_file")
REVIEW_ROUNDS = 10
MOST_CHARACTERS = 20_000
"""Of an issue."""
_HEADS = TEXT_KINDS | {"module"}
"""They say less than a definition of the same file."""
LIKELY_FILES = 6
LIKELY_FILES_TESTED = 3
"""Likely files of whose definitions a test is named; of later ones tests say little."""
LIKELY_TESTS = 5
OWNERS = 3
"""Authors named, by how many of the likely lines of as many files they were the last to change."""
CHARACTERS_PER_TOKEN = 4
AGAIN = (
    "That could not be read: {}. Respond with ONLY the JSON object, as described at the beginning."
)
UNREADABLE = (
    "The model's answer is no review that can be read ({}), so all above is from the search and "
    "the history alone. It wrote:"
)
WITHOUT = (
    "No language model was asked: these are the files, tests and people that the search and the "
    "history connect with the words of the issue, and no judgement of it."
)

_MARK = re.compile(r"\[((?:END OF )?ISSUE)\]", re.IGNORECASE)

Told = Piece | IssueReport


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Reviews issues of one repository; `model` is None for none."""

    toolbox: Toolbox
    model: Model | None = None
    config_dir: Path | None = None

    @property
    def name(self) -> str:
        """As a writer of answers."""
        return self.model.name if self.model else EXTRACTIVE

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """The review of an issue as an answer, in Markdown; its first line is its title. Raises as
        `review` does."""
        title, _, body = asked.question.partition("\n")
        for told in self.review(title, body, asked.cancelled):
            if isinstance(told, IssueReport):
                yield from pieces(f"{told.text}\n")
            else:
                yield told

    def report(self, title: str, body: str = "") -> IssueReport:
        """What `review` gives at last."""
        *_, report = self.review(title, body)
        assert isinstance(report, IssueReport)
        return report

    def review(self, title: str, body: str = "", cancelled: Cancelled = never) -> Iterator[Told]:
        """What is looked up and sent, as it happens, and at last the report; the request before it
        holds all code that it speaks of.

        An answer that cannot be read, also after it was asked for once more, stands below what was
        found without it. Raises UsageError for an issue without words, ModelError where the model
        fails.
        """
        issue = mask_secrets(f"{title.strip()}\n\n{body.strip()}".strip())[:MOST_CHARACTERS]
        if not re.search(r"\w", issue):
            raise UsageError("The issue is empty.", "Give a title, a body, or both.")
        report, found = self._likely(issue)
        if self.model is None:
            yield ModelRequest(block=ContextBlock(found))
            yield report.model_copy(update={"note": WITHOUT})
            return
        opening = self._opening(issue)
        toolbox, window = replace(self.toolbox, with_numbers=False), self.model.window()
        problem, text, sent = "", "", ModelRequest()
        for _ in range(2):
            if problem:
                opening = [*opening, {"role": "assistant", "content": text or "…"},
                           {"role": "user", "content": AGAIN.format(problem)}]  # fmt: skip
            reader = Reader(self.model, toolbox, self.config_dir, REVIEW_ROUNDS, tools=REVIEW_TOOLS)
            text = ""
            for piece in reader.follow(opening, window, cancelled):
                if isinstance(piece, str):
                    text += piece
                else:
                    yield piece
                if isinstance(piece, ModelRequest):
                    sent = piece if len(piece.block.chunks) >= len(sent.block.chunks) else sent
            if cancelled():
                return
            review, problem = read_review(text)
            if review is not None:
                break
        known = {chunk.id for chunk in sent.block.chunks}
        more = (chunk for chunk in found if chunk.id not in known)
        yield replace(sent, block=ContextBlock((*sent.block.chunks, *more)))
        if review is None:
            note = f"{UNREADABLE.format(problem)}\n\n{code_block(text.strip())}"
            yield report.model_copy(update={"note": note})
            return
        yield self._report(report, review, sent)

    def _opening(self, issue: str) -> list[Mapping[str, Any]]:
        """Return the messages that ask for a review of `issue`."""
        # Somebody else's text: it must not look like the end of itself.
        title, _, body = _MARK.sub(r"(\1)", issue).partition("\n\n")
        user = render_prompt("review_user", self.config_dir, title=title, body=body)
        return [
            {"role": "system", "content": render_prompt("review_system", self.config_dir)},
            {"role": "user", "content": user},
        ]

    def _report(self, report: IssueReport, review: IssueReview, sent: ModelRequest) -> IssueReport:
        tables, chunks = self.toolbox.tables(), sent.block.chunks
        for one in review.files_likely_to_change:
            one.indexed = one.path in tables.catalogue().paths
        review.chunks_used = len(chunks)
        sizes = (tables.file(path) for path in {chunk.path for chunk in chunks})
        report.review = review
        report.tokens_sent = sum(len(c.content) for c in chunks) // CHARACTERS_PER_TOKEN
        report.tokens_of_whole_files = sum(r.size for r in sizes if r) // CHARACTERS_PER_TOKEN
        return report

    def _likely(self, issue: str) -> tuple[IssueReport, tuple[Chunk, ...]]:
        """Files, tests and people by search, references and history, without a model; and the code
        of these files and tests."""
        result = self.toolbox.search.search(issue, top=30)
        best: dict[str, Hit] = {}
        for hit in sorted(result.units, key=lambda hit: hit.unit.kind in _HEADS):
            best.setdefault(hit.unit.path, hit)
        ranked = [file.path for file in result.files if file.path in best]
        roles = {path: best[path].unit.role for path in ranked}
        source = [best[path].unit for path in ranked if roles[path] == "source"][:LIKELY_FILES]
        files = [_likely_file(unit, unit.kind) for unit in source]
        tests: dict[str, tuple[Unit, str]] = {}
        for unit in source[:LIKELY_FILES_TESTED]:
            using = tests_of(self.toolbox.tables(), unit)
            for test in [one.caller for one in using if one.caller.role == "test"][:1]:
                tests.setdefault(test.id, (test, f"uses `{unit.qualified_name}`"))
        # Tests rank low unless they are asked for.
        asked = self.toolbox.search.search(f"tests {issue.splitlines()[0]}").units
        for unit in (hit.unit for hit in asked if hit.unit.role == "test"):
            if unit.kind not in _HEADS:
                tests.setdefault(unit.id, (unit, "has words of the title"))
        few = list(tests.values())[:LIKELY_TESTS]
        told = [_likely_file(unit, why) for unit, why in few]
        report = IssueReport(files=files, tests=told, owners=self._owners(files))
        units = (*source, *(unit for unit, _ in few))
        return report, tuple(unit_chunk(unit, "found for the issue") for unit in units)

    def _owners(self, files: list[LikelyFile]) -> list[Owner]:
        lines, latest = Counter[str](), dict[str, str]()
        for file in files[:OWNERS]:
            try:
                given = {"path": file.path, "lines": file.lines}
                told = TOOLS["history"].call(self.toolbox, given)
            except CodeQAError:  # no history here, or none of this file
                continue
            for commit in told.commits:
                first, last = map(int, commit.lines.split("-"))
                lines[commit.author] += last - first + 1
                latest[commit.author] = max(commit.date, latest.get(commit.author, ""))
        most = lines.most_common(OWNERS)
        return [Owner(name=name, lines=count, latest=latest[name]) for name, count in most]


def _likely_file(unit: Unit, why: str) -> LikelyFile:
    shown = unit_chunk(unit)  # of a long class its head
    lines = f"{shown.start_line}-{shown.end_line}"
    return LikelyFile(path=unit.path, lines=lines, symbol=unit.qualified_name, why=why)
