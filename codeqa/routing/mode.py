"""What is wanted of an answer: explained, located, reviewed, planned or changed."""

from __future__ import annotations

import re

from codeqa.errors import UsageError
from codeqa.types import MODES

DEFAULT_MODE = MODES[0]

ISSUE = "issue"
"""`/issue` has what follows reviewed as an issue; it has no prompt among those."""

_COMMAND = re.compile(rf"/({'|'.join((*MODES, ISSUE))})(?!\S)\s*", re.IGNORECASE)

_WHOLE = re.compile(
    rf"((?:/(?:{'|'.join(MODES)})\s+)?)"
    r"/(files|all)(?:(?<=all)\s+((?=\S*(?:\*|/(?:\s|$)|/\S*\.\w))[^\s/:@][^\s:@]*))?(?!\S)\s*",
    re.IGNORECASE,
)
"""`/files` or `/all`, alone or behind a mode, and the mask that may stand behind `/all`."""

_POLITE = r"(?:(?:please|can|could|would|will) (?:you )?(?:please )?)?"
_WORDS = {
    # The first that fits decides.
    "plan": (
        r"^how (?:would|should|could|might) (?:i|we|you|one) (?:best )?(?:add|implement|build"
        r"|change|extend|replace|migrate|refactor|port|rename|remove|split|move|introduce|support)\b"
        rf"|^{_POLITE}(?:plan|outline|design|sketch)\b|^what (?:would it take|needs? to change)\b"
    ),
    "review": (
        rf"^{_POLITE}(?:review|audit|criti(?:que|ci[sz]e)|assess)\b|\bwhat(?: is|'s) wrong with\b"
        r"|\b(?:any|are there|is there|find|spot) (?:\w+ ){0,2}(?:bugs?|problems?|mistakes?|flaws?"
        r"|vulnerabilit(?:y|ies)|race conditions?)\b"
    ),
    "change": (
        # Three words at least, and an article after what may as well be a noun: `port` and
        # `update method` are looked up.
        rf"^{_POLITE}(?:add|extend|fix|implement|migrate|modify|optimi[sz]e|refactor|remove|rename"
        r"|replace|rewrite|simplify)\s+\S+\s+\S"
        rf"|^{_POLITE}(?:change|convert|delete|extract|inline|make|move|port|split|update|write)\s+"
        r"(?:the|an?|all|every|this|that|these|those|it|its|our|my|`)"
    ),
    "locate": (
        r"^where\b|^(?:in )?(?:which|what) (?:files?|modules?|class(?:es)?|functions?|methods?"
        rf"|lines?|folders?)\b|^{_POLITE}(?:find|locate|list|(?:show|tell) (?:me )?where)\b"
    ),
}
_BY_WORDS = {mode: re.compile(words, re.IGNORECASE) for mode, words in _WORDS.items()}


def read_mode(question: str, given: str = "") -> tuple[str, str]:
    """The mode of `question`, and the question without a leading `/mode`.

    A `/mode` in front decides, then `given`, then the words; `/files` and `/all` are left out, any
    other `/word` is part of the question. Raises UsageError when `given` is no mode.
    """
    _, _, question = read_whole(question)
    command = _COMMAND.match(question)
    if command:
        return command[1].lower(), question[command.end() :].strip()
    if given and given not in MODES:
        raise UsageError(f"There is no mode {given[:40]!r}.", f"Known: {', '.join(MODES)}.")
    return given or _by_words(question), question


def read_whole(question: str) -> tuple[str, str, str]:
    """What `question` asks for in whole files (`files`, `all` or ''), their mask (`src/*.py`, ''
    for none), and the question without either."""
    found = _WHOLE.match(question)
    if found is None:
        return "", "", question
    return found[2].lower(), found[3] or "", found[1] + question[found.end() :]


def _by_words(question: str) -> str:
    first_line = question.lstrip().split("\n", 1)[0][:400]
    fitting = (mode for mode, words in _BY_WORDS.items() if words.search(first_line))
    return next(fitting, DEFAULT_MODE)
