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

from tests.openai_server import Reply, Streamed, delta, stream

Call = tuple[str, dict[str, Any]]

_NAME = re.compile(r"`([\w.:]+)`")
_TEXT = re.compile(r"“([^”]+)”")
_SHOWN = re.compile(r"^--- (\S+):(\d+)(?:-(\d+))? (\w+) (\S+)", re.MULTILINE)
_HIT = re.compile(r"^--- (\S+) \(lines (\d+)-(\d+), relevance", re.MULTILINE)
_REST = re.compile(r"^--- (\S+?):.*the rest is open_file lines (\d+-\d+)", re.MULTILINE)
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
            return stream([_answer(made, shown, str(messages[-1]["content"]))])
        return calls_reply(list({json.dumps(call): call for call in wanted}.values())[:MOST_CALLS])

    def _next(self, made: list[Call], shown: list[str]) -> Iterator[Call]:
        """What is worth calling now, the most promising first."""
        asked = self.question
        names, texts = _NAME.findall(asked), _TEXT.findall(asked)
        for text in texts:
            yield "grep", {"pattern": text}
        for name in names:
            yield "find_definition", {"name": name}
            if re.search(r"who calls", asked, re.I):
                yield "callers", {"name": name, "depth": 2}
            if re.search(r"\b(?:when|why)\b.*changed", asked, re.I):
                yield "git_log", {"path_or_name": name, "limit": 3}
        if not names and not texts:
            yield "search_code", {"query": asked.rstrip("?")}
        for (tool, given), result in zip(made, shown, strict=True):
            for path, lines in _REST.findall(result):
                yield "open_file", {"path": path, "lines": lines}
            if near := re.search(r"The nearest name is ([\w.]+)\.", result):
                yield "find_definition", {"name": near[1]}
            if tool == "callers" and "did not count: find_references" in result:
                yield "find_references", {"name": given["name"]}
            if tool == "git_log" and (commits := _COMMIT.findall(result)):
                yield "git_show", {"commit": commits[0]}
            if tool == "grep":
                yield from _around_first(result)
            follows = tool == "find_definition" and "has 1 definition" in result
            if follows and given["name"] in names and re.search(r"what|how", asked, re.I):
                yield "callees", {"name": given["name"]}
            if tool in ("callees", "search_code"):
                named = _IN_TREE.findall(result) or _ALSO.findall(result)
                yield from (("find_definition", {"name": n}) for n in self._fitting(named))

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


def _answer(made: list[Call], shown: list[str], asked: str) -> str:
    """The places that were read, each cited, those of definitions with their names."""
    said = []
    for (tool, _), result in zip(made, shown, strict=True):
        for path, first, last, kind, name in _SHOWN.findall(result):
            said.append(f"- `{name}` is a {kind} [{path}:{first}-{last or first}].")
        for path, first, last in (*_HIT.findall(result), *_OPENED.findall(result)):
            said.append(f"- This belongs to it [{path}:{first}-{last}].")
        for name, path, line in _IN_TREE.findall(result):
            root = _ROOT.search(result)
            where = path if tool == "callers" else root[2] if root else path
            said.append(f"- `{name}` takes part [{where}:{line}].")
    if not said:  # the context was enough
        first = re.search(r"(\S+\.\w+:\d+-\d+)", asked)
        said = [f"- It is here [{first[1]}]."] if first else ["- Nothing was found."]
    return "\n".join(dict.fromkeys(said))
