"""A check and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codeqa.errors import CodeQAError

Result = tuple[bool, str, str]
"""Whether a check passed, what was found, and what to do when it failed."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check; `hint` says what to do when it failed."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def run_check(name: str, check: Callable[[], Result]) -> Check:
    """The outcome of `check`, also when it raises."""
    try:
        return Check(name, *check())
    except CodeQAError as error:
        return Check(name, False, error.message, error.hint)
    except Exception as error:
        # A doctor must survive what it diagnoses, and other packages raise anything.
        return Check(name, False, f"{type(error).__name__}: {error}")
