"""Asks a server that runs for a repository, over its HTTP interface (docs/api.md).

A server has everything loaded and answers in a fraction of the time that the imports take here; so
this module loads little itself. Whatever is amiss with the server is no failure: then None is
given, and the work is done in this process, which says what there is to say.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote

from codeqa.environment import data_folder_of_environment, env_file, with_home
from codeqa.errors import CodeQAError
from codeqa.types import Event, Events
from codeqa.web.running import RunningServer, proof, running_servers

HELLO_SECONDS = 0.5
"""A server that takes longer to say that it is there is too busy to save time."""
LONGEST_HELLO = 1_000

UNFIT = (OSError, HTTPException, ValueError, LookupError, TypeError)
"""What comes of a server that is going away, or of something else that listens there."""


def ask(repos: Sequence[str], options: Mapping[str, Any], go_on: bool) -> Events | None:
    """The events of an answer, as `chat.ask` gives them for these fields of AskOptions."""
    with suppress(*UNFIT), ExitStack() as stack:
        server, repo = _connect(repos, options["question"], options["use_model"], stack)
        conversation = f"terminal-{repo}"
        if not go_on:
            kept = f"/api/conversations/{quote(conversation)}?repo={quote(repo)}"
            _send(server, "DELETE", kept).read()
        body = {name: value for name, value in options.items() if name != "use_model"}
        body |= {"without_model": not options["use_model"], "render": True}
        body |= {"repo": repo, "conversation": conversation}
        return _events(_done(_send(server, "POST", "/chat/stream", body)), stack.pop_all())
    return None


def call(
    address: str, values: Mapping[str, Any], repos: Sequence[str], rev: str, local: bool
) -> dict[str, Any]:
    """What an address of the HTTP interface gives for `values`, worked out here where no server is
    asked. Raises CodeQAError."""
    with suppress(*UNFIT), ExitStack() as stack:
        if local or rev:
            raise LookupError("no server knows")
        server, repo = _connect(repos, str(values.get("question", "")), False, stack)
        found = _done(_send(server, "POST", f"{address}?repo={quote(repo)}", values))
        return dict(json.load(found))
    from codeqa.cli.local import call

    return call(address, values, repos, rev)


def fitting_servers() -> list[RunningServer]:
    """Servers of this user, version and data folder, with the settings of this process."""
    if (file := env_file()) and file.exists():
        return []  # it may hold settings, which are not read here
    return [one for one in running_servers(data_folder_of_environment()) if one.fits]


class _Server(HTTPConnection):
    """A connection that a server has proved itself on, before anything was told to it."""

    def __init__(self, known: RunningServer) -> None:
        super().__init__(known.host, known.port, timeout=HELLO_SECONDS)
        self.token = known.token

    def prove(self) -> None:
        """Raises one of UNFIT."""
        challenge, token, self.token = secrets.token_hex(), self.token, ""
        hello = _send(self, "POST", "/api/terminal/hello", {"challenge": challenge})
        said = str(json.loads(hello.read(LONGEST_HELLO))["proof"])
        if self.sock is None or not hmac.compare_digest(said, proof(token, challenge)):
            raise ValueError("somebody else listens there")
        self.auto_open = 0  # the proof is that of this connection and no other
        self.sock.settimeout(None)  # an answer takes as long as it takes
        self.token = token


def _connect(
    repos: Sequence[str], question: str, with_model: bool, stack: ExitStack
) -> tuple[_Server, str]:
    """A server that has one of these repositories open, and their id. Raises LookupError."""
    for known in fitting_servers():
        # Which repositories a question names is for the whole program to say.
        if "@repo:" in question or (with_model and known.own_model):
            continue
        server = stack.enter_context(closing(_Server(known)))
        with suppress(*UNFIT):
            server.prove()
            listed = json.load(_done(_send(server, "GET", "/api/repos")))
            chosen = _chosen(listed["repositories"], repos)
            if any(one["open"] for one in chosen):
                ids = [one["id"] for one in chosen]
                ends = "~".join(sorted(one.rpartition("-")[2] for one in ids))
                return server, ends if len(ids) > 1 else ids[0]
    raise LookupError("no server")


def _chosen(known: Iterable[dict[str, Any]], repos: Sequence[str]) -> list[dict[str, Any]]:
    """The repositories that are named, by folder, name or id; else the one of the current folder.
    Raises LookupError or ValueError for one that is not known."""
    by_path, here = {one["path"]: one for one in known}, Path.cwd()
    if not repos:
        above = (one for one in (here, *here.parents) if str(one) in by_path or _is_git(one))
        return [by_path[str(next(above, ""))]]
    found = []
    for given in repos:
        folder = here / with_home(Path(given))
        called = [one for one in by_path.values() if given in (one["name"], one["id"])]
        (one,) = [by_path[str(folder.resolve())]] if folder.is_dir() else called
        found.append(one)
    return found


def _is_git(folder: Path) -> bool:
    return (folder / ".git").exists()


def _send(
    server: _Server, method: str, address: str, body: Mapping[str, Any] | None = None
) -> HTTPResponse:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.token}"}
    server.request(method, address, None if body is None else json.dumps(body), headers)
    return server.getresponse()


def _done(answer: HTTPResponse) -> HTTPResponse:
    if answer.status != 200:
        raise ValueError(answer.status)
    return answer


def _events(lines: Iterable[bytes], stack: ExitStack) -> Events:
    """The events that a data stream tells of. Raises CodeQAError where it breaks off."""
    with stack, suppress(*UNFIT):
        for line in lines:
            code, _, value = line.partition(b":")
            if code == b"0":
                yield Event("token", {"text": json.loads(value)})
            elif code == b"8":
                (told,) = json.loads(value)
                if "error" in told:
                    yield Event("error", told["error"])
                elif "block" not in told:
                    yield Event("stopped" if "stopped" in told else told.get("stage", "done"), told)
            elif code == b"d":
                return
    raise CodeQAError("The server ended in the middle of the answer.", "Ask again.")
