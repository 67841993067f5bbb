"""What tests that make repositories share: running git, and the `write_files` fixture's type."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

Write = Callable[[Path, Mapping[str, str | bytes]], Path]


def git(folder: Path, *arguments: str) -> None:
    """Run git in `folder`; submodules may come from folders. A failure fails the test."""
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
