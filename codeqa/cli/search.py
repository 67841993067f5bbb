"""`codeqa search`."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import Any

import click

from codeqa.cli.command import command, hyde_option, json_option, repo_option, rerank_option
from codeqa.cli.console import print_json, search_notes, visible
from codeqa.cli.repos import chosen_repository
from codeqa.errors import UsageError
from codeqa.llm import Models
from codeqa.repositories import take_up
from codeqa.search import language_named, open_search
from codeqa.settings import load_settings
from codeqa.store import Tables, open_once
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS, Hit

KINDS = sorted(METHOD_KINDS | CLASS_KINDS | TEXT_KINDS)
WHY_SHOWN = 3
"""Reasons printed per hit; the rest is in `--json`."""

MOST_HITS = 300
TOLD = ("question", "milliseconds", "channels", "coverage", "reranker", "hyde")
TOLD_OF_UNITS = (
    "path", "start_line", "end_line", "language", "kind", "name", "qualified_name", "signature",
)  # fmt: skip
"""What `--json` gives of a search and of each unit, among others."""


@command(
    "search",
    [
        'codeqa search "parse the request body"',
        'codeqa search "Router.add" --kind method --lang go --top 5',
        'codeqa search "session cookie" --path src/flask --json',
        'codeqa search "who may see a page?" --hyde two   with drafts by the chosen model',
    ],
)
@click.argument("question")
@repo_option
@click.option(
    "--kind", type=click.Choice(KINDS), metavar="KIND", help=f"Only this kind: {', '.join(KINDS)}."
)
@click.option("--lang", default="", help="Only files in this language, as 'python'.")
@click.option("--path", default="", help="Only paths that begin so, or match this pattern.")
@click.option(
    "--top", type=click.IntRange(1, MOST_HITS), default=10, metavar="N", help="Hits; default 10."
)
@rerank_option
@hyde_option
@json_option
def search_command(
    question: str,
    repo: str | None,
    kind: str | None,
    lang: str,
    path: str,
    top: int,
    rerank: bool,
    hyde: str | None,
    as_json: bool,
) -> None:
    """Find the code that QUESTION is about.

    QUESTION may hold filters (lang:go, path:src/, -path:tests, kind:class) and point at files,
    folders and definitions (@src/app.py, @src/flask/, @Flask.route).
    """
    if not question.strip():
        raise UsageError("The question is empty.", "Write what to look for, in quotes.")
    root = chosen_repository(load_settings(), repo)
    settings = load_settings(root)
    tables, models = open_once(take_up(settings, root)), Models(settings)
    if lang:
        _require_language(tables(), lang)
    with contextlib.closing(models):
        search = open_search(settings, tables, models=models).search
        result = search(
            question,
            top=top,
            kind=kind or "",
            language=lang,
            path=path,
            rerank=rerank,
            hyde=hyde or "off",
        )
    stages = [asdict(stage) for stage in result.stages]
    if as_json:
        print_json(
            {name: getattr(result, name) for name in TOLD}
            | {"stages": stages, "notice": " ".join(result.warnings)}
            | {"hits": [_hit_values(hit) for hit in result.units]}
            | {"files": [{"path": file.path, "score": file.score} for file in result.files]}
        )
        return
    if not result.units:
        click.echo("Nothing was found. Use other words or fewer filters.", err=True)
    for number, hit in enumerate(result.units, start=1):
        click.echo(_hit_text(number, hit))
    notes = [*search_notes(result.coverage, stages, result.reranker), " ".join(result.warnings)]
    if shown := "\n".join(filter(None, notes)):
        click.echo(f"\n{shown}", err=True)


def _require_language(tables: Tables, lang: str) -> None:
    """Raises UsageError when no indexed file is in that language."""
    known = sorted({file.language for file in tables.files() if file.units})
    if known and language_named(lang) not in known:
        raise UsageError(f"No indexed file is in {lang}.", f"There is: {', '.join(known)}.")


def _hit_text(number: int, hit: Hit) -> str:
    unit = hit.unit
    name = unit.qualified_name or unit.name
    lines = [f"{number:>2}  {unit.location}  {unit.kind} {name}  {hit.score:.3f}"]
    signature = " ".join(unit.signature.split())
    if signature:
        lines.append(f"    {signature}")
    if hit.why:
        lines.append(f"    why: {'; '.join(hit.why[:WHY_SHOWN])}")
    return visible("\n".join(lines))


def _hit_values(hit: Hit) -> dict[str, Any]:
    placed = {"score": hit.score, "why": hit.why, "channels": dict(hit.channels)}
    return {name: getattr(hit.unit, name) for name in TOLD_OF_UNITS} | placed
