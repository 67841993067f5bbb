"""The application: its addresses, its HTML pages (the conversation, the picker of repositories, the
sign-in), and waitress, which serves it to a clean end."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
    session,
)
from werkzeug.wrappers import Response as BaseResponse

from codeqa import __version__, mcp, metrics
from codeqa.engine import Engine
from codeqa.errors import CodeQAError
from codeqa.repositories.multi_repo import member_names
from codeqa.settings import Settings, load_settings
from codeqa.store.location import end_of
from codeqa.web import (
    code_api,
    conversations_api,
    endpoints,
    models_api,
    openai_api,
    questions_api,
    repositories_api,
)
from codeqa.web.assets import SHEETS, address_of, send_asset, sent
from codeqa.web.endpoints import json_body
from codeqa.web.errors import RequestRefusedError, handle_errors
from codeqa.web.logs import log_requests
from codeqa.web.run import Runs
from codeqa.web.security import (
    BODY_BYTES,
    METRICS_PATH,
    SCRAPER,
    Gate,
    check_settings,
    guard,
    member_of_request,
    require_owner,
)
from codeqa.web.workspace import Workspace, workspace

SESSION_DAYS = 30
LONGEST_BODY = 16 * BODY_BYTES
"""Where waitress itself hangs up; below that a body that is too long gets an explained 413."""
PACKAGE = Path(__file__).resolve().parent
API = (
    questions_api,
    conversations_api,
    models_api,
    repositories_api,
    code_api,
    openai_api,
    endpoints,
)

pages = Blueprint("pages", __name__)
"""No part of the API, so that they are not described as it is."""
pages.add_url_rule("/static/all/<name>", "asset_file", send_asset)


def create_app(
    settings: Settings | None = None, repository: Path | None = None, engine: Engine | None = None
) -> Flask:
    """Make the application; nothing is opened until the first request.

    Without arguments, as a WSGI server calls it, settings come from the environment and the
    repository is the last one used. Raises SettingsError where others would be let in without a
    token.
    """
    settings = settings or load_settings(repository)
    check_settings(settings)
    # A wheel carries templates and scripts inside this package, a checkout at its top level.
    assets = PACKAGE if (PACKAGE / "templates").is_dir() else PACKAGE.parent.parent
    app = Flask("codeqa.web", template_folder=assets / "templates", static_folder=assets / "static")
    app.config["PERMANENT_SESSION_LIFETIME"] = timedelta(days=SESSION_DAYS)
    app.extensions["codeqa"] = Workspace(settings, repository, engine)
    app.jinja_env.globals.update(asset=address_of, sheets=SHEETS)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    if settings.metrics:
        metrics.start(settings.web_workers)
    handle_errors(app)
    log_requests(app)  # before the checks, so that what they refuse is logged as well
    guard(app, settings)
    for blueprint in (*(module.endpoints for module in API), pages):
        app.register_blueprint(blueprint)
    return app


@pages.get("/")
def conversation() -> BaseResponse | str:
    """The page in which questions are asked; without a repository, the picker."""
    space, repo = workspace(), request.args.get("repo", "")
    usual = space.usual()
    # Where this browser was last, unless the server has been started with another one since.
    before, last = session.get("repository", ("", ""))
    again = last if not repo and usual and usual.id == before else ""
    if not repo and not usual:
        return redirect("/repositories")
    try:
        engine = space.engine(repo or again)
    except CodeQAError as error:
        if not again:
            return picker(problem=str(error))
        engine = space.engine()
    session["repository"] = (usual.id if usual else "", engine.location.id)
    location, together = engine.location, len(engine.repositories)
    chosen = {one.id for one in engine.repositories}
    repositories = [
        {"name": name, "path": one.root, "id": one.id, "end": end_of(one.id)}
        | {"chosen": one.id in chosen}
        for name, one in member_names(space.visible()).items()
    ]
    path = location.remote[0] or str(location.root)
    path = f"{together} asked together" if together > 1 else path
    listed = None
    with suppress(CodeQAError):  # the page asks for it then, and says what fails
        listed = conversations_api.conversations(engine, member_of_request().user)
    page = render_template(
        "chat.html", repo=location.id, listed=listed, name=location.name, path=path,
        repositories=repositories, together=together, state=engine.index.state(),
        version=__version__, embedding=space.settings.embedding,
    )  # fmt: skip
    # Compressed, its length would let another site guess at it by addresses, which it repeats.
    own = request.headers.get("Sec-Fetch-Site") in ("same-origin", "none")
    return sent(gzip.compress(page.encode(), 4), "text/html") if own else page


@pages.get("/repositories")
def picker(problem: str = "") -> str:
    """The list of indexed repositories, and a field to index another one."""
    embedding = workspace().settings.embedding
    return render_template("picker.html", problem=problem, embedding=embedding)


@pages.post("/mcp")
def model_context_protocol() -> Any:
    """The answer to an agent's message, by the Model Context Protocol: see docs/mcp.md."""
    engine = g.engine = workspace().engine(request.args.get("repo", ""))
    named = ", ".join(str(one.root) for one in engine.repositories)
    return mcp.answer(json_body(), named, lambda: engine) or ("", 202)


@pages.get(METRICS_PATH)
def measured() -> BaseResponse:
    """What is measured, for Prometheus."""
    if member_of_request() is not SCRAPER:
        require_owner("read what is measured")
    if not workspace().settings.metrics or not (started := metrics.started()):
        raise RequestRefusedError(404, "Nothing is measured: set CODEQA_METRICS=on.")
    return Response(started.as_text(), mimetype="text/plain")


@pages.route("/login", methods=["GET", "POST"])
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


def serve(app: Flask, settings: Settings, listener: socket.socket) -> None:
    """Serve `app` on `listener` until the process is interrupted or told to end: by SIGTERM once
    what is being written has ended, or at the second one."""
    server = make_server(app, settings, listener)
    runs: Runs = app.extensions["codeqa"].answers

    def drain() -> None:
        runs.drain()
        if not runs.closing.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    def end(signum: int, frame: object) -> None:
        if signum == signal.SIGTERM and not runs.draining.is_set():
            threading.Thread(target=drain, daemon=True).start()
            return
        # Streams end themselves when they see this; waitress then has nothing to wait for.
        runs.closing.set()
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        with suppress(KeyboardInterrupt):
            server.run()
    finally:
        runs.closing.set()
        server.close()


def make_server(
    app: Flask, settings: Settings, listener: socket.socket, seconds: int = 60, waiting: int = 250
) -> Any:
    """A waitress server on a bound socket. A request has to come within `seconds`, and an address
    keeps so many connections `waiting`, without one that is answered."""
    from waitress.adjustments import Adjustments

    from codeqa.web.connections import AT_ONCE, CONNECTIONS, Server, Threads

    adjustments = Adjustments(
        connection_limit=CONNECTIONS + 2 * AT_ONCE,
        channel_timeout=seconds,
        cleanup_interval=1,
        # Reading ahead is how waitress notices that the reader of a stream has left.
        channel_request_lookahead=1,
        max_request_body_size=LONGEST_BODY,
        asyncore_use_poll=True,
        clear_untrusted_proxy_headers=True,
        ident="",
    )
    at = (listener.family, listener.type, listener.proto, listener.getsockname())
    server = Server(
        app, _sock=listener, dispatcher=Threads(settings.threads), adj=adjustments, sockinfo=at,
        bind_socket=False,
    )  # fmt: skip
    server.waiting = waiting
    return server


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to `host` and `port`, taken from now on. Raises OSError."""
    both = host == "::" and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # It listens at once: a bound socket alone would not keep others off the port.
    listener = socket.create_server((host, port), family=family, dualstack_ipv6=both)
    listener.setblocking(False)
    return listener
