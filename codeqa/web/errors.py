"""Every failure as one JSON shape: `{"error": {"code", "message", "hint"}}`."""

from __future__ import annotations

import logging

from flask import Flask, Response, jsonify
from werkzeug.exceptions import HTTPException

from codeqa.errors import CodeQAError, places_of

log = logging.getLogger(__name__)

HINTS = {
    400: ("bad_request", "The request cannot be read.", "Send JSON as the README describes."),
    401: ("sign_in", "This page needs its token.", "Sign in, or send it as a bearer token."),
    403: ("forbidden", "The request was refused.", "Open the page under its own address."),
    404: ("not_found", "There is nothing at this address.", "Go back to the first page."),
    405: ("method", "This address does not take that method.", "The README lists the addresses."),
    413: ("too_large", "The request is too large.", "Send less text."),
    415: ("media_type", "The request is not JSON.", "Send it as application/json."),
    421: ("host", "The server does not answer to this host name.", "Use its own address."),
    429: ("too_many", "There were too many wrong tokens.", "Wait half a minute."),
    500: ("internal", "The server failed.", "Its log says why; try again."),
}


class RequestRefusedError(CodeQAError):
    """A request that the server does not serve, by HTTP status."""

    def __init__(self, status: int, hint: str = "") -> None:
        code, message, usual = HINTS[status]
        super().__init__(message, hint or usual)
        self.code = code
        self.http_status = status


def error_response(status: int, code: str, message: str, hint: str = "") -> Response:
    """The one shape."""
    response = jsonify({"error": {"code": code, "message": message, "hint": hint}})
    response.status_code = status
    return response


def register(app: Flask) -> None:
    """Turn everything that views raise into that shape; no traceback leaves the server."""

    @app.errorhandler(CodeQAError)
    def explained(error: CodeQAError) -> Response:
        return error_response(error.http_status, error.code, error.message, error.hint)

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
