"""`codeqa policy`: the rules that decide how a message is answered, and which decided one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import click

from codeqa.chat.hooks import ARGUMENTS, load_hooks
from codeqa.chat.policy import Explained, explain_message, policy_rules
from codeqa.cli.command import command, json_option
from codeqa.cli.console import format_table, print_either, print_json, visible
from codeqa.settings import load_settings

NOT_SHOWN = ("intent", "rules")
"""Fields of a decision that have a line of their own."""


@command(
    "policy",
    [
        "codeqa policy                                     the table of rules",
        'codeqa policy "where are sessions opened?"        what is done for a first message',
        'codeqa policy "and who calls it?" --history --context',
        'codeqa policy "how is the cache cleared?" --history --context --retrieval auto',
        'codeqa policy "@codebase who calls open?" --json',
    ],
)
@click.argument("message", required=False)
@click.option("--history", is_flag=True, help="As if there were earlier turns.")
@click.option("--context", is_flag=True, help="As if those had found code.")
@click.option("--off-topic", is_flag=True, help="As if it were far from what they were about.")
@click.option(
    "--retrieval",
    type=click.Choice(("explicit", "auto")),
    metavar="MODE",
    help="explicit or auto; default as CODEQA_RETRIEVAL says.",
)
@json_option
def policy_command(
    message: str | None,
    history: bool,
    context: bool,
    off_topic: bool,
    retrieval: str | None,
    as_json: bool,
) -> None:
    """Show the rules of the policy, or which of them decide for MESSAGE.

    In each group the first rule that fits decides. Nothing is sent, looked up or kept; the
    intent is read from the words alone, where an answer may ask a model as well.
    """
    settings = load_settings()
    if message is not None:
        explained = explain_message(
            message,
            history=history,
            context=context,
            off_topic=off_topic,
            auto=(retrieval or settings.retrieval) == "auto",
        )
        print_either(as_json, asdict(explained), _explained(explained))
        return
    rules = policy_rules()
    hooks = load_hooks(settings)
    called = {name: hooks.names(name) for name in ARGUMENTS}
    if as_json:
        print_json({"rules": rules, "hooks": called, "skipped": hooks.skipped})
        return
    click.echo(_table(rules))
    click.echo("\nHooks, in the order in which they are called:")
    for name, functions in called.items():
        click.echo(visible(f"  {name:<18} {', '.join(functions) or '-'}"))
    for sentence in hooks.skipped:
        click.echo(visible(sentence), err=True)


def _table(rules: Iterable[Mapping[str, str]]) -> str:
    return format_table(("group", "rule", "when", "then"), [(*rule.values(),) for rule in rules])


def _explained(explained: Explained) -> str:
    intent, decision = explained.intent, explained.decision
    treated = "" if decision.intent == intent.name else f", treated as {decision.intent}"
    reason = f": {intent.reason}" if intent.reason else ""
    text = (
        f"Intent    {intent.name}{treated} (confidence {intent.confidence:.2f}, "
        f"by {intent.source}{reason})\n"
        f"Features  {_set(explained.features)}\nDecision  {_set(decision)}\n"
    )
    return f"{visible(text)}\n{_table(explained.rules)}"


def _set(values: Any) -> str:
    """Names of what is true, and with its value what is more than true."""
    shown = [
        name if value is True else f"{name}={value}"
        for name, value in asdict(values).items()
        if value and name not in NOT_SHOWN
    ]
    return ", ".join(shown) or "none"
