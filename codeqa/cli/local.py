"""Answer, search and run tools in this process, without a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from codeqa.chat.events import Events
from codeqa.chat.values import AskOptions
from codeqa.cli.command import EVERY
from codeqa.cli.console import ProgressDisplay
from codeqa.cli.repos import chosen_repositories
from codeqa.code.tools import TOOLS
from codeqa.engine import Engine, open_multi_repo
from codeqa.errors import NotFoundError, StorageError, UsageError
from codeqa.indexing import Indexer
from codeqa.repositories import open_location
from codeqa.repositories.multi_repo import ALL
from codeqa.repositories.snapshots import take_snapshot
from codeqa.search.hybrid import search_for_programs
from codeqa.settings import load_settings

USER = "terminal"
"""User of the questions of `codeqa ask`; the page does not list them."""


def ask(
    repos: Sequence[str], revision: str, options: Mapping[str, Any], model: str, go_on: bool
) -> Events:
    """Yield the events of an answer. Raises CodeQAError."""
    with engine_of(repos, revision) as engine:
        if model:
            engine.models.prefer(model)
        # One conversation per repository: its cached context belongs to that repository.
        conversation = f"{USER}-{engine.location.id}"
        if not go_on:  # a new question does not build on earlier ones
            try:
                engine.conversations.delete(conversation, USER)
            except NotFoundError:
                pass
            except StorageError:  # on a full disk, where this one will not be kept either
                conversation += "-new"
        yield from engine.chat.ask(AskOptions(user=USER, conversation=conversation, **options))


def call(
    address: str, values: Mapping[str, Any], repos: Sequence[str], revision: str
) -> dict[str, Any]:
    """Return what an address of the HTTP interface would for `values`. Raises CodeQAError."""
    with engine_of(repos, revision) as engine:
        if address == "/api/search":
            return search_for_programs(engine.search, **values)
        tool = TOOLS[address.rpartition("/")[2]]
        return tool.call(engine.toolbox, values).model_dump(mode="json")


@contextmanager
def engine_of(repos: Sequence[str], revision: str) -> Iterator[Engine]:
    """Open the engine of these repositories, at `revision` if given. Raises CodeQAError."""
    chosen = chosen_repositories(load_settings(), repos)
    settings = load_settings(chosen[0].root)
    if revision:
        if len(chosen) > 1:
            raise UsageError("--rev is for one repository.", "Name one, or leave --rev out.")
        chosen = [take_snapshot(settings, open_location(settings, chosen[0].root), revision)]
        Indexer(settings, chosen[0]).run(refine=False)
    id_, show = ALL if list(repos) == [EVERY] else "", ProgressDisplay()
    with closing(open_multi_repo(settings, chosen, id_, show)) as engine:
        yield engine
