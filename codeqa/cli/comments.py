"""Describing methods with a language model: the estimate, the consent, the run.

`codeqa index --comments` and `llm_comments.py` both do it by this.
"""

from __future__ import annotations

import sys

import click

from codeqa.cli.console import ProgressDisplay
from codeqa.errors import UsageError
from codeqa.indexing import Indexer
from codeqa.indexing.comments import CommentPlan, add_comments, plan_comments
from codeqa.llm import Model, Models, parse_choice
from codeqa.settings import Settings
from codeqa.store import Location


def model_for_comments(models: Models, name: str = "", *, yes: bool = False) -> Model:
    """The model called `name`, else the one that is chosen.

    Raises UsageError for none, and when without `yes` nobody is there to agree; so before
    anything is done.
    """
    if name:
        models.prefer(parse_choice(name))
    model = models.connect()
    if model is None:
        raise UsageError(
            "No language model is chosen.",
            "Add --model provider/name, as in ollama/qwen3, or set CODEQA_MODEL.",
        )
    if not yes and not sys.stdin.isatty():
        raise UsageError("Nobody is there to be asked.", "Add --yes to send without asking.")
    return model


def describe_methods(
    settings: Settings,
    location: Location,
    model: Model,
    *,
    limit: int | None = None,
    yes: bool = False,
) -> None:
    """Say what it takes, ask, and describe.

    Raises ModelError; what was described until then is kept and written. The chosen embedding's
    vectors of these rows are dropped: see `embed_again`.
    """
    plan = plan_comments(settings, location, model.name, limit)
    click.echo(estimate(plan, model))
    if plan.requests and not yes:
        try:
            agreed = click.confirm(f"Send them to {model.host}?")
        except click.Abort:  # Ctrl-C or the end of the input: no
            click.echo()
            agreed = False
        if not agreed:
            click.echo("Nothing was sent.")
            return
    with ProgressDisplay() as show:
        written = add_comments(
            settings, location, plan.units, model.complete, model.name, show, model.close
        )
    click.echo(f"{written:,} description{'' if written == 1 else 's'} written.")


def estimate(plan: CommentPlan, model: Model) -> str:
    """What will be sent where and what comes back, in one line."""
    known = f"{plan.known:,} described before. " if plan.known else ""
    if not plan.requests:
        return f"{known}No other method needs a description."
    methods = f"{plan.requests:,} method{'' if plan.requests == 1 else 's'}"
    return (
        f"{known}{methods}, ≈ {plan.tokens_sent:,} tokens to {model.name} at {model.host}, "
        f"≈ {plan.tokens_back:,} back (never more than {plan.most_tokens_back:,})."
    )


def embed_again(settings: Settings, location: Location) -> None:
    """Fill in the vectors of the chosen embedding, for described methods have lost theirs."""
    if settings.embedding:
        with ProgressDisplay() as show:
            Indexer(settings, location).run(progress=show)
