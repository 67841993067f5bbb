"""Build an `Engine` for one or several repositories; programs import it from `codeqa`."""

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
from codeqa.chat.responders import Responders
from codeqa.chat.route import Router
from codeqa.chat.values import AnswerGenerator, AskOptions
from codeqa.chat.vectors import QuestionVectors
from codeqa.code.tools import TOOLS, Toolbox, ToolResult, declare
from codeqa.errors import AnswerStoppedError, RepositoryError, UsageError, error_from
from codeqa.indexing import BackgroundIndexer
from codeqa.llm.models import Models
from codeqa.llm.values import Cancelled, never
from codeqa.mentions.completion import MentionCompleter
from codeqa.repositories import open_location
from codeqa.repositories.collection import Collection
from codeqa.repositories.files import Files
from codeqa.repositories.multi_repo import ALL, MultiRepoIndexer, MultiRepoTables
from codeqa.review.reviewer import MOST_CHARACTERS, Reviewer
from codeqa.routing.followup import SmallCall
from codeqa.search.freshness import IndexFreshness
from codeqa.search.hybrid import Search, open_search
from codeqa.settings import Settings, load_settings
from codeqa.state import open_state
from codeqa.state.cache import open_redis
from codeqa.state.records import LOCAL_USER
from codeqa.store import Location, Tables, open_once
from codeqa.store.location import confirm, short_id
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
    """Indexes, searches and answers questions about one repository, or several as one."""

    settings: Settings
    location: Location
    repositories: tuple[Location, ...]  # the one of `location`, or all that it stands for
    index: BackgroundIndexer
    search: Search
    chat: Chat
    conversations: Conversations
    files: Files
    models: Models
    tables: Callable[[], Tables]  # opens the index on first use; IndexMissingError without one
    completion: MentionCompleter  # completes `@…`, and lists the tree of files
    toolbox: Toolbox  # for the tools of `codeqa.code.tools`
    cancelled: Cancelled = never  # whether the caller of a tool no longer wants the result

    def ask(self, question: str, **options: Any) -> Iterator[Event]:
        """Answer a question from the code, event by event; `whole_answer` collects them.

        `options` are fields of AskOptions. Questions with the same `conversation` id continue one
        conversation, which is stored like those of the page; without it nothing is stored.
        """
        conversation = options.get("conversation", "")
        user = options.get("user", LOCAL_USER)
        options = {"keep": bool(conversation), **options, "retrieval": "auto"}
        if not conversation or not self.conversations.turns(conversation, user):
            # The first question of a program searches the code, unless it is small talk.
            options["tag_is_default"] = not has_tag(question)
            question = f"@codebase {question}"
        return self.chat.ask(AskOptions(question, **options))

    def call(self, tool: str, /, **arguments: Any) -> ToolResult:
        """Call a tool of docs/mcp.md: `call("symbol", name="total")`. Raises UsageError."""
        if tool not in EVERY_TOOL:
            usages = "; ".join(spec.usage for spec in EVERY_TOOL.values())
            raise UsageError(f"There is no tool {tool!r}.", f"The tools are: {usages}.")
        return EVERY_TOOL[tool].call(self.toolbox if tool in TOOLS else self, arguments)

    def close(self) -> None:
        """Store all answers, stop background work and close the connections."""
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
    """An answer with its citations and details."""

    text: str  # Markdown
    done: Done  # its last event, with the record of the turn

    @property
    def details(self) -> Mapping[str, Any]:
        """All other fields of the answer, as JSON."""
        return self.done.data

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(self.done.record.citations)


def whole_answer(events: Iterator[Event]) -> Answer:
    """Collect an answer from its events. Raises an error among them, or AnswerStoppedError."""
    tokens: list[str] = []
    for event in events:
        match event:
            case Token(text):
                tokens.append(text)
            case Failed(failure):
                raise error_from(as_json(failure))
            case Done():
                return Answer(event.revised or "".join(tokens), event)
    raise AnswerStoppedError("The answer was stopped before it was complete.", "Ask again.")


def ask(
    engine: Engine,
    question: Annotated[str, Field(description="A question in words.")],
    effort: Annotated[
        Literal["", "fast", "normal", "deep"],
        Field(description="How much code the answer may be made from; empty: as its user set."),
    ] = "",
) -> ToolResult:
    """Answer a question about the repository with citations [path:first-last].

    CodeQA searches, and the language model that the user chose answers; without one the answer
    quotes the code.
    """
    # It is not stored: the caller has it.
    cancelled = engine.cancelled
    answer = whole_answer(engine.ask(question, user="mcp", effort=effort, cancelled=cancelled))
    whole = "\n\n".join(filter(None, (answer.text.strip(), answer.done.record.notice)))
    return ToolResult(summary=f"answered “{question}”", text=whole)


def review(
    engine: Engine,
    title: Annotated[str, Field(description="Title of the issue.")] = "",
    body: Annotated[str, Field(max_length=MOST_CHARACTERS, description="Text of the issue.")] = "",
) -> ToolResult:
    """Review what an issue takes: files likely to change, tests and people.

    If the user chose a language model, it searches the code and judges how hard the issue is.
    """
    reviewer = Reviewer(engine.toolbox, engine.models.answer_model(), engine.settings.config_dir)
    report = reviewer.report(title, body, engine.cancelled)
    return ToolResult(summary=f"reviewed “{title}”", text=report.text)


EVERY_TOOL = TOOLS | {function.__name__: declare(function) for function in (ask, review)}
"""Tools by name: first those that read code, then those that need an engine."""


def open_engine(
    settings: Settings, repository: str | Path, *, generator: AnswerGenerator | None = None
) -> Engine:
    """Return the engine of the repository in a folder; nothing is read or indexed yet.

    Raises UsageError if there is no folder, SettingsError for a setting that cannot be used.
    """
    location = open_location(settings, Path(repository))
    tables = open_once(location)
    index = BackgroundIndexer(settings, location, tables)
    return _join(settings, location, (location,), tables, index, generator)


def open_multi_repo(
    settings: Settings,
    repositories: Sequence[Location],
    id_: str = "",
    progress: Callable[[Progress], None] = lambda _: None,
    collection: Collection | None = None,
    hidden: frozenset[str] = frozenset(),
) -> Engine:
    """Return the engine of several repositories that are searched as one.

    `id_` is their id if some are gone by now; `progress` reports copying; `collection` is shared by
    this process; `hidden` are the short ids of repositories that the user may not see.
    Raises as `open_engine` does.
    """
    if len(repositories) == 1 and not id_:
        return open_engine(settings, repositories[0].root)
    for repository in repositories:
        with suppress(RepositoryError):  # if another folder took its place, the index still serves
            confirm(repository)
    tables = MultiRepoTables(collection or Collection(settings), id_, repositories, progress)
    index = MultiRepoIndexer(tables, repositories)
    engine = _join(settings, tables.location, tuple(repositories), tables.opened, index)
    if id_ == ALL:
        engine.conversations.visible = tuple(short_id(location.id) for location in repositories)
        engine.conversations.hidden = hidden
    return engine


def _join(
    settings: Settings,
    location: Location,
    repositories: tuple[Location, ...],
    tables: Callable[[], Tables],
    index: BackgroundIndexer,
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
        freshness=IndexFreshness(
            index, updates_hits=settings.watch and isinstance(index, MultiRepoIndexer)
        ),
    )
    toolbox = Toolbox(search, files, index.tables)
    conversations = Conversations(state, cache, location.id, QuestionVectors())
    hooks = load_hooks(settings, location.root)
    small_call = SmallCall(cache, (lambda: None) if generator else models.small_model, config_dir)
    router = Router(small_call, hooks, settings, index.tables)
    gatherer = Gatherer(toolbox, settings, hooks, conversations, models.called)
    responders = Responders(
        location.name, toolbox, config_dir, conversations, privacy,
        review=lambda model: Reviewer(toolbox, model, config_dir),
    )  # fmt: skip
    chat = Chat(router, gatherer, responders, conversations, generator)
    return Engine(
        settings, location, repositories, index, search, chat, conversations, files, models, tables,
        completion=MentionCompleter(tables), toolbox=toolbox,
    )  # fmt: skip


def open_privacy(settings: Settings, *, models: Models | None = None) -> Privacy:
    """Open the data stored of users, to report and delete it. Raises SettingsError."""
    state = open_state(settings)
    cache = open_redis(settings) or state.values
    return Privacy(settings, state, cache, models or Models(settings))
