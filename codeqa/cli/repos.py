"""`codeqa repos`: the indexed repositories."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

import click

from codeqa.cli.command import cli, command
from codeqa.cli.console import format_table, human_bytes
from codeqa.cli.repository import indexed_root
from codeqa.errors import UsageError
from codeqa.settings import load_settings


@cli.group()
def repos() -> None:
    """List or remove the indexed repositories."""


@command(repos, "list", ["codeqa repos list", "codeqa repos list --json"])
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def repos_list_command(as_json: bool) -> None:
    """List the indexed repositories, their size and where the data lies."""
    from codeqa.doctor import report_repositories

    settings = load_settings()
    reports = report_repositories(settings)
    if as_json:
        rows = [asdict(report) for report in reports]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
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


@command(repos, "remove", ["codeqa repos remove flask", "codeqa repos remove ~/src/flask --yes"])
@click.argument("repo")
@click.option("--yes", is_flag=True, help="Do not ask.")
def repos_remove_command(repo: str, yes: bool) -> None:
    """Delete the index of a repository.

    The repository itself is not touched.
    """
    from codeqa.repositories import remove_repository

    settings = load_settings()
    root = indexed_root(settings, repo)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Nobody can be asked here.", "Add --yes to remove the index.")
        click.confirm(f"Remove the index of {root}?", abort=True)
    remove_repository(settings, str(root))
    click.echo(f"Removed the index of {root}")


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "-"
