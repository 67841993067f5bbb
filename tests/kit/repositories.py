"""What tests that make repositories share: writing files, and running git."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

Write = Callable[[Path, Mapping[str, str | bytes]], Path]


def git(folder: Path, *arguments: str) -> str:
    """What git prints in `folder`, run as somebody; submodules may come from folders. A failure
    fails the test."""
    somebody = ("-c", "user.name=A. Tester", "-c", "user.email=tester@example.org")
    command = ["git", "-c", "protocol.file.allow=always", *somebody, *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def executable(path: Path, text: str) -> Path:
    """Write the program `path`; returns it."""
    write(path.parent, {path.name: text})
    path.chmod(0o755)
    return path


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Make `folder`, with `files` (path → content) in it; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
