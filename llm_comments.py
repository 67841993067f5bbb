"""Describe methods with a language model: `python llm_comments.py <repo>`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from codeqa.cli.comments import describe_methods, embed_again, model_for_comments
from codeqa.cli.console import front_door, run_main
from codeqa.engine import open_engine
from codeqa.errors import UsageError
from codeqa.indexing.comments import add_comments
from codeqa.indexing.describing import describe
from codeqa.settings import load_settings

__all__ = ["add_comments", "describe", "main"]

EXAMPLES = (
    "python llm_comments.py ~/src/project",
    "python llm_comments.py ~/src/project --model openai/gpt-4o-mini",
    "python llm_comments.py ~/src/project --model ollama/qwen3 --limit 200",
)


def main() -> None:
    """Command line of this script."""
    parser = front_door(
        "python llm_comments.py",
        "Write a description of two or three lines beside every method of an indexed repository. "
        "It is searched and embedded with the code. The source of the methods is sent to the "
        "model's host; known descriptions are not asked for again.",
        EXAMPLES,
    )
    parser.add_argument("repo", type=Path, help="folder of an indexed repository")
    parser.add_argument(
        "--model",
        metavar="PROVIDER/NAME",
        help="the model to ask; default: the one that is chosen (`codeqa models`)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="describe at most N more methods")
    parser.add_argument("--yes", action="store_true", help="do not ask before sending")
    arguments = parser.parse_args()
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError("--limit must be at least 1.")

    engine = open_engine(load_settings(arguments.repo), arguments.repo)
    with closing(engine):
        model = model_for_comments(engine, arguments.model or "", yes=arguments.yes)
        describe_methods(engine, model, limit=arguments.limit, yes=arguments.yes)
        embed_again(engine)


if __name__ == "__main__":
    sys.exit(run_main(main, program="llm_comments.py"))
