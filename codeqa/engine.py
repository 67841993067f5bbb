"""Joins the parts for one repository; programs import its names from `codeqa`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from codeqa.account import Privacy
from codeqa.chat.ask import Chat
from codeqa.chat.conversations import Conversations
from codeqa.chat.events import Citation, Event, Failed, Token, as_json
from codeqa.chat.gather import Gatherer
from codeqa.chat.hooks import load_hooks
from codeqa.chat.record import Done
from codeqa.chat.route import Router
from codeqa.chat.values import AnswerGenerator, AskOptions
from codeqa.chat.vectors import QuestionVectors
from codeqa.chat.writers import Writers
from codeqa.code.tools import TOOLS, Toolbox, ToolResult, declare
from codeqa.errors import AnswerStoppedError, RepositoryError, UsageError, error_from
from codeqa.indexing import Indexer
from codeqa.llm.models import Models
from codeqa.mentions.completion import MentionCompleter
from codeqa.repositories import open_location
from codeqa.repositories.collection import Collection
from codeqa.repositories.files import Files
from codeqa.repositories.multi_repo import ALL, MultiRepoIndexer, MultiRepoTables
from codeqa.review.reviewer import MOST_CHARACTERS, Reviewer
from codeqa.routing.followup import SmallCall
from codeqa.search.hybrid import Search, open_search
from codeqa.settings import Settings, load_settings
from codeqa.state import open_state
from codeqa.state.cache import open_redis
from codeqa.state.records import LOCAL_USER
from codeqa.store import Location, Tables, open_once
from codeqa.store.location import confirm, end_of
from codeqa.text import has_tag
from codeqa.types import Progress

__all__ = [
    "Answer",
    "Engine",
    "load_settings",
    "open_engine",
    "open_multi_repo",
    "open_privacy",
    "whole_answer",
]


@dataclass(frozen=True, slots=True)
class Engine:
    """One repository, or several as one, ready to be indexed, searched, asked and read; a context
    manager."""

    settings: Settings
    location: Location
    repositories: tuple[Location, ...]
    """Those that are asked: the one of `location`, or all that it stands for."""
    index: Indexer
    search: Search
    chat: Chat
    conversations: Conversations
    files: Files
    models: Models
    tables: Callable[[], Tables]
    """Opens the index on first use. Raises IndexMissingError before there is one."""
    completion: MentionCompleter
    """What may be typed behind `@`, and the tree of files."""
    toolbox: Toolbox
    """What the tools of `codeqa.code.tools` work with."""

    def ask(self, question: str, **options: Any) -> Iterator[Event]:
        """The events of an answer from the code, made while they are read: `whole_answer` takes
        all of it.

        `options` are fields of AskOptions. Questions with one id as `conversation` go on from each
        other, and are kept as those of the page are; without it nothing is kept.
        """
        conversation = options.get("conversation", "")
        user = options.get("user", LOCAL_USER)
        options = {"keep": bool(conversation), **options, "retrieval": "auto"}
        if not conversation or not self.conversations.turns(conversation, user):
            # As a program asks: searched for, unless it is small talk.
            options["tag_is_default"] = not has_tag(question)
            question = f"@codebase {question}"
        return self.chat.ask(AskOptions(question, **options))

    def call(self, tool: str, /, **arguments: Any) -> ToolResult:
        """What a tool of docs/mcp.md finds: `call("symbol", name="total", want="callers")`.

        Raises UsageError for a tool or argument that there is not.
        """
        if tool not in EVERY_TOOL:
            usages = "; ".join(one.usage for one in EVERY_TOOL.values())
            raise UsageError(f"There is no tool {tool!r}.", f"There are: {usages}.")
        return EVERY_TOOL[tool].call(self.toolbox if tool in TOOLS else self, arguments)

    def close(self) -> None:
        """Stop what runs in the background once all answers are kept, and let go of
        connections to models."""
        self.conversations.flush()
        self.conversations.state.close()
        self.index.stop()
        self.models.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and what it rests on."""

    text: str
    """Markdown."""
    done: Done
    """The event that ended it, with the record of its turn."""

    @property
    def details(self) -> Mapping[str, Any]:
        """All else that is known of it, as JSON."""
        return self.done.data

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(self.done.record.citations)


def whole_answer(events: Iterator[Event]) -> Answer:
    """Return the answer that `events` tell of. Raises the error that one of them tells of, and
    AnswerStoppedError."""
    pieces: list[str] = []
    for event in events:
        match event:
            case Token(text):
                pieces.append(text)
            case Failed(failure):
                raise error_from(as_json(failure))
            case Done():
                return Answer(event.revised or "".join(pieces), event)
    raise AnswerStoppedError("The answer was stopped before its end.", "Ask again.")


def ask(
    engine: Engine,
    question: Annotated[str, Field(description="A question in words.")],
    effort: Annotated[
        Literal["", "fast", "normal", "deep"],
        Field(description="How much code the answer may be made from; empty: as its user set."),
    ] = "",
) -> ToolResult:
    """Answer a question about the repository with citations [path:first-last], by CodeQA's own
    search and the language model that its user chose; without one, from what the code says."""
    # It is not kept: whoever asks has it.
    answer = whole_answer(engine.ask(question, user="mcp", effort=effort))
    whole = "\n\n".join(filter(None, (answer.text.strip(), answer.done.record.notice)))
    return ToolResult(summary=f"answered “{question}”", text=whole)


def review(
    engine: Engine,
    title: Annotated[str, Field(description="Title of the issue.")] = "",
    body: Annotated[str, Field(max_length=MOST_CHARACTERS, description="Text of the issue.")] = "",
) -> ToolResult:
    """What an issue takes: files likely to change, tests and people, and how hard it is where its
    user chose a language model, which searches the code."""
    reviewer = Reviewer(engine.toolbox, engine.models.answer_model(), engine.settings.config_dir)
    return ToolResult(summary=f"reviewed “{title}”", text=reviewer.report(title, body).text)


EVERY_TOOL = TOOLS | {function.__name__: declare(function) for function in (ask, review)}
"""By name: those that look into code, and behind them those that take an engine."""


def open_engine(
    settings: Settings, repository: str | Path, *, generator: AnswerGenerator | None = None
) -> Engine:
    """Join the parts for the repository in a folder; nothing is read or indexed yet.

    Raises UsageError when it is no folder, SettingsError for a setting that cannot be used.
    """
    location = open_location(settings, Path(repository))
    tables = open_once(location)
    index = Indexer(settings, location, tables)
    return _joined(settings, location, (location,), tables, index, generator)


def open_multi_repo(
    settings: Settings,
    repositories: Sequence[Location],
    id_: str = "",
    progress: Callable[[Progress], None] = lambda _: None,
    collection: Collection | None = None,
    hidden: frozenset[str] = frozenset(),
) -> Engine:
    """Join the parts for several repositories that are asked as one: their paths begin with their
    names (`repositories.multi_repo.member_names`). `id_` is their id where some are gone by now;
    one alone without it is opened as ever. `progress` is told of it where they were not asked
    together before; `collection` is the one of this process, `hidden` are the ends of the ids of
    those that who asks all may not see. Raises as `open_engine` does."""
    if len(repositories) == 1 and not id_:
        return open_engine(settings, repositories[0].root)
    for one in repositories:
        with suppress(RepositoryError):  # nothing of it is read then but its index
            confirm(one)
    tables = MultiRepoTables(collection or Collection(settings), id_, repositories, progress)
    index = MultiRepoIndexer(tables, repositories)
    engine = _joined(settings, tables.location, tuple(repositories), tables.opened, index)
    if id_ == ALL:
        engine.conversations.asked = tuple(end_of(one.id) for one in repositories)
        engine.conversations.hidden = hidden
    return engine


def _joined(
    settings: Settings,
    location: Location,
    repositories: tuple[Location, ...],
    tables: Callable[[], Tables],
    index: Indexer,
    generator: AnswerGenerator | None = None,
) -> Engine:
    models, config_dir = Models(settings), settings.config_dir
    privacy = open_privacy(settings, models=models)
    state, cache = privacy.state, privacy.cache
    files = Files(tables, settings.max_file_bytes)
    search = open_search(
        settings,
        index.tables,
        models=models,
        catch_up=index.catch_up if isinstance(index, MultiRepoIndexer) else None,
        keep_up=index.keep_up,
        asked=index.asked,
    )
    toolbox = Toolbox(search, files, index.tables, index.keep_up)
    conversations = Conversations(state, cache, location.id, QuestionVectors())
    hooks = load_hooks(settings, location.root)
    small_call = SmallCall(cache, (lambda: None) if generator else models.small_model, config_dir)
    router = Router(small_call, hooks, settings, index.tables)
    gatherer = Gatherer(toolbox, settings, hooks, conversations, models.called)
    writers = Writers(
        location.name, toolbox, config_dir, conversations, privacy,
        review=lambda model: Reviewer(toolbox, model, config_dir),
    )  # fmt: skip
    chat = Chat(router, gatherer, writers, conversations, generator)
    return Engine(
        settings, location, repositories, index, search, chat, conversations, files, models, tables,
        completion=MentionCompleter(tables), toolbox=toolbox,
    )  # fmt: skip


def open_privacy(settings: Settings, *, models: Models | None = None) -> Privacy:
    """What is stored of each user, in all repositories, and its deletion.

    `models` are those that questions go to, where some are open already. Raises SettingsError
    for a setting that cannot be used.
    """
    state = open_state(settings)
    cache = open_redis(settings) or state.values
    return Privacy(settings, state, cache, models or Models(settings))
