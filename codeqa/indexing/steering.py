"""What people ask of a run that is on its way in any process: to pause, to go on, to end.

A word in a file that the run looks at between two steps. A pause stands until it is taken back,
also when the server is started anew: who paused wants the machine for something else, and the page
says so beside "Resume". What is typed to index now takes it back. A cancel is for the one run.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from codeqa.store.location import Location, write_atomically

PAUSE, CANCEL = "pause", "cancel"
LOOK_SECONDS = 0.2
"""Between two looks of a run, each of which opens a file that is not there most of the time."""


def steer(location: Location, word: str) -> None:
    """Ask runs on the index of `location` for `PAUSE` or `CANCEL`; '' takes that back."""
    if word:
        write_atomically(_path(location), word)
    else:
        with contextlib.suppress(OSError):  # nothing was asked for, or this place is read-only
            _path(location).unlink()


def steered(location: Location) -> str:
    """What runs are asked for now; '' for nothing."""
    try:
        word = _path(location).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    return word if word in (PAUSE, CANCEL) else ""


def _path(location: Location) -> Path:
    return location.folder / "asked"
