"""Looks as lines of text, for models whose servers take no tools::

    LOOK search how a retry is timed in src/
        def retry(request, attempts):
            time.sleep(backoff * attempts)
    LOOK symbol Session.send callers
    LOOK lines src/session.py:120-180, src/errors.py:1-30
    LOOK grep "max_retries" in src/

The lines below a search, up to the next look, are code as the model expects it.
"""

from __future__ import annotations

import json
import re
import textwrap

from codeqa.llm.values import ToolCall, clean_text

LOOK_TOOLS = ("search_code", "symbol", "open_file", "grep")
LOOK_MARK = "LOOK"
INTRODUCTION_CHARACTERS = 120
"""Most characters of a line before the first look, such as "Let me see:"."""
_BEFORE = " \n\r\t`*#>-"
"""Characters that may precede the mark."""

_LOOK = re.compile(rf"[{re.escape(_BEFORE)}]*{LOOK_MARK}[: ]+(\w+)[: ]*(.*)")
_WANT = "(?:definition|callers|callees|references|subclasses|impact)"
_WANTS = re.compile(rf"(.+?)[ :]+({_WANT}(?:, *{_WANT})*)")
_WITHIN = re.compile(r"(.+?)\s+in\s+`?([\w.*-]*[/*.][\w./*-]*)`?")
_SPAN = re.compile(r"`?([^\s:`]+?)`?(?::| lines? )?\s*(\d+(?:\s*-\s*\d+)?)?`?")


def may_be_looks(text: str) -> bool:
    """Return whether `text`, the beginning of a model's output, is looks or may become some."""
    first, _, rest = text.lstrip(_BEFORE).partition("\n")
    below = rest.lstrip(_BEFORE)
    return _may_begin(first) or (len(first) <= INTRODUCTION_CHARACTERS and _may_begin(below))


def _may_begin(line: str) -> bool:
    return line.startswith(LOOK_MARK) or LOOK_MARK.startswith(line)


def read_looks(text: str) -> list[ToolCall]:
    """Return the looks in `text` as calls of tools; none for an answer."""
    if not may_be_looks(text):
        return []
    calls: list[tuple[str, dict[str, str]]] = []
    guess: list[str] = []
    for line in text.split("\n"):
        if look := _LOOK.fullmatch(line.rstrip("`* ")):
            calls += _calls(look[1].lower(), clean_text(look[2]))
            guess = []
        elif calls and calls[-1][0] == "search_code":
            guess.append(line)
            calls[-1][1]["guess"] = clean_text(textwrap.dedent("\n".join(guess)))
    return [
        ToolCall(str(number), name, json.dumps(arguments, ensure_ascii=False))
        for number, (name, arguments) in enumerate(calls, 1)
    ]


def _calls(kind: str, rest: str) -> list[tuple[str, dict[str, str]]]:
    """Return the calls of tools for one line, with their arguments."""
    if kind == "lines":
        calls = []
        for span in rest.split(","):
            if match := _SPAN.fullmatch(span.strip()):
                arguments = {"path": match[1], "lines": match[2]}
                calls.append(("open_file", {key: text for key, text in arguments.items() if text}))
        return calls
    if kind == "symbol":
        match = _WANTS.fullmatch(rest)
        name, wants = match.groups() if match else (rest, "definition")
        name = name.replace("`", "")
        return [("symbol", {"name": name, "want": want.strip()}) for want in wants.split(",")]
    match = _WITHIN.fullmatch(rest)
    query, path = match.groups() if match else (rest, "")
    within = {"path": path} if path else {}
    if kind == "grep":
        return [("grep", {"pattern": query.strip("`\"' ")} | within)]
    name = "search_code" if kind == "search" else kind  # an unknown name: the model gets an error
    return [(name, {"query": query} | within)]
