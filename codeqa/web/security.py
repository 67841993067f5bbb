"""Decide who may use the server, and what its pages may do.

Without a token the server answers only this machine, whatever address it listens on. Requests must
name a host that is ours (a foreign name that resolves to us is an attack). Those that change
something, return data or cost something must come from our own page or from no page at all.

The users are the user of this machine, or one per token; the user of the first token is the owner,
who also decides what concerns all users. Or a reverse proxy signs people in and names them with
their groups; then `may_see` decides which repositories exist for each.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from filelock import FileLock
from flask import Flask, Response, current_app, g, redirect, request, session
from flask.sessions import SecureCookieSessionInterface
from werkzeug.wrappers import Response as BaseResponse

from codeqa.errors import SettingsError
from codeqa.extensions import load_extension
from codeqa.hosts import LOOPBACK_NAMES, ip_address, is_loopback
from codeqa.settings import Settings
from codeqa.state.cache import open_redis
from codeqa.store import Location
from codeqa.web.errors import RequestRefusedError

log = logging.getLogger(__name__)
BODY_BYTES = 1_000_000
"""Largest request body; a question is at most a few thousand characters."""
SECRET_BYTES = 32
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
GUARDED_PATHS = ("/api/", "/v1/")
"""Addresses where even reading requests must come from our own page or from no page at all."""
ASKING_PATHS = ("/chat", "/v1/", "/mcp", "/api/review", "/api/tools/")
"""Addresses, besides `/`, where each POST costs processor time and maybe a model's tokens."""
HELLO_PATH = "/api/terminal/hello"
TERMINAL_TOKEN = "CODEQA_TERMINAL_TOKEN"
"""Key in the app's configuration of the token with which the terminal of the server's user signs in
as TERMINAL, from this machine only."""
METRICS_PATH = "/metrics"
OPEN_PATHS = ("/health", "/ready", "/login", HELLO_PATH)
STATIC_PREFIX = "/static/"
"""Of the addresses that need no sign-in, the only one with others below it."""
KEYS_KEPT = 10_000
USER_DIGITS = 8
"""Hexadecimal digits of a token's digest that name its user in the database and in Redis."""
EVERY_ADDRESS = {"", "0.0.0.0", "::", "*"}

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; "
    "frame-ancestors 'self'"
)
"""Of the frame that draws diagrams: it has no origin, so no cookie, and may load nothing."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may use the server."""

    id: str
    """Conversations and contexts are stored under it; no other user sees them."""
    owner: bool = True
    """True if this user decides for all: the language model, the repositories, indexing."""
    mark: str = field(default="", repr=False)
    """Identifies the user in their session; worthless once their token is removed."""
    sees: Callable[[Location], bool] | None = field(default=None, repr=False)
    """Which repositories exist for this user; None for all."""


def may_see(user: User, location: Location) -> bool:
    """Return whether the repository at `location` exists for `user`.

    Nothing else decides this. Everywhere, a repository that a user may not see does not exist.
    """
    return user.sees is None or user.sees(location)


LOCAL = User("local")
"""Everybody at a server without a token: the user of this machine."""
TERMINAL = User("terminal", owner=False)
"""The terminal of that user; the page does not list its conversations."""

SCRAPER = User("metrics", owner=False)
"""A program with the token for METRICS_PATH, which it may read and nothing else."""


class Allowance:
    """At most `most` events in any `seconds`, for each of many keys."""

    def __init__(self, name: str, most: int, seconds: int) -> None:
        self._name, self._most, self._seconds = name, most, seconds
        self._times: defaultdict[str, deque[float]] = defaultdict(partial(deque, maxlen=most))

    def check(self, key: str, advice: str = "") -> None:
        """Raise RequestRefusedError (429) when `key` has used up its allowance."""
        times = self._times.get(key) or deque()  # does not create an entry
        if len(times) >= self._most and time.monotonic() - times[0] <= self._seconds:
            raise RequestRefusedError(429, advice)

    def count(self, key: str, advice: str = "") -> None:
        """Count one event, after `check`.

        A shared count raises like `check` if another process used up the allowance meanwhile.
        """
        if len(self._times) >= KEYS_KEPT:
            self._times.clear()
        self._times[key].append(time.monotonic())


AllowanceFactory = Callable[[str, int, int], Allowance]
Authenticate = Callable[[], User | None]
"""Returns the user of the request, None for an unknown one; may raise RequestRefusedError."""


class Sessions(SecureCookieSessionInterface):
    """Sessions whose cookie is restricted to TLS if the page came over TLS."""

    def get_cookie_secure(self, app: Flask) -> bool:
        return request.headers.get("Origin", "").startswith("https://")


class Gate:
    """Sign-in by token, in constant time and with few guesses; without tokens all may enter."""

    def __init__(self, tokens: Sequence[str], allowance: AllowanceFactory = Allowance) -> None:
        self._by_digest = {}
        for token in tokens:
            digest = token_digest(token)
            mark = hmac.new(bytes.fromhex(digest), b"session", hashlib.sha256).hexdigest()
            name = f"token-{digest[:USER_DIGITS]}"
            self._by_digest[digest] = User(name, token == tokens[0], mark)
        self._by_mark = {user.mark: user for user in self._by_digest.values()}
        self.closed = bool(tokens)
        self._lock = threading.Lock()
        self._guesses = allowance("guesses", 5, 30)
        """Wrong tokens from one address; beyond the limit none is compared."""
        self._questions = allowance("questions", 120, 60)
        """Questions of one user; the limit keeps the server free for others."""
        self._threads_held = Counter[str]()
        """Number of requests of each user that hold a thread."""

    def user(self) -> User | None:
        """Return the user of this request by session or bearer token, None for an unknown one.

        Raises as `admit` does.
        """
        if not self.closed:
            return LOCAL
        user = _find(str(session.get("mark", "")), self._by_mark)
        if user is None and (token := _bearer()):
            return self.admit(token, request.remote_addr or "")
        return user

    def admit(self, token: str, address: str) -> User | None:
        """Return the user with `token`, None for a wrong one.

        Raises RequestRefusedError (429) after several wrong tokens from `address`.
        """
        with self._lock:
            self._guesses.check(address, "Several tokens were wrong. Wait half a minute.")
            if user := _find(token_digest(token.strip()), self._by_digest):
                return user
            self._guesses.count(address)
        return None

    def count_question(self, user: str) -> None:
        """Count a question of `user`; raise RequestRefusedError (429) after too many."""
        with self._lock:
            self._questions.check(user)
            self._questions.count(user)

    def hold(self, user: str, threads: int) -> Callable[[], None]:
        """Count a request that holds one of `threads`, and return a function that releases it.

        Raises RequestRefusedError (429) if `user` holds too many, or all users nearly all of them.
        """
        most_of_one = max(threads // 4, min(threads - 1, 16))
        most_of_all = threads - max(1, threads // 8)
        with self._lock:
            if self._threads_held[user] >= most_of_one or self._threads_held.total() >= most_of_all:
                raise RequestRefusedError(429, "Too many answers at once: wait until one is done.")
            self._threads_held[user] += 1

        def release() -> None:
            with self._lock:
                self._threads_held[user] -= 1

        return release


def check_settings(settings: Settings) -> None:
    """Raise SettingsError when other people could reach the page without signing in."""
    if settings.auth and settings.tokens:
        raise SettingsError("CODEQA_AUTH and CODEQA_TOKEN are both set.", "Unset one of them.")
    if settings.token.get_secret_value() and not settings.tokens:
        raise SettingsError(
            "CODEQA_TOKEN contains commas but no token.",
            "Set one token, or several with commas between them.",
        )
    if not (is_loopback(settings.host) or settings.tokens or settings.auth):
        raise SettingsError(
            f"On {settings.host} other people could open the page without a token.",
            "Set CODEQA_TOKEN, or leave CODEQA_HOST at 127.0.0.1.",
        )
    if settings.web_workers > 1 and not settings.redis_url:
        advice = "Set REDIS_URL, or use one process: it has a thread for each reader."
        raise SettingsError("Several server processes need Redis to share their answers.", advice)


def secret_key(folder: Path) -> bytes:
    """Return the key that signs sessions; it is made once, and only its owner can read it."""
    path = folder / "secret_key"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(folder / "secret_key.lock", mode=0o600):  # two servers may start at once
        key = path.read_bytes() if path.exists() else b""
        if len(key) < SECRET_BYTES:  # missing, or only half written
            path.unlink(missing_ok=True)
            key = os.urandom(SECRET_BYTES)
            with open(path, "xb", opener=partial(os.open, mode=0o600)) as file:
                file.write(key)
    return key


def guard(app: Flask, settings: Settings) -> None:
    """Add the checks before every view, and the headers to every response."""
    allowance: AllowanceFactory = Allowance
    if redis := open_redis(settings):  # all processes that share it count together
        allowance = partial(load_extension("allowance"), redis)
    gate = Gate(settings.tokens, allowance)
    authenticate: Authenticate = gate.user
    if settings.auth:
        authenticate = load_extension("proxy")(settings).user
    access_log = load_extension("access_log")(settings) if settings.access_log else None
    app.extensions["codeqa_gate"] = gate
    app.session_interface = Sessions()
    app.config.update(
        SECRET_KEY=settings.secret_key.get_secret_value() or secret_key(settings.data_dir),
        MAX_CONTENT_LENGTH=BODY_BYTES,
        MAX_FORM_MEMORY_SIZE=BODY_BYTES,
        SESSION_COOKIE_NAME="codeqa",
        **{TERMINAL_TOKEN: secrets.token_hex(SECRET_BYTES)},
        SESSION_COOKIE_SAMESITE="Strict",
        SESSION_COOKIE_HTTPONLY=True,
    )
    app.before_request(partial(_check, settings, gate, authenticate))

    @app.after_request
    def protect(response: Response) -> Response:
        if release := g.pop("release", None):
            response.call_on_close(release) if response.is_streamed else release()
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.path.startswith(STATIC_PREFIX):
            response.headers.setdefault("Cache-Control", "no-store")
        if access_log and "user" in g and _asks((*ASKING_PATHS, "/api/search")):
            access_log.note(response.status_code)
        return response


def _check(settings: Settings, gate: Gate, authenticate: Authenticate) -> BaseResponse | None:
    """Note the user of a request, send its browser to the sign-in page, or refuse it."""
    _check_host(settings, gate)
    needs_sign_in = gate.closed or settings.auth
    if not needs_sign_in and request.remote_addr and not is_loopback(request.remote_addr):
        raise RequestRefusedError(403, "Set CODEQA_TOKEN to let other machines in.")
    if request.method not in SAFE_METHODS or request.path.startswith(GUARDED_PATHS):
        _check_origin()
    if is_loopback(request.remote_addr or "") and _bears(current_app.config[TERMINAL_TOKEN]):
        g.user = TERMINAL
    elif request.path == METRICS_PATH and _bears(settings.metrics_token.get_secret_value()):
        g.user = SCRAPER
    elif not (needs_sign_in and is_open(request.path)):
        user = authenticate()
        if user is None and _wants_page():
            return redirect("/login")
        if user is None:
            raise RequestRefusedError(401)
        g.user = user
        if not is_open(request.path):
            g.release = gate.hold(user.id, settings.threads)
        if _asks():
            count_request()
    return None


def is_open(path: str) -> bool:
    """Return whether an address needs no sign-in."""
    return path in OPEN_PATHS or path.startswith(STATIC_PREFIX)


def current_user() -> User:
    """Return the user of this request, whom the checks before every view have found."""
    return cast(User, g.user)


def require_owner(action: str) -> None:
    """Raise RequestRefusedError (403) if this request is not the owner's."""
    user = current_user()
    if not user.owner:
        who = "owners in access.toml" if user.sees else "user of the first token in CODEQA_TOKEN"
        raise RequestRefusedError(403, f"Only the {who} may {action}.")


def _check_host(settings: Settings, gate: Gate) -> None:
    """Refuse host names that are not ours: a foreign page may let its own name resolve to us.

    A server that listens on every address cannot know its names. It requires a token, whose cookie
    belongs to one name, and that keeps such pages out.
    """
    if settings.host in EVERY_ADDRESS and gate.closed:
        return
    try:
        name = (urlsplit(f"//{request.host}").hostname or "").lower()
    except ValueError:
        name = ""
    if settings.auth and ip_address(name):
        return  # no foreign page has a bare address as its name
    own_names = {part.strip().lower() for part in settings.auth_host.split(",") if part.strip()}
    own_names.add(settings.host.strip("[]").lower())
    if name not in LOOPBACK_NAMES | own_names:
        raise RequestRefusedError(421, "Set CODEQA_AUTH_HOST to it." if settings.auth else "")


def _check_origin() -> None:
    """Refuse requests from foreign pages; only browsers send these headers."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        raise RequestRefusedError(403)
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower().partition("://")[2] != request.host.lower():
        raise RequestRefusedError(403)


def _wants_page() -> bool:
    """Return whether a browser asks for a page to show."""
    page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    return page and not _bearer()


def _asks(paths: tuple[str, ...] = ASKING_PATHS) -> bool:
    """Return whether the request is a POST to `/` or below one of `paths`."""
    return request.method == "POST" and (request.path == "/" or request.path.startswith(paths))


def count_request() -> None:
    """Count this request as a question of its user. Raises RequestRefusedError (429)."""
    user = current_user()
    if user not in (LOCAL, TERMINAL):
        current_app.extensions["codeqa_gate"].count_question(user.id)


def _bears(token: str) -> bool:
    """Return whether the request has the bearer token `token`; never if that is empty."""
    return bool(token) and hmac.compare_digest(_bearer().encode(), token.encode())


def _bearer() -> str:
    """Return the bearer token of the request, '' for none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _find(key: str, users: Mapping[str, User]) -> User | None:
    """Return the user with `key`. All keys are compared, so that the time reveals nothing."""
    match = None
    for other, user in users.items():
        if hmac.compare_digest(key.encode(), other.encode()):
            match = user
    return match


def token_digest(token: str) -> str:
    """Return the SHA-256 digest of `token`, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
