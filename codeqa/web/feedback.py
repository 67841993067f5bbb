"""What a user thinks of an answer: a thumb, and after a thumb down why."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from codeqa.web import schemas
from codeqa.web.openapi import ENGINE, described
from codeqa.web.requests import engine_of_request, read_body
from codeqa.web.users import member_of_request

blueprint = Blueprint("feedback", __name__)


@blueprint.post("/api/turns/<turn>/feedback")
@described(
    "Conversations",
    schemas.ThumbKept,
    body=schemas.ThumbBody,
    query=schemas.RepoQuery,
    errors=ENGINE,
)
def feedback(turn: str) -> Response:
    """Give an answer of this user `value` 1 or -1, with a `reason`; 0 takes both back."""
    given = read_body(schemas.ThumbBody)
    kept = engine_of_request().chat.rate(
        turn, given.value, given.reason or "", member_of_request().user
    )
    return jsonify({"turn": turn, "value": given.value, "reason": kept})
