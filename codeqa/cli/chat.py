"""`codeqa chat`: a conversation on the terminal, which the page lists as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from codeqa.cli.command import command, question_options, repos_option


@command(
    "chat",
    [
        "codeqa chat                        about the repository of the current folder",
        "codeqa chat --repo flask --deep    the model reads on with tools",
        "codeqa chat --repo flask --repo celery   about both at once",
        "codeqa chat -c                     goes on where the last conversation ended",
        "codeqa chat < questions.txt        a question a line",
    ],
)
@repos_option
@question_options
@click.option("--continue", "-c", "go_on", is_flag=True, help="Go on with the last conversation.")
def chat_command(repos: tuple[str, ...], chosen: Mapping[str, Any], go_on: bool) -> int:
    """Ask one question after the other; /help lists what can be said besides.

    Conversations are kept, and the page lists them. Ctrl-C stops an answer, Ctrl-D ends.
    """
    from codeqa.cli.conversing import converse

    return converse(repos, go_on, **chosen)
