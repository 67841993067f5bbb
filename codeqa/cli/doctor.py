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
@click.option(
    "--repair",
    is_flag=True,
    help="Mend damaged indices, remove what dead runs left, set a damaged state file aside and "
    "keep what can be read of it; says what was done.",
)
@json_option
def doctor_command(repo: str | None, repair: bool, as_json: bool) -> int:
    """Check the installation, the settings, the data and every index."""
    from codeqa.doctor import examine
    from codeqa.repositories import find_repository
    from codeqa.settings import load_settings

    settings = load_settings()
    only = find_repository(settings, repo).root if repo else None
    failed, checks = 0, []
    for check in examine(settings, only, repair=repair):
        checks.append(asdict(check))
        failed += not check.ok
        if as_json:
            continue
        click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}")
        if check.repaired:
            click.echo(f"      repaired: {check.repaired}")
        if not check.ok and check.hint:
            click.echo(f"      {check.hint}")
    if as_json:
        print_json(checks)
    elif failed:
        click.echo(f"{failed} {'check' if failed == 1 else 'checks'} failed", err=True)
    return FAILED if failed else DONE
