"""What a user thinks of an answer: a thumb, and after a thumb down why."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify

from codeqa.errors import UsageError
from codeqa.web.requests import engine_of_request, json_body, text_field
from codeqa.web.users import member_of_request

blueprint = Blueprint("feedback", __name__)


@blueprint.post("/api/turns/<turn>/feedback")
def feedback(turn: str) -> Response:
    """Give an answer of this user `value` 1 or -1, with a `reason`; 0 takes both back."""
    body = json_body()
    value = _value(body.get("value"))
    reason = text_field(body, "reason", required=False)
    kept = engine_of_request().chat.rate(turn, value, reason, member_of_request().user)
    return jsonify({"turn": turn, "value": value, "reason": kept})


def _value(given: Any) -> int:
    if type(given) is not int:  # `true` would count as 1, 1.0 as well
        raise UsageError("`value` is missing or is no thumb.", "Send 1, -1, or 0 for none.")
    return given
