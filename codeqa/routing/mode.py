"""The commands before a question: modes such as `/locate`, and `/files` and `/all`."""

from __future__ import annotations

import re
from typing import Literal

from codeqa.errors import UsageError
from codeqa.types import MODES

DEFAULT_MODE = MODES[0]
WholeFiles = Literal["", "files", "all"]

ISSUE = "issue"
"""The command `/issue` has the text after it reviewed; it has no prompt `mode_issue`."""

_COMMAND = re.compile(rf"/({'|'.join((*MODES, ISSUE))})(?!\S)\s*", re.IGNORECASE)

_WHOLE = re.compile(
    rf"((?:/(?:{'|'.join(MODES)})\s+)?)"
    r"/(files|all)(?:(?<=all)\s+((?=\S*(?:\*|/(?:\s|$)|/\S*\.\w))[^\s/:@][^\s:@]*))?(?!\S)\s*",
    re.IGNORECASE,
)
"""`/files` or `/all`, perhaps after a mode; `/all` perhaps with a mask."""


def read_mode(question: str, default: str = "") -> tuple[str, str]:
    """Return the mode of `question`, and the question without `/mode`, `/files` and `/all`.

    Any other `/word` is part of the question. Raises UsageError when `default` is no mode.
    """
    _, _, question = read_whole(question)
    command = _COMMAND.match(question)
    if command:
        return command[1].lower(), question[command.end() :].strip()
    if default and default not in MODES:
        raise UsageError(f"There is no mode {default[:40]!r}.", f"Known: {', '.join(MODES)}.")
    return default or DEFAULT_MODE, question


def read_whole(question: str) -> tuple[WholeFiles, str, str]:
    """Return `files`, `all` or '', the mask of the files (`src/*.py`) or '', and the question."""
    match = _WHOLE.match(question)
    if match is None:
        return "", "", question
    kind: WholeFiles = "all" if match[2].lower() == "all" else "files"
    return kind, match[3] or "", match[1] + question[match.end() :]
