"""Servers that run for a data folder: each says so in a file there that only its user can read.

The terminal asks such a server instead of loading everything itself. Before it sends anything it
has the server prove that it knows the token in the file: that may be left over, and somebody else
may listen on that port by now.
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

FOLDER = "servers"
"""Below the data folder; one file a server, named by its process."""
PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class RunningServer:
    """What the terminal has to know of a server."""

    host: str
    port: int
    token: str = field(repr=False)
    variables: Sequence[str]
    """Names of the settings that an answer depends on."""
    digest: str
    """Of their values, by `environment.digest_of` with the token."""
    tools: Sequence[dict[str, Any]]
    """Name, description and arguments (JSON Schema) of each tool, of which its command is made."""
    pid: int = field(default_factory=os.getpid)
    version: str = __version__


def proof(token: str, challenge: str) -> str:
    """Compute what only somebody who knows `token` can answer to `challenge`."""
    return hmac.new(token.encode(), f"codeqa {challenge}".encode(), hashlib.sha256).hexdigest()


@contextmanager
def announced(data: Path, server: RunningServer) -> Iterator[None]:
    """Let the terminal find a server of the data folder `data` while this lasts."""
    folder = data / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, beside = folder / f"{server.pid}-{server.port}.json", folder / f".{secrets.token_hex(8)}"
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(server), file)
        beside.replace(path)
        yield
    finally:
        for left in (beside, path) if os.getpid() == server.pid else ():  # no fork of it
            left.unlink(missing_ok=True)


def running_servers(data: Path) -> list[RunningServer]:
    """Servers that this user runs for the data folder `data` and that answer as this process would:
    of its version, with its settings; the latest first. Files of ended ones are taken away."""
    if (file := env_file()) and file.exists():
        return []  # it may hold settings, which are not read here
    servers = []
    for path in (data / FOLDER).glob("*.json"):
        try:
            about = path.lstat()
            if about.st_uid != os.getuid() or about.st_mode & 0o177:
                continue  # somebody else's, or not as we write it
            server = RunningServer(**json.loads(path.read_text(encoding="utf-8")))
            os.kill(server.pid, 0)
            digest = digest_of(server.variables, server.token)
            if server.version == __version__ and hmac.compare_digest(server.digest, digest):
                servers.append((about.st_mtime, server))
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (OSError, ValueError, TypeError):
            continue  # going away, or of another version
    return [server for _, server in sorted(servers, key=lambda one: -one[0])]
