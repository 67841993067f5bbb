"""How soon an answer begins.

    python -m research.benchmarks.first_word [--tree FOLDER] [--json FILE]

The engine is asked a dozen questions, a fresh one for each kind of model, over HTTP against a
scripted server that is as slow as models of that kind are (KINDS). Reported are the seconds and
the calls of the model until the first word of the answer and until its end, and the tokens of all
calls, counted by the server at CHARACTERS a token: what was sent, what of that continues the
beginning of an earlier request (a hosted model charges less for it, and a local one does not read
it again), and what was generated. Index, programs and tables are loaded before.

Drafts and small calls are answered as a good model would, in form; a model that may look further
before it answers does so once in a share of the questions, `--asks`. A model of the kind
*reasoning* thinks for 8 seconds whatever it is asked, within the tokens that it is granted.

`--speed 4` divides the delays and CodeQA's deadlines for drafts by four, and multiplies the seconds
that are reported by four: what the engine takes itself is then reported four times too long.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codeqa import open_engine
from codeqa.prompts import PROMPTS
from codeqa.settings import load_settings
from research.benchmarks.machine import ROOT, conditions
from tests.kit.openai_server import Reply, Streamed, delta, openai_server, rate_limited

CHARACTERS = 3.5
"""Of a token, prose and code together."""
TICK = 0.05
"""Seconds between two events: what a model says meanwhile comes in one."""
REMEMBERED = 8
"""Requests whose beginnings are not read again."""
DRAFT_TOKENS, ANSWER_TOKENS = 200, 300
DRAFT_SECONDS = 8.0
"""What CodeQA grants a draft unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of model: how long it is silent, and how fast it then is."""

    first: float
    """Seconds to its first token."""
    rate: float
    """Tokens a second."""
    thought: float = 0.0
    """Seconds of thought before each answer, sent at that rate as they come."""
    reads: float = 0.0
    """Tokens of a prompt a second; what begins like an earlier request is not read again. 0: at
    once. Such a model works for one request at a time."""
    refuses: int = 0
    """Every so many requests one is refused."""


KINDS = {
    "hosted fast": Kind(0.5, 100),
    "hosted slow": Kind(3.0, 40),
    "reasoning": Kind(0.0, 80, thought=8.0),
    "local": Kind(0.0, 26, reads=400),  # 20 words a second
    "rate limited": Kind(0.5, 100, refuses=3),
    "a second a call": Kind(1.0, 1_000),
}
AT_ONCE = Kind(0.0, 1e6)
RETRY_AFTER = 2.0


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    """What follows on the question before begins with `and`."""
    alone: str = ""
    """What a follow-up asks, said in full."""


QUESTIONS = (
    Question("how are the drafts of an answer joined with what the question itself finds?"),
    Question("and what happens when a draft comes too late?",
             "What happens when a draft of the answer comes too late?"),
    Question("where is it decided whether a message is searched for?"),
    Question("what does parse_query do?"),
    Question("who calls build_messages?"),
    Question("explain how a citation is checked before it is shown"),
    Question("why are the tables' old versions removed, and when?"),
    Question("what breaks if estimate_tokens counts fewer tokens?"),
    Question("how does a file that kills its parser keep the index from being stuck?"),
    Question("and which test covers that?",
             "Which test covers a file that kills its parser?"),
    Question("how would I add a setting that limits the length of an answer?"),
    Question("compare how the terminal and the page read the events of an answer"),
)  # fmt: skip


@dataclass(slots=True)
class Call:
    """One request to the model."""

    purpose: str
    prompt: int
    """Tokens sent."""
    cached: int
    """Of them, those that begin an earlier request."""
    completion: int = 0
    """Tokens generated before the end, or before its reader left."""
    refused: bool = False


@dataclass(slots=True)
class Asked:
    """What one question took."""

    question: str
    first_word: float
    """Seconds; 0 where no word came."""
    calls_before: int
    end: float
    calls: list[Call]
    problem: str = ""


class ScriptedModel:
    """Answers every request in words that have its form, as slowly as its kind does."""

    def __init__(self, kind: Kind, asks: float, speed: float) -> None:
        self._kind, self._share, self._speed = kind, asks, speed
        self._alone = threading.Lock()
        self._read: list[str] = []
        self._noted = threading.Lock()
        self._requests = 0
        self._asks = False
        self.question = Question("")
        self.calls: list[Call] = []

    def begin(self, number: int, question: Question) -> None:
        """The next question, counted from 0."""
        self.question, self.calls = question, []
        self._asks = int((number + 1) * self._share) > int(number * self._share)

    def __call__(self, path: str, body: dict[str, Any]) -> Reply:
        prompt, purpose = text_of(body), purpose_of(body)
        with self._noted:
            cached = max((same(prompt, one) for one in self._read), default=0)
            call = Call(purpose, tokens(prompt), int(cached / CHARACTERS))
            self.calls.append(call)
            self._requests += 1
            if self._kind.refuses and self._requests % self._kind.refuses == 0:
                call.refused = True
                return rate_limited(RETRY_AFTER / self._speed)
        text, calls = self._reply(purpose, body, prompt)
        granted = body.get("max_tokens") or body.get("max_completion_tokens") or 1_000_000
        events = self._events(call, prompt, text, calls, granted)
        return Streamed(events, TICK / self._speed, usage=(call.prompt, tokens(text)))

    def _reply(
        self, purpose: str, body: dict[str, Any], prompt: str
    ) -> tuple[str, list[dict[str, Any]]]:
        """The text of a reply, and the calls of tools in it."""
        question = self.question
        match purpose:
            case "draft":
                return draft_of(question.alone or question.text), []
            case "understand":
                intent = "continuation" if question.alone else "knowledge_base"
                said = {"intent": intent, "confidence": 0.9, "topic": "SAME"}
                return json.dumps({**said, "question": question.alone or question.text}), []
        looked = any(one.get("role") == "tool" for one in body["messages"])
        if self._asks and body.get("tools") and not looked:
            query = json.dumps({"query": question.alone or question.text})
            function = {"name": "search_code", "arguments": query}
            return "", [{"index": 0, "id": "call_0", "type": "function", "function": function}]
        return answer_from(prompt), []

    def _events(
        self, call: Call, prompt: str, text: str, calls: list[dict[str, Any]], granted: int
    ) -> Iterator[bytes]:
        """One event each tick: what has come since the last one."""
        kind, alone = self._kind, bool(self._kind.reads)
        while alone and not self._alone.acquire(blocking=False):
            yield SILENT
        try:
            started = time.monotonic()
            thoughts = int(kind.thought * kind.rate)
            silence = kind.first
            if kind.reads:
                silence += (call.prompt - call.cached) / kind.reads
            pieces = ["hm, "] * thoughts + [*pieces_of(text or json.dumps(calls))]
            cut, pieces = len(pieces) > granted, pieces[:granted]
            while call.completion < len(pieces):
                passed = (time.monotonic() - started) * self._speed - silence
                due = min(int(passed * kind.rate), len(pieces))
                if due <= call.completion:
                    yield SILENT
                    continue
                at = call.completion
                thought = "".join(pieces[at : min(due, thoughts)])
                said = "" if calls else "".join(pieces[max(at, thoughts) : due])
                call.completion = due
                yield delta(said, **({"reasoning_content": thought} if thought else {}))
            if calls:
                yield delta(tool_calls=calls)
            yield delta(reason="length" if cut else "tool_calls" if calls else "stop")
        finally:
            if call.completion:
                with self._noted:
                    self._read = [*self._read[1 - REMEMBERED :], prompt + text]
            if alone:
                self._alone.release()


SILENT = b":\n\n"
"""A comment, which no reader of events takes for one."""


def purpose_of(body: dict[str, Any]) -> str:
    """What a request is for, told by the prompt that it begins with."""
    content = body["messages"][0]["content"]
    system = content if isinstance(content, str) else content[0]["text"]
    for prompt, purpose in PURPOSES.items():
        if prompt in PROMPTS and system.startswith(PROMPTS[prompt].text[:40]):
            return purpose
    return "answer"


PURPOSES = {
    "hyde_system": "draft", "hyde_v2_system": "draft",
    "understand": "understand",
}  # fmt: skip


def text_of(body: dict[str, Any]) -> str:
    """A request as a model reads it: its tools, then its messages."""
    parts = [json.dumps(body["tools"])] if body.get("tools") else []
    for message in body["messages"]:
        content = message.get("content") or ""
        if not isinstance(content, str):
            content = "\n\n".join(part["text"] for part in content)
        calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
        parts.append(f"<{message['role']}>{content}{calls}")
    return "".join(parts)


def tokens(text: str) -> int:
    return round(len(text) / CHARACTERS)


def same(one: str, two: str) -> int:
    """Length of the beginning that both have."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(two)))


def pieces_of(text: str) -> Iterator[str]:
    """`text` in pieces of a token each."""
    for number in range(tokens(text)):
        yield text[round(number * CHARACTERS) : round((number + 1) * CHARACTERS)]


def draft_of(question: str) -> str:
    """About DRAFT_TOKENS of code in the words of `question`."""
    words = re.findall(r"[a-z_]{4,}", question.lower()) or ["thing"]
    dice = random.Random(question)
    lines = [f"def {'_'.join(words[:3])}(self, {words[-1]}):", f'    """{question}"""']
    while tokens("\n".join(lines)) < DRAFT_TOKENS:
        one, two, three = (dice.choice(words) for _ in range(3))
        lines.append(f"    {one} = self.{two}_{three}({one}, limit={dice.randrange(99)})")
    return "\n".join(lines)


def answer_from(prompt: str) -> str:
    """About ANSWER_TOKENS of prose that cites the chunks of `prompt`."""
    places = re.findall(r"^Path: (.+)\nLines: (\d+)\D(\d+)$", prompt, re.MULTILINE)[:4]
    cited = [f"[{path}:{first}-{last}]" for path, first, last in places] or [""]
    said, number = "", 0
    while tokens(said) < ANSWER_TOKENS:
        said += (
            "The value is taken from the one before it, and what does not belong to it is left "
            f"out before anything is written {cited[number % len(cited)]}. "
        )
        number += 1
    return said.strip()


def ask(
    engine: Any, model: ScriptedModel, options: dict[str, Any], conversation: str, speed: float
) -> Asked:
    """Ask what `model` was told of, in real seconds times `speed`."""
    started, first, before, problem = time.monotonic(), 0.0, 0, ""
    for one in engine.ask(model.question.text, conversation=conversation, **options):
        if one.kind == "token" and one.data["text"].strip() and not first:
            first, before = time.monotonic(), sum(not call.refused for call in model.calls)
        elif one.kind in ("error", "stopped"):
            problem = str(one.data.get("message", one.kind))
    end = time.monotonic()
    return Asked(
        question=model.question.text,
        first_word=round((first - started) * speed, 2) if first else 0.0,
        calls_before=before,
        end=round((end - started) * speed, 2),
        calls=model.calls,
        problem=problem,
    )


def measure(
    kind: Kind,
    questions: Sequence[Question],
    options: dict[str, Any],
    asks: float,
    speed: float,
    tree: Path,
    tables: Path,
) -> list[Asked]:
    """What the questions take with a model of that kind, asked one after the other; a follow-up in
    the conversation of the question before it."""
    script: Callable[[str, dict[str, Any]], Reply] = ScriptedModel(AT_ONCE, 0.0, speed)
    found = []
    with (
        tempfile.TemporaryDirectory() as data,
        openai_server(lambda path, body: script(path, body)) as server,
    ):
        settings = load_settings(
            data=data, tables=str(tables), watch=False, model="custom/scripted",
            model_url=server.base_url, hyde_seconds=DRAFT_SECONDS / speed,
        )  # fmt: skip
        with open_engine(settings, tree) as engine:
            engine.index.run()
            engine.chat.warm_up()
            script = model = ScriptedModel(AT_ONCE, 0.0, speed)
            model.begin(0, Question("how is the word warm used here?"))
            ask(engine, model, options, "", speed)
            script = model = ScriptedModel(kind, asks, speed)
            conversation = 0
            for number, question in enumerate(questions):
                conversation += not question.alone
                model.begin(number, question)
                found.append(ask(engine, model, options, f"c{conversation}", speed))
    return found


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """Median and most of each figure, over the questions for which a model was asked."""
    used = [one for one in asked if one.calls]

    def of(values: Sequence[float]) -> dict[str, float]:
        return {"median": round(statistics.median(values), 2), "most": round(max(values), 2)}

    answered = [[call for call in one.calls if not call.refused] for one in used]
    return {
        "questions": len(asked),
        "without_model": len(asked) - len(used),
        "problems": [f"{one.question}: {one.problem}" for one in asked if one.problem],
        "first_word_seconds": of([one.first_word for one in used]),
        "first_word_calls": of([one.calls_before for one in used]),
        "end_seconds": of([one.end for one in used]),
        "calls": of([len(calls) for calls in answered]),
        "prompt_tokens": of([sum(call.prompt for call in calls) for calls in answered]),
        "cached_tokens": of([sum(call.cached for call in calls) for calls in answered]),
        "completion_tokens": of([sum(call.completion for call in calls) for calls in answered]),
        "asked": [asdict(one) for one in asked],
    }


def table(kinds: dict[str, dict[str, Any]]) -> str:
    """In Markdown, each figure as median / most."""
    columns = {
        "first_word_seconds": "first word, s", "first_word_calls": "calls to it",
        "end_seconds": "end, s", "calls": "calls", "prompt_tokens": "prompt tokens",
        "cached_tokens": "of them seen before", "completion_tokens": "generated tokens",
    }  # fmt: skip
    rows = [f"| kind of model | {' | '.join(columns.values())} |", f"|---|{'---:|' * len(columns)}"]
    for name, found in kinds.items():
        cells = [f"{found[key]['median']:,g} / {found[key]['most']:,g}" for key in columns]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def questions_of(file: Path) -> list[Question]:
    """One a line; a follow-up begins with `> `, and what it asks in full may stand behind ` | `."""
    found = []
    for line in filter(str.strip, file.read_text(encoding="utf-8").splitlines()):
        text, _, alone = line.removeprefix("> ").partition(" | ")
        found.append(Question(text, (alone or text) if line.startswith("> ") else ""))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="folder that is asked about")
    parser.add_argument("--questions", type=Path, help="a file with others; `> ` for a follow-up")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--effort", help="fast, normal or deep")
    parser.add_argument("--hyde", help="off, one or two")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=JSON", help="another of AskOptions"
    )
    parser.add_argument("--asks", type=float, default=0.0, help="share that asks for more first")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args(arguments)
    chosen = {"effort": given.effort, "hyde": given.hyde}
    options = {name: value for name, value in chosen.items() if value is not None}
    more = (one.partition("=") for one in given.option)
    options |= {name: json.loads(value) for name, _, value in more}
    questions = questions_of(given.questions) if given.questions else QUESTIONS
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as tables:
        for name in given.kinds:
            asked = measure(
                KINDS[name], questions, options, given.asks, given.speed,
                given.tree.resolve(), Path(tables),
            )  # fmt: skip
            found[name] = figures(asked)
            print(f"{name}: {json.dumps(found[name]['first_word_seconds'])}", file=sys.stderr)
    print(table(found))
    for name, of_kind in found.items():
        for problem in of_kind["problems"]:
            print(f"{name}: {problem}")
    if given.json:
        command = ["python", "-m", "research.benchmarks.first_word", *(arguments or sys.argv[1:])]
        report = {**conditions(command), "speed": given.speed, "asks": given.asks, "kinds": found}
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
