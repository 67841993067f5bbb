"""Review an issue: a model searches the code and says what the change would take."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeqa.chat.reader import Reader
from codeqa.chat.values import AnswerPiece, Gathered, ModelRequest
from codeqa.code.calls import tests_of
from codeqa.code.tools import TOOLS, Toolbox
from codeqa.context.block import ContextBlock, unit_chunk
from codeqa.errors import AnswerStoppedError, CodeQAError, UsageError
from codeqa.llm.client import Model
from codeqa.llm.values import Cancelled, never
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.review.report import IssueReport, IssueReview, LikelyFile, Owner, read_review
from codeqa.text.markdown import code_block, pieces
from codeqa.text.tokens import CHARACTERS_PER_TOKEN
from codeqa.types import EXTRACTIVE, TEXT_KINDS, Chunk, Unit

REVIEW_TOOLS = ("search_code", "symbol", "grep", "open_file")
REVIEW_ROUNDS = 10
MOST_CHARACTERS = 20_000
"""Characters of an issue that are read; the rest is cut off."""
_HEADS = TEXT_KINDS | {"module"}
"""Kinds of unit that say less than a definition in the same file."""
LIKELY_FILES = 6
LIKELY_FILES_TESTED = 3
"""How many likely files get a test named; tests of later ones say little."""
LIKELY_TESTS = 5
AUTHORS_NAMED = 3
"""Authors named, and likely files whose history is read to find them."""
ASK_AGAIN = (
    "That could not be read: {}. Respond with ONLY the JSON object, as described at the beginning."
)
UNREADABLE = (
    "The model's answer could not be read as a review ({}), so everything above comes from the "
    "search and the git history. The model wrote:"
)
NO_MODEL_ASKED = (
    "No language model was asked. These are the files, tests and people that match the words of "
    "the issue in the search and the git history; nobody has judged the issue itself."
)

_MARK = re.compile(r"\[((?:END OF )?ISSUE)\]", re.IGNORECASE)

Progress = AnswerPiece | IssueReport


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Reviews issues of one repository, with `model` or without one."""

    toolbox: Toolbox
    model: Model | None = None
    config_dir: Path | None = None

    @property
    def name(self) -> str:
        """Return the name of this responder: the model's."""
        return self.model.name if self.model else EXTRACTIVE

    def generate(self, gathered: Gathered) -> Generator[AnswerPiece, None, None]:
        """Yield a review as Markdown; the first line of the question is the issue's title.

        Raises as `review` does.
        """
        title, _, body = gathered.question.partition("\n")
        for piece in self.review(title, body, gathered.cancelled):
            if isinstance(piece, IssueReport):
                yield from pieces(f"{piece.text}\n")
            else:
                yield piece

    def report(self, title: str, body: str = "", cancelled: Cancelled = never) -> IssueReport:
        """Return the report of a review. Raises AnswerStoppedError if it was cancelled."""
        *_, report = None, *self.review(title, body, cancelled)
        if not isinstance(report, IssueReport):
            raise AnswerStoppedError("The review was stopped before it was complete.", "Ask again.")
        return report

    def review(
        self, title: str, body: str = "", cancelled: Cancelled = never
    ) -> Iterator[Progress]:
        """Yield looks and requests as they happen, then the cited code, and the report at the end.

        A model whose answer cannot be read is asked once more; if that fails too, the report quotes
        its answer. Raises UsageError for an issue without words, ModelError if the model fails.
        """
        issue = mask_secrets(f"{title.strip()}\n\n{body.strip()}".strip())[:MOST_CHARACTERS]
        if not re.search(r"\w", issue):
            raise UsageError("The issue is empty.", "Give a title, a body, or both.")
        report, chunks = self._likely(issue)
        if self.model is None:
            yield ModelRequest(block=ContextBlock(chunks))
            yield report.model_copy(update={"note": NO_MODEL_ASKED})
            return
        messages = self._messages(issue)
        window = self.model.window()
        reader = Reader(
            self.model, self.toolbox, self.config_dir, REVIEW_ROUNDS, tools=REVIEW_TOOLS
        )
        largest = ModelRequest()
        for _ in range(2):
            text = ""
            for piece in reader.follow(messages, window, cancelled):
                if isinstance(piece, str):
                    text += piece
                    continue
                yield piece
                if isinstance(piece, ModelRequest):
                    largest = max(piece, largest, key=lambda request: len(request.block.chunks))
            if cancelled():
                return
            review, problem = read_review(text)
            if review is not None:
                break
            messages.append({"role": "assistant", "content": text or "…"})
            messages.append({"role": "user", "content": ASK_AGAIN.format(problem)})
        sent = {chunk.id for chunk in largest.block.chunks}
        unsent = tuple(chunk for chunk in chunks if chunk.id not in sent)
        yield replace(largest, block=ContextBlock(largest.block.chunks + unsent))
        if review is None:
            note = f"{UNREADABLE.format(problem)}\n\n{code_block(text.strip())}"
            yield report.model_copy(update={"note": note})
        else:
            yield self._judged(report, review, largest.block.chunks)

    def _messages(self, issue: str) -> list[Mapping[str, Any]]:
        # The text is not ours: nothing in it may look like the marks around it.
        title, _, body = _MARK.sub(r"(\1)", issue).partition("\n\n")
        user = render_prompt("review_user", self.config_dir, title=title, body=body)
        return [
            {"role": "system", "content": render_prompt("review_system", self.config_dir)},
            {"role": "user", "content": user},
        ]

    def _judged(
        self, report: IssueReport, review: IssueReview, chunks: Sequence[Chunk]
    ) -> IssueReport:
        """Add the model's review, checked, and the size of the `chunks` that the model was sent."""
        tables = self.toolbox.tables()
        for file in review.files_likely_to_change:
            file.indexed = file.path in tables.catalogue().paths
        review.chunks_used = len(chunks)
        report.review = review
        characters = sum(len(chunk.content) for chunk in chunks)
        report.tokens_sent = int(characters / CHARACTERS_PER_TOKEN)
        files = map(tables.file, {chunk.path for chunk in chunks})
        size = sum(file.size for file in files if file)
        report.tokens_of_whole_files = int(size / CHARACTERS_PER_TOKEN)
        return report

    def _likely(self, issue: str) -> tuple[IssueReport, tuple[Chunk, ...]]:
        """Return the likely files, tests and people, found without a model, and their code."""
        result = self.toolbox.search.search(issue, top=30)
        best: dict[str, Unit] = {}
        units = [hit.unit for hit in result.units]
        for unit in sorted(units, key=lambda unit: unit.kind in _HEADS):
            best.setdefault(unit.path, unit)
        ranked = [best[file.path] for file in result.files if file.path in best]
        source = [unit for unit in ranked if unit.role == "source"][:LIKELY_FILES]
        tests = self._tests(issue, source[:LIKELY_FILES_TESTED])
        files = [_likely_file(unit, unit.kind) for unit in source]
        report = IssueReport(
            files=files,
            tests=[_likely_file(unit, why) for unit, why in tests],
            owners=self._owners(files),
        )
        units = source + [unit for unit, _ in tests]
        return report, tuple(unit_chunk(unit, "found for the issue") for unit in units)

    def _tests(self, issue: str, source: Sequence[Unit]) -> list[tuple[Unit, str]]:
        """Return likely tests and why: one using each unit, then those with words of the title."""
        tests: dict[str, tuple[Unit, str]] = {}
        for unit in source:
            for call in tests_of(self.toolbox.tables(), unit):
                if call.caller.role == "test":
                    why = f"uses `{unit.qualified_name}`"
                    tests.setdefault(call.caller.id, (call.caller, why))
                    break
        # Tests rank low unless the question asks for them.
        for hit in self.toolbox.search.search(f"tests {issue.splitlines()[0]}").units:
            if hit.unit.role == "test" and hit.unit.kind not in _HEADS:
                tests.setdefault(hit.unit.id, (hit.unit, "has words of the title"))
        return list(tests.values())[:LIKELY_TESTS]

    def _owners(self, files: list[LikelyFile]) -> list[Owner]:
        lines, latest = Counter[str](), dict[str, str]()
        for file in files[:AUTHORS_NAMED]:
            arguments = {"path": file.path, "lines": file.lines}
            try:
                history = TOOLS["history"].call(self.toolbox, arguments)
            except CodeQAError:  # no git history here, or none of this file
                continue
            for commit in history.commits:
                first, last = map(int, commit.lines.split("-"))
                lines[commit.author] += last - first + 1
                latest[commit.author] = max(commit.date, latest.get(commit.author, ""))
        most = lines.most_common(AUTHORS_NAMED)
        return [Owner(name=name, lines=count, latest=latest[name]) for name, count in most]


def _likely_file(unit: Unit, why: str) -> LikelyFile:
    chunk = unit_chunk(unit)  # only the head of a long class
    lines = f"{chunk.start_line}-{chunk.end_line}"
    return LikelyFile(path=unit.path, lines=lines, symbol=unit.qualified_name, why=why)
