"""The HTML pages: the conversation, the picker of repositories, the sign-in."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, current_app, make_response, redirect, render_template, request, session
from werkzeug.wrappers import Response as BaseResponse

from codeqa import __version__
from codeqa.errors import CodeQAError
from codeqa.repositories.multi_repo import end_of, member_names
from codeqa.store import list_locations
from codeqa.web.security import Gate
from codeqa.web.workspace import workspace

blueprint = Blueprint("pages", __name__)
"""No part of the API, so that they are not described as it is."""


@blueprint.get("/")
def conversation() -> BaseResponse | str:
    """The page in which questions are asked; without a repository, the picker."""
    space, repo = workspace(), request.args.get("repo", "")
    if not repo and not space.has_current():
        return redirect("/repositories")
    try:
        engine = space.engine(repo)
    except CodeQAError as error:
        return picker(problem=str(error))
    location, together = engine.location, len(engine.repositories)
    chosen = {one.id for one in engine.repositories}
    repositories = [
        {"name": name, "path": one.root, "id": one.id, "end": end_of(one.id)}
        | {"chosen": one.id in chosen}
        for name, one in member_names(list_locations(space.settings)).items()
    ]
    path = location.remote[0] or str(location.root)
    path = f"{together} repositories asked together" if together > 1 else path
    return render_template(
        "chat.html", repo=location.id, name=location.name, path=path,
        repositories=repositories, together=together,
        version=__version__, embedding=space.settings.embedding,
    )  # fmt: skip


@blueprint.get("/repositories")
def repositories() -> str:
    """The list of indexed repositories, and a field to index another one."""
    return picker()


def picker(problem: str = "") -> str:
    embedding = workspace().settings.embedding
    return render_template("picker.html", problem=problem, embedding=embedding)


@blueprint.route("/login", methods=["GET", "POST"])
def login() -> BaseResponse:
    """Asks for a token, the form's `token`, and remembers in the session that it was given."""
    gate = cast(Gate, current_app.extensions["codeqa_gate"])
    if not gate.closed:
        return redirect("/")
    if request.method == "GET":
        return sign_in("", 200)
    try:
        member = gate.admit(request.form.get("token", ""), request.remote_addr or "")
    except CodeQAError as error:
        return sign_in(str(error), error.http_status)
    if member is None:
        return sign_in("That is not the token.", 401)
    session.clear()
    session["mark"] = member.mark
    session.permanent = True
    return redirect("/")


def sign_in(problem: str, status: int) -> BaseResponse:
    """The form that asks for the token.

    Under `no-referrer` browsers send forms with the origin `null`, which no check can tell
    from a foreign one; this policy lets our own form say where it comes from.
    """
    response = make_response(render_template("login.html", problem=problem), status)
    response.headers["Referrer-Policy"] = "same-origin"
    return response
