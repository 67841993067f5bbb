"""What `ask`, `search` and the tools do in this process, where no server is asked."""

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
"""Whose questions those of `codeqa ask` are; the page does not list them."""


def ask(
    repos: Sequence[str], revision: str, options: Mapping[str, Any], model: str, go_on: bool
) -> Events:
    """The events of an answer. Raises CodeQAError."""
    with engine_of(repos, revision) as engine:
        if model:
            engine.models.prefer(model)
        # A name per repository: what is cached for a conversation belongs to one of them.
        conversation = f"{USER}-{engine.location.id}"
        if not go_on:  # a new question owes nothing to those before it
            try:
                engine.conversations.delete(conversation, USER)
            except NotFoundError:
                pass
            except StorageError:  # on a full disk; nor will this one be kept
                conversation += "-new"
        yield from engine.chat.ask(AskOptions(user=USER, conversation=conversation, **options))


def call(
    address: str, values: Mapping[str, Any], repos: Sequence[str], revision: str
) -> dict[str, Any]:
    """What an address of the HTTP interface gives for `values`. Raises CodeQAError."""
    with engine_of(repos, revision) as engine:
        if address == "/api/search":
            return search_for_programs(engine.search, **values)
        tool = TOOLS[address.rpartition("/")[2]]
        return tool.call(engine.toolbox, values).model_dump(mode="json")


@contextmanager
def engine_of(repos: Sequence[str], revision: str) -> Iterator[Engine]:
    """What answers from these repositories, as they are or were at `revision`. Raises
    CodeQAError."""
    chosen = chosen_repositories(load_settings(), repos)
    settings = load_settings(chosen[0].root)
    if revision:
        if len(chosen) > 1:
            raise UsageError("--rev is for one repository.", "Name one, or leave --rev out.")
        chosen = [take_snapshot(settings, open_location(settings, chosen[0].root), revision)]
        Indexer(settings, chosen[0]).run(refine=False)
    id_, show = ALL if [*repos] == [EVERY] else "", ProgressDisplay()
    with closing(open_multi_repo(settings, chosen, id_, show)) as engine:
        yield engine
