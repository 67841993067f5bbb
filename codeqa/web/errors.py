"""Every failure as one JSON shape: `{"error": {"code", "message", "hint"}}`.

Below /v1, which other programs use as they use OpenAI's API, it is that API's shape instead.
"""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from codeqa.errors import CodeQAError, UsageError, places_of

log = logging.getLogger(__name__)

HINTS = {
    400: ("bad_request", "The request cannot be read.", "Send JSON as docs/api.md describes."),
    401: ("sign_in", "This page needs its token.", "Sign in, or send it as a bearer token."),
    403: ("forbidden", "The request was refused.", "Open the page under its own address."),
    404: ("not_found", "There is nothing at this address.", "Go back to the first page."),
    405: ("method", "This address does not take that method.", "docs/api.md lists the addresses."),
    413: ("too_large", "The request is too large.", "Send less text."),
    415: ("media_type", "The request is not JSON.", "Send it as application/json."),
    421: ("host", "The server does not answer to this host name.", "Use its own address."),
    429: ("too_many", "There were too many wrong tokens.", "Wait half a minute."),
    500: ("internal", "The server failed.", "Its log says why; try again."),
    503: ("not_ready", "The server cannot answer now.", "Try again in a moment."),
}
API = "/v1/"
API_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
API_CODES = {
    "sign_in": "invalid_api_key",
    "usage": "invalid_value",
    "context_length": "context_length_exceeded",
}
LATER = (429, 503)
"""Statuses after which the same request may do better."""


class RequestRefusedError(CodeQAError):
    """A request that the server does not serve now or at all, by HTTP status."""

    def __init__(self, status: int, hint: str = "") -> None:
        code, message, usual = HINTS[status]
        super().__init__(message, hint or usual)
        self.code = code
        self.http_status = status


class FieldError(UsageError):
    """A field of a request that is missing or cannot be used; `param` is its name."""

    def __init__(self, param: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.param = param


def error_response(
    status: int, code: str, message: str, hint: str = "", param: str = ""
) -> Response:
    """A failure in the shape of the address that was asked for.

    `param` names what of the request is at fault, which only OpenAI's shape tells.
    """
    if not request.path.startswith(API):
        response = jsonify({"error": {"code": code, "message": message, "hint": hint}})
    else:
        response = jsonify(api_error(status, code, f"{message} {hint}".strip(), param))
        # Clients of that API try three times by themselves, and each would be a whole answer.
        response.headers["x-should-retry"] = "true" if status in LATER else "false"
    response.status_code = status
    return response


def api_error(status: int, code: str, message: str, param: str = "") -> dict[str, Any]:
    """A failure in the shape of OpenAI's API."""
    usual = "invalid_request_error" if status < 500 else "server_error"
    return {
        "error": {
            "message": message,
            "type": API_TYPES.get(status, usual),
            "param": param or None,
            "code": API_CODES.get(code, code),
        }
    }


def handle_errors(app: Flask) -> None:
    """Turn everything that views raise into that shape; no traceback leaves the server."""

    @app.errorhandler(CodeQAError)
    def explained(error: CodeQAError) -> Response:
        param = str(getattr(error, "param", ""))
        return error_response(error.http_status, error.code, error.message, error.hint, param)

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        status = error.code or 500
        code, message, hint = HINTS.get(
            status, (error.name.lower().replace(" ", "_"), f"{error.name}.", "")
        )
        response = error_response(status, code, message, hint)
        for name, value in error.get_headers():
            if name.lower() in ("allow", "location", "retry-after"):
                response.headers[name] = value
        return response

    @app.errorhandler(Exception)
    def unexpected(error: Exception) -> Response:
        log.error("a request failed: %s", places_of(error))
        code, message, hint = HINTS[500]
        return error_response(500, code, message, hint)
