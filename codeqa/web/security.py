"""Decide who may talk to the server, and what a page of it may do.

Without a token the server answers this machine only, whatever it is bound to. Requests
must name a host that is ours (a foreign name that resolves to us is an attack), and
those that change, tell or cost something must come from our own page or from no page at all.

The users are the user of this machine, or one for each token; the first token's user is the
owner, who also decides what concerns all of them. Or a reverse proxy has signed them in and names
them with their groups: then `may_see` decides which repositories there are for each.
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
"""Where even reading must come from our own page or from no page at all."""
ASKING_PATHS = ("/chat", "/v1/", "/mcp", "/api/review", "/api/tools/")
"""Where, and at `/`, each POST is work for the processor and maybe for a model that costs."""
HELLO_PATH = "/api/terminal/hello"
TERMINAL_TOKEN = "CODEQA_TERMINAL_TOKEN"
"""Of the app's configuration: what the terminal of the user who runs this server sends. It lets in
as TERMINAL, from this machine alone."""
METRICS_PATH = "/metrics"
OPEN_PATHS = ("/health", "/ready", "/login", "/static/", HELLO_PATH)
KEYS_KEPT = 10_000
USER_DIGITS = 8
"""Hexadecimal digits of a token's digest that name its user in the state and in Redis."""
EVERY_ADDRESS = {"", "0.0.0.0", "::", "*"}
TWICE = "CODEQA_TWICE"
"""Header in which `connections` names those that came more than once, which waitress joins."""

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
    """Hold somebody who may use the server."""

    user: str
    """Name of the owner of conversations and contexts; nobody else sees them."""
    owner: bool = True
    """Whether this user chooses the language model for everybody, and which folders there are."""
    mark: str = field(default="", repr=False)
    """Kept in the session that was let in; worth nothing once its token is gone."""
    sees: Callable[[Location], bool] | None = field(default=None, repr=False)
    """Which repositories there are for this member; None for all."""


def may_see(member: Member, location: Location) -> bool:
    """Whether there is a repository at `location` for `member`. Nothing else decides it: what they
    may not see is everywhere as if it were not there."""
    return member.sees is None or member.sees(location)


LOCAL = Member("local")
"""Everybody at a server without a token: the user of this machine."""
TERMINAL = Member("terminal", owner=False)
"""The terminal of that user, whose conversations the page does not list."""

SCRAPER = Member("metrics", owner=False)
"""Who holds the token of METRICS_PATH, which lets in there alone."""


class Allowance:
    """Allow at most `most` of something in each `seconds`, for each of many keys."""

    def __init__(self, name: str, most: int, seconds: int) -> None:
        self._name, self._most, self._seconds = name, most, seconds
        self._times: defaultdict[str, deque[float]] = defaultdict(partial(deque, maxlen=most))

    def check(self, key: str, advice: str = "") -> None:
        """Raise RequestRefusedError (429) where that of `key` is used up."""
        times = self._times.get(key) or deque()  # a check leaves no entry
        if len(times) >= self._most and time.monotonic() - times[0] <= self._seconds:
            raise RequestRefusedError(429, advice)

    def count(self, key: str, advice: str = "") -> None:
        """Count one more, after `check`. A shared count raises as that does where another process
        used it up meanwhile."""
        if len(self._times) >= KEYS_KEPT:
            self._times.clear()
        self._times[key].append(time.monotonic())


AllowanceFactory = Callable[[str, int, int], Allowance]
Authenticate = Callable[[], Member | None]
"""Returns who sent the request, None for nobody known; may raise RequestRefusedError."""


class Sessions(SecureCookieSessionInterface):
    """Mark cookies for TLS alone where the browser says that its page came over TLS."""

    def get_cookie_secure(self, app: Flask) -> bool:
        return request.headers.get("Origin", "").startswith("https://")


class Gate:
    """Compare tokens in constant time and stop guessing; without tokens let everybody in."""

    def __init__(self, tokens: Sequence[str], allowance: AllowanceFactory = Allowance) -> None:
        self._by_digest = {}
        for token in tokens:
            digest = token_digest(token)
            mark = hmac.new(bytes.fromhex(digest), b"session", hashlib.sha256).hexdigest()
            user = f"token-{digest[:USER_DIGITS]}"
            self._by_digest[digest] = Member(user, token == tokens[0], mark)
        self._by_mark = {member.mark: member for member in self._by_digest.values()}
        self.closed = bool(tokens)
        self._lock = threading.Lock()
        self._guesses = allowance("guesses", 5, 30)
        """Wrong tokens from one address; more are not even compared."""
        self._questions = allowance("questions", 120, 60)
        """Of one user, so that none keeps the server from the others."""
        self._answered = Counter[str]()
        """Requests of each user that hold a thread."""

    def member(self) -> Member | None:
        """Return who sent this request, by session or bearer token; None for nobody known. Raises
        as `admit` does."""
        if not self.closed:
            return LOCAL
        member = _find(str(session.get("mark", "")), self._by_mark)
        if member is None and (token := _bearer()):
            return self.admit(token, request.remote_addr or "")
        return member

    def admit(self, token: str, address: str) -> Member | None:
        """Return whose `token` it is; None for a wrong one. Raises RequestRefusedError (429) after
        many wrong ones from `address`."""
        with self._lock:
            self._guesses.check(address, "The tokens were wrong. Wait half a minute.")
            if member := _find(token_digest(token.strip()), self._by_digest):
                return member
            self._guesses.count(address)
        return None

    def count_question(self, user: str) -> None:
        """Raise RequestRefusedError (429) where `user` asked too many questions lately."""
        with self._lock:
            self._questions.check(user)
            self._questions.count(user)

    def hold(self, user: str, threads: int) -> Callable[[], None]:
        """Count a request that holds one of `threads`, and return a function that releases it.
        Raises RequestRefusedError (429) where `user` holds too many, or all users nearly all."""
        most = max(threads // 4, min(threads - 1, 16))
        with self._lock:
            every = self._answered.total()
            if self._answered[user] >= most or every >= threads - max(1, threads // 8):
                raise RequestRefusedError(429, "Too many answers at once: wait until one is done.")
            self._answered[user] += 1

        def release() -> None:
            with self._lock:
                self._answered[user] -= 1

        return release


def check_settings(settings: Settings) -> None:
    """Raise SettingsError when others could reach the page and nothing says who they are."""
    if settings.auth and settings.tokens:
        raise SettingsError("CODEQA_AUTH and CODEQA_TOKEN are both set.", "Unset one of them.")
    if settings.token.get_secret_value() and not settings.tokens:
        raise SettingsError(
            "CODEQA_TOKEN holds commas but no token.", "Set one token, or several between commas."
        )
    if not (is_loopback(settings.host) or settings.tokens or settings.auth):
        raise SettingsError(
            f"The page is not served on {settings.host} without a token.",
            "Set CODEQA_TOKEN, or leave CODEQA_HOST at 127.0.0.1.",
        )
    if settings.web_workers > 1 and not settings.redis_url:
        advice = "Set REDIS_URL, or serve with one process: it has a thread for each reader."
        raise SettingsError("Several processes need Redis to share their answers.", advice)


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


# The checks as closures over the gate, in the order in which they apply.
def guard(app: Flask, settings: Settings) -> None:
    """Put the checks before every view and the headers on every response."""
    allowance: AllowanceFactory = Allowance
    if redis := open_redis(settings):  # all processes that share it count together
        allowance = partial(load_extension("allowance"), redis)
    gate = Gate(settings.tokens, allowance)
    authenticate: Authenticate = gate.member
    if settings.auth:
        authenticate = load_extension("proxy")(settings).member
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

    @app.before_request
    def check() -> BaseResponse | None:
        _check_host(settings, gate)
        named = gate.closed or settings.auth
        if not named and request.remote_addr and not is_loopback(request.remote_addr):
            raise RequestRefusedError(403, "Set CODEQA_TOKEN to let other machines in.")
        if request.method not in SAFE_METHODS or request.path.startswith(GUARDED_PATHS):
            _check_origin()
        if is_loopback(request.remote_addr or "") and _bears(app.config[TERMINAL_TOKEN]):
            g.member = TERMINAL
        elif request.path == METRICS_PATH and _bears(settings.metrics_token.get_secret_value()):
            g.member = SCRAPER
        elif not (named and request.path.startswith(OPEN_PATHS)):
            member = authenticate()
            if member is None and _wants_page():
                return redirect("/login")
            if member is None:
                raise RequestRefusedError(401)
            g.member = member
            if not request.path.startswith(OPEN_PATHS):
                g.release = gate.hold(member.user, settings.threads)
            if _asks():
                count_request()
        return None

    @app.after_request
    def protect(response: Response) -> Response:
        if release := g.pop("release", None):
            response.call_on_close(release) if response.is_streamed else release()
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        if access_log and "member" in g and _asks((*ASKING_PATHS, "/api/search")):
            access_log.note(response.status_code)
        return response


def member_of_request() -> Member:
    """Return who sent this request, as the checks before every view noted."""
    return cast(Member, g.member)


def require_owner(may: str) -> None:
    """Raise RequestRefusedError (403) for a request of somebody else than the server's owner."""
    if not (member := member_of_request()).owner:
        who = "owners of access.toml" if member.sees else "first token in CODEQA_TOKEN"
        raise RequestRefusedError(403, f"Only the {who} may {may}.")


def _check_host(settings: Settings, gate: Gate) -> None:
    """Refuse host names that are not ours: a page elsewhere may have its own name resolve to us.

    Bound to every address, the server cannot know its names: then the token, which is
    required there and whose cookie belongs to one name, keeps such pages out.
    """
    if settings.host in EVERY_ADDRESS and gate.closed:
        return
    try:
        name = (urlsplit(f"//{request.host}").hostname or "").lower()
    except ValueError:
        name = ""
    if settings.auth and ip_address(name):
        return  # which no page elsewhere has for a name
    served = {one.strip().lower() for one in settings.auth_host.split(",") if one.strip()}
    if name not in LOOPBACK_NAMES | served | {settings.host.strip("[]").lower()}:
        raise RequestRefusedError(421, "Set CODEQA_AUTH_HOST to it." if settings.auth else "")


def _check_origin() -> None:
    """Refuse requests of foreign pages. Only browsers say where one comes from."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        raise RequestRefusedError(403)
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower().partition("://")[2] != request.host.lower():
        raise RequestRefusedError(403)


def _wants_page() -> bool:
    """Whether a browser asks for a page to show."""
    page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    return page and not _bearer()


def _asks(paths: tuple[str, ...] = ASKING_PATHS) -> bool:
    return request.method == "POST" and (request.path == "/" or request.path.startswith(paths))


def count_request() -> None:
    """Count this request among those that ask a model. Raises RequestRefusedError (429)."""
    if (member := member_of_request()) not in (LOCAL, TERMINAL):
        current_app.extensions["codeqa_gate"].count_question(member.user)


def _bears(token: str) -> bool:
    """Whether the request brings `token`, which is none where it is empty."""
    return bool(token) and hmac.compare_digest(_bearer().encode(), token.encode())


def _bearer() -> str:
    """Return the request's bearer token, '' for none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _find(key: str, members: Mapping[str, Member]) -> Member | None:
    """Return the member with `key`. All are compared, so that the time tells nothing."""
    match = None
    for other, member in members.items():
        if hmac.compare_digest(key.encode(), other.encode()):
            match = member
    return match


def token_digest(token: str) -> str:
    """Return what tells `token` from others, without saying it."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
