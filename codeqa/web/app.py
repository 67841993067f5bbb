"""The Flask application, its HTML pages and its server, waitress, which shuts down cleanly."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

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
from codeqa.store.location import short_id
from codeqa.web import (
    code_api,
    conversations_api,
    endpoints,
    models_api,
    openai_api,
    questions_api,
    repositories_api,
)
from codeqa.web.ai_sdk import EVENT_HEADERS, EVENTS
from codeqa.web.assets import SHEETS, address_of, mermaid, send_asset, sent
from codeqa.web.errors import RequestRefusedError, handle_errors
from codeqa.web.logs import log_requests
from codeqa.web.run import Runs
from codeqa.web.security import (
    BODY_BYTES,
    FRAME_POLICY,
    METRICS_PATH,
    SCRAPER,
    Gate,
    check_settings,
    count_request,
    current_user,
    guard,
    require_owner,
)
from codeqa.web.workspace import Workspace, reader_gone, workspace

SESSION_DAYS = 30
MCP_SESSION = "Mcp-Session-Id"
"""Header by which an agent is known again, for the numbers of its calls are its own."""
LONGEST_BODY = 16 * BODY_BYTES
"""Waitress hangs up on longer bodies; up to this length one that is too long gets a clear 413."""
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
"""Pages are not part of the API, so /openapi.json leaves them out."""
pages.add_url_rule("/static/all/<name>", "asset_file", send_asset)


def create_app(
    settings: Settings | None = None, repository: Path | None = None, engine: Engine | None = None
) -> Flask:
    """Return the application; it opens nothing before the first request.

    Without arguments, as a WSGI server calls it, the settings come from the environment and the
    repository is the last one used. Raises SettingsError when the settings would let other people
    in without a token.
    """
    settings = settings or load_settings(repository)
    check_settings(settings)
    # A wheel carries templates and scripts inside this package, a checkout at its top level.
    assets = PACKAGE if (PACKAGE / "templates").is_dir() else PACKAGE.parent.parent
    app = Flask("codeqa.web", template_folder=assets / "templates", static_folder=assets / "static")
    app.config["PERMANENT_SESSION_LIFETIME"] = timedelta(days=SESSION_DAYS)
    app.extensions["codeqa"] = Workspace(settings, repository, engine)
    app.jinja_env.globals.update(asset=address_of, mermaid=mermaid, sheets=SHEETS)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    if settings.metrics:
        metrics.start(settings.web_workers)
    handle_errors(app)
    log_requests(app)  # before the checks, so that refused requests are logged as well
    guard(app, settings)
    for module in API:
        app.register_blueprint(module.endpoints)
    app.register_blueprint(pages)
    app.extensions["codeqa_calls"] = WeakValueDictionary()
    return app


@pages.get("/static/diagram")
def diagram() -> BaseResponse:
    """Return the frame in which the page has diagrams drawn."""
    return make_response(render_template("diagram.html"), {"Content-Security-Policy": FRAME_POLICY})


@pages.get("/")
def conversation() -> BaseResponse | str:
    """Return the page for asking questions, or the choice of a repository if none is open."""
    space, repo = workspace(), request.args.get("repo", "")
    usual = space.usual()
    if not repo and not usual:
        return redirect("/repositories")
    # The repository of this browser's last visit, unless the server now starts with another one.
    usual_then, last_visited = session.get("repository", ("", ""))
    resumed = last_visited if not repo and usual and usual.id == usual_then else ""
    try:
        engine = space.engine(repo or resumed)
    except CodeQAError as error:
        if not resumed:
            return picker(problem=str(error))
        engine = space.engine()
    session["repository"] = (usual.id if usual else "", engine.location.id)
    location, together = engine.location, len(engine.repositories)
    chosen = {location.id for location in engine.repositories}
    repositories = [
        {"name": name, "path": choice.root, "id": choice.id, "end": short_id(choice.id)}
        | {"chosen": choice.id in chosen}
        for name, choice in member_names(space.visible()).items()
    ]
    path = location.remote[0] or str(location.root)
    path = f"{together} asked together" if together > 1 else path
    conversations = None
    with suppress(CodeQAError):  # then the page asks for the list itself and shows the error
        conversations = conversations_api.conversations(engine, current_user().id)
    page = render_template(
        "chat.html", repo=location.id, listed=conversations, name=location.name, path=path,
        repositories=repositories, together=together, state=engine.index.state(),
        version=__version__, embedding=space.settings.embedding,
    )  # fmt: skip
    # For another site it is not compressed: the page repeats its address, so that its compressed
    # length would let that site guess the rest.
    from_own_page = request.headers.get("Sec-Fetch-Site") in ("same-origin", "none")
    return sent(gzip.compress(page.encode(), 4), "text/html") if from_own_page else page


@pages.get("/repositories")
def picker(problem: str = "") -> str:
    """Return the page with the indexed repositories and a field to add another one."""
    embedding = workspace().settings.embedding
    return render_template("picker.html", problem=problem, embedding=embedding)


@pages.post("/mcp")
def model_context_protocol() -> Any:
    """Return the reply to an agent's message in the Model Context Protocol: see docs/mcp.md."""
    engine = g.engine = workspace().engine(request.args.get("repo", ""))
    if not request.is_json:
        raise RequestRefusedError(415)
    message = mcp.read(request.get_data())
    for _ in message[1:] if isinstance(message, list) else ():
        count_request()  # the first is counted as every request is
    paths = ", ".join(str(location.root) for location in engine.repositories)
    gone, stopped = reader_gone(), _stopped(message)
    asking = replace(engine, cancelled=lambda: gone() or stopped.is_set())
    reply = partial(mcp.answer, message, paths, lambda: asking)
    headers = {MCP_SESSION: request.headers.get(MCP_SESSION, secrets.token_hex(16))}
    takes_events = EVENTS in request.headers.get("Accept", "")
    if mcp.progress_token(message) is None or not takes_events:
        status = 400 if message is mcp.UNREADABLE else 200
        return (result, status, headers) if (result := reply()) else ("", 202)
    lines = (f"data: {json.dumps(part)}\n\n" for part in mcp.with_progress(message, reply))
    return Response(lines, headers=EVENT_HEADERS)


def _stopped(message: Any) -> threading.Event:
    """Return what says that a call is no longer wanted; set that of one that `message` cancels."""
    calls: WeakValueDictionary[Any, threading.Event] = current_app.extensions["codeqa_calls"]
    about = message if isinstance(message, dict) else {}
    is_cancelling = about.get("method") == "notifications/cancelled"
    id_ = mcp.parameters(message).get("requestId") if is_cancelling else about.get("id")
    agent, stopped = request.headers.get(MCP_SESSION), threading.Event()
    if agent:  # else the numbers of two agents could be the same
        stopped = calls.setdefault((current_user().id, agent, json.dumps(id_)), stopped)
    if is_cancelling:
        stopped.set()
    return stopped


@pages.get(METRICS_PATH)
def measured() -> BaseResponse:
    """Return the metrics for Prometheus."""
    if current_user() is not SCRAPER:
        require_owner("read the metrics")
    started = metrics.started()
    if not started or not workspace().settings.metrics:
        raise RequestRefusedError(404, "Metrics are off. Set CODEQA_METRICS=on to collect them.")
    return Response(started.as_text(), mimetype="text/plain")


@pages.route("/login", methods=["GET", "POST"])
def login() -> BaseResponse:
    """Return the sign-in page, or sign the user in with the form's `token` for this session."""
    gate = cast(Gate, current_app.extensions["codeqa_gate"])
    if not gate.closed:
        return redirect("/")
    if request.method == "GET":
        return sign_in("", 200)
    try:
        user = gate.admit(request.form.get("token", ""), request.remote_addr or "")
    except CodeQAError as error:
        return sign_in(str(error), error.http_status)
    if user is None:
        return sign_in("This token is wrong.", 401)
    session.clear()
    session["mark"] = user.mark
    session.permanent = True
    return redirect("/")


def sign_in(problem: str, status: int) -> BaseResponse:
    """Return the page that asks for the token.

    Under `no-referrer` browsers send forms with the origin `null`, which looks the same as that of
    a foreign page; with this policy our own form names its origin.
    """
    response = make_response(render_template("login.html", problem=problem), status)
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def serve(app: Flask, settings: Settings, listener: socket.socket) -> None:
    """Serve `app` on `listener` until the process is interrupted or terminated.

    The first SIGTERM waits for running answers to end, a second one does not.
    """
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
        # Streams end when they see this, so that waitress has nothing to wait for.
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
    """Return a waitress server on a bound socket.

    A request has to arrive within `seconds`, and an address may keep `waiting` idle connections.
    """
    from waitress.adjustments import Adjustments

    from codeqa.web.connections import AT_ONCE, CONNECTIONS, GuardedServer, Threads

    adjustments = Adjustments(
        connection_limit=CONNECTIONS + 2 * AT_ONCE,
        channel_timeout=seconds,
        cleanup_interval=1,
        # By reading ahead waitress notices that the reader of a stream has left.
        channel_request_lookahead=1,
        max_request_body_size=LONGEST_BODY,
        asyncore_use_poll=True,
        clear_untrusted_proxy_headers=True,
        ident="",
    )
    at = (listener.family, listener.type, listener.proto, listener.getsockname())
    server = GuardedServer(
        app, _sock=listener, dispatcher=Threads(settings.threads), adj=adjustments, sockinfo=at,
        bind_socket=False,
    )  # fmt: skip
    server.waiting = waiting
    return server


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to `host` and `port`. Raises OSError when the port is taken."""
    both = host == "::" and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Listen at once: a socket that is only bound would not keep others off the port.
    listener = socket.create_server((host, port), family=family, dualstack_ipv6=both)
    listener.setblocking(False)
    return listener
