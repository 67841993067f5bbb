"""Every failure as one JSON shape: `{"error": {"code", "message", "hint"}}`.

Below /v1, which other programs use as they use OpenAI's API, it is that API's shape instead.
"""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from codeqa.errors import CodeQAError, ContextLengthError, places_of

log = logging.getLogger(__name__)

HINTS = {
    400: ("bad_request", "The request cannot be read.", "Send JSON as docs/api.md describes."),
    401: ("sign_in", "Nobody is signed in.", "Sign in, or send a token as a bearer token."),
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


class RequestRefusedError(CodeQAError):
    """A request that the server does not serve now or at all, by HTTP status."""

    def __init__(self, status: int, hint: str = "") -> None:
        self.code, message, usual = HINTS.get(status, HINTS[400])
        super().__init__(message, hint or usual)
        self.http_status = status


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
    status, code = error.http_status, error.code
    if isinstance(error, ContextLengthError):  # by this its clients shorten what they send
        status, code = 400, "context_length_exceeded"
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": code}}, status


def handle_errors(app: Flask) -> None:
    """Turn everything that views raise into the shape of its address; no traceback leaves the
    server."""

    @app.errorhandler(Exception)
    def failed(error: Exception) -> ResponseReturnValue:
        told = explained(error)
        methods = error.valid_methods or () if isinstance(error, MethodNotAllowed) else ()
        headers = {"Allow": ", ".join(methods)} if methods else {}
        if told.http_status == 503:
            headers["Retry-After"] = "5"
        if not request.path.startswith(API):
            return jsonify({"error": told.as_data()}), told.http_status, headers
        failure, status = api_failure(told)
        # Clients of that API try three times by themselves, and each would be a whole answer.
        later = told.http_status in (429, 503)  # when the same may do better
        return jsonify(failure), status, headers | {"x-should-retry": str(later).lower()}
