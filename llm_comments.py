"""Describe methods with a language model: `python llm_comments.py [REPO]` is
`codeqa index --comments [REPO]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from codeqa.cli import main as codeqa
from codeqa.indexing.comments import add_comments, describe

__all__ = ["add_comments", "describe", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """`codeqa index --comments` with its arguments; gives the exit status."""
    return codeqa(["index", "--comments", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
