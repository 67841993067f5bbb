"""`codeqa search`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from codeqa.cli import served
from codeqa.cli.command import command, ranking_options, where_options
from codeqa.cli.console import print_json, search_notes, visible
from codeqa.errors import UsageError
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS

KINDS = sorted(METHOD_KINDS | CLASS_KINDS | TEXT_KINDS)
WHY_SHOWN = 3
"""Reasons printed per hit; the rest is in `--json`."""

MOST_HITS = 300


@command(
    "search",
    [
        'codeqa search "parse the request body"',
        'codeqa search "Router.add" --kind method --lang go --top 5',
        'codeqa search "session cookie" --path src/flask --json',
        'codeqa search --repo flask --repo celery "session cookie"',
        'codeqa search "who may see a page?" --hyde two   with drafts by the chosen model',
    ],
)
@click.argument("question")
@where_options
@click.option(
    "--kind", type=click.Choice(KINDS), metavar="KIND", help=f"Only this kind: {', '.join(KINDS)}."
)
@click.option("--lang", "language", default="", help="Only files in this language, as 'python'.")
@click.option("--path", default="", help="Only paths that begin so, or match this pattern.")
@click.option(
    "--top", type=click.IntRange(1, MOST_HITS), default=10, metavar="N", help="Hits; default 10."
)
@ranking_options
def search_command(
    repos: tuple[str, ...], rev: str, local: bool, as_json: bool, **values: Any
) -> None:
    """Find the code that QUESTION is about.

    QUESTION may hold filters (lang:go, path:src/, -path:tests, kind:class) and point at files,
    folders and definitions (@src/app.py, @src/flask/, @Flask.route).
    """
    if not values["question"].strip():
        raise UsageError("The question is empty.", "Write what to look for, in quotes.")
    values |= {"kind": values["kind"] or "", "hyde": values["hyde"] or "off"}
    found = served.call("/api/search", values, repos, rev, local)
    if as_json:
        print_json(found)
        return
    if not found["hits"]:
        click.echo("Nothing was found. Use other words or fewer filters.", err=True)
    for number, hit in enumerate(found["hits"], start=1):
        click.echo(_hit_text(number, hit))
    notes = [*search_notes(found["coverage"], found["stages"], found["reranker"]), found["notice"]]
    if shown := "\n".join(filter(None, notes)):
        click.echo(f"\n{shown}", err=True)


def _hit_text(number: int, hit: Mapping[str, Any]) -> str:
    place = f"{hit['path']}:{hit['start_line']}-{hit['end_line']}"
    name = hit["qualified_name"] or hit["name"]
    lines = [f"{number:>2}  {place}  {hit['kind']} {name}  {hit['score']:.3f}"]
    if signature := " ".join(hit["signature"].split()):
        lines.append(f"    {signature}")
    if hit["why"]:
        lines.append(f"    why: {'; '.join(hit['why'][:WHY_SHOWN])}")
    return visible("\n".join(lines))
