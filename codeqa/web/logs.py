"""The log of a server, for people to read or, as lines of JSON, for programs.

It holds no question, no code, no key and no name: a request is told by its rule and a number of its
own, a user by a digest that only this server can make.
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
"""Loggers of libraries whose words for developers quote what is sent."""
SELDOM_READ = ("/static/", "/health", "/ready", "/metrics")
"""Requests that programs send all the time, and are logged as `debug`."""

log = logging.getLogger("codeqa.requests")


def start_log(settings: Settings) -> None:
    """Write to stderr what the settings say, in their form."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(levelname)s %(name)s: %(message)s")
    handler.setFormatter(load_extension("json_lines")() if settings.log_format == "json" else plain)
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.root.level))


def log_requests(app: Flask) -> None:
    """Give each request an id, its own `X-Request-Id` where that is one, and log its end."""

    @app.before_request
    def begin() -> None:
        given = request.headers.get(REQUEST_ID, "")
        g.request_id = given if re.fullmatch(r"[\w.:-]{8,64}", given, re.A) else uuid.uuid4().hex
        g.began = time.perf_counter()

    @app.after_request
    def end(response: Response) -> Response:
        response.headers[REQUEST_ID] = g.request_id
        rule, began = str(request.url_rule or "no address"), g.began
        values = {**who(), "method": request.method, "rule": rule, "status": response.status_code}
        level = logging.DEBUG if request.path.startswith(SELDOM_READ) else logging.INFO

        def ended() -> None:  # of a stream its last line
            took = round(1000 * (time.perf_counter() - began))
            line = f"{values['method']} {rule} {values['status']} in {took} ms"
            log.log(level, line, extra={"fields": {**values, "milliseconds": took}})

        response.call_on_close(ended)
        return response


def who() -> dict[str, Any]:
    """The id of this request and, where somebody is known by now, a digest of who."""
    told = {"request": g.get("request_id", "")}
    if member := g.get("member"):
        key = repr(current_app.secret_key).encode()
        told["user"] = hmac.new(key, member.user.encode(), "sha256").hexdigest()[:16]
    return told
