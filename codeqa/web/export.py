"""A conversation as a file of its own: Markdown to read, JSON to read in again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from codeqa.render import inert_markdown
from codeqa.text.markdown import code_span, escape

FORMAT, VERSION = "codeqa-conversation", 1
NAME_CHARACTERS = 60
NAMELESS = "conversation"

Values = Mapping[str, Any]


def as_markdown(exported: Values) -> str:
    """An `ExportedConversation` as Markdown: title, questions, answers, and what those rest on."""
    begun = _moment(exported["created"])
    lines = [
        f"# {_plain(exported['title'])}",
        f"{_plain(exported['repository']['name'])} · {begun}",
    ]
    for number, turn in enumerate(exported["turns"], 1):
        lines += _turn(number, turn)
    return "\n\n".join(lines) + "\n"


def attachment(title: str, ending: str) -> str:
    """A `Content-Disposition` that names the file after `title`, in signs that any disk takes."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", title))
    name = "-".join(words)[:NAME_CHARACTERS].strip("-_") or NAMELESS
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = "-".join(re.findall(r"\w+", plain)) or NAMELESS
    return (
        f'attachment; filename="{plain}.{ending}"; '
        f"filename*=UTF-8''{quote(f'{name}.{ending}', safe='')}"
    )


def _turn(number: int, turn: Values) -> Iterator[str]:
    yield f"## {number}. Question"
    question = ("@codebase " if turn["tagged"] else "") + turn["question"]
    yield "\n".join(f"> {line}".rstrip() for line in inert_markdown(question).split("\n"))
    yield f"## {number}. Answer"
    if turn["answer"].strip():
        yield inert_markdown(turn["answer"])
    if turn["error"]:
        yield f"**Failed:** {_plain(turn['error']['message'])}"
    elif not turn["finished"]:
        yield "**Stopped here.**"
    if turn["notice"]:
        yield f"**Note:** {_plain(turn['notice'])}"
    cited = [_citation(one) for one in turn["citations"]]
    if cited:
        yield "**Citations:**\n\n" + "\n".join(f"- {one}" for one in dict.fromkeys(cited))
    if used := [_place(chunk) for chunk in turn["context"]["chunks"]]:
        yield "**Code that was used:**\n\n" + "\n".join(f"- {one}" for one in used)
    yield f"*{_plain(' · '.join(_facts(turn)))}*"


def _facts(turn: Values) -> Iterator[str]:
    yield _moment(turn["created"])
    if turn["model"]:
        yield f"{turn['model']} at {turn['host']}" if turn["host"] else turn["model"]
    else:
        yield "without a language model"
    if turn["mode"]:
        yield f"mode: {turn['mode']}"
    if turn["coverage"]:
        yield f"searched: {turn['coverage']}"


def _citation(citation: Values) -> str:
    place = code_span(f"{citation['path']}:{citation['start']}-{citation['end']}")
    return place if citation["verified"] else f"{place} (could not be verified)"


def _place(chunk: Values) -> str:
    return code_span(f"{chunk['path']}:{chunk['start_line']}-{chunk['end_line']}")


def _plain(text: str) -> str:
    """One line of text that means nothing but itself in Markdown."""
    return escape(" ".join(text.split()))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
