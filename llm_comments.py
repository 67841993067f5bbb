"""Describe methods with a language model: `python llm_comments.py <repo>`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click

from codeqa.cli.command import front_door
from codeqa.cli.index import describe_methods, model_for_comments
from codeqa.indexing.comments import add_comments, describe
from codeqa.llm import Models
from codeqa.repositories import open_location
from codeqa.settings import load_settings

__all__ = ["add_comments", "describe", "main"]


@front_door(
    "llm_comments.py",
    [
        "python llm_comments.py ~/src/project",
        "python llm_comments.py ~/src/project --model openai/gpt-4o-mini",
        "python llm_comments.py ~/src/project --model ollama/qwen3 --limit 200",
    ],
)
@click.argument("repo", type=Path)
@click.option(
    "--model",
    default="",
    metavar="PROVIDER/NAME",
    help="The model to ask; default: the one that is chosen ('codeqa models').",
)
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Describe at most N more methods."
)
@click.option("--yes", is_flag=True, help="Do not ask before sending.")
def main(repo: Path, model: str, limit: int | None, yes: bool) -> None:
    """Write a description of two or three lines beside every method of an indexed repository.

    It is searched and embedded with the code. The source of the methods is sent to the model's
    host; known descriptions are not asked for again.
    """
    settings = load_settings(repo)
    location = open_location(settings, repo)
    with closing(Models(settings)) as models:
        chosen = model_for_comments(models, model, yes=yes)
        describe_methods(settings, location, chosen, limit=limit, yes=yes)


if __name__ == "__main__":
    sys.exit(main())
