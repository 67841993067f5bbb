"""Clones of remote repositories in the data folder, each of the newest commit of one branch.

Git is run as for reading (`git`), but may reach other machines, by https and ssh alone. It asks
nothing, runs no hook, template or filter for large files, and takes no submodules.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from codeqa.errors import RepositoryError, UsageError
from codeqa.repository.git import CONFIG, environment, find_git, guarded
from codeqa.types import Progress

Report = Callable[[Progress], None]
"""Told several times a second how far a transfer is; what it raises ends the transfer."""

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
"""Beside CONFIG. The user's own credential helper may sign in: a clone brings no configuration."""
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

_LIKE_AN_ADDRESS = re.compile(r"[\w+.-]+:(//|:)|[\w.-]+@[\w.-]+:")
_SCP = re.compile(r"([\w][\w.-]*)@([^:/]+):(?!//)(.+)")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_PART = re.compile(r"(?!\.+$)[\w~.%][\w~.%+-]{0,99}")
_BRANCH = re.compile(r"(?!.*(\.\.|//|@\{))[\w][\w./+#@-]{0,199}")


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on another machine, without any password."""

    url: str
    branch: str
    """A branch or tag; '' for the one that the server calls its own."""
    folder: Path
    """Where its clone lies, below the folder of all clones: `host/owner/name`."""


def looks_remote(text: str) -> bool:
    """Whether `text` is meant as the address of a repository, and not as a path or name."""
    return bool(_LIKE_AN_ADDRESS.match(text.strip()))


def read_remote(address: str, branch: str = "") -> Remote:
    """What an https or ssh address, or `user@host:owner/name`, stands for.

    A password in it is left out: it would be kept and shown. Raises UsageError for every
    other address, and for a branch that cannot be one.
    """
    address, branch = address.strip(), branch.strip()
    wrong = UsageError(
        "This is no address that can be cloned.",
        "Give it as https://host/owner/name, ssh://git@host/owner/name or git@host:owner/name.",
    )
    if branch and not _BRANCH.fullmatch(branch):
        raise UsageError("This is no name of a branch.", "Leave it out for the usual one.")
    if scp := _SCP.fullmatch(address):
        user, host, path = scp.groups()
        url, place = f"{user}@{host}:{path}", host
    else:
        try:
            parts = urlsplit(address)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("https", "ssh") or parts.query or parts.fragment:
            raise wrong
        path, user = parts.path, parts.username if parts.scheme == "ssh" else ""
        if user and not re.fullmatch(r"\w[\w.-]*", user):
            raise wrong
        place = f"{host}:{port}" if port else host
        url = f"{parts.scheme}://{f'{user}@' if user else ''}{place}{path}"
    *owners, name = (path.strip("/").removesuffix(".git") or "-").split("/")
    if not _HOST.fullmatch(host) or not all(map(_PART.fullmatch, (*owners, name))):
        raise wrong
    # All clones lie equally deep, so that none lies in another; `,` and `@` are in no part.
    named = f"{name}@{branch.replace('/', ',')}" if branch else name
    server = place.lower().replace(":", "_")
    return Remote(url, branch, Path(server, ",".join(owners) or ",", named))


def clone(remote: Remote, clones: Path, report: Report) -> Path:
    """The folder of the clone of `remote` below `clones`, made unless it is there.

    Raises RepositoryError when that fails, and what `report` raises; nothing is left then.
    """
    target = clones / remote.folder
    with alone(clones, report):
        if target.is_dir():
            return target
        unfinished = clones / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        branch = [f"--branch={remote.branch}"] if remote.branch else []
        try:
            _transfer(
                ["clone", "--progress", "--depth=1", "--single-branch", "--no-tags", "--template=",
                 "--no-recurse-submodules", *branch, "--", remote.url, unfinished],
                report,
            )  # fmt: skip
            target.parent.mkdir(parents=True, exist_ok=True)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target


def sync(folder: Path, url: str, branch: str, report: Report) -> None:
    """Make the clone in `folder` the newest commit; what was changed or added there is lost.

    Raises RepositoryError when it cannot be fetched: the clone is as it was; and what `report`
    raises.
    """
    with alone(folder.parents[2], report):
        for left in (folder / ".git").rglob("*.lock"):  # by a process that was killed
            left.unlink()
        for command in (
            ["fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", url,
             branch or "HEAD"],
            ["reset", "--hard", "FETCH_HEAD"],
            ["clean", "-ffdxq"],
            ["gc", "--auto", "--quiet", "--prune=now"],
        ):  # fmt: skip
            _transfer(["-C", folder, *command], report)


def delete_clone(folder: Path) -> None:
    """Delete the clone in `folder`, and the folder of its owner and host with their last one.

    Another clone, which may take minutes, is not waited for.
    """
    clones = folder.parents[2]
    gone = Path(tempfile.mkdtemp(prefix=".removed-", dir=clones))
    folder.rename(gone / folder.name)  # in one step: no half of it is found
    shutil.rmtree(gone)
    with contextlib.suppress(OSError, Timeout), FileLock(clones / ".lock", timeout=0):
        for empty in folder.parents[:2]:
            empty.rmdir()


@contextlib.contextmanager
def alone(clones: Path, report: Report) -> Iterator[None]:
    """One change of clones at a time, of all processes."""
    clones.mkdir(parents=True, exist_ok=True, mode=0o700)  # what came with a sign-in is private
    lock = FileLock(clones / ".lock")
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.2, poll_interval=0.05)
        except Timeout:
            report(Progress("waiting for another clone", 0, 0))
    try:
        yield
    finally:
        lock.release()


def _transfer(arguments: Sequence[str | Path], report: Report) -> None:
    """Run a git command that may reach other machines.

    Raises RepositoryError with what git said when it fails, or says nothing for SILENT_SECONDS.
    """
    git, step = find_git(), Progress("waiting for the server", 0, 0)
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            [*guarded(git, (*CONFIG, *_REACHING)), *arguments],
            cwd=Path(git).anchor or None,
            env=environment() | _VARIABLES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,  # ssh has no terminal to ask at, and all of it can be ended
        ) as process,
    ):
        said, size, heard = "", 0, time.monotonic()
        try:
            while time.monotonic() - heard < SILENT_SECONDS:
                ended = process.poll() is not None  # asked first: then all that it wrote is read
                if (now := os.fstat(output.fileno()).st_size) > size:
                    size, heard = now, time.monotonic()
                    # Read without moving the place at which git writes.
                    data = os.pread(output.fileno(), _AT_ONCE, max(0, size - _AT_ONCE))
                    said = data.decode("utf-8", "replace").replace("\r", "\n")
                    for name, done, total in _PROGRESS.findall(said)[-1:]:
                        step = Progress(name.lower(), int(done), int(total))
                if ended:
                    break
                report(step)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
        finally:
            if silent := process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        lines = [line.strip() for line in said.split("\n")]
        useful = [line for line in lines if line and not _OF_NO_USE.match(line)]
        why = (useful or ["it failed without a word"])[0]
        if silent:
            why = f"nothing came for {SILENT_SECONDS:.0f} seconds"
        # The user's configuration may put a password into an address.
        why = re.sub(r"://[^/@\s]+@", "://", re.sub(r"^(?:fatal|error): ", "", why))
        raise RepositoryError(
            f"git: {why[:300].rstrip('.')}.",
            "Check the address and the branch; what is not public takes an ssh key, or a sign-in "
            "that git's own credential helper knows.",
        )
