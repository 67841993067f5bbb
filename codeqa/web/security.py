"""Who may talk to the server, and what a page of it may do.

Without a token the server answers this machine only, whatever it is bound to. Requests
must name a host that is ours (a foreign name that resolves to us is an attack), and
those that change, tell or cost something must come from our own page or from no page at all.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from urllib.parse import urlsplit

from flask import Flask, Response, g, redirect, request, session
from werkzeug.wrappers import Response as BaseResponse

from codeqa.errors import SettingsError
from codeqa.hosts import LOOPBACK_NAMES, is_loopback
from codeqa.settings import Settings
from codeqa.web.errors import RequestRefusedError
from codeqa.web.users import LOCAL, Gate

BODY_BYTES = 1_000_000
"""Largest request body; a question is at most a few thousand characters."""
SECRET_BYTES = 32
OPEN_PATHS = ("/health", "/login", "/static/")
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
GUARDED_PATHS = ("/api/", "/v1/")
"""Where even reading must come from our own page or from no page at all."""

EVERY_ADDRESS = {"", "0.0.0.0", "::", "*"}

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


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
    if not path.exists():
        # Written beside and linked into place, so that nobody ever reads half a key and two
        # servers that start at once end up with the same one.
        beside = folder / f"secret_key.{os.getpid()}.{threading.get_ident()}"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(SECRET_BYTES))
        try:
            os.link(beside, path)
        except FileExistsError:
            pass
        except OSError:
            beside.replace(path)  # a file system without links
        beside.unlink(missing_ok=True)
    key = path.read_bytes()
    if len(key) < SECRET_BYTES:
        path.unlink()
        return secret_key(folder)
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
        if gate.closed:
            return _check_token(gate)
        g.member = LOCAL
        return None

    @app.after_request
    def protect(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


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
    if origin is not None and _netloc(origin) != request.host.lower():
        raise RequestRefusedError(403)


def _netloc(address: str) -> str | None:
    """Host and port of an address, None when it is none."""
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return None


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
    g.member = member
    return None
