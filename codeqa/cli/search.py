"""`codeqa search`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from codeqa.cli.command import REPO_HELP, cli, command
from codeqa.cli.console import visible
from codeqa.cli.drafts import drafts_line, hyde_option
from codeqa.cli.repository import open_repository
from codeqa.errors import UsageError
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS, Hit

if TYPE_CHECKING:
    from codeqa.engine import Engine

KINDS = sorted(METHOD_KINDS | CLASS_KINDS | TEXT_KINDS)
WHY_SHOWN = 3
"""Reasons printed per hit; the rest is in `--json`."""

MOST_HITS = 300


@command(
    cli,
    "search",
    [
        'codeqa search "parse the request body"',
        'codeqa search "Router.add" --kind method --lang go --top 5',
        'codeqa search "session cookie" --path src/flask --json',
        'codeqa search "who may see a page?" --hyde two   with drafts by the chosen model',
    ],
)
@click.argument("question")
@click.option("--repo", help=REPO_HELP)
@click.option(
    "--kind", type=click.Choice(KINDS), metavar="KIND", help=f"Only this kind: {', '.join(KINDS)}."
)
@click.option("--lang", default="", help="Only files in this language, as 'python'.")
@click.option("--path", default="", help="Only paths that begin so, or match this pattern.")
@click.option(
    "--top", type=click.IntRange(1, MOST_HITS), default=10, metavar="N", help="Hits; default 10."
)
@click.option("--rerank", is_flag=True, help="Let the reranker order the best hits.")
@hyde_option("off", "default off")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def search_command(
    question: str,
    repo: str | None,
    kind: str | None,
    lang: str,
    path: str,
    top: int,
    rerank: bool,
    hyde: str,
    as_json: bool,
) -> None:
    """Find the code that QUESTION is about.

    QUESTION may hold filters (lang:go, path:src/, -path:tests, kind:class) and point at files,
    folders and definitions (@src/app.py, @src/flask/, @Flask.route).
    """
    if not question.strip():
        raise UsageError("The question is empty.", "Write what to look for, in quotes.")
    with open_repository(repo) as engine:
        if lang:
            _require_language(engine, lang)
        result = engine.search.search(
            question,
            top=top,
            kind=kind or "",
            language=lang,
            path=path,
            rerank=rerank,
            hyde=hyde,
        )
    if as_json:
        document = {
            "question": result.question,
            "milliseconds": result.milliseconds,
            "channels": list(result.channels),
            "coverage": result.coverage,
            "reranker": result.reranker,
            "hyde": result.hyde,
            "stages": [asdict(stage) for stage in result.stages],
            "notice": " ".join(result.warnings),
            "hits": [_hit_values(hit) for hit in result.units],
            "files": [{"path": file.path, "score": file.score} for file in result.files],
        }
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    if not result.units:
        click.echo("Nothing was found. Use other words or fewer filters.", err=True)
    for number, hit in enumerate(result.units, start=1):
        click.echo(_hit_text(number, hit))
    if result.coverage:
        click.echo(f"\nSearched: {result.coverage}", err=True)
    if drafts := drafts_line(asdict(stage) for stage in result.stages):
        click.echo(drafts, err=True)
    if result.reranker:
        click.echo(f"Reranked: {result.reranker}", err=True)
    if result.warnings:
        click.echo(" ".join(result.warnings), err=True)


def _require_language(engine: Engine, lang: str) -> None:
    """Raises UsageError when no indexed file is in that language."""
    from codeqa.search import language_named

    known = sorted({file.language for file in engine.tables().files() if file.units})
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
    unit = hit.unit
    return {
        "path": unit.path,
        "start_line": unit.start_line,
        "end_line": unit.end_line,
        "language": unit.language,
        "kind": unit.kind,
        "name": unit.name,
        "qualified_name": unit.qualified_name,
        "signature": unit.signature,
        "score": hit.score,
        "why": list(hit.why),
        "channels": dict(hit.channels),
    }
