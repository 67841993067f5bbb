"""`codeqa privacy`: what is stored of this machine's user, and its deletion."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from codeqa.cli.command import cli, command
from codeqa.cli.console.text import PlainText
from codeqa.errors import UsageError
from codeqa.settings import load_settings

if TYPE_CHECKING:
    from codeqa.account import DeletionResult, Privacy

LOCAL = "local"
USER_HELP = "Name of a user behind a token, as 'privacy show' gives it there; else this machine's."


@cli.group()
def privacy() -> None:
    """Show or delete what is stored of you."""


@command(privacy, "show", ["codeqa privacy show", "codeqa privacy show --json"])
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--user", default=LOCAL, help=USER_HELP)
def show_command(as_json: bool, user: str) -> None:
    """Say what is stored, where, how long and who receives it."""
    from codeqa.account import privacy_report

    stored = _privacy().inventory.stored(user)
    if as_json:
        click.echo(json.dumps(stored.as_data(), ensure_ascii=False, indent=2))
    else:
        click.echo(_plain(privacy_report("", stored)))


@privacy.group()
def delete() -> None:
    """Delete a conversation, the profile or everything, for good."""


@command(delete, "conversation", ["codeqa privacy delete conversation 4f1c2a --yes"])
@click.argument("conversation", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--user", default=LOCAL, help=USER_HELP)
def delete_conversation_command(conversation: str, yes: bool, user: str) -> None:
    """Delete one conversation with its answers, thumbs and vectors."""
    found = _privacy()
    kept = found.conversation(conversation, user)
    _confirm(yes, f"Delete the conversation “{kept.title}” ({kept.turns:,} questions) for good?")
    _report(found.delete("conversation", user, kept.id, kept.repository))


@command(delete, "profile", ["codeqa privacy delete profile --yes"])
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--user", default=LOCAL, help=USER_HELP)
def delete_profile_command(yes: bool, user: str) -> None:
    """Delete what you told of yourself; conversations stay."""
    found = _privacy()
    _confirm(
        yes, f"Delete {len(found.inventory.stored(user).profile):,} lines of your profile for good?"
    )
    _report(found.delete("profile", user))


@command(delete, "everything", ["codeqa privacy delete everything --yes"])
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--user", default=LOCAL, help=USER_HELP)
def delete_everything_command(yes: bool, user: str) -> None:
    """Delete all conversations, the profile, thumbs, vectors and cached values.

    Indices of repositories and keys of models stay.
    """
    found = _privacy()
    stored = found.inventory.stored(user)
    _confirm(
        yes,
        f"Delete {stored.conversations:,} conversations with {stored.turns:,} questions and "
        f"{len(stored.profile):,} lines of your profile for good?",
    )
    _report(found.delete("everything", user))


def _privacy() -> Privacy:
    from codeqa.engine import open_privacy

    return open_privacy(load_settings())


def _confirm(yes: bool, question: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nobody can be asked here.", "Add --yes to delete it.")
    click.confirm(_plain(question), abort=True)


def _report(erased: DeletionResult) -> None:
    from codeqa.account import deletion_report

    click.echo(_plain(deletion_report(erased)).rstrip())


def _plain(markdown: str) -> str:
    """Markdown of our own as a terminal shows it."""
    return PlainText().feed(markdown.replace("**", "") + "\n").rstrip("\n")
