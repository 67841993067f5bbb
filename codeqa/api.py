"""The package for programs: `from codeqa import open_engine`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, Unpack

from codeqa.chat import AskOptions
from codeqa.chat.citations import Citation
from codeqa.chat.options import about_code
from codeqa.code.tools import TOOLS, ToolResult
from codeqa.engine import Engine
from codeqa.engine import open_engine as join_parts
from codeqa.errors import CodeQAError, UsageError, error_from
from codeqa.search import SearchResult
from codeqa.search.hybrid import SearchOptions
from codeqa.settings import load_settings
from codeqa.types import Event, IndexSummary, Progress

NO_MODEL = "none"


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer, and what it rests on."""

    text: str
    """Markdown."""
    citations: tuple[Citation, ...]
    model: str
    """`provider/name`; '' for one that was put together from the code alone."""
    details: Mapping[str, Any]
    """All else that is known of it, as `codeqa.types.Event` lists it for `done`."""


class StreamedAnswer:
    """An answer that comes in pieces: iterate over its text, or over its `events`, or take the
    `whole` of it. It is made while it is read, once."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._source = events
        self._text: list[str] = []
        self._done: Mapping[str, Any] | None = None

    def events(self) -> Iterator[Event]:
        """All that happens, as `codeqa.types.Event` lists it. Raises CodeQAError."""
        with closing(self._source) as events:  # type: ignore[type-var]
            for event in events:
                if event.kind == "error":
                    raise error_from(event.data)
                if event.kind == "token":
                    self._text.append(event.data["text"])
                elif event.kind == "done":
                    self._done = event.data
                yield event

    def __iter__(self) -> Iterator[str]:
        return (event.data["text"] for event in self.events() if event.kind == "token")

    @cached_property
    def whole(self) -> WholeAnswer:
        """The complete answer; what was not read yet is waited for. Raises CodeQAError."""
        if self._done is None:
            for _ in self.events():
                pass
        if self._done is None:
            raise CodeQAError("The answer was not read to its end.", "Ask again.")
        return WholeAnswer(
            text=self._done.get("revised") or "".join(self._text),
            citations=tuple(Citation(**one) for one in self._done.get("citations", ())),
            model=self._done.get("model", ""),
            details=self._done,
        )


class CodeEngine:
    """One repository, to be indexed, searched and asked; a context manager."""

    def __init__(self, engine: Engine, use_model: bool = True) -> None:
        self._engine, self._use_model = engine, use_model
        self.root: Path = engine.location.root
        self.tools = tuple(TOOLS)

    def index(
        self, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> IndexSummary:
        """Bring the index up to date; with `full` read every file again."""
        return self._engine.index.run(progress, full=full)

    def search(self, question: str, **options: Unpack[SearchOptions]) -> SearchResult:
        """The best ten units for `question`, or `top`, and files; only `hyde` and `order` send
        something to a language model. Raises IndexMissingError before there is an index."""
        return self._engine.search.search(question, **options)

    def ask(
        self,
        question: str,
        *,
        conversation: str = "",
        effort: str = "",
        rerank: bool = False,
        strict: bool = False,
    ) -> StreamedAnswer:
        """The answer to `question` from the code.

        Questions with one id as `conversation` go on from each other, and are kept as those of the
        page are; without it nothing is kept.
        """
        options = AskOptions(
            question,
            conversation=conversation,
            keep=bool(conversation),
            effort=effort,
            rerank=rerank,
            strict=strict,
            use_model=self._use_model,
        )
        first = not conversation or not self._engine.conversations.turns(conversation)
        return StreamedAnswer(self._engine.chat.ask(about_code(options, first)))

    def call(self, tool: str, **arguments: Any) -> ToolResult:
        """What a tool of docs/mcp.md finds: `call("callers", name="total", depth=2)`.

        Raises UsageError for a tool or argument that there is not.
        """
        if tool not in self.tools:
            raise UsageError(f"There is no tool {tool}.", f"Known: {', '.join(self.tools)}.")
        return TOOLS[tool].call(self._engine.toolbox, arguments)

    def close(self) -> None:
        """Let go of everything, once all that is to be kept is kept."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_engine(
    repository: str | Path, *, model: str | None = None, data: str | Path | None = None
) -> CodeEngine:
    """Open the repository in the folder `repository`; nothing is read or indexed yet.

    `model` (`provider/name`) answers instead of the chosen one, `"none"` sends nothing to any.
    `data` is the folder of the index instead of the user's. All else is as the settings say
    (docs/settings.md). Raises UsageError when it is no folder, SettingsError for a setting or model
    that cannot be used.
    """
    root = Path(repository)
    engine = join_parts(load_settings(root, data=data), root)
    if model and model != NO_MODEL:
        engine.models.prefer_named(model)
    return CodeEngine(engine, model != NO_MODEL)
