"""Reviews of issues: what an issue takes, found out by a model that searches the code; without a
model the files, tests and people that it is likely to concern.

`ChunkIndex` is the small index of lines that such reviewers are usually built on, to the letter.
"""

from codeqa.review.chunk_index import ChunkIndex
from codeqa.review.report import IssueReport, read_review
from codeqa.review.reviewer import MOST_CHARACTERS, WITHOUT, IssueGenerator, Reviewer

__all__ = [
    "MOST_CHARACTERS",
    "WITHOUT",
    "ChunkIndex",
    "IssueGenerator",
    "IssueReport",
    "Reviewer",
    "read_review",
]
