"""Looks as lines of text, for models whose servers take no tools::

    LOOK search how a retry is timed in src/
        def retry(request, attempts):
            time.sleep(backoff * attempts)
    LOOK symbol Session.send callers
    LOOK lines src/session.py:120-180, src/errors.py:1-30
    LOOK grep "max_retries" in src/

What stands below a search is code as the model expects it, up to the next look.
"""

from __future__ import annotations

import json
import re
import textwrap

from codeqa.llm.values import ToolCall, clean_text

LOOK_TOOLS = ("search_code", "symbol", "open_file", "grep")
MARK = "LOOK"
INTRODUCTION = 120
"""Characters of one line that may stand before the first look, such as "Let me see:"."""
_BEFORE = " \n\r\t`*#>-"
"""What may stand before the mark."""

_LOOK = re.compile(rf"[{re.escape(_BEFORE)}]*{MARK}[: ]+(\w+)[: ]*(.*)")
_WANT = "(?:definition|callers|callees|references|subclasses|impact)"
_WANTS = re.compile(rf"(.+?)[ :]+({_WANT}(?:, *{_WANT})*)")
_WITHIN = re.compile(r"(.+?)\s+in\s+`?([\w.*-]*[/*.][\w./*-]*)`?")
_PLACE = re.compile(r"`?([^\s:`]+?)`?(?::| lines? )?\s*(\d+(?:\s*-\s*\d+)?)?`?")


def may_be_looks(text: str) -> bool:
    """Whether `text`, the beginning of what a model writes, is looks or may become some."""
    first, _, rest = text.lstrip(_BEFORE).partition("\n")
    below = rest.lstrip(_BEFORE)
    return _may_begin(first) or (len(first) <= INTRODUCTION and _may_begin(below))


def _may_begin(line: str) -> bool:
    return line.startswith(MARK) or MARK.startswith(line)


def read_looks(text: str) -> list[ToolCall]:
    """Return the looks that `text` is, as calls of tools; none for an answer."""
    calls: list[tuple[str, dict[str, str]]] = []
    guess: list[str] = []
    for line in text.split("\n") if may_be_looks(text) else ():
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
    """Return the tools that one line asks for, with their arguments."""
    if kind == "lines":
        places = (_PLACE.fullmatch(place.strip()) for place in rest.split(","))
        found = [place for place in places if place]
        return [("open_file", {"path": p[1]} | ({"lines": p[2]} if p[2] else {})) for p in found]
    if kind == "symbol":
        named = _WANTS.fullmatch(rest)
        name, wants = named.groups() if named else (rest, "definition")
        each = map(str.strip, wants.split(","))
        return [("symbol", {"name": name.replace("`", ""), "want": want}) for want in each]
    within = _WITHIN.fullmatch(rest)
    asked, path = within.groups() if within else (rest, "")
    arguments = {"path": path} if path else {}
    if kind == "grep":
        return [("grep", {"pattern": asked.strip("`\"' "), **arguments})]
    name = "search_code" if kind == "search" else kind  # which tells that there is no such tool
    return [(name, {"query": asked, **arguments})]
