"""`codeqa privacy` shows and deletes what is stored of a user; `codeqa state` moves it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from codeqa.account import SCOPES, deletion_preview, deletion_report, privacy_report
from codeqa.cli.command import ask_first, command, json_option, yes_option
from codeqa.cli.console import PlainText, print_either
from codeqa.engine import open_privacy
from codeqa.errors import UsageError
from codeqa.extensions import load_extension
from codeqa.settings import load_settings
from codeqa.state import open_database, open_state

user_option = click.option(
    "--user",
    default="local",
    help="Name of the user of a token, as 'privacy show' prints it; default: this machine's user.",
)


@click.group("privacy")
def privacy_command() -> None:
    """Show or delete what is stored about you."""


@command("show", ["codeqa privacy show", "codeqa privacy show --json"], group=privacy_command)
@json_option
@user_option
def show_command(as_json: bool, user: str) -> None:
    """Show what is stored, where, for how long, and who receives it."""
    stored = open_privacy(load_settings()).stored(user)
    print_either(as_json, asdict(stored), _plain(privacy_report(stored)))


@command(
    "delete",
    [
        "codeqa privacy delete conversation 4f1c2a",
        "codeqa privacy delete profile",
        "codeqa privacy delete everything --yes",
    ],
    group=privacy_command,
)
@click.argument("what", type=click.Choice(SCOPES))
@click.argument("conversation", metavar="[ID]", default="")
@yes_option
@json_option
@user_option
def delete_command(what: str, conversation: str, yes: bool, as_json: bool, user: str) -> None:
    """Delete a conversation, the profile or everything, for good.

    A conversation is deleted with its answers, ratings and vectors. The profile is what you said
    about yourself. Everything means all conversations and the profile; indices of repositories
    and keys of models stay.
    """
    privacy, repository = open_privacy(load_settings()), None
    if what == "conversation":
        repository = privacy.conversation(conversation, user).repository
    preview = deletion_preview(what, privacy.stored(user)) or "Nothing of that is stored."
    ask_first(yes, f"{preview}\nDelete it?", "delete it")
    erased = privacy.delete(what, user, conversation, repository)
    print_either(as_json, asdict(erased), _plain(deletion_report(erased)).rstrip())


def _plain(markdown: str) -> str:
    """Return CodeQA's own Markdown as text for a terminal."""
    return PlainText().feed(markdown.replace("**", "") + "\n").rstrip("\n")


@click.group("state")
def state_command() -> None:
    """Move conversations between a file and PostgreSQL."""


@command("copy", ["CODEQA_STATE=postgresql://… codeqa state copy"], group=state_command)
@click.option(
    "--from", "source", help="File or postgresql://…; default: the file in the data folder."
)
@click.option("--to", "target", help="File or postgresql://…; default: CODEQA_STATE.")
@click.option("--replace", is_flag=True, help="Overwrite what the target holds.")
@json_option
def copy_command(source: str, target: str, replace: bool, as_json: bool) -> None:
    """Copy everything that is stored of all users, or nothing if that fails.

    Stop the servers first: what they save meanwhile is not copied. Pass a password in CODEQA_STATE
    or PGPASSWORD rather than in the command.
    """
    state = open_state(load_settings())
    source, target = source or str(state.path), target or state.address or str(state.path)
    origin, copy = open_database(source), open_database(target)
    if origin is copy or not ("://" in source or Path(source).is_file()):
        raise UsageError(
            f"{origin.place} cannot be copied to {copy.place}.",
            "Name two different places, and make sure that the first exists.",
        )
    rows = load_extension("copy_state")(origin, copy, replace)
    print_either(as_json, rows, f"{copy.place} now holds the same {sum(rows.values()):,} entries.")
