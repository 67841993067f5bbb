"""`codeqa repos`: the indexed repositories."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from codeqa.cli.command import ask_first, command, json_option, yes_option
from codeqa.cli.console import format_table, human_bytes, print_json
from codeqa.repositories import find_repository, remove_repository, report_repositories
from codeqa.settings import load_settings


@click.group("repos")
def repos_command() -> None:
    """List or remove the indexed repositories."""


@command("list", ["codeqa repos list", "codeqa repos list --json"], group=repos_command)
@json_option
def repos_list_command(as_json: bool) -> None:
    """List the indexed repositories, their size and where the data lies."""
    settings = load_settings()
    reports = report_repositories(settings)
    if as_json:
        print_json([asdict(report) for report in reports])
        return
    click.echo(f"Data: {settings.data_dir}", err=True)
    if not reports:
        click.echo("No repository is indexed. Index one: codeqa index /path/to/it", err=True)
        return
    header = ("name", "files", "units", "on disk", "updated", "state", "path")
    table = [
        (
            report.name,
            f"{report.files:,}",
            f"{report.units:,}",
            human_bytes(report.bytes_on_disk),
            _when(report.updated_at),
            report.state,
            report.path,
        )
        for report in reports
    ]
    click.echo(format_table(header, table))


@command(
    "remove",
    ["codeqa repos remove flask", "codeqa repos remove ~/src/flask --yes"],
    group=repos_command,
)
@click.argument("repo")
@yes_option
def repos_remove_command(repo: str, yes: bool) -> None:
    """Delete the index of a repository.

    The repository itself is not touched.
    """
    settings = load_settings()
    root = find_repository(settings, repo).root
    ask_first(yes, f"Remove the index of {root}?", "remove the index")
    remove_repository(settings, str(root))
    click.echo(f"Removed the index of {root}")


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "-"
