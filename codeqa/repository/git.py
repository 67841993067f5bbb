"""The one place that runs git, and only to read: to list files, and what was changed in them.

A repository is somebody else's data, and its configuration can name commands. Git is
therefore run so that none of them is executed: no file-system monitor, hook, pager,
credential helper or transport, no fetching of missing objects, and nothing that the
caller's environment points elsewhere. `ls-files` by itself runs no filter, diff or
text conversion; a command that compares versions is told to run none (`history`).
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH110, PTH112, PTH113, PTH114, PTH117, PTH118, PTH123

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_CONFIG = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)

_KEPT_VARIABLES = frozenset(
    {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"}
)
"""What of the caller's GIT_* remains: where the user's own configuration lies."""


def find_git(root: Path) -> str | None:
    """Absolute path of the `git` to run; never one that lies inside `root`.

    Relative entries of PATH are passed over: they would find what the repository holds.
    """
    names = ("git.exe", "git.cmd") if os.name == "nt" else ("git",)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        for name in names:
            candidate = Path(folder, name)
            if candidate.is_file() and os.access(candidate, os.X_OK):
                resolved = candidate.resolve()
                if not resolved.is_relative_to(root):
                    return str(candidate)
    return None


def list_files(git: str, folder: Path, seconds: float) -> list[bytes] | None:
    """Names under `folder` that git tracks or would track, relative to it, unsorted.

    Names of nested repositories end in `/`; submodules are listed by their bare name;
    files that are tracked but gone are still named. None: git refuses (another user's
    repository, a broken one, no work tree) or takes longer than `seconds`.
    """
    listed = read_git(
        git, folder, ("ls-files", "-z", "--cached", "--others", "--exclude-standard"), seconds
    )
    if listed is None:
        return None
    names = listed.split(b"\0")
    names.pop()
    return names


def read_git(git: str, folder: Path, arguments: Sequence[str], seconds: float) -> bytes | None:
    """What a git command that only reads prints; None when it fails or takes longer."""
    command = [git, "--no-pager", "-C", str(folder)]
    for setting in _CONFIG:
        command += ["-c", setting]
    try:
        done = subprocess.run(
            [*command, *arguments],
            cwd=folder.anchor or None,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return None if done.returncode else done.stdout


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith("GIT_") or name in _KEPT_VARIABLES
    }
    kept["PATH"] = os.pathsep.join(
        folder for folder in kept.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)
    )
    return kept | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        # Older gits fetch a missing object all the same; then no transport is permitted.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_PAGER": "cat",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "LC_ALL": "C",
    }


def git_directory(folder: bytes) -> bytes | None:
    """The git directory of the work tree whose top is `folder`; None when it is no top."""
    marker = folder + b"/.git"
    if os.path.isdir(marker):
        return marker if os.path.exists(marker + b"/HEAD") else None
    if os.path.islink(marker) or not os.path.isfile(marker):
        return None
    try:
        with open(marker, "rb") as file:
            line = file.read(10_000)
    except OSError:
        return None
    if not line.startswith(b"gitdir:"):
        return None
    target = os.path.join(folder, line[7:].strip(b" \t\r\n"))
    return target if os.path.exists(target + b"/HEAD") else None


def is_linked_work_tree(directory: bytes) -> bool:
    """Whether a git directory is that of a further work tree (`git worktree add`)."""
    return os.path.isfile(directory + b"/commondir")


def common_directory(directory: bytes) -> bytes:
    """Where a work tree's shared files (`info/exclude`) lie."""
    if not is_linked_work_tree(directory):
        return directory
    try:
        with open(directory + b"/commondir", "rb") as file:
            return os.path.join(directory, file.read(10_000).strip())
    except OSError:
        return directory
