"""Recognises by words what a question asks for; the patterns are in `asked.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _data(section: str) -> Any:
    text = files(__package__).joinpath("asked.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)[section]


@cache
def line_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of `[lines]`, which describes a kind of line."""
    return re.compile(_data("lines")[name], re.VERBOSE)


@cache
def word_list(name: str) -> frozenset[str]:
    """Return a list of `[words]`."""
    return frozenset(_data("words")[name].split())


@cache
def question_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of `[questions]`, which describes a kind of question."""
    return re.compile(_data("questions")[name], re.VERBOSE | re.IGNORECASE)


def asks(name: str, question: str) -> re.Match[str] | None:
    """Search `question` for a pattern of `[questions]`."""
    return question_pattern(name).search(question)


@cache
def counted_forms() -> list[tuple[str, re.Pattern[str]]]:
    """Return the tools that count something with patterns of whole messages, in order of trial."""
    words: dict[str, str] = _data("counted")["words"]

    def compiled(form: str) -> re.Pattern[str]:
        for _ in range(2):  # the meaning of a word may contain another
            for word in sorted(words, key=len, reverse=True):
                form = form.replace(word, words[word])
        return re.compile(f"{words['POLITE']}(?:{form}){words['HERE']}", re.IGNORECASE)

    tools: dict[str, list[str]] = _data("counted")["forms"]
    return [(tool, compiled(form)) for tool, forms in tools.items() for form in forms]
