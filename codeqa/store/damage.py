"""Whether the tables themselves are broken, so that only new ones help."""

from __future__ import annotations

import errno
import re

from codeqa.errors import CodeQAError, IndexFormatError
from codeqa.store.location import Location
from codeqa.store.tables import Tables

_SYSTEM = re.compile(r"\(os error (\d+)\)")
"""How LanceDB names the system's refusal inside its own errors."""

_LOST = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
"""Refusals that mean a file of the tables is gone or no file."""


def is_damaged(location: Location) -> bool:
    """Whether the index of `location` cannot be read, for a reason that lies in its files.

    Too many open files, a missing right or a failing disk pass or are for people to
    mend: they are no reason to throw an index away.
    """
    try:
        Tables.open(location).verify()
    except IndexFormatError as error:
        codes = {int(code) for code in _SYSTEM.findall(str(error.__cause__))}
        return codes <= _LOST
    except (CodeQAError, OSError, RuntimeError):
        return False
    return False
