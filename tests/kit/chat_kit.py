"""What tests of the chat work with: a small shop, and what writes answers; fixtures of both are in
`chat_fixtures`."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from openai_server import Reply, ScriptedServer, stream
from repositories import write
from waiting import PATIENCE, Clock

from codeqa.chat.events import Event
from codeqa.chat.question import read_question
from codeqa.chat.values import AnswerPiece, AskOptions, Gathered
from codeqa.engine import Engine, open_engine
from codeqa.routing.intents import Intent, by_words, read
from codeqa.routing.personal import read_personal
from codeqa.routing.policy import Features, extract_features
from codeqa.search.query import parse_query
from codeqa.settings import load_settings
from codeqa.store import Tables, locate, open_once
from codeqa.types import Mode

FILES = {
    "README.md": "# Shop\n\nA small shop that sells teapots.\n",
    "shop/session.py": '"""Sessions of visitors."""\n\nMONTH = 30\n\n\n'
    "def expire_session(cookie):\n"
    '    """Forget the visitor when the cookie is too old."""\n'
    "    if cookie.age > MONTH:\n        cookie.clear()\n    return cookie.age\n",
    "shop/visit.py": "from shop.session import expire_session\n\n\n"
    "def end_of_visit(visitor):\n"
    '    """Called by the clock each night."""\n'
    "    return expire_session(visitor.cookie)\n",
    "shop/stock.py": "def count_teapots(shelf):\n"
    '    """How many teapots stand on a shelf."""\n    return len(shelf)\n',
    "shop/Basket.cs": "class Basket\n{\n    int Total() { return 1; }\n}\n",
    "legacy/stock.py": "def old_count(shelf):\n"
    '    """Count the teapots on a shelf, as it was done before."""\n    return len(shelf)\n',
    **{
        f"shop/part{number}.py": f"def warehouse_part_{number}(stock):\n"
        + "".join(f"    stock.move({line}, 'warehouse part')\n" for line in range(60))
        for number in range(6)
    },
}
ASK = "@codebase when does expire_session forget the visitor?"
SAYS = ["The session ends in ", "`expire_session` ", "[shop/session.py:6-10]."]
COMPLETE = "who calls expire_session of a visitor?"
"""What the scripted model makes of a follow-up."""

Open = Callable[..., Engine]


@dataclass(frozen=True)
class Indexed:
    """A repository with an index in `tables`."""

    tables: Path
    repository: Path

    def open(self, data: Path, *, generator: Any = None, **settings: Any) -> Engine:
        """An engine over it that keeps what is said in `data`."""
        values = {"data": data, "tables": str(self.tables), "workers": 1, "watch": False}
        with patch("codeqa.engine.open_once", lambda location: self.read):
            made = load_settings(**values | settings)
            return open_engine(made, self.repository, generator=generator)

    @cached_property
    def read(self) -> Callable[[], Tables]:
        """Open the index, once for all engines: what one has read, no other reads again."""
        settings = load_settings(tables=str(self.tables))
        return open_once(locate(settings, self.repository))


def index(folder: Path, files: Mapping[str, str]) -> Indexed:
    """The repository `shop` of `files` in `folder`, indexed."""
    indexed = Indexed(folder / "tables", write(folder / "shop", files))
    engine = indexed.open(folder / "data")
    engine.index.run()
    engine.close()
    return indexed


@dataclass
class Listener:
    """A generator that writes down what it is given."""

    name: str = "listener"
    asked: list[Gathered] = field(default_factory=list)
    says: Sequence[str] = ("After a month. ", "[shop/session.py:6-10]")
    during: Callable[[], None] = lambda: None

    def generate(self, asked: Gathered) -> Iterator[AnswerPiece]:
        self.asked.append(asked)
        for piece in self.says:
            self.during()
            yield piece

    @property
    def last(self) -> Gathered:
        return self.asked[-1]


@dataclass
class Script:
    """What a model over HTTP says next; the last reply is repeated."""

    server: ScriptedServer = field(default_factory=ScriptedServer)
    replies: list[Reply] = field(default_factory=lambda: [stream(SAYS, usage=(120, 9))])
    understood: str = json.dumps({"topic": "SAME", "question": COMPLETE})
    """What it says of a message before it is answered."""
    window: int = 0
    """Tokens that it takes, as no server is asked each time."""

    def __call__(self, path: str, body: dict[str, Any]) -> Reply:
        if _is_small_call(body):
            return stream([self.understood])
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was asked, without the small calls."""
        every = (body for _, body in self.server.requests)
        return [body for body in every if not _is_small_call(body)]

    @property
    def small_calls(self) -> list[dict[str, Any]]:
        """What was asked of messages before they were answered."""
        return [body for _, body in self.server.requests if _is_small_call(body)]

    @property
    def sent(self) -> list[dict[str, Any]]:
        """Messages of the latest request."""
        return list(self.bodies[-1]["messages"])

    @property
    def settings(self) -> dict[str, Any]:
        """What has an engine ask it."""
        address = self.server.base_url
        return {"model": "openai/gpt-4o", "model_url": address, "model_key": "a-key"}


class SlowClock(Clock):
    """Each look at it takes a while."""

    def monotonic(self) -> float:
        self.advance(PATIENCE / 9)
        return self.now


def _system(body: dict[str, Any]) -> str:
    return str(body.get("messages", [{}])[0].get("content", ""))


def _is_small_call(body: dict[str, Any]) -> bool:
    return _system(body).startswith("You look at a message")


def ask(engine: Engine, question: str, **options: Any) -> list[Event]:
    """The events of an answer in the conversation `talk`, unless another is named."""
    return list(engine.chat.ask(AskOptions(question, **{"conversation": "talk", **options})))


def begun(
    engine: Engine, question: str, kind: str = "token", **options: Any
) -> Generator[Event, None, None]:
    """The events of an answer in the conversation `talk` behind the first of a kind."""
    events = engine.chat.ask(AskOptions(question, **{"conversation": "talk", **options}))
    while next(events).kind != kind:
        pass
    return events  # type: ignore[return-value]


def told(events: Sequence[Event], kind: str) -> dict[str, Any]:
    """Data of the one event of a kind."""
    (found,) = (event for event in events if event.kind == kind)
    return dict(found.data)


def kinds(events: Sequence[Event]) -> list[str]:
    """Kinds of the events without those that tell of parts, each once."""
    parts = ("step", "asked", "thought", "cited")
    return list(dict.fromkeys(event.kind for event in events if event.kind not in parts))


def answer(events: Sequence[Event]) -> str:
    """The text as it was streamed."""
    return "".join(event.data["text"] for event in events if event.kind == "token")


def parts(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message as it was sent."""
    content = message["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def gathered(question: str, mode: Mode = "explain", **fields: Any) -> Gathered:
    """Return what an answer to `question` may draw on."""
    return Gathered(read_question(AskOptions(question, mode=mode)), question, **fields)


def features_of(
    text: str,
    *,
    messages: int = 0,
    intent: str = "knowledge_base",
    leaves_for: str = "",
    **given: Any,
) -> Features:
    """What is seen in a message that a model classified, after so many others."""
    values: dict[str, Any] = {
        "tagged": False, "profile": {}, "has_context": False, **given
    }  # fmt: skip
    made = extract_features(
        text,
        read(text),
        parse_query(text),
        read_personal(text),
        intent=Intent(intent, 0.9, "model"),
        by_words=by_words(read(text), has_history=messages > 0),
        messages=messages,
        **values,
    )
    return made.leaving(leaves_for) if leaves_for else made
