"""`codeqa privacy`: what is stored of this machine's user, and its deletion."""

from __future__ import annotations

from dataclasses import asdict

import click

from codeqa.account import DeletionResult, Privacy, deletion_report, privacy_report
from codeqa.cli.command import ask_first, command, json_option, yes_option
from codeqa.cli.console import PlainText, print_json
from codeqa.engine import open_privacy
from codeqa.settings import load_settings

user_option = click.option(
    "--user",
    default="local",
    help="Name of a user behind a token, as 'privacy show' gives it there; else this machine's.",
)


@click.group("privacy")
def privacy_command() -> None:
    """Show or delete what is stored of you."""


@command("show", ["codeqa privacy show", "codeqa privacy show --json"], group=privacy_command)
@json_option
@user_option
def show_command(as_json: bool, user: str) -> None:
    """Say what is stored, where, how long and who receives it."""
    stored = _privacy().inventory.stored(user)
    if as_json:
        print_json(asdict(stored))
    else:
        click.echo(_plain(privacy_report("", stored)))


@privacy_command.group("delete")
def delete_command() -> None:
    """Delete a conversation, the profile or everything, for good."""


@command("conversation", ["codeqa privacy delete conversation 4f1c2a --yes"], group=delete_command)
@click.argument("conversation", metavar="ID")
@yes_option
@user_option
def delete_conversation_command(conversation: str, yes: bool, user: str) -> None:
    """Delete one conversation with its answers, thumbs and vectors."""
    found = _privacy()
    kept = found.conversation(conversation, user)
    _confirm(yes, f"Delete the conversation “{kept.title}” ({kept.turns:,} questions) for good?")
    _report(found.delete("conversation", user, kept.id, kept.repository))


@command("profile", ["codeqa privacy delete profile --yes"], group=delete_command)
@yes_option
@user_option
def delete_profile_command(yes: bool, user: str) -> None:
    """Delete what you told of yourself; conversations stay."""
    found = _privacy()
    _confirm(
        yes, f"Delete {len(found.inventory.stored(user).profile):,} lines of your profile for good?"
    )
    _report(found.delete("profile", user))


@command("everything", ["codeqa privacy delete everything --yes"], group=delete_command)
@yes_option
@user_option
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
    return open_privacy(load_settings())


def _confirm(yes: bool, question: str) -> None:
    ask_first(yes, _plain(question), "delete it")


def _report(erased: DeletionResult) -> None:
    click.echo(_plain(deletion_report(erased)).rstrip())


def _plain(markdown: str) -> str:
    """Markdown of our own as a terminal shows it."""
    return PlainText().feed(markdown.replace("**", "") + "\n").rstrip("\n")
