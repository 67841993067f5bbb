"""Describe each method by a language model: `python llm_comments.py [REPO]`.

The two or three lines are searched with the code. The same as `codeqa index --comments [REPO]`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

try:
    from codeqa.cli import main as codeqa
    from codeqa.indexing.method_descriptions import add_descriptions as add_comments
    from codeqa.indexing.method_descriptions import describe
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: run `make setup`, then .venv/bin/python llm_comments.py")

__all__ = ["add_comments", "describe", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `codeqa index --comments` with its arguments; return the exit status."""
    return codeqa(["index", "--comments", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
