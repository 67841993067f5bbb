"""What there is to say of an issue: the fields of a review, and the report as it is read."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from codeqa.text.markdown import cite, code_span, escape

_LINES = re.compile(r"(\d{1,7})(?:\D+(\d{1,7}))?")
"""As a model may write them: `120-180`, `L120–L180`."""


class LikelyFile(BaseModel):
    """A file that is likely to change."""

    path: str
    lines: str = ""
    """As 120-180; '' for none in particular."""
    symbol: str = ""
    """The definition in these lines that the search found."""
    why: str = ""
    indexed: bool = True
    """Whether there is such a file."""


class Owner(BaseModel):
    """Who knows the likely files: by git, the last to change `lines` of their likely lines."""

    name: str
    lines: int
    latest: str
    """Date of the last of these changes, YYYY-MM-DD."""


class IssueReview(BaseModel, extra="ignore"):
    """What a model found out about an issue."""

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
    """None where no model was asked, or what it wrote cannot be read and stands in `note`."""
    note: str = ""
    files: list[LikelyFile] = []
    tests: list[LikelyFile] = []
    owners: list[Owner] = []
    tokens_sent: int = 0
    """Of code, estimated at four characters a token."""
    tokens_of_whole_files: int = 0
    """What the files would have cost that this code is from."""

    @property
    def text(self) -> str:
        """The report as Markdown; what a model judged goes before what search and git say."""
        review, parts = self.review, []
        if review:
            parts += [
                f"**Difficulty {review.difficulty_score} of 5 · {review.recommended_level}**",
                review.summary,
                f"**One has to know:** {', '.join(review.concepts_required)}",
                f"**Advice:** {review.mentoring_advice}",
            ]
        judged = review.files_likely_to_change if review else []
        owners = [
            f"- {escape(one.name)}: {one.lines:,} of these lines, the latest {one.latest}"
            for one in self.owners
        ]
        for title, items in (
            ("Likely to change, says the model", list(map(_item, judged))),
            ("Likely to change, by the search alone", list(map(_item, self.files))),
            ("Tests, by what they use and by their words", list(map(_item, self.tests))),
            ("Who wrote the likely lines, by git", owners),
        ):
            if items:
                parts.append("\n".join([f"**{title}**", "", *items]))
        if review:
            parts.append(
                f"{review.chunks_used} pieces of code were read, about {self.tokens_sent:,} "
                f"tokens; the whole files would have been {self.tokens_of_whole_files:,}."
            )
        return "\n\n".join(filter(None, (*parts, self.note)))


def _item(file: LikelyFile) -> str:
    lines = _LINES.search(file.lines)
    place = cite(file.path, int(lines[1]), int(lines[2] or lines[1])) if lines else ""
    named = code_span(file.symbol) if file.symbol else ""
    told = ", ".join(filter(None, (named, " ".join(file.why.split()))))
    missing = "" if file.indexed else "(there is no such file)"
    return " ".join(filter(None, ("-", place or code_span(file.path), told, missing)))


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
