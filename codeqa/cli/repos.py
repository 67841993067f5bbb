"""`codeqa repos`, `codeqa sync` and `codeqa doctor`: the indexed repositories and their health."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from codeqa.cli.command import (
    DONE,
    FAILED,
    ask_first,
    command,
    folders_of,
    json_option,
    print_error,
    repo_argument,
    yes_option,
)
from codeqa.cli.console import (
    ProgressDisplay,
    format_table,
    human_bytes,
    print_either,
    print_json,
    visible,
)
from codeqa.errors import CodeQAError, UsageError
from codeqa.indexing import Indexer
from codeqa.repositories import (
    find_repository,
    is_clone,
    last_used,
    remove_repository,
    report_on,
    report_repositories,
    sync_clone,
)
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, list_locations, locate


@click.group("repos")
def repos_command() -> None:
    """List or remove the indexed repositories."""


@command("list", ["codeqa repos list", "codeqa repos list --json"], group=repos_command)
@json_option
def repos_list_command(as_json: bool) -> None:
    """List the indexed repositories, their size, and their folder or address."""
    settings = load_settings()
    reports = report_repositories(settings)
    if as_json:
        print_json([asdict(report) for report in reports])
        return
    click.echo(f"Data: {settings.data_dir}", err=True)
    if not reports:
        click.echo("No repository is indexed. Index one with: codeqa index /path/to/it", err=True)
        return
    header = ("name", "files", "pieces", "on disk", "updated", "state", "from")
    table = []
    for report in reports:
        origin = " ".join(filter(None, (report.url, report.branch))) or report.path
        updated = time.strftime("%Y-%m-%d %H:%M", time.localtime(report.updated_at))
        row = [report.name, f"{report.files:,}", f"{report.units:,}"]
        row += [human_bytes(report.bytes_on_disk), updated if report.updated_at else "-"]
        row += [report.state, origin]
        table.append(row)
    click.echo(format_table(header, table))


@command(
    "remove",
    ["codeqa repos remove flask", "codeqa repos remove ~/src/flask --yes"],
    group=repos_command,
)
@click.argument("repo")
@yes_option
@json_option
def repos_remove_command(repo: str, yes: bool, as_json: bool) -> None:
    """Delete the index of a repository.

    The repository itself stays, unless it is a clone that `codeqa index` made.
    """
    settings = load_settings()
    location = find_repository(settings, repo)
    root = location.root
    what = "the index and the clone" if is_clone(settings, root) else "the index"
    ask_first(yes, f"Remove {what} of {root}?", f"remove {what}")
    remove_repository(settings, location)
    print_either(as_json, {"removed": str(root)}, f"Removed {what} of {root}")


@command("sync", ["codeqa sync                     all of them", "codeqa sync flask"])
@repo_argument
@json_option
def sync_command(repo: str | None, as_json: bool) -> int:
    """Bring one indexed repository up to date, or all of them.

    A clone that `codeqa index` made from an address is first reset to its newest commit: changes to
    its files on this machine are lost. If one repository fails, the others are still updated.
    """
    settings = load_settings()
    outcomes: list[dict[str, Any]] = []
    for location in [find_repository(settings, repo)] if repo else list_locations(settings):
        name = visible(location.name)
        try:
            with ProgressDisplay() as show:
                sync_clone(settings, location, show)
                summary = Indexer(load_settings(location.root), location).run(progress=show)
                report_on(location)
        except CodeQAError as error:
            outcomes.append(
                {"repository": str(location.root), "name": name, "error": error.as_data()}
            )
            print_error(f"{name}: {error}")
            continue
        outcomes.append(asdict(summary) | {"name": name})
        if not as_json:
            changes = f"{summary.changed:,} new or changed, {summary.removed:,} removed"
            click.echo(f"{name}: {changes} ({summary.files:,} files)")
    if as_json:
        print_json(outcomes)
    return FAILED if any("error" in outcome for outcome in outcomes) else DONE


@command("doctor", ["codeqa doctor", "codeqa doctor --repo flask"])
@click.option("--repo", help="Check only this repository's index.")
@click.option(
    "--repair",
    is_flag=True,
    help="Repair damaged indices, remove leftovers of runs that died, and replace a damaged state "
    "file by what can be read of it; it says what was done.",
)
@json_option
def doctor_command(repo: str | None, repair: bool, as_json: bool) -> int:
    """Check the installation, the settings, the data and every index."""
    from codeqa.doctor import examine

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


def chosen_repositories(settings: Settings, repos: Sequence[str] = ()) -> list[Location]:
    """Return the repositories `repos`, else that of the current folder, else the last used.

    Raises UsageError for a name that is neither a folder nor an indexed repository, and if there
    is no repository to fall back on.
    """
    try:
        folders = folders_of(repos, settings.data_dir)
    except UsageError:
        last = None if repos else last_used(settings)
        if last is None:
            raise
        click.echo(f"Using {last}, the last repository you used:", err=True)
        folders = [last]
    return [locate(settings, folder) for folder in folders]
