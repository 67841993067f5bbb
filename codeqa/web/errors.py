"""Send every error as JSON in one shape: `{"error": {"code", "message", "hint"}}`.

Addresses below /v1, which other programs use like OpenAI's API, use the shape of that API instead.
"""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from codeqa.errors import CodeQAError, ContextLengthError, places_of

log = logging.getLogger(__name__)

HINTS = {
    400: ("bad_request", "The request cannot be read.", "Send JSON as docs/api.md describes."),
    401: ("sign_in", "You are not signed in.", "Sign in, or send a token as a bearer token."),
    403: ("forbidden", "The request was refused.", "Open the page at its own address."),
    404: ("not_found", "There is nothing at this address.", "Go back to the first page."),
    405: ("method", "This address does not accept that method.", "See docs/api.md."),
    409: ("busy", "This conversation is still being answered.", "Wait for the answer, or stop it."),
    413: ("too_large", "The request is too large.", "Send less text."),
    415: ("media_type", "The request is not JSON.", "Send it as application/json."),
    421: ("host", "The server does not answer to this host name.", "Use its own address."),
    429: ("too_many", "There were too many requests.", "Wait a minute, then try again."),
    500: ("internal", "The server failed.", "Try again. The reason is in the server's log."),
    503: ("not_ready", "The server cannot answer now.", "Try again in a moment."),
}
API = "/v1/"
ADDRESSES = "CodeQA has /v1/models and /v1/chat/completions."


class RequestRefusedError(CodeQAError):
    """A request that the server refuses, by HTTP status."""

    def __init__(self, status: int, hint: str = "") -> None:
        self.code, message, default_hint = HINTS.get(status, HINTS[400])
        super().__init__(message, hint or default_hint)
        self.http_status = status


def explained(error: Exception) -> CodeQAError:
    """Return `error` as one that users may see; log where an unexpected one was raised."""
    if isinstance(error, CodeQAError):
        return error
    if isinstance(error, HTTPException):
        return RequestRefusedError(error.code or 500)
    log.error("a request failed: %s", places_of(error))
    return RequestRefusedError(500)


def api_failure(error: CodeQAError) -> tuple[dict[str, Any], int]:
    """Return an error in the shape of OpenAI's API, and its HTTP status there."""
    status, code = error.http_status, error.code
    if isinstance(error, ContextLengthError):  # clients react by sending less
        status, code = 400, "context_length_exceeded"
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": code}}, status


def handle_errors(app: Flask) -> None:
    """Send every exception of a view as JSON; no traceback leaves the server."""

    @app.errorhandler(Exception)
    def failed(raised: Exception) -> ResponseReturnValue:
        error, headers = explained(raised), {}
        if isinstance(raised, MethodNotAllowed) and raised.valid_methods:
            headers["Allow"] = ", ".join(raised.valid_methods)
        if error.http_status == 503:
            headers["Retry-After"] = "5"
        if not f"{request.path}/".startswith(API):
            return jsonify({"error": error.as_data()}), error.http_status, headers
        if isinstance(raised, NotFound | MethodNotAllowed):
            error.hint = ADDRESSES
        failure, status = api_failure(error)
        # Clients of that API try three times on their own, which would make three whole answers.
        may_succeed_later = error.http_status in (429, 503)
        headers["x-should-retry"] = str(may_succeed_later).lower()
        return jsonify(failure), status, headers
