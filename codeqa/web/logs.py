"""The log of a server: text for people, or lines of JSON for programs.

It contains no question, code, key or name. A request is logged with its URL rule and an id, a user
with a digest that only this server can make.
"""

from __future__ import annotations

import hmac
import logging
import re
import time
import uuid
from typing import Any

from flask import Flask, Response, current_app, g, request

from codeqa.extensions import load_extension
from codeqa.settings import Settings

REQUEST_ID = "X-Request-Id"
TALKATIVE = ("openai", "httpx", "httpcore", "urllib3", "botocore", "markdown_it")
"""Loggers of libraries whose debug messages quote what is sent."""
SELDOM_READ = ("/static/", "/health", "/ready", "/metrics")
"""Requests that programs send all the time; they are logged at `debug`."""

log = logging.getLogger("codeqa.requests")


def start_log(settings: Settings) -> None:
    """Log to stderr at the level and in the form that the settings choose."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(levelname)s %(name)s: %(message)s")
    handler.setFormatter(load_extension("json_lines")() if settings.log_format == "json" else plain)
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.root.level))


def log_requests(app: Flask) -> None:
    """Give each request an id, taken from a valid `X-Request-Id` header, and log its end."""

    @app.before_request
    def begin() -> None:
        header = request.headers.get(REQUEST_ID, "")
        g.request_id = header if re.fullmatch(r"[\w.:-]{8,64}", header, re.A) else uuid.uuid4().hex
        g.began = time.perf_counter()

    @app.after_request
    def end(response: Response) -> Response:
        response.headers[REQUEST_ID] = g.request_id
        rule, began = str(request.url_rule or "no address"), g.began
        values = request_fields()
        values |= {"method": request.method, "rule": rule, "status": response.status_code}
        level = logging.DEBUG if request.path.startswith(SELDOM_READ) else logging.INFO

        def ended() -> None:  # when the last line of a stream is sent
            took = round(1000 * (time.perf_counter() - began))
            line = f"{values['method']} {rule} {values['status']} in {took} ms"
            log.log(level, line, extra={"fields": {**values, "milliseconds": took}})

        response.call_on_close(ended)
        return response


def request_fields() -> dict[str, Any]:
    """Return the id of this request and, if the user is known, a digest of their id."""
    fields = {"request": g.get("request_id", "")}
    if user := g.get("user"):
        key = repr(current_app.secret_key).encode()
        fields["user"] = hmac.new(key, user.id.encode(), "sha256").hexdigest()[:16]
    return fields
