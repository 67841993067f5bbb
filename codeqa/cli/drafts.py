"""`--hyde`: how many drafts of the answer are searched by, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from codeqa.cli.command import Command
from codeqa.types import HYDE_MODES

DRAFTS = {"hyde-1": "first", "hyde-2": "second"}


def hyde_option(default: str, explained: str) -> Callable[[Command], Command]:
    """The option; `default` '' leaves it to the setting, `explained` says which that is."""

    def decorate(function: Command) -> Command:
        decorated: Command = click.option(
            "--hyde",
            type=click.Choice(HYDE_MODES),
            default=default or None,
            help=f"Search also by drafts of a language model: off, one or two; {explained}.",
            metavar="MODE",
        )(function)
        return decorated

    return decorate


def drafts_line(stages: Iterable[Mapping[str, Any]]) -> str:
    """What came of the drafts, each with its time, as a line; '' when there were none."""
    parts = []
    for stage in stages:
        if which := DRAFTS.get(str(stage.get("name"))):
            outcome, took = str(stage.get("outcome")), float(stage.get("milliseconds") or 0)
            parts.append(f"{which} {outcome}" + (f" in {took / 1000:.1f} s" if took else ""))
    return f"Drafts: {', '.join(parts)}" if parts else ""
