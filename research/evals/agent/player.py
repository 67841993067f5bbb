"""A model that plays a sensible agent by rule: each call follows from what the tools have shown.

It looks the named definition up, follows what the question asks for (who calls it, what it calls,
what was changed), opens what was cut, and answers with the places that it has read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.kit.openai_server import Reply, Streamed, delta, stream

Call = tuple[str, dict[str, Any]]

_NAME = re.compile(r"`([\w.:]+)`")
_TEXT = re.compile(r"“([^”]+)”")
_HIT = re.compile(r"^--- (\S+) \(lines (\d+)-(\d+)", re.MULTILINE)
_IN_TREE = re.compile(r"^ +(\S+) \[(\S+):\d+-\d+\]  (\d+): ", re.MULTILINE)
_ALSO = re.compile(r"(\S+) \[(\S+):(\d+)-\d+\]")
_OPENED = re.compile(r"^read (\S+) (\d+)-(\d+) of ", re.MULTILINE)
_ROOT = re.compile(r"^(\S+) \[(\S+):\d+-\d+\]$", re.MULTILINE)
_COMMIT = re.compile(r"^([0-9a-f]{7,12})  ", re.MULTILINE)
_WORD = re.compile(r"[a-z]{4,}")
MOST_CALLS = 3
"""Of one step."""


@dataclass
class Player:
    """Plays one question at a time; `opening` is what it was first asked with."""

    question: str = ""
    requests: list[int] = field(default_factory=list)
    """Characters of each request."""

    def __call__(self, path: str, body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        if not any("How you look further" in str(m["content"]) for m in messages[:1]):
            return stream(["{}"])  # another of the app's questions, to be decided by its rules
        self.requests.append(sum(len(str(m["content"])) for m in messages))
        made = [
            (call["function"]["name"], json.loads(call["function"]["arguments"]))
            for m in messages
            for call in m.get("tool_calls") or ()
        ]
        shown = [str(m["content"]) for m in messages if m["role"] == "tool"]
        steps = sum(bool(m.get("tool_calls")) for m in messages)
        wanted = [call for call in self._next(made, shown) if call not in made] if steps < 6 else []
        if not wanted or not body.get("tools"):
            return stream([_answer(shown, str(messages[-1]["content"]))])
        return calls_reply(list({json.dumps(call): call for call in wanted}.values())[:MOST_CALLS])

    def _next(self, made: list[Call], shown: list[str]) -> Iterator[Call]:
        """What is worth calling now, the most promising first."""
        asked = self.question
        names, texts = _NAME.findall(asked), _TEXT.findall(asked)
        for text in texts:
            yield "grep", {"pattern": text}
        for name in names:
            yield "symbol", {"name": name}
            if re.search(r"who calls", asked, re.I):
                yield "symbol", {"name": name, "want": "callers"}
            if re.search(r"\b(?:when|why)\b.*changed", asked, re.I):
                yield "history", {"name": name}
        if not names and not texts:
            yield "search_code", {"query": asked.rstrip("?")}
        for (tool, given), result in zip(made, shown, strict=True):
            if near := re.search(r"The nearest name is ([\w.]+)\.", result):
                yield "symbol", {"name": near[1]}
            if tool == "history" and "name" in given and (commits := _COMMIT.findall(result)):
                yield "history", {"commit": commits[0]}
            if tool == "grep":
                yield from _around_first(result)
            follows = tool == "symbol" and "has 1 definition" in result
            if follows and given["name"] in names and re.search(r"what|how", asked, re.I):
                yield "symbol", {"name": given["name"], "want": "callees"}
            if tool == "search_code" or given.get("want") == "callees":
                named = _IN_TREE.findall(result) or _ALSO.findall(result)
                yield from (("symbol", {"name": n}) for n in self._fitting(named))

    def _fitting(self, named: list[tuple[str, ...]]) -> list[str]:
        """Those of the names that share most words with the question, at most two."""
        asked = {word[:5] for word in _WORD.findall(self.question.lower())}
        shared = {
            name: len(asked & {w[:5] for w in _WORD.findall(name.rpartition(".")[2].lower())})
            for name, *_ in named
        }
        return sorted(filter(shared.get, shared), key=lambda name: -shared[name])[:2]


def _around_first(result: str) -> Iterator[Call]:
    """Opens the definition around the first line that grep found, else the lines near it."""
    if found := re.search(r"^(\S+)\n  (\d+)(?: \[\S+ (\d+-\d+)\])?: ", result, re.MULTILINE):
        at = int(found[2])
        yield "open_file", {"path": found[1], "lines": found[3] or f"{max(1, at - 5)}-{at + 5}"}


def calls_reply(calls: list[Call]) -> Streamed:
    """A step that makes `calls`, as OpenAI streams it."""
    made = [
        {"index": at, "id": f"call_{at}_{name}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(given)}}
        for at, (name, given) in enumerate(calls)
    ]  # fmt: skip
    return Streamed((*(delta(tool_calls=[one]) for one in made), delta(reason="tool_calls")))


def _answer(shown: list[str], asked: str) -> str:
    """The places that were read, each cited."""
    said = []
    for result in shown:
        for path, first, last in (*_HIT.findall(result), *_OPENED.findall(result)):
            said.append(f"- This belongs to it [{path}:{first}-{last}].")
        for name, path, line in _IN_TREE.findall(result):
            root = _ROOT.search(result)
            said.append(f"- `{name}` takes part [{root[2] if root else path}:{line}].")
    if not said:  # the context was enough
        first = re.search(r"(\S+\.\w+:\d+-\d+)", asked)
        said = [f"- It is here [{first[1]}]."] if first else ["- Nothing was found."]
    return "\n".join(dict.fromkeys(said))
