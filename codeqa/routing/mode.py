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


def read_mode(question: str, given: str = "") -> tuple[str, str]:
    """The mode of `question`, and the question without a leading `/mode`.

    A `/mode` in front decides, then `given`; words never do, as they tell another in half of the
    cases. `/files` and `/all` are left out, any other `/word` is part of the question. Raises
    UsageError when `given` is no mode.
    """
    _, _, question = read_whole(question)
    command = _COMMAND.match(question)
    if command:
        return command[1].lower(), question[command.end() :].strip()
    if given and given not in MODES:
        raise UsageError(f"There is no mode {given[:40]!r}.", f"Known: {', '.join(MODES)}.")
    return given or DEFAULT_MODE, question


def read_whole(question: str) -> tuple[str, str, str]:
    """What `question` asks for in whole files (`files`, `all` or ''), their mask (`src/*.py`, ''
    for none), and the question without either."""
    found = _WHOLE.match(question)
    if found is None:
        return "", "", question
    return found[2].lower(), found[3] or "", found[1] + question[found.end() :]
