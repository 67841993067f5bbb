"""What a question asks for, by its words; the data is in `asked.toml`."""

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
    """What a line looks like, by its name in `[lines]`."""
    return re.compile(_data("lines")[name], re.VERBOSE)


@cache
def word_list(name: str) -> frozenset[str]:
    """A list of `[words]`."""
    return frozenset(_data("words")[name].split())


@cache
def question_pattern(name: str) -> re.Pattern[str]:
    """What a question asks with, by its name in `[questions]`."""
    return re.compile(_data("questions")[name], re.VERBOSE | re.IGNORECASE)


def asks(name: str, question: str) -> re.Match[str] | None:
    """Whether `question` is one of those called so in `[questions]`."""
    return question_pattern(name).search(question)


@cache
def counted_forms() -> list[tuple[str, re.Pattern[str]]]:
    """What can be counted, and the messages that ask for it, in the order to try them in."""
    words: dict[str, str] = _data("counted")["words"]

    def written(form: str) -> re.Pattern[str]:
        for _ in range(2):  # what a word stands for may have one itself
            for word in sorted(words, key=len, reverse=True):
                form = form.replace(word, words[word])
        return re.compile(f"{words['POLITE']}(?:{form}){words['HERE']}", re.IGNORECASE)

    forms: dict[str, list[str]] = _data("counted")["forms"]
    return [(what, written(form)) for what, held in forms.items() for form in held]
