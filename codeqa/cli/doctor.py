"""`codeqa doctor`."""

from __future__ import annotations

from dataclasses import asdict

import click

from codeqa.cli.command import DONE, FAILED, command, complete_repositories, json_option
from codeqa.cli.console import print_json


@command("doctor", ["codeqa doctor", "codeqa doctor --repo flask"])
@click.option(
    "--repo",
    help="Look at this repository's index only.",
    shell_complete=complete_repositories,
)
@json_option
def doctor_command(repo: str | None, as_json: bool) -> int:
    """Check the installation, the settings, the data and every index."""
    from codeqa.doctor import examine
    from codeqa.repositories import find_repository
    from codeqa.settings import load_settings

    settings = load_settings()
    only = find_repository(settings, repo).root if repo else None
    failed = 0
    if as_json:
        checks = list(examine(settings, only))
        print_json([asdict(check) for check in checks])
        return DONE if all(check.ok for check in checks) else FAILED
    for check in examine(settings, only):
        failed += not check.ok
        click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}")
        if not check.ok and check.hint:
            click.echo(f"      {check.hint}")
    if failed:
        click.echo(f"{failed} {'check' if failed == 1 else 'checks'} failed", err=True)
    return FAILED if failed else DONE
