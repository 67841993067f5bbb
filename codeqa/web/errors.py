"""Every failure as one JSON shape: `{"error": {"code", "message", "hint"}}`.

Below /v1, which other programs use as they use OpenAI's API, it is that API's shape instead.
"""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from codeqa.errors import CodeQAError, ContextLengthError, UsageError, places_of

log = logging.getLogger(__name__)

HINTS = {
    400: ("bad_request", "The request cannot be read.", "Send JSON as docs/api.md describes."),
    401: ("sign_in", "This page needs its token.", "Sign in, or send it as a bearer token."),
    403: ("forbidden", "The request was refused.", "Open the page under its own address."),
    404: ("not_found", "There is nothing at this address.", "Go back to the first page."),
    405: ("method", "This address does not take that method.", "docs/api.md lists the addresses."),
    409: ("busy", "A question is being answered in this conversation.", "Wait for it, or stop it."),
    413: ("too_large", "The request is too large.", "Send less text."),
    415: ("media_type", "The request is not JSON.", "Send it as application/json."),
    421: ("host", "The server does not answer to this host name.", "Use its own address."),
    429: ("too_many", "There were too many requests.", "Wait a minute."),
    500: ("internal", "The server failed.", "Its log says why; try again."),
    503: ("not_ready", "The server cannot answer now.", "Try again in a moment."),
}
API = "/v1/"
API_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
API_CODES = {"sign_in": "invalid_api_key", "usage": "invalid_value",
             "context_length": "context_length_exceeded"}  # fmt: skip
LATER = (429, 503)
"""Statuses after which the same request may do better."""


class RequestRefusedError(CodeQAError):
    """A request that the server does not serve now or at all, by HTTP status."""

    def __init__(self, status: int, hint: str = "") -> None:
        self.code, message, usual = HINTS.get(status, HINTS[400])
        super().__init__(message, hint or usual)
        self.http_status = status


class FieldError(UsageError):
    """A field of a request that is missing or cannot be used; `param` is its name."""

    def __init__(self, param: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.param = param


def explained(error: Exception) -> CodeQAError:
    """`error` as one that can be told; of an unexpected one the log says where it was raised."""
    if isinstance(error, CodeQAError):
        return error
    if isinstance(error, HTTPException):
        return RequestRefusedError(error.code or 500)
    log.error("a request failed: %s", places_of(error))
    return RequestRefusedError(500)


def api_failure(error: CodeQAError) -> tuple[dict[str, Any], int]:
    """A failure in the shape of OpenAI's API, and its status there."""
    too_long = isinstance(error, ContextLengthError)
    status = 400 if too_long else error.http_status  # at 400 its clients shorten what they send
    usual = "invalid_request_error" if status < 500 else "server_error"
    told = {
        "message": str(error),
        "type": API_TYPES.get(status, usual),
        "param": getattr(error, "param", "messages" if too_long else None),
        "code": API_CODES.get(error.code, error.code),
    }
    return {"error": told}, status


def handle_errors(app: Flask) -> None:
    """Turn everything that views raise into the shape of its address; no traceback leaves the
    server."""

    @app.errorhandler(Exception)
    def failed(error: Exception) -> Response:
        told = explained(error)
        failure: dict[str, Any] = {"error": told.as_data()}
        status, of_api = told.http_status, request.path.startswith(API)
        if of_api:
            failure, status = api_failure(told)
        response = jsonify(failure)
        response.status_code = status
        if of_api:
            # Clients of that API try three times by themselves, and each would be a whole answer.
            response.headers["x-should-retry"] = "true" if told.http_status in LATER else "false"
        if isinstance(error, MethodNotAllowed):
            response.headers["Allow"] = ", ".join(error.valid_methods or ())
        return response
