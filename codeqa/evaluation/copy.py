"""A copy of a repository to be indexed beside it: what would be indexed, and nothing else.

Comments that become questions are emptied in the copy, so neither the repository nor its own
index is touched. Files that git ignores or that look like secrets are not copied, and
secret-looking strings inside the others become asterisks of equal length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from codeqa.errors import NotFoundError, RepositoryError, UsageError
from codeqa.parsing import classify, read_file, walk
from codeqa.repository.secrets import mask_secret_bytes
from codeqa.settings import Settings
from codeqa.types import Progress

PREFIX = "codeqa-eval-"
IGNORE_RULES = frozenset({".gitignore", ".codeqaignore"})
"""Left out: what they exclude is not copied, and a tracked file that they name stays."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Where a copy lies, and which of its files are source code."""

    folder: Path
    data: Path
    """An empty folder beside it, for its index."""
    sources: tuple[str, ...]


@contextlib.contextmanager
def copied(root: Path, settings: Settings, progress: Callable[[Progress], None]) -> Iterator[Copy]:
    """Copy what would be indexed of `root` to a private temporary folder, gone afterwards.

    Raises UsageError and RepositoryError as the walk does.
    """
    found = walk(root, max_file_bytes=settings.max_file_bytes, own=(settings.data_dir,))
    # A folder can be removed while a process still writes there: its rest is not worth failing.
    with TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary).resolve() / (found.root.name or "root")
        _begin(folder)
        sources = []
        for number, entry in enumerate(found.files):
            progress(Progress("copying", number, len(found.files)))
            if entry.path.rpartition("/")[2] in IGNORE_RULES:
                continue
            try:
                data = read_file(found.root, entry.path, max_bytes=settings.max_file_bytes)
            except (NotFoundError, RepositoryError):
                continue  # gone or changed since the walk
            role = classify(entry.path, data)
            if not isinstance(role, str):
                continue
            target = folder / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(mask_secret_bytes(data)[0])
            if role == "source":
                sources.append(entry.path)
        progress(Progress("copying", len(found.files), len(found.files)))
        if not sources:
            raise UsageError(
                f"{root} holds no source code to ask about.", "Give the folder of a repository."
            )
        data_folder = mkdtemp(prefix="index-", dir=folder.parent)  # whatever `folder` is called
        yield Copy(folder, Path(data_folder), tuple(sources))


def _begin(folder: Path) -> None:
    """Make `folder` an empty git repository, by hand: rules of a folder around it, or of the
    user, must not leave out what the original holds."""
    for name in ("objects", "refs", "info"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
    (folder / ".git" / "info" / "exclude").write_text("!*\n", "ascii")
