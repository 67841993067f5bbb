"""Who may talk to the server, and what a page of it may do.

Without a token the server answers this machine only, whatever it is bound to. Requests
must name a host that is ours (a foreign name that resolves to us is an attack), and
those that change, tell or cost something must come from our own page or from no page at all.

The users are the user of this machine, or one for each token; the first token's user is the
owner, who also decides what concerns all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from filelock import FileLock
from flask import Flask, Response, g, redirect, request, session
from werkzeug.wrappers import Response as BaseResponse

from codeqa.errors import SettingsError
from codeqa.hosts import LOOPBACK_NAMES, is_loopback
from codeqa.settings import Settings
from codeqa.web.errors import RequestRefusedError

BODY_BYTES = 1_000_000
"""Largest request body; a question is at most a few thousand characters."""
SECRET_BYTES = 32
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
GUARDED_PATHS = ("/api/", "/v1/")
"""Where even reading must come from our own page or from no page at all."""
ASKING_PATHS = ("/chat", "/v1/", "/mcp", "/api/review", "/api/tools/")
"""Where, and at `/`, each POST is work for the processor and maybe for a model that costs."""
HELLO_PATH = "/api/terminal/hello"
TERMINAL_TOKEN = "CODEQA_TERMINAL_TOKEN"
"""Of the app's configuration: what the terminal of the user who runs this server sends. It lets in
as TERMINAL, from this machine alone."""
OPEN_PATHS = ("/health", "/login", "/static/", HELLO_PATH)
KEYS_KEPT = 10_000
USER_DIGITS = 8
"""Hexadecimal digits of a token's digest that name its user in the state and in Redis."""
EVERY_ADDRESS = {"", "0.0.0.0", "::", "*"}

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who may use the server."""

    user: str
    """Under which conversations and contexts are kept; nobody else sees them."""
    owner: bool = True
    """Whether it is this user who chooses the language model, where everybody's questions go,
    and which folders everybody sees."""
    mark: str = field(default="", repr=False)
    """What a session that was let in holds; without its token it is worth nothing."""


LOCAL = Member("local")
"""Everybody at a server without a token: the user of this machine."""
TERMINAL = Member("terminal", owner=False)
"""The terminal of that user, whose conversations the page does not list."""


class Allowance:
    """At most `most` of something in each `seconds`, for each of many."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._times: defaultdict[str, deque[float]] = defaultdict(partial(deque, maxlen=most))

    def used_up(self, key: str) -> bool:
        times = self._times.get(key)  # who only asks leaves no entry
        if times is None or len(times) < self._most:
            return False
        return time.monotonic() - times[0] <= self._seconds

    def count(self, key: str) -> None:
        if len(self._times) >= KEYS_KEPT:
            self._times.clear()
        self._times[key].append(time.monotonic())


class Gate:
    """Compares tokens in constant time and stops guessing; without tokens it stands open."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._by_digest = {}
        for token in tokens:
            digest = _digest(token)
            mark = hmac.new(bytes.fromhex(digest), b"session", hashlib.sha256).hexdigest()
            user = f"token-{digest[:USER_DIGITS]}"
            self._by_digest[digest] = Member(user, token == tokens[0], mark)
        self._by_mark = {member.mark: member for member in self._by_digest.values()}
        self.closed = bool(tokens)
        self._lock = threading.Lock()
        self._guesses = Allowance(5, seconds=30)
        """Wrong tokens from one address; more are not even compared."""
        self._questions = Allowance(120, seconds=60)
        """Of one user, so that none keeps the server from the others."""

    def member_of_session(self, mark: str) -> Member | None:
        """Whose session holds `mark`; None for nobody's."""
        return _find(mark, self._by_mark)

    def admit(self, token: str, address: str) -> Member | None:
        """Whose `token` it is; None for a wrong one. Raises RequestRefusedError (429) after many
        wrong ones from `address`."""
        with self._lock:
            if self._guesses.used_up(address):
                raise RequestRefusedError(429, "The tokens were wrong. Wait half a minute.")
            if member := _find(_digest(token.strip()), self._by_digest):
                return member
            self._guesses.count(address)
        return None

    def count_question(self, user: str) -> None:
        """Raises RequestRefusedError (429) when `user` asked too many lately."""
        with self._lock:
            if self._questions.used_up(user):
                raise RequestRefusedError(429)
            self._questions.count(user)


def check_settings(settings: Settings) -> None:
    """Raise SettingsError when others could reach the page and no token is set."""
    if settings.token.get_secret_value() and not settings.tokens:
        raise SettingsError(
            "CODEQA_TOKEN holds commas but no token.", "Set one token, or several between commas."
        )
    if not is_loopback(settings.host) and not settings.tokens:
        raise SettingsError(
            f"The page is not served on {settings.host} without a token.",
            "Set CODEQA_TOKEN, or leave CODEQA_HOST at 127.0.0.1.",
        )


def secret_key(folder: Path) -> bytes:
    """The key that signs sessions: made once, readable by its owner alone."""
    path = folder / "secret_key"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(folder / "secret_key.lock", mode=0o600):  # two servers may start at once
        key = path.read_bytes() if path.exists() else b""
        if len(key) < SECRET_BYTES:  # none, or half of one
            path.unlink(missing_ok=True)
            key = os.urandom(SECRET_BYTES)
            with open(path, "xb", opener=partial(os.open, mode=0o600)) as file:
                file.write(key)
    return key


def guard(app: Flask, settings: Settings) -> None:
    """Put the checks before every view and the headers on every response."""
    gate = Gate(settings.tokens)
    app.extensions["codeqa_gate"] = gate
    app.config.update(
        SECRET_KEY=secret_key(settings.data_dir),
        MAX_CONTENT_LENGTH=BODY_BYTES,
        MAX_FORM_MEMORY_SIZE=BODY_BYTES,
        SESSION_COOKIE_NAME="codeqa",
        **{TERMINAL_TOKEN: secrets.token_hex(SECRET_BYTES)},
        SESSION_COOKIE_SAMESITE="Strict",
        SESSION_COOKIE_HTTPONLY=True,
    )

    @app.before_request
    def check() -> BaseResponse | None:
        _check_host(settings, gate)
        if not gate.closed and request.remote_addr and not is_loopback(request.remote_addr):
            raise RequestRefusedError(403, "Set CODEQA_TOKEN to let other machines in.")
        if request.method not in SAFE_METHODS or request.path.startswith(GUARDED_PATHS):
            _check_origin()
        if _is_terminal(app.config[TERMINAL_TOKEN]):
            g.member = TERMINAL
        elif gate.closed:
            return _check_token(gate)
        else:
            g.member = LOCAL
        return None

    @app.after_request
    def protect(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


def member_of_request() -> Member:
    """Who sent this request; the checks before every view have found it out."""
    return cast(Member, g.member)


def require_owner(may: str) -> None:
    """Raises RequestRefusedError for a request of somebody else than the server's owner."""
    if not member_of_request().owner:
        raise RequestRefusedError(403, f"Only the first token in CODEQA_TOKEN may {may}.")


def _check_host(settings: Settings, gate: Gate) -> None:
    """A page elsewhere may have its own name resolve to us; we do not answer to that name.

    Bound to every address, the server cannot know its names: then the token, which is
    required there and whose cookie belongs to one name, keeps such pages out.
    """
    if settings.host in EVERY_ADDRESS and gate.closed:
        return
    try:
        name = (urlsplit(f"//{request.host}").hostname or "").lower()
    except ValueError:
        name = ""
    if name not in LOOPBACK_NAMES | {settings.host.strip("[]").lower()}:
        raise RequestRefusedError(421)


def _check_origin() -> None:
    """Browsers say where a request comes from; programs that are no browser say nothing."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        raise RequestRefusedError(403)
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower().partition("://")[2] != request.host.lower():
        raise RequestRefusedError(403)


def _check_token(gate: Gate) -> BaseResponse | None:
    """Find out who asks. Raises RequestRefusedError (401) when it is nobody known."""
    if request.path.startswith(OPEN_PATHS):
        return None
    member = gate.member_of_session(str(session.get("mark", "")))
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if member is None and scheme.lower() == "bearer" and token:
        member = gate.admit(token, request.remote_addr or "")
    wants_a_page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    if member is None and wants_a_page and scheme.lower() != "bearer":
        return redirect("/login")
    if member is None:
        raise RequestRefusedError(401)
    if request.method == "POST" and (request.path == "/" or request.path.startswith(ASKING_PATHS)):
        gate.count_question(member.user)
    g.member = member
    return None


def _is_terminal(token: str) -> bool:
    """Whether the terminal of the user who runs this server asks, on this machine."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return is_loopback(request.remote_addr or "") and hmac.compare_digest(
        given.encode(), token.encode()
    )


def _find(given: str, members: Mapping[str, Member]) -> Member | None:
    """All are compared, so that the time tells nothing of which one came near."""
    known = members.items()
    found = [one for key, one in known if hmac.compare_digest(given.encode(), key.encode())]
    return found[0] if found else None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
