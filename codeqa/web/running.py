"""Running servers of a data folder, each listed in a file there that only its user can read.

The terminal asks such a server instead of loading everything itself. First the server must prove
that it knows the token in the file: the file may be left over from a server that was killed, and
another program may listen on its port by now.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from codeqa import __version__
from codeqa.environment import digest_of, env_file

SERVERS_FOLDER = "servers"
"""Folder inside the data folder, with one file per server, named after its process."""
PRIVATE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class RunningServer:
    """The facts about a server that the terminal needs."""

    host: str
    port: int
    token: str = field(repr=False)
    variables: Sequence[str]
    """Names of the settings that an answer depends on."""
    digest: str
    """Digest of their values, by `environment.digest_of` with the token."""
    tools: Sequence[dict[str, Any]]
    """Name, description and arguments (JSON Schema) of each tool; the terminal's commands."""
    pid: int = field(default_factory=os.getpid)
    version: str = __version__


def proof(token: str, challenge: str) -> str:
    """Return the answer to `challenge` that only somebody who knows `token` can give."""
    return hmac.new(token.encode(), f"codeqa {challenge}".encode(), hashlib.sha256).hexdigest()


@contextmanager
def announced(data: Path, server: RunningServer) -> Iterator[None]:
    """Let the terminal find a server of the data folder `data` while the context is open."""
    folder = data / SERVERS_FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{server.pid}-{server.port}.json"
    unfinished = folder / f".{secrets.token_hex(8)}"
    try:
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(server), file)
        unfinished.replace(path)
        yield
    finally:
        if os.getpid() == server.pid:  # not in a forked process
            unfinished.unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def running_servers(data: Path) -> list[RunningServer]:
    """Return this user's servers of the data folder `data`, the latest first.

    They have the version and settings of this process, so they answer as it would. The files of
    servers that have ended are removed.
    """
    if (file := env_file()) and file.exists():
        return []  # it may contain settings, which are not loaded here
    servers = []
    for path in (data / SERVERS_FOLDER).glob("*.json"):
        try:
            about = path.lstat()
            if about.st_uid != os.getuid() or about.st_mode & 0o177:
                continue  # not ours, or not as we write it
            server = RunningServer(**json.loads(path.read_text(encoding="utf-8")))
            os.kill(server.pid, 0)
            digest = digest_of(server.variables, server.token)
            if server.version == __version__ and hmac.compare_digest(server.digest, digest):
                servers.append((about.st_mtime, server))
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (OSError, ValueError, TypeError):
            continue  # just removed, or of another version
    return [server for _, server in sorted(servers, key=lambda item: -item[0])]
