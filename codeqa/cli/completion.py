"""`codeqa completion`: what a shell needs to complete commands, options, repositories and tools."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from codeqa.cli.command import command
from codeqa.environment import COMPLETION

INSTALL = {
    "bash": "codeqa completion bash >> ~/.bashrc",
    "zsh": "codeqa completion zsh >> ~/.zshrc",
    "fish": "codeqa completion fish > ~/.config/fish/completions/codeqa.fish",
}


@command("completion", list(INSTALL.values()))
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, repositories and tools."""
    made = get_completion_class(shell)
    assert made is not None
    root = context.find_root().command
    click.echo(f"# To install it: {INSTALL[shell]}")
    click.echo(made(root, {}, "codeqa", COMPLETION).source())


def complete(root: click.Command, instruction: str) -> None:
    """Print the completions that the script asks for, `bash_complete` or the like."""
    shell, _, _ = instruction.partition("_")
    if made := get_completion_class(shell):
        click.echo(made(root, {}, "codeqa", COMPLETION).complete())
