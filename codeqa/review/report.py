"""The review of an issue as data and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from codeqa.text.markdown import cite, code_span, escape, joined

_LINES = re.compile(r"(\d{1,7})(?:\D+(\d{1,7}))?")
"""Lines as a model may write them: `120-180`, `L120–L180`."""


class LikelyFile(BaseModel):
    """A file that is likely to change."""

    path: str
    lines: str = ""
    """Such as 120-180; '' for the whole file."""
    symbol: str = ""
    """Name of the definition in these lines."""
    why: str = ""
    indexed: bool = True
    """True if the index has such a file."""

    def __str__(self) -> str:
        location = code_span(self.path)
        if lines := _LINES.search(self.lines):
            location = cite(self.path, int(lines[1]), int(lines[2] or lines[1]))
        symbol = code_span(self.symbol) if self.symbol else ""
        why = ", ".join(filter(None, (symbol, " ".join(self.why.split()))))
        missing = "" if self.indexed else "(there is no such file)"
        return " ".join(filter(None, (location, why, missing)))


class Owner(BaseModel):
    """An author who last changed some of the likely lines, by git."""

    name: str
    lines: int
    """How many of the likely lines they changed last."""
    latest: str
    """Date of their last change, YYYY-MM-DD."""

    def __str__(self) -> str:
        return f"{escape(self.name)}: {self.lines:,} of these lines, the latest {self.latest}"


class IssueReview(BaseModel, extra="ignore"):
    """A model's judgement of an issue."""

    summary: str = Field(min_length=1)
    difficulty_score: int = Field(ge=1, le=5)
    recommended_level: Literal["Junior", "Mid", "Senior", "Senior+"]
    concepts_required: list[str]
    mentoring_advice: str
    files_likely_to_change: list[LikelyFile] = []
    chunks_used: int = 0
    """Number of chunks that the model was sent; we count them."""


class IssueReport(BaseModel):
    """The findings of the model, the search and git about an issue."""

    review: IssueReview | None = None
    """None when no model was asked, or when its answer was unreadable; `note` then quotes it."""
    note: str = ""
    files: list[LikelyFile] = []
    tests: list[LikelyFile] = []
    owners: list[Owner] = []
    tokens_sent: int = 0
    """Tokens in the chunks of `review`, at four characters each."""
    tokens_of_whole_files: int = 0

    @property
    def text(self) -> str:
        """Return the report as Markdown, with the model's judgement first."""
        review, parts = self.review, []
        if review:
            parts += [
                f"**Difficulty {review.difficulty_score} of 5 · {review.recommended_level}**",
                review.summary,
                f"**Knowledge needed:** {', '.join(review.concepts_required)}",
                f"**Advice:** {review.mentoring_advice}",
                _section("Likely to change, according to the model", review.files_likely_to_change),
            ]
        parts += [
            _section("Likely to change, according to the search", self.files),
            _section("Tests that use this code or share words with the issue", self.tests),
            _section("Who last changed these lines, according to git", self.owners),
        ]
        if review:
            parts.append(
                f"The model read {review.chunks_used} pieces of code, about {self.tokens_sent:,} "
                f"tokens; the whole files have {self.tokens_of_whole_files:,}."
            )
        return joined(parts + [self.note])


def _section(title: str, items: Sequence[LikelyFile] | Sequence[Owner]) -> str:
    """Return a heading with the items as a list; '' when there are no items."""
    lines = "\n".join(f"- {item}" for item in items)
    return f"**{title}**\n\n{lines}" if lines else ""


def read_review(text: str) -> tuple[IssueReview | None, str]:
    """Return the review in `text` and '', or None and the reason why it cannot be read."""
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        return None, "it holds no JSON object"
    try:
        return IssueReview.model_validate_json(text[begin : end + 1]), ""
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, problem["loc"]))
        return None, f"{location}: {problem['msg']}" if location else str(problem["msg"])
