"""`codeqa doctor`."""

from __future__ import annotations

import click

from codeqa.cli.command import DONE, FAILED, command
from codeqa.doctor import examine
from codeqa.repositories import find_repository
from codeqa.settings import load_settings


@command("doctor", ["codeqa doctor", "codeqa doctor --repo flask"])
@click.option("--repo", help="Look at this repository's index only.")
def doctor_command(repo: str | None) -> int:
    """Check the installation, the settings, the data and every index."""
    settings = load_settings()
    only = find_repository(settings, repo).root if repo else None
    failed = 0
    for check in examine(settings, only):
        failed += not check.ok
        click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}")
        if not check.ok and check.hint:
            click.echo(f"      {check.hint}")
    if failed:
        click.echo(f"{failed} {'check' if failed == 1 else 'checks'} failed", err=True)
    return FAILED if failed else DONE
