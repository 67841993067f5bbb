"""An engine whose answers are written down, behind the seam that `open_engine` gives."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pyarrow as pa
from browser.fake_models import FakeModels
from waiting import PATIENCE, until

from codeqa.chat.citations import UNSENT
from codeqa.chat.events import (
    Asked,
    Citation,
    Classified,
    Drafted,
    Drafting,
    Event,
    Failed,
    Failure,
    Generating,
    Hits,
    HitSummary,
    Retrieved,
    Rewritten,
    Step,
    Stopped,
    Token,
    Waiting,
)
from codeqa.chat.record import (
    Done,
    EarlierAnswer,
    RecordedHit,
    SentMessage,
    Tokens,
    TurnRecord,
)
from codeqa.chat.values import AskOptions
from codeqa.errors import (
    CodeQAError,
    IndexMissingError,
    ModelError,
    NotFoundError,
    StorageError,
)
from codeqa.mentions.completion import MentionCompleter, MentionCompletion
from codeqa.store.catalogue import DEFINITION_COLUMNS
from codeqa.types import Chunk, IndexStatus, StageTime

SESSIONS = '''"""Sessions that are kept in a signed cookie."""

from __future__ import annotations

import hashlib


class SessionInterface:
    """The base of everything that keeps sessions.

    Replace it to keep them in a database.
    """

    def open_session(self, app, request):
        """Open the session of a request, or return None."""
        raise NotImplementedError

    def save_session(self, app, session, response):
        raise NotImplementedError


class SecureCookieSessionInterface(SessionInterface):
    salt = "cookie-session"
    digest_method = staticmethod(hashlib.sha1)

    def open_session(self, app, request):
        value = request.cookies.get(app.config["SESSION_COOKIE_NAME"])
        if not value:
            return {}
        max_age = int(app.permanent_session_lifetime.total_seconds())
        try:
            return self.serializer(app).loads(value, max_age=max_age)  # raises when forged
        except ValueError:
            return {}
'''
LONG = "\n".join(f"value_{number} = {number}" for number in range(1, 2001)) + "\n"

FILES = {
    "src/store/sessions.py": ("python", SESSIONS),
    "src/store/long.py": ("python", LONG),
    "README.md": ("markdown", "# Store\n\nKeeps sessions.\n"),
    "src/<img src=x onerror=window.hacked=1>.js": (
        "javascript",
        "<script>window.hacked=1</script>\n",
    ),
}

ANSWER = """This answer is put together from the code itself: signatures, comments and lines.

**`SecureCookieSessionInterface.open_session`** [src/store/sessions.py:25-33] reads the cookie \
named by `SESSION_COOKIE_NAME` and gives an empty session when there is none.

> Open the session of a request, or return None.

```python
def open_session(self, app, request):
    value = request.cookies.get(app.config["SESSION_COOKIE_NAME"])
    if not value:
        return {}
```

Where it is used:

- called while a request is opened [src/store/long.py:1200-1210]
- the base class [src/store/sessions.py:8-20] only declares it
- one that is invented [src/nowhere.py:1-2]

| what | where |
|:-----|------:|
| salt | [src/store/sessions.py:22] |
"""
DRAFT = "def open_session(self, app, request):\n    <b>return</b> Session.load(request.cookies)\n"
EARLIER_ANSWERS = (
    ("where is a session opened?", "In `open_session` <b>alone</b>.\n\n" + "And so on. " * 90,
     "turn-7", "another"),
    ("how is a cookie read?", "By [src/store/sessions.py:25-33].", "turn-8", ""),
)  # fmt: skip
PART = 30
BLOCK = "[CONTEXT]\n=== CHUNK 1 ===\nId: c1\nPath: <b>src</b>/store/sessions.py\n"


class FakeChat:
    """Answers by what the question contains: `slow`, `silent`, `fail`, `crash`, `say:…`, …

    `slow` is answered in PART paragraphs and as many again each time `more` is released, `paced`
    in a few letters each time; so pass the seconds that a `busy` model asks to wait. `modelfail`
    fails after a few words as long as a model is used, `hurt` names a notice, `nothing` is what a
    search does not find. With a model two drafts are searched by, the second is `late` if the
    question says so; `held` waits for `drafts` before each is done.
    """

    def __init__(self, models: FakeModels) -> None:
        self.asked: list[dict[str, Any]] = []
        self.cancelled = threading.Event()
        self.drafts = threading.Semaphore(0)
        self.more = threading.Semaphore(0)
        self._models = models
        self._kept: dict[tuple[str, str], list[SimpleNamespace]] = {}
        self._titles: dict[tuple[str, str], str] = {}
        self.pinned: set[tuple[str, str]] = set()
        self._leaf: dict[tuple[str, str], str] = {}
        """The turn at which the branch in use ends."""
        self.rated: dict[str, tuple[int, str]] = {}
        self.refuse_thumbs = False
        self._numbers = itertools.count(1)

    def give_title(self, options: AskOptions, turn_id: str) -> None:
        """The question stays its conversation's title."""

    def ask(self, options: AskOptions) -> Iterator[Event]:
        question, conversation, user = options.question, options.conversation, options.user
        names = ("question", "rerank", "conversation", "user", "mode", "replaces", "use_model",
                 "hyde", "retrieval", "strict", "earlier_answers", "after", "effort",
                 "with_model")  # fmt: skip
        self.asked.append(
            {name: getattr(options, name) for name in names}
            | {"pin": list(options.pin), "exclude": list(options.exclude)}
        )
        tagged = "@codebase" in question
        text = question.replace("@codebase", "").lstrip()
        known = self._models.known()
        used = known[options.with_model] if options.with_model else self._models.current()
        choice = used if options.use_model else None
        earlier = self._path(user, conversation) if conversation else []
        automatic = options.retrieval == "auto" and not tagged and "needed" in question
        intent = "continuation" if any(turn.tagged for turn in earlier) else "general"
        if tagged or automatic or not conversation:
            intent = "knowledge_base"
        turn = self._turn(text, tagged, options.rerank, options.mode, choice)
        turn.intent = intent
        turn.reasons = {
            "source": "tag" if tagged else "heuristics", "reason": "it names <b>code</b>",
            "rules": ("the-code-is-asked-for",), "searched_automatically": automatic,
            "searches": tagged or automatic, "goes_on": intent == "continuation",
            "left_out": "no code has pizza" if "pizza" in question else "",
            "suggest_codebase": "hello" in question and not tagged,
        }  # fmt: skip
        vars(turn).update(turn.reasons)
        turn.typed = f"@codebase {text}" if tagged else text
        key = (user, conversation)
        kept = {one.id: one for one in self._kept.get(key, [])}
        beside = kept.get(options.replaces)
        turn.parent = beside.parent if beside else options.after or self._leaf.get(key, "")
        if options.keep:
            self._kept.setdefault(key, []).append(turn)
            self._leaf[key] = turn.id
            self._titles.setdefault(key, " ".join(turn.question.split())[:80])
        yield Asked(turn.id)
        turn.hyde = (options.hyde or "two") if choice and intent == "knowledge_base" else "off"
        turn.stages = stages_of(turn, question)
        last: Event | None = None
        try:
            for event in self._answer(text, turn, intent, choice, options.cancelled):
                if isinstance(event, Token):
                    turn.answer += event.text
                last = event
                yield event
        finally:
            turn.finished = isinstance(last, Done)
            if isinstance(last, Failed) and not last.turn:
                self._take_back(user, conversation, turn)

    def _turn(
        self, text: str, tagged: bool, rerank: bool, mode: str, choice: Any
    ) -> SimpleNamespace:
        """What is kept of an answer, as the real chat gives it."""
        return _Turn(
            id=f"turn-{next(self._numbers)}", question=text, typed=text, tagged=tagged, answer="",
            citations=[], finished=False, error=None, mode=mode or "explain",
            generator=choice.model if choice else "extractive",
            model=str(choice) if choice else "", host=self._models.host(choice),
            reranker="built-in" if rerank else "",
            notice="The ColBERT model is not on this machine: the built-in reranker was used."
            if rerank and "hurt" in text else "",
            tokens=Tokens(3120, 412, "hurt" in text, 0.00318) if choice
            else Tokens(estimated=True),
            coverage="4 of 4 files, by words and names; not by meaning",
            created=time.time(), effort="", hyde="off", stages=[],
            parent="", earlier=[], steps=[], looked_up=[], suggestions=[], intent="",
            confidence=0.92, reasons={}, rewritten="", hook_problems=[], retrieval_info=Retrieved(),
        )  # fmt: skip

    def _answer(
        self,
        question: str,
        turn: SimpleNamespace,
        intent: str,
        choice: Any,
        cancelled: Callable[[], bool],
    ) -> Iterator[Event]:
        found = intent == "knowledge_base" and "nothing" not in question
        yield from self._steps(turn, "embed", "load", "classify")
        yield Classified(intent, 0.92, **turn.reasons)
        yield from self._steps(turn, "topic", "features", "policy", "prune")
        if "rewritten:" in question:
            turn.rewritten = question.partition("rewritten:")[2]
            yield Rewritten(turn.rewritten, by="model")
        for seconds in (30, 29, 0) if "busy" in question else ():
            words = f"{turn.host} asks to wait {seconds} s" if seconds else ""
            yield Waiting(words, seconds, begins=seconds == 30)
            if not self._wait(cancelled, self.more):
                return
        if "crash" in question:
            raise RuntimeError("secret detail of the crash")
        if "fail" in question and "modelfail" not in question:
            yield Failed(Failure("It did not work.", "Try it again.", CodeQAError.code))
            return
        found_so_far = tuple(
            HitSummary(one.path, one.start_line, one.end_line, one.kind, one.name)
            for one in hits_of(False)
        )
        if turn.hyde != "off" and choice:
            yield Hits(found_so_far)
        for stage in turn.stages:
            yield from self._drafted(stage, choice, "held" in question)
        if turn.hyde != "off" and choice:
            yield Hits(found_so_far[::-1])
        if found:
            turn.retrieval_info = Retrieved(num_docs=4, similar_queries=2)
            yield turn.retrieval_info
        yield from self._steps(turn, "retrieve", "before_generation")
        yield Generating()
        if "silent" in question:
            self._wait(cancelled)
            return
        yield from self._tokens(question, choice, cancelled)
        if self.cancelled.is_set() and cancelled():
            yield Stopped(turn.id)
            return
        if "modelfail" in question and choice:
            message = question.partition("because:")[2] or "The model's server refused the key."
            turn.error = Failure(message, "Enter another key, then try again.", ModelError.code)
            yield Failed(turn.error, turn.id)
            return
        cited = [("src/store/sessions.py", 25, 33, True, True, "")] if found else []
        if "unverified" in question:
            cited.append(("src/store/long.py", 1200, 1210, False, True, UNSENT))
            cited.append(("src/store/sessions.py", 8, 20, False, False, "the file has 4 lines"))
        turn.citations = [Citation(*one) for one in cited]
        if "alike" in question:
            turn.earlier = [EarlierAnswer(*one) for one in EARLIER_ANSWERS]
        if "suggest:" in question:
            turn.suggestions = question.partition("suggest:")[2].split("|")
        yield from self._steps(turn, "generate", "after_generation", "persist")
        learnt = [question.partition("learn:")[2].split("=", 1)] if "learn:" in question else []
        turn.hook_problems = [question.partition("plugged:")[2]] if "plugged:" in question else []
        revised = question.partition("revise:")[2]
        yield Done(turn.record(), turn.id, revised, dict(learnt))

    def _drafted(self, stage: StageTime, choice: Any, held: bool) -> Iterator[Event]:
        if stage.name.startswith("hyde"):
            yield Drafting(stage.name, str(choice), self._models.host(choice))
            if held:
                self.drafts.acquire(timeout=PATIENCE)
            yield Drafted(stage.name, stage.outcome, DRAFT, round(stage.milliseconds))

    def _tokens(self, question: str, choice: Any, cancelled: Callable[[], bool]) -> Iterator[Event]:
        answer = question.split("say:", 1)[1] if "say:" in question else ANSWER
        if "modelfail" in question and choice:
            answer = "It began well, "
        if "slow" in question:
            answer = ""
        for start in range(0, len(answer), 24):
            if "paced" in question and not self._wait(cancelled, self.more):
                return
            yield Token(answer[start : start + 24])
        numbers = itertools.count()
        while "slow" in question:
            for number in itertools.islice(numbers, PART):
                yield Token(f"Paragraph {number} of a long answer.\n\n")
            if not self._wait(cancelled, self.more):
                return

    def _wait(
        self, cancelled: Callable[[], bool], go_on: threading.Semaphore | None = None
    ) -> bool:
        """Wait until the answer is to go on; False when it was cancelled before."""
        until(lambda: cancelled() or (go_on and go_on.acquire(blocking=False)))
        if cancelled():
            self.cancelled.set()
        return not cancelled()

    def _steps(self, turn: SimpleNamespace, *names: str) -> Iterator[Event]:
        for name in names:
            turn.steps.append(Step(name, 812.4 if name == "generate" else 3.21))
            yield turn.steps[-1]

    def _take_back(self, user: str, conversation: str, turn: SimpleNamespace) -> None:
        kept = self._kept.get((user, conversation), [])
        if turn in kept:
            kept.remove(turn)
            beside = [one.id for one in kept if one.parent == turn.parent]
            self._leaf[user, conversation] = beside[-1] if beside else turn.parent
        if not kept:
            self._kept.pop((user, conversation), None)

    def _path(self, user: str, conversation: str) -> list[SimpleNamespace]:
        """The turns of the branch in use, the first one first."""
        known = {one.id: one for one in self._kept.get((user, conversation), [])}
        path: list[SimpleNamespace] = []
        at = self._leaf.get((user, conversation), "")
        while at in known:
            path.append(known[at])
            at = known[at].parent
        return path[::-1]

    def branches(self, conversation: str, user: str = "local") -> dict[str, tuple[str, ...]]:
        kept = self._kept.get((user, conversation), [])
        return {
            turn.id: tuple(one.id for one in kept if one.parent == turn.parent)
            for turn in self._path(user, conversation)
        }

    def other_turns(self, conversation: str, user: str = "local") -> list[SimpleNamespace]:
        used = {turn.id for turn in self._path(user, conversation)}
        return [one for one in self._kept.get((user, conversation), []) if one.id not in used]

    def choose_branch(self, conversation: str, turn: str, user: str = "local") -> None:
        self.get(conversation, user)
        kept = self._kept[user, conversation]
        if turn not in {one.id for one in kept}:
            raise NotFoundError("There is no such answer.", "Choose another one.")
        while after := [one.id for one in kept if one.parent == turn]:
            turn = after[-1]
        self._leaf[user, conversation] = turn

    def find(self, text: str, user: str = "local") -> list[SimpleNamespace]:
        """The newest turn of each conversation that holds `text`, or its title."""
        found = []
        for one in self.all(user):
            titled = [("", "")] if text.lower() in one.title.lower() else []
            turns = self._kept[user, one.id]
            said = [(turn.id, words) for turn in turns for words in (turn.question, turn.answer)]
            for turn_id, words in (titled + [s for s in said if text.lower() in s[1].lower()])[-1:]:
                at = max(0, words.lower().find(text.lower()))
                snippet = " ".join(words[max(0, at - 40) : at + 80].split())
                found.append(SimpleNamespace(conversation=one, turn_id=turn_id, snippet=snippet))
        return found

    def flush(self) -> None: ...

    def all(self, user: str = "local") -> list[SimpleNamespace]:
        found = [
            SimpleNamespace(id=key[1], title=self._titles[key], created=turns[0].created,
                            updated=turns[-1].created, turns=len(turns),
                            pinned=key in self.pinned)
            for key, turns in self._kept.items() if key[0] == user and key[1]
        ]  # fmt: skip
        return sorted(found, key=lambda one: (not one.pinned, -one.updated))

    def get(self, conversation: str, user: str = "local") -> SimpleNamespace:
        for one in self.all(user):
            if one.id == conversation:
                return one
        raise NotFoundError("There is no such conversation.", "Choose one from the list.")

    def turns(self, conversation: str, user: str = "local") -> list[SimpleNamespace]:
        self.get(conversation, user)
        return self._path(user, conversation)

    def second_question(self, conversation: str, user: str = "local") -> str:
        turns = self._kept[user, conversation]
        return turns[1].question if len(turns) > 1 else ""

    def rename(self, conversation: str, title: str, user: str = "local") -> None:
        self.get(conversation, user)
        self._titles[user, conversation] = title

    def pin(self, conversation: str, pinned: bool, user: str = "local") -> None:
        (self.pinned.add if pinned else self.pinned.discard)((user, conversation))

    def delete(self, conversation: str, user: str = "local") -> None:
        self.get(conversation, user)
        del self._kept[user, conversation]
        del self._titles[user, conversation]

    def rate(self, turn_id: str, value: int, reason: str = "", user: str = "local") -> str:
        if self.refuse_thumbs:
            raise StorageError("The local state cannot be used.", "Is the disk full?")
        self.rated[turn_id] = (value, reason)
        return reason

    def thumbs(self, conversation: str, user: str = "local") -> dict[str, tuple[int, str]]:
        return {turn: rated for turn, rated in self.rated.items() if rated[0]}

    def has_context(self, conversation: str, user: str = "local") -> bool:
        kept = self._kept.get((user, conversation), [])
        return any(turn.tagged and turn.citations for turn in kept)

    def turn(self, turn_id: str, user: str = "local") -> SimpleNamespace:
        if not re.fullmatch(r"turn-\d+", turn_id):
            raise NotFoundError("There is no such answer.", "Ask again.")
        turns = [turn for kept in self._kept.values() for turn in kept if turn.id == turn_id]
        turn = turns[0] if turns else self._turn("", True, False, "", self._models.current())
        chunk = Chunk("c1", "src/store/sessions.py", 25, 33, "python", "x" * 310, "u1", "named")
        left = Chunk("c2", "src/store/long.py", 1, 2000, "python", "y" * 40_000)
        stages = [
            replace(stage, model=turn.model, host=turn.host, text=DRAFT)
            if "hyde" in stage.name else stage
            for stage in (turn.stages if turn.tagged else [])
        ]  # fmt: skip
        hits = hits_of(turn.hyde != "off") if turn.tagged else []
        record = TurnRecord(turn.id, turn.question, hits=hits, chunks=(chunk,))
        return SimpleNamespace(
            block=SimpleNamespace(text=BLOCK, chunks=(chunk,), dropped=(left,)),
            chunks=(chunk,), dropped=(left,),
            sent=self._sent(turn) if turn.model else [], model=turn.model, host=turn.host,
            tokens=turn.tokens if turn.model else Tokens(), hyde=turn.hyde if turn.tagged else "",
            stages=stages, hit_of=record.hit_of, hits_as_json=record.hits_as_json,
        )  # fmt: skip

    def _sent(self, turn: SimpleNamespace) -> list[SentMessage]:
        instruction = f"[MODE: {turn.mode}]\n[INSTRUCTION]\n{turn.question}"
        return [
            SentMessage("system", ["Answer from the chunks alone. <i>Never</i> guess."]),
            SentMessage("user", ["What is a session?"]),
            SentMessage("assistant", ["A signed cookie."]),
            SentMessage("user", [instruction, BLOCK]),
        ]


def stages_of(turn: SimpleNamespace, question: str) -> list[StageTime]:
    """The stages of the search for a turn, without what was drafted."""
    second = "timed out" if "late" in question else "done"
    drafts = [("hyde-1", 2140.0, "done"), ("hyde-2", 1830.0, second)]
    stages = drafts[: {"one": 1, "two": 2}.get(turn.hyde, 0)]
    stages += [("search", 31.0, "done")] if turn.tagged else []
    stages += [("rerank", 84.0, "done")] if turn.tagged and turn.reranker else []
    return [StageTime(*stage) for stage in stages]


def hits_of(drafts: bool) -> list[RecordedHit]:
    """What a search found, best first; with `drafts` also by them."""
    channels = {"text": 3, "symbol": 1, "vector": 2}
    more = {"hyde-1 text": 5, "hyde-2 vector": 1} if drafts else {}
    rows = [
        ("u1", "src/store/sessions.py", 25, 33, "method", "SecureCookie.open_session",
         1.7341, ["named", "holds 3 of 4 words"], {**channels, **more}),
        ("u2", "src/<img src=x onerror=window.hacked=1>.js", 1, 1, "chunk",
         "<img src=x onerror=window.hacked=1>", 0.5, ["<script>window.hacked=1</script>"],
         {"<b>odd</b>": 7, "vector": 1}),
        ("u3", "src/store/long.py", 1200, 1210, "module", "", 0.25, [], {"text": 9}),
    ]  # fmt: skip
    return [RecordedHit(*place, unit_id, *rest) for unit_id, *place, rest in
            ((*row[:6], row[6:]) for row in rows)]  # fmt: skip


class FakeFiles:
    def read(self, path: str) -> Any:
        if path not in FILES:
            raise NotFoundError(f"{path!r} is not an indexed file.", "Only those can be opened.")
        language, text = FILES[path]
        changed = path == "README.md"
        on_disk = Path("/home/you/src/store", path)
        return SimpleNamespace(
            path=path, language=language, text=text, changed=changed, on_disk=on_disk
        )

    def hosted(self, path: str) -> str:
        return f"https://github.com/you/store/blob/{'1' * 40}/{path}#L{{start}}-L{{end}}"

    def paths(self) -> list[str]:
        return sorted(FILES)

    def line_count(self, path: str) -> int | None:
        return FILES[path][1].count("\n") if path in FILES else None


class FakeCompletion(MentionCompleter):
    """Knows the files alone; what a question mentions is nothing."""

    def __init__(self) -> None:
        definitions = pa.schema([(name, pa.string()) for name in DEFINITION_COLUMNS]).empty_table()
        catalogue = SimpleNamespace(
            paths=frozenset(FILES),
            large=False,
            roles=lambda holding="": dict.fromkeys(FILES, "source"),
            definitions=lambda holding="": definitions,
        )
        tables: Any = SimpleNamespace(catalogue=lambda: catalogue, plain_path=str)
        super().__init__(lambda: tables)

    def complete(self, typed: str, limit: int = 20) -> tuple[MentionCompletion, ...]:
        return tuple(one for one in super().complete(typed, 100) if one.kind == "file")[:limit]

    def mentioned(self, question: str) -> list[Any]:
        return []


class FakeIndex:
    def __init__(self) -> None:
        self.current = IndexStatus(
            repository="/home/you/src/store", name="store", state="ready", files=4, units=31,
            references=120, skipped={"binary": 2, "larger than 1,000,000 bytes": 1},
            updated_at=time.time() - 130, checked_at=time.time() - 130,
        )  # fmt: skip

    def status(self) -> IndexStatus:
        return self.current

    def state(self) -> str:
        return self.current.state

    def start(self) -> None: ...

    def pause(self) -> None:
        self.current = replace(self.current, state="paused")

    def start_update(self) -> None:
        self.current = replace(
            self.current, state="ready", progress=None, watched=True, checked_at=time.time()
        )

    def stop(self) -> None: ...

    def was_removed(self) -> bool:
        return False


class _Turn(SimpleNamespace):
    """A turn while it is answered, by the fields of its record."""

    def record(self) -> TurnRecord:
        names = [one.name for one in fields(TurnRecord)]
        return TurnRecord(**{name: value for name, value in vars(self).items() if name in names})

    def page(self) -> dict[str, Any]:
        return self.record().page()


class FakeEngine:
    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing was asked, chosen or kept yet."""
        root = Path("/home/you/src/store")
        self.settings = SimpleNamespace(
            effort="normal", hyde="two", retrieval="explicit", reranker="built-in",
            context_characters=12_000, context_tokens=0,
        )  # fmt: skip
        self.location = SimpleNamespace(
            id="store-0123abcd", name="store", root=root, folder=root, snapshot_of="", commit="",
            remote=("", ""),
        )  # fmt: skip
        self.repositories = (self.location,)
        self.index = FakeIndex()
        self.models = FakeModels()
        self.chat, self.files = FakeChat(self.models), FakeFiles()
        self.conversations = self.chat
        self.completion = FakeCompletion()
        self.toolbox = SimpleNamespace(tables=self.tables)

    def tables(self) -> NoReturn:
        raise IndexMissingError("There is no index here.", "Everything is written down.")

    def close(self) -> None: ...
