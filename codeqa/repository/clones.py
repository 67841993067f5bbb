"""Clones of our own, in the data folder: the newest commit of one branch each.

For them git may reach other machines, by https and ssh alone. It asks nothing, runs no hook,
template or filter for large files, and takes no submodules.
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
"""Called several times a second with how far a transfer is; what it raises ends the transfer."""

SILENT_SECONDS = 60.0
"""After so long without a word git is given up: it tells of its progress each second."""

_REACHING = (
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=30 -oForwardAgent=no",
    "ssh.variant=ssh",
    # What is written must be no other spelling of `.git` on any system.
    "core.protectHFS=true",
    "core.protectNTFS=true",
    # Commits that were replaced are not kept, and nothing goes on behind a command that ended.
    "core.logAllRefUpdates=false",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "filter.lfs.smudge=",
)
"""Beside SETTINGS. The user's own credential helper may sign in, for a clone brings no
configuration."""
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "https:ssh",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
}
_AT_ONCE = 65_536
"""Bytes of what git writes that are looked at: the last ones."""
_PROGRESS = re.compile(r"^(?:remote: )?(\w+ \w+): +\d+% \((\d+)/(\d+)\)", re.MULTILINE)
_OF_NO_USE = re.compile(r"(?i)(remote|warning|hint|cloning into|from|note)\b|.*: +\d+% ")
"""How lines begin beside the one that says what went wrong."""


def clone(git: Git, remote: Remote, clones: Path, report: Report) -> Path:
    """Return the folder of the clone of `remote` below `clones`, which is made unless it is there.

    Raises RepositoryError when that fails, and what `report` raises; nothing is left then.
    """
    target = clones / remote.folder
    with _alone(clones, report):
        if target.is_dir():
            return target
        unfinished = clones / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        branch = [f"--branch={remote.branch}"] if remote.branch else []
        try:
            _transfer(
                git,
                ["clone", "--progress", "--depth=1", "--single-branch", "--no-tags", "--template=",
                 "--no-recurse-submodules", *branch, "--", remote.url, unfinished],
                report,
            )  # fmt: skip
            target.parent.mkdir(parents=True, exist_ok=True)
            make_private(target.parent, target.parents[1], deep=False)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target


def sync(git: Git, folder: Path, url: str, branch: str, report: Report) -> None:
    """Make the clone in `folder` the newest commit; what was changed or added there is lost.

    Raises RepositoryError when it cannot be fetched: the clone is as it was; and what `report`
    raises.
    """
    with _alone(folder.parents[2], report):
        for left in (folder / ".git").rglob("*.lock"):  # by a process that was killed
            left.unlink()
        for command in (
            ["fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", url,
             branch or "HEAD"],
            ["reset", "--hard", "FETCH_HEAD"],
            ["clean", "-ffdxq"],
            ["gc", "--auto", "--quiet", "--prune=now"],
        ):  # fmt: skip
            _transfer(git, ["-C", folder, *command], report)


def delete_clone(folder: Path) -> None:
    """Delete the clone in `folder`. Another clone, which may take minutes, is not waited for."""
    gone = Path(tempfile.mkdtemp(prefix=".removed-", dir=folder.parents[2]))
    folder.rename(gone / folder.name)  # in one step: no half of it is found
    shutil.rmtree(gone)


@contextmanager
def _alone(clones: Path, report: Report) -> Iterator[None]:
    """Make one change of clones at a time, of all processes."""
    clones.mkdir(parents=True, exist_ok=True, mode=0o700)  # what came with a sign-in is private
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

    Raises RepositoryError with what git said when it fails, or says nothing for SILENT_SECONDS.
    """
    step = Progress("waiting for the server", 0, 0)
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            [*guarded(git, (*SETTINGS, *_REACHING)), *arguments],
            cwd=Path(git.program).anchor or None,
            env=safe_environment(git) | _VARIABLES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            umask=OTHERS,  # it may be nobody else's to read where it comes from
            start_new_session=True,  # ssh has no terminal to ask at, and all of it can be ended
        ) as process,
    ):
        output_text, size, heard = "", 0, time.monotonic()
        try:
            while time.monotonic() - heard < SILENT_SECONDS:
                ended = process.poll() is not None  # asked first: then all that it wrote is read
                if (now := os.fstat(output.fileno()).st_size) > size:
                    size, heard = now, time.monotonic()
                    # Read without moving the place at which git writes.
                    data = os.pread(output.fileno(), _AT_ONCE, max(0, size - _AT_ONCE))
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
        why = _complaint(output_text)
        if silent:
            why = f"nothing came for {SILENT_SECONDS:.0f} seconds"
        raise RepositoryError(
            f"git: {why[:300].rstrip('.')}.",
            "Check the address and the branch; what is not public takes an ssh key, or a sign-in "
            "that git's own credential helper knows.",
        )


def _complaint(output: str) -> str:
    """Return the line of git's `output` that says what went wrong."""
    lines = [line.strip() for line in output.split("\n")]
    useful = [line for line in lines if line and not _OF_NO_USE.match(line)]
    line = useful[0] if useful else "it failed without a word"
    # The user's configuration may put a password into an address.
    return re.sub(r"://[^/@\s]+@", "://", re.sub(r"^(?:fatal|error): ", "", line))
