"""The model that was picked on the page, and keys: one file that only its owner can read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from codeqa.errors import StorageError
from codeqa.llm.choice import ModelChoice

FILE_NAME = "models.json"
LOCK_SECONDS = 6.0
"""Writing takes milliseconds; whoever holds the lock for longer is stuck."""
PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Pick(ModelChoice):
    """What was picked on the page; an empty provider is "no model"."""

    over: str = ""
    """The setting that the pick took the place of: when that changes, it holds again."""


@dataclass(frozen=True, slots=True)
class SavedModels:
    """The content of the file; `problem` says why there is none."""

    format: Literal[1] = 1
    pick: Pick | None = None
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Location of an address (scheme, host, port) → key."""
    problem: str = ""

    def with_key(self, place: str, key: str) -> SavedModels:
        """The same with `key` for the location `place`; '' forgets the one that is there."""
        keys = {name: value for name, value in self.keys.items() if name != place}
        return replace(self, keys={**keys, place: key} if key else keys)


class ModelsFile:
    """The file in `folder`; safe to share between threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def read(self) -> SavedModels:
        """What is kept; a file that cannot be read counts as empty and is said."""
        try:
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(PRIVATE)  # as a restored backup may leave it
            return TypeAdapter(SavedModels).validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return SavedModels()
        except (OSError, ValueError):
            return SavedModels(
                problem=f"{self.path} is damaged or cannot be read, so the model and the keys that "
                "were kept in it are not used."
            )

    def change(self, edit: Callable[[SavedModels], SavedModels]) -> None:
        """Write what `edit` makes of the content, whole or not at all. Raises StorageError."""
        new = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(self.path.with_suffix(".lock"), LOCK_SECONDS, mode=PRIVATE):
                saved = self.read()
                new.unlink(missing_ok=True)
                # Nobody else can read it from its first byte.
                with open(new, "xb", opener=partial(os.open, mode=PRIVATE)) as file:
                    content = TypeAdapter(SavedModels)
                    file.write(content.dump_json(edit(saved), exclude={"problem"}, indent=1))
                    file.flush()
                    os.fsync(file.fileno())
                if saved.problem:  # a damaged file may still hold keys that its owner wants back
                    self.path.replace(self.path.with_suffix(".damaged"))
                new.replace(self.path)
        except (OSError, Timeout) as error:
            raise StorageError(
                f"The choice of the model cannot be kept: {error.strerror or error}.",
                f"See that {self.path.parent} is writable and has room.",
            ) from None
