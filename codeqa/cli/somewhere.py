"""Has a command's work done: by a server that runs for the repository, else in this process.

A server has everything loaded and answers in a fraction of the time that the imports take here; so
this module loads little itself. Whatever is amiss with the server is no failure: then the work is
done here, and says what there is to say.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

import click

from codeqa.environment import data_folder_of_environment, env_file
from codeqa.errors import CodeQAError, error_from
from codeqa.running import RunningServer, proof, running_servers
from codeqa.types import Event, Events

ADDRESS = "/api/terminal/"
HELLO_SECONDS = 0.5
"""A server that takes longer to say that it is there is too busy to save time."""
BEGIN_SECONDS = 5.0
"""Longest wait until it has taken up the work, whose own length the server bounds."""
LONGEST_HELLO = 1_000

Repo = str | tuple[str, ...] | None
"""As given behind `--repo`, once or several times."""

UNFIT = (OSError, HTTPException, ValueError, LookupError, TypeError, StopIteration)
"""What comes of a server that is going away, or of something else that listens there."""


def done(
    name: str, repo: Repo, values: Mapping[str, Any], local: bool, revision: str = ""
) -> Events:
    """The events of `cli.work.work`; with `local`, and at a `revision`, made in this process.

    Raises CodeQAError.
    """
    events = None if local or revision else _served(name, repo, values)
    if events is None:
        from codeqa.cli.work import work_here

        events = work_here(name, repo, values, revision)
    with closing(events):
        yield from events


def outcome(
    name: str, repo: Repo, values: Mapping[str, Any], local: bool, revision: str = ""
) -> dict[str, Any]:
    """What a command found that has no more than that to tell. Raises CodeQAError."""
    with closing(done(name, repo, values, local, revision)) as events:
        for event in events:
            if event.kind == "error":
                raise error_from(event.data)
            if event.kind == "found":
                return dict(event.data)
    raise CodeQAError("Nothing came back.", "Try again.")


def fitting_servers() -> list[RunningServer]:
    """Servers of this user, version and data folder, with the settings of this process."""
    if (file := env_file()) and file.exists():
        return []  # it may hold settings, which are not read here
    return [one for one in running_servers(data_folder_of_environment()) if one.fits]


def _served(name: str, repo: Repo, values: Mapping[str, Any]) -> Events | None:
    """The events as a server tells them, None when none does."""
    for server in fitting_servers():
        try:
            lines = _lines(server, {"name": name, "repo": repo, "values": values})
            notice, first = next(lines), next(lines)
        except UNFIT:
            continue
        if notice.data["notice"]:
            click.echo(notice.data["notice"], err=True)
        return _all(first, lines)
    return None


def _all(first: Event, rest: Events) -> Events:
    event = first
    try:
        while event.kind != "end":
            yield event
            event = next(rest)
    except UNFIT:
        raise CodeQAError("The server ended in the middle of the answer.", "Ask again.") from None
    finally:
        rest.close()


def _lines(server: RunningServer, work: Mapping[str, Any]) -> Events:
    """The lines of the response. Raises one of UNFIT."""
    connection = HTTPConnection(server.host, server.port, timeout=HELLO_SECONDS)
    with closing(connection):
        challenge = secrets.token_hex()
        said = json.loads(_post(connection, "hello", {"challenge": challenge}).read(LONGEST_HELLO))
        if not hmac.compare_digest(str(said["proof"]), proof(server.token, challenge)):
            raise ValueError("somebody else listens there")
        connection.auto_open = 0  # the proof is that of this connection and no other
        socket = connection.sock  # which the connection lets go of before the answer is read
        if socket is None:
            raise ValueError("it hung up")
        socket.settimeout(BEGIN_SECONDS)
        response = _post(connection, "run", {**work, "folder": str(Path.cwd())}, server.token)
        for line in response:
            told = json.loads(line)
            yield Event(told["kind"], told["data"])
            socket.settimeout(None)


def _post(
    connection: HTTPConnection, path: str, body: Mapping[str, Any], token: str = ""
) -> HTTPResponse:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request("POST", ADDRESS + path, json.dumps(body), headers)
    response = connection.getresponse()
    if response.status != 200:
        raise ValueError(response.status)
    return response
