"""`codeqa chat`: a conversation on the terminal, which the page lists as well."""

from __future__ import annotations

import click

from codeqa.cli.command import (
    command,
    effort_option,
    hyde_option,
    model_option,
    repo_option,
    rerank_option,
)


@command(
    "chat",
    [
        "codeqa chat                        about the repository of the current folder",
        "codeqa chat --repo flask --deep    the model reads on with tools",
        "codeqa chat -c                     goes on where the last conversation ended",
        "codeqa chat < questions.txt        a question a line",
    ],
)
@repo_option
@effort_option
@click.option("--deep", is_flag=True, help="The same as --effort deep.")
@rerank_option
@hyde_option
@model_option
@click.option("--no-model", is_flag=True, help="Answer from the code alone, without any.")
@click.option("--strict", is_flag=True, help="Let the model say only what the code shows.")
@click.option("--continue", "-c", "go_on", is_flag=True, help="Go on with the last conversation.")
def chat_command(
    repo: str | None,
    effort: str | None,
    deep: bool,
    rerank: bool,
    hyde: str | None,
    model: str,
    no_model: bool,
    strict: bool,
    go_on: bool,
) -> int:
    """Ask one question after the other; /help lists what can be said besides.

    Conversations are kept, and the page lists them. Ctrl-C stops an answer, Ctrl-D ends.
    """
    from codeqa.cli.conversing import converse

    return converse(
        repo,
        model,
        go_on,
        use_model=not no_model,
        effort="deep" if deep else effort or "",
        rerank=rerank,
        hyde=hyde or "",
        strict=strict,
    )
