"""Which sentence of a comment may stand for a question, and where a comment stands."""

from __future__ import annotations

import re

MIN_WORDS, MAX_WORDS = 4, 40
"""Fewer words describe nothing in particular; more are seldom one sentence."""
MIN_LETTERS = 0.78
"""Share of the characters other than blanks that are letters: less is a formula or a table."""
LEAK = 6
"""Words of a question in a row that may stand nowhere else in its file: it would be found by
looking for them."""

_END = re.compile(r"[.!?](?=\s|$)|\n\s*\n|\n\s*(?=[@\\:*\-=]|\w+\s*:\s*\n|Args:|Returns:|Raises:)")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp)$")
_MARKUP = re.compile(r"\{@\w+\s+([^{}]*)\}|:[\w+:]+:`~?([^`]*)`|</?\w+[^<>]*>|[`*]")
_COMMAND = re.compile(r"^[@\\](?:brief|short|summary|desc|description)\s+")
_TAG = re.compile(r"^\s*(?:[@\\]\w+|:\w[\w ]*:)")
_CODE = re.compile(r"[{};|\\$]|==|=>|->|::|https?:|\w\(\w|\w_\w+_\w|>>>")
_SAYS_NOTHING = re.compile(
    r"copyright|licen[sc]e|deprecated|todo|fixme|^see\b|^same as\b|inherit|noqa|nolint|generated"
    r"|^(?:default )?constructor\b|^creates? a new instance|^gets? or sets?\b|^used by\b"
    r"|^overrides?",
    re.I,
)
_WORDS = re.compile(r"[^\W_]+")
_NAME_SEPARATOR = re.compile(r"^(?:\(\))?\s*(?:[:,–—-]+\s*)?")


def question_of(comment: str, name: str) -> str:
    """The first sentence of a doc comment as a question, without the name in front of it.

    '' for one that describes nothing: a tag, code, a notice, too short or too long.
    """
    text = _COMMAND.sub("", comment.strip())
    if _TAG.match(text):
        return ""
    end = next(
        (
            found.start()
            for found in _END.finditer(text)
            if not _ABBREVIATION.search(text[: found.start()])
        ),
        len(text),
    )
    sentence = plain(text[:end])
    if name and sentence.lower().startswith(name.lower()):
        rest = sentence[len(name) :]
        if not rest[:1].isalnum():
            sentence = _NAME_SEPARATOR.sub("", rest).strip()
    return sentence if describes_something(sentence) else ""


def plain(text: str) -> str:
    """Prose without the markup of comments, on one line."""
    bare = _MARKUP.sub(lambda found: found[1] or found[2] or " ", text)
    return " ".join(bare.split()).strip(" .:;,-")


def describes_something(sentence: str) -> bool:
    """Whether a sentence describes something in words."""
    words = _WORDS.findall(sentence)
    filled = [one for one in sentence if not one.isspace()]
    letters = sum(one.isalpha() for one in filled)
    return (
        MIN_WORDS <= len(words) <= MAX_WORDS
        and letters >= MIN_LETTERS * len(filled)
        and not _CODE.search(sentence)
        and not _SAYS_NOTHING.search(sentence)
    )


def leaks(question: str, text: str) -> bool:
    """Whether LEAK words of `question` in a row (all, of a shorter one) stand in `text`."""
    asked = _words(question)
    run = min(LEAK, len(asked))
    held = f" {' '.join(_words(text))} "
    return any(f" {' '.join(asked[at : at + run])} " in held for at in range(len(asked) - run + 1))


def comment_lines(source: str, comment: str) -> tuple[int, int] | None:
    """First and last line, from 0, of `comment` in `source`, its marks included.

    `comment` is the bare text. None where its lines are not found one after another, or one
    of them shares its line with code: such a comment cannot be emptied line by line.
    """
    wanted = [words for line in comment.split("\n") if (words := _words(line))]
    lines = [_words(line) for line in source.split("\n")]
    for first in range(len(lines)):
        last = _match(lines, first, wanted) if wanted else None
        if last is not None:
            marks = source.split("\n")
            while first and _is_mark(marks[first - 1]):
                first -= 1
            while last + 1 < len(marks) and _is_mark(marks[last + 1]):
                last += 1
            return first, last
    return None


def _match(lines: list[list[str]], at: int, wanted: list[list[str]]) -> int | None:
    """Line on which `wanted` ends when it begins on line `at`."""
    if lines[at] != wanted[0]:
        return None
    place = 0
    for number in range(at, len(lines)):
        if not lines[number]:
            continue
        if lines[number] != wanted[place]:
            return None
        place += 1
        if place == len(wanted):
            return number
    return None


def _is_mark(line: str) -> bool:
    """Whether a line holds nothing but the marks of a comment or string."""
    return bool(line.strip()) and not line.strip(" \t\r\"'/*#-!=<>")


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]
