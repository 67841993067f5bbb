"""Clone repositories into the data folder: the newest commit of one branch each.

For clones git may reach other machines, by https and ssh alone. It asks for nothing, runs no hook,
template or filter for large files, and fetches no submodules.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from codeqa.errors import RepositoryError
from codeqa.folders import OTHERS, make_private
from codeqa.repository.git import SETTINGS, Git, guarded, safe_environment
from codeqa.repository.remotes import Remote
from codeqa.types import Progress

Report = Callable[[Progress], None]
"""Called several times a second with the progress of a transfer, which ends if this raises."""

SILENT_SECONDS = 60.0
"""Seconds without output after which git is killed: it reports its progress every second."""

_REACHING = (
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=30 -oForwardAgent=no",
    "ssh.variant=ssh",
    # No file may have a name that means `.git` on some system.
    "core.protectHFS=true",
    "core.protectNTFS=true",
    # Replaced commits are not kept, and nothing runs on once a command has ended.
    "core.logAllRefUpdates=false",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "filter.lfs.smudge=",
)
"""Settings beside SETTINGS. The user's own credential helper may sign in: a clone brings no
configuration of its own."""
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "https:ssh",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
}
_TAIL_BYTES = 65_536
"""Only the last bytes that git wrote are read."""
_PROGRESS = re.compile(r"^(?:remote: )?(\w+ \w+): +\d+% \((\d+)/(\d+)\)", re.MULTILINE)
_NO_ERROR = re.compile(r"(?i)(remote|warning|hint|cloning into|from|note)\b|.*: +\d+% ")
"""Lines other than the one that says what went wrong."""


def clone(git: Git, remote: Remote, clones: Path, report: Report) -> Path:
    """Clone `remote` below the folder `clones` unless that was done before; return its folder.

    Raises RepositoryError when that fails, and what `report` raises; nothing remains then.
    """
    target = clones / remote.folder
    with _alone(clones, report):
        if target.is_dir():
            return target
        unfinished = clones / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        command = ["clone", "--progress", "--depth=1", "--single-branch", "--no-tags"]
        command += ["--template=", "--no-recurse-submodules"]
        if remote.branch:
            command.append(f"--branch={remote.branch}")
        try:
            _transfer(git, command + ["--", remote.url, unfinished], report)
            target.parent.mkdir(parents=True, exist_ok=True)
            make_private(target.parent, target.parents[1], deep=False)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target


def sync(git: Git, folder: Path, url: str, branch: str, report: Report) -> None:
    """Update the clone in `folder` to the newest commit; changes and additions there are lost.

    Raises RepositoryError when the commit cannot be fetched, and what `report` raises; the clone
    stays as it was then.
    """
    with _alone(folder.parents[2], report):
        for lock in (folder / ".git").rglob("*.lock"):  # left by a process that was killed
            lock.unlink()
        for command in (
            ["fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", url,
             branch or "HEAD"],
            ["reset", "--hard", "FETCH_HEAD"],
            ["clean", "-ffdxq"],
            ["gc", "--auto", "--quiet", "--prune=now"],
        ):  # fmt: skip
            _transfer(git, ["-C", folder, *command], report)


def delete_clone(folder: Path) -> None:
    """Delete the clone in `folder` without waiting for another clone, which may take minutes."""
    trash = Path(tempfile.mkdtemp(prefix=".removed-", dir=folder.parents[2]))
    folder.rename(trash / folder.name)  # in one step: nobody meets half of it
    shutil.rmtree(trash)


@contextmanager
def _alone(clones: Path, report: Report) -> Iterator[None]:
    """Let only one process and thread at a time change clones."""
    clones.mkdir(parents=True, exist_ok=True, mode=0o700)  # it may hold private repositories
    lock = FileLock(clones / ".lock", mode=0o600)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.2, poll_interval=0.05)
        except Timeout:
            report(Progress("waiting for another clone", 0, 0))
    try:
        yield
    finally:
        lock.release()


def _transfer(git: Git, arguments: Sequence[str | Path], report: Report) -> None:
    """Run a git command that may reach other machines.

    Raises RepositoryError with git's message when it fails or is silent for SILENT_SECONDS.
    """
    step = Progress("waiting for the server", 0, 0)
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            guarded(git, SETTINGS + _REACHING) + list(map(str, arguments)),
            cwd=Path(git.program).anchor or None,
            env=safe_environment(git) | _VARIABLES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            umask=OTHERS,  # the repository may be private
            start_new_session=True,  # ssh can't prompt at a terminal, and is killed with git
        ) as process,
    ):
        output_text, size, last_output = "", 0, time.monotonic()
        try:
            while time.monotonic() - last_output < SILENT_SECONDS:
                ended = process.poll() is not None  # before reading, so that all output is read
                written = os.fstat(output.fileno()).st_size
                if written > size:
                    size, last_output = written, time.monotonic()
                    # Unlike read, pread does not move the position at which git writes.
                    data = os.pread(output.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))
                    output_text = data.decode("utf-8", "replace").replace("\r", "\n")
                    for name, done, total in _PROGRESS.findall(output_text)[-1:]:
                        step = Progress(name.lower(), int(done), int(total))
                if ended:
                    break
                report(step)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
        finally:
            if silent := process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        reason = _error_line(output_text)
        if silent:
            reason = f"the server sent nothing for {SILENT_SECONDS:.0f} seconds"
        raise RepositoryError(
            f"git: {reason[:300].rstrip('.')}.",
            "Check the address and the branch. A private repository needs an ssh key, or a sign-in "
            "that git's credential helper has stored.",
        )


def _error_line(output: str) -> str:
    """Return the line of git's `output` that says what went wrong."""
    lines = map(str.strip, output.split("\n"))
    errors = [line for line in lines if line and not _NO_ERROR.match(line)]
    line = errors[0] if errors else "it failed without a message"
    # The user's configuration may put a password into an address.
    return re.sub(r"://[^/@\s]+@", "://", re.sub(r"^(?:fatal|error): ", "", line))
