"""Ask a running server over its HTTP interface (docs/api.md).

It has everything loaded, and answers in a fraction of the time that the imports take here. If it
fails in any way, the work is done in this process, which then reports any error.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from codeqa.cli.command import EVERY, folders_of
from codeqa.environment import data_folder, noted_repositories
from codeqa.errors import CodeQAError
from codeqa.web.running import proof, running_servers

if TYPE_CHECKING:
    from codeqa.chat.events import Events

HELLO_SECONDS = 0.5
"""A server that takes longer to answer a greeting is too busy to save time."""


def ask(repos: Sequence[str], options: Mapping[str, Any], go_on: bool) -> Events | None:
    """Return the events of an answer, as `chat.ask` would; None if no server fits.

    `options` are fields of AskOptions.
    """
    with suppress(Exception), ExitStack() as stack:
        server, repo = _connect(repos, stack)
        conversation = f"terminal-{repo}"
        if not go_on:
            address = f"/api/conversations/{quote(conversation)}?repo={quote(repo)}"
            with suppress(ValueError):  # it may not exist
                server.fetch("DELETE", address).read()
        body = {"repo": repo, "conversation": conversation, "render": True, **options}
        body["without_model"] = not body.pop("use_model")
        return _events(server.fetch("POST", "/chat/stream", body), stack.pop_all())
    return None


def post(
    address: str,
    values: Mapping[str, Any],
    repos: Sequence[str],
    connected: Callable[[HTTPConnection], None] = lambda _: None,
) -> Any:
    """POST `values` to an address of the HTTP interface; return None if no server fits.

    `connected` is called with the connection before that.
    """
    with suppress(Exception), ExitStack() as stack:
        server, repo = _connect(repos, stack)
        connected(server)
        return json.load(server.fetch("POST", f"{address}?repo={quote(repo)}", values))
    return None


def call(
    address: str, values: Mapping[str, Any], repos: Sequence[str], rev: str, local: bool
) -> dict[str, Any]:
    """POST as `post` does, or do the work in this process. Raises CodeQAError."""
    if not (local or rev) and (reply := post(address, values, repos)) is not None:
        return dict(reply)
    from codeqa.cli.local import call

    return call(address, values, repos, rev)


class _Server(HTTPConnection):
    """A connection on which a server proves who it is before it gets any data."""

    token = ""

    def prove(self, token: str) -> None:
        """Raise an error if the other side does not know `token`."""
        challenge = secrets.token_hex()
        hello = self.fetch("POST", "/api/terminal/hello", {"challenge": challenge})
        answer = str(json.loads(hello.read(1_000))["proof"])
        if self.sock is None or not hmac.compare_digest(answer, proof(token, challenge)):
            raise ValueError("another program listens there")
        self.auto_open = 0  # the proof holds for this connection alone
        self.sock.settimeout(None)  # an answer takes as long as it takes
        self.token = token

    def fetch(self, method: str, address: str, body: Any = None) -> HTTPResponse:
        """Send a request and return the response. Raises ValueError for a failure."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        self.request(method, address, None if body is None else json.dumps(body), headers)
        response = self.getresponse()
        if response.status != 200:
            response.read()
            raise ValueError(response.status)
        return response


def _connect(repos: Sequence[str], stack: ExitStack) -> tuple[_Server, str]:
    """Return a connected server and the id of these repositories. Raises if there is none."""
    data = data_folder()
    by_folder = {root: id_ for _, root, id_ in noted_repositories(data)}
    ids = [by_folder[str(folder)] for folder in folders_of(repos, data)]
    ends = "~".join(sorted(id_.rpartition("-")[2] for id_ in ids))
    for running in running_servers(data):
        server = _Server(running.host, running.port, timeout=HELLO_SECONDS)
        stack.enter_context(closing(server))
        with suppress(Exception):
            server.prove(running.token)
            if list(repos) == [EVERY]:
                return server, "~"
            return server, ends if len(ids) > 1 else ids[0]
    raise LookupError("no server is running")


def _events(lines: Iterable[bytes], stack: ExitStack) -> Events:
    """Yield the events of a data stream. Raises CodeQAError if it breaks off."""
    # Imported while the server works on the answer.
    from codeqa.chat.events import Failed, Failure, Stopped, Token, read_event
    from codeqa.chat.record import read_done

    with stack, suppress(Exception):
        for line in lines:
            code, _, value = line.partition(b":")
            if code == b"0":
                yield Token(json.loads(value))
            elif code == b"8":
                (values,) = json.loads(value)
                if "error" in values:
                    yield Failed(Failure(**values["error"]))
                elif "stopped" in values:
                    yield Stopped(values["turn"])
                elif "stage" in values:
                    yield read_event(values)
                elif "block" not in values:
                    yield read_done(values)
            elif code == b"d":
                return
    raise CodeQAError("The server stopped in the middle of the answer.", "Ask again.")
