"""The model that was picked on the page, and keys: one file that only its owner can read.

It is written whole beside the old one and put in its place; the name of the new one serves as the
lock, so that two processes which write at once do not lose each other's keys.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codeqa.errors import StorageError

FILE_NAME = "models.json"
FORMAT = 1
LOCK_SECONDS = 3.0
"""Writing takes milliseconds; a lock that is older was left behind by a killed process."""
RETRY_SECONDS = 0.01
PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Pick:
    """What was picked on the page; `provider` '' is "no model".

    `over` is the setting that the pick took the place of: when that changes, it holds again.
    """

    provider: str = ""
    model: str = ""
    address: str = ""
    over: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """The content of the file; `problem` says why there is none."""

    pick: Pick | None = None
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Location of an address (scheme, host, port) → key."""
    problem: str = ""


class Store:
    """The file in `folder`; safe to share between threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def read(self) -> Kept:
        """What is kept; a file that cannot be read counts as empty and is said."""
        try:
            if os.name == "posix" and self.path.stat().st_mode & 0o077:
                self.path.chmod(PRIVATE)  # as a restored backup may leave it
            return _parse(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return Kept()
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return Kept(
                problem=f"{self.path} is damaged or cannot be read, so the model and the keys that "
                "were kept in it are not used."
            )

    def change(self, edit: Callable[[Kept], Kept]) -> None:
        """Write what `edit` makes of the content. Raises StorageError."""
        new = self.path.with_suffix(".new")
        try:
            number = self._create(new)
            try:
                with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 (a number)
                    kept = self.read()
                    json.dump(_as_json(edit(kept)), file, indent=1)
                    file.flush()
                    os.fsync(number)
                if kept.problem:  # a damaged file may still hold keys that its owner wants back
                    self.path.replace(self.path.with_suffix(".damaged"))
                new.replace(self.path)  # from here on the name is somebody else's
            except BaseException:
                new.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StorageError(
                f"The choice of the model cannot be kept: {error.strerror or error}.",
                f"See that {self.path.parent} is writable and has room.",
            ) from None

    def _create(self, new: Path) -> int:
        """The file `new`, opened for writing, once nobody else has it."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        deadline = time.monotonic() + 2 * LOCK_SECONDS
        while True:
            try:
                return os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
            except FileExistsError:
                if time.monotonic() > deadline:
                    raise
            with contextlib.suppress(FileNotFoundError):
                if time.time() - new.stat().st_mtime > LOCK_SECONDS:
                    new.unlink()
                    continue
            time.sleep(RETRY_SECONDS)


def with_key(kept: Kept, place: str, key: str) -> Kept:
    """`kept` with `key` for the location `place`; '' forgets the one that is there."""
    keys = {name: value for name, value in kept.keys.items() if name != place}
    return replace(kept, keys={**keys, place: key} if key else keys)


def _parse(content: Any) -> Kept:
    if content["format"] != FORMAT:
        raise ValueError
    pick = content["pick"]
    keys = {str(place): str(key) for place, key in content["keys"].items()}
    known = {name: str(pick[name]) for name in Pick.__slots__} if pick is not None else {}
    return Kept(Pick(**known) if pick is not None else None, keys)


def _as_json(kept: Kept) -> dict[str, Any]:
    pick = None
    if kept.pick is not None:
        pick = {name: getattr(kept.pick, name) for name in Pick.__slots__}
    return {"format": FORMAT, "pick": pick, "keys": dict(kept.keys)}
