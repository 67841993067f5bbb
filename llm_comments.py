"""Describe methods with a language model: `python llm_comments.py <repo>`."""

from __future__ import annotations

import sys
from pathlib import Path

from codeqa.console import ProgressDisplay, front_door, run_main
from codeqa.errors import UsageError
from codeqa.indexing.comments import (
    MAX_TOKENS,
    TYPICAL_TOKENS,
    add_comments,
    candidates,
    describe,
)
from codeqa.llm import Model, Models, parse_choice
from codeqa.settings import Settings, load_settings
from codeqa.store import locate
from codeqa.tokens import estimate_tokens

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
    parser.add_argument("--limit", type=int, metavar="N", help="describe at most N methods")
    parser.add_argument("--yes", action="store_true", help="do not ask before sending")
    arguments = parser.parse_args()
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError("--limit must be at least 1.")

    settings = load_settings(arguments.repo)
    location = locate(settings, arguments.repo)
    units = candidates(location)[: arguments.limit]
    with _model(settings, arguments.model) as model:
        tokens = sum(estimate_tokens(unit.source_code) for unit in units)
        methods = f"{len(units):,} method{'s' if len(units) != 1 else ''}"
        print(
            f"{methods}, ≈ {tokens:,} tokens to {model.name} at {model.host} at "
            f"most, ≈ {len(units) * TYPICAL_TOKENS:,} back (never more than {MAX_TOKENS:,} each)."
        )
        if not arguments.yes and not _agreed(f"Send them to {model.host}?"):
            print("Nothing was sent.")
            return
        with ProgressDisplay() as display:
            changed = add_comments(
                settings, location, units, model.complete, model.name, display, model.close
            )
    print(f"{changed:,} descriptions written.")
    if settings.embedding and changed:
        print("Run create_tables.py to embed the described methods again.")


def _model(settings: Settings, name: str | None) -> Model:
    """The model called `name`, else the one that is chosen. Raises UsageError for none."""
    models = Models(settings)
    if name:
        models.prefer(parse_choice(name))
    model = models.connect()
    if model is None:
        raise UsageError(
            "No language model is chosen.",
            "Add --model provider/name, as in ollama/qwen3, or set CODEQA_MODEL.",
        )
    return model


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to be asked.", "Add --yes to send without asking.")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


if __name__ == "__main__":
    sys.exit(run_main(main, program="llm_comments.py"))
