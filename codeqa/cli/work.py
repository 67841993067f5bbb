"""What `ask`, `search` and the tools do, in this process or in a server that was asked to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeqa.cli.repos import choose_repositories
from codeqa.errors import NotFoundError, UsageError
from codeqa.indexing import Indexer
from codeqa.llm import Cancelled, Models, never
from codeqa.repositories import take_up
from codeqa.search import Search, language_named, open_search
from codeqa.settings import load_settings
from codeqa.snapshots import take_snapshot
from codeqa.store import Tables, open_once
from codeqa.types import Event, Events, Hit

if TYPE_CHECKING:
    from codeqa.engine import Engine

USER = "terminal"
"""Whose questions those of `codeqa ask` are; the page does not list them."""

TOLD = ("question", "milliseconds", "channels", "coverage", "reranker", "hyde")
TOLD_OF_UNITS = (
    "path", "start_line", "end_line", "language", "kind", "name", "qualified_name", "signature",
)  # fmt: skip
"""What is told of a search and of each unit, among others."""


def work_here(
    name: str, repo: str | Sequence[str] | None, values: Mapping[str, Any], revision: str = ""
) -> Events:
    """`work` with an engine of its own, for the repository as it is or was at `revision`."""
    chosen, values, notice = choose_repositories(load_settings(), repo, values, Path.cwd())
    if notice:
        click.echo(notice, err=True)
    settings = load_settings(chosen[0].root)
    if revision:
        if len(chosen) > 1:
            raise UsageError("--rev is for one repository.", "Name one, or leave --rev out.")
        chosen = [take_snapshot(settings, take_up(settings, chosen[0].root), revision)]
        Indexer(settings, chosen[0]).run(refine=False)
    if name == "search" and len(chosen) == 1:  # takes less than an engine
        tables = open_once(take_up(settings, chosen[0].root))
        with closing(Models(settings)) as models:
            search = open_search(settings, tables, models=models)
            yield Event("found", _search(search, tables(), **values))
        return
    from codeqa.engine import open_several

    with closing(open_several(settings, chosen)) as engine:
        yield from work(engine, name, values)


def work(
    engine: Engine, name: str, values: Mapping[str, Any], cancelled: Cancelled = never
) -> Events:
    """Do what the command `name` does with these values.

    Yields the events of an answer, after `begun` {model}, or `found` with what `--json` prints.
    Raises CodeQAError.
    """
    if name == "ask":
        yield from _ask(engine, cancelled, **values)
    elif name == "search":
        yield Event("found", _search(engine.search, engine.tables(), **values))
    else:
        from codeqa.code.tools import TOOLS

        result = TOOLS[name].call(engine.toolbox, values)
        yield Event("found", result.model_dump(mode="json"))


def _ask(
    engine: Engine,
    cancelled: Cancelled,
    question: str,
    model: str,
    go_on: bool,
    use_model: bool,
    **options: Any,
) -> Events:
    from codeqa.chat import AskOptions
    from codeqa.chat.features import is_greeting
    from codeqa.chat.options import about_code

    if model:
        engine.models.prefer_named(model)
    # A name per repository: what is cached for a conversation belongs to one of them.
    conversation = f"{USER}-{engine.location.id}"
    # A new question owes nothing to those before it; thanks for an answer do not put it away.
    if not go_on and not is_greeting(question):
        with suppress(NotFoundError):
            engine.conversations.delete(conversation, USER)
    yield begun(engine, use_model)
    asked = AskOptions(
        question,
        user=USER,
        conversation=conversation,
        use_model=use_model,
        cancelled=cancelled,
        **options,
    )
    yield from engine.chat.ask(about_code(asked, first=not go_on))


def begun(engine: Engine, use_model: bool) -> Event:
    """Comes before the events of an answer: which model is asked."""
    return Event("begun", {"model": str((use_model and engine.models.current()) or "")})


def _search(search: Search, tables: Tables, language: str, **options: Any) -> dict[str, Any]:
    """Raises UsageError when no indexed file is in that language."""
    if language:
        known = sorted({file.language for file in tables.files() if file.units})
        if language_named(language) not in known:
            raise UsageError(f"No indexed file is in {language}.", f"There is: {', '.join(known)}.")
    result = search.search(language=language, **options)
    return {
        **{name: getattr(result, name) for name in TOLD},
        "stages": [asdict(stage) for stage in result.stages],
        "notice": " ".join(result.warnings),
        "hits": [_hit_values(hit) for hit in result.units],
        "files": [{"path": file.path, "score": file.score} for file in result.files],
    }


def _hit_values(hit: Hit) -> dict[str, Any]:
    placed = {"score": hit.score, "why": hit.why, "channels": dict(hit.channels)}
    return {name: getattr(hit.unit, name) for name in TOLD_OF_UNITS} | placed
