"""`codeqa serve`: the page, its port and address, the first index, and access for the terminal."""

from __future__ import annotations

import errno
import gc
import logging
import resource
import socket
import sys
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import click
from flask import Flask

from codeqa.cli.command import command, folder_here, folder_of, model_option, repo_argument
from codeqa.cli.console import ProgressDisplay, print_summary
from codeqa.code.tools import TOOLS
from codeqa.engine import Engine
from codeqa.environment import checkout, digest_of, env_file
from codeqa.errors import CodeQAError, SettingsError
from codeqa.extensions import load_extension
from codeqa.hosts import is_loopback
from codeqa.indexing.runs import noted_state
from codeqa.llm.models import Models
from codeqa.llm.providers import NO_MODEL, parse_choice
from codeqa.repositories import last_used
from codeqa.settings import Settings, load_settings, variables_of_answers
from codeqa.types import IndexSummary, Progress
from codeqa.web.app import bind, create_app, serve
from codeqa.web.logs import start_log
from codeqa.web.running import RunningServer, announced
from codeqa.web.security import EVERY_ADDRESS, TERMINAL_TOKEN, check_settings
from codeqa.web.workspace import Workspace

PORTS_TRIED = 100


def repository_here(settings: Settings) -> Path | None:
    """Return the repository of the current folder, else the last used one.

    In a checkout of CodeQA the last used one comes first: `python create_tables.py REPO`, then
    `python app.py`.
    """
    here = folder_here(settings.data_dir)
    last = None if here and here != checkout() else last_used(settings)
    return last or here


@command(
    "serve",
    [
        "codeqa serve                    the repository of the current folder or the last one",
        "codeqa serve ~/src/flask        index it first if needed, then serve the page",
        "codeqa serve --port 8080 --model ollama/qwen3",
        "codeqa serve --workers 2        two processes that share a Redis server",
    ],
)
@repo_argument
@click.option("--host", help="Address to serve on; others than this machine's own need a token.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port to serve on.")
@click.option(
    "--workers", type=click.IntRange(1, 64), help="How many processes; several need Redis."
)
@model_option
def serve_command(
    repo: str | None, host: str | None, port: int | None, workers: int | None, model: str
) -> None:
    """Serve the page on which you ask questions.

    Without a repository the page lets you choose one. The first index is built in the background:
    first text and symbols, then the vectors of a chosen embedding.
    """
    settings = load_settings()
    data = settings.data_dir
    repository = folder_of(repo, data) if repo else repository_here(settings)
    options = {"host": host, "port": port, "web_workers": workers, "model": model or None}
    settings = load_settings(repository, **options)
    start_log(settings)
    # At its start waitress counts every thread as busy, and warns of a queue that does not exist.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    check_settings(settings)
    if model not in ("", NO_MODEL):
        parse_choice(model)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):  # a system may allow less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with open_port(settings) as listener:
        port = listener.getsockname()[1]
        app = create_app(settings, repository)
        space: Workspace = app.extensions["codeqa"]
        alone = settings.web_workers == 1

        def run() -> None:
            try:
                engine = None
                if repository is not None:
                    engine = space.open(repository.absolute(), update=bool(settings.jobs))
                if alone:
                    _print_address(settings, port)
                if engine is not None:
                    prepare(engine, show=alone)
                serve(app, settings, listener)
            finally:
                space.close()

        # With --model the server would answer differently from the terminal.
        with nullcontext() if model else terminal_door(app, settings, repository, port):
            if alone:
                run()
            else:
                _print_address(settings, port)
                load_extension("serve_with_workers")(settings.web_workers, run)
    print("Stopped.", file=sys.stderr)


@command("worker", ["CODEQA_JOBS=rq REDIS_URL=redis://… codeqa worker"])
def worker_command() -> None:
    """Clone and index for servers with the same settings and data; see docs/scale.md."""
    load_extension("work")(load_settings())


def prepare(engine: Engine, show: bool) -> None:
    """Update the index of `engine` in the background; `show` the progress of a first index."""
    first, display = show and noted_state(engine.location) != "ready", ProgressDisplay()
    if first and not engine.settings.jobs:
        display(Progress("loading the database", 0, 0))

    def on_progress(progress: Progress) -> None:
        if first:
            display(progress)

    def on_end(outcome: IndexSummary | Exception) -> None:
        nonlocal first
        if first:
            display.close()
            first = False
            if isinstance(outcome, IndexSummary):
                print_summary(outcome, sys.stderr)

    if not engine.settings.jobs:
        engine.index.start(on_progress, on_end)

    def warm_up() -> None:
        engine.chat.warm_up()
        gc.freeze()  # what is loaded stays: to search it for garbage takes 0.1 s each time

    threading.Thread(target=warm_up, name="warm-up", daemon=True).start()


def terminal_door(
    app: Flask, settings: Settings, repository: Path | None, port: int
) -> AbstractContextManager[None]:
    """Let this user's terminal find the server, if both have the same settings.

    Not for a server with an `.env` of its own, or on an address of another machine.
    """
    host = _reached(settings.host)
    file = env_file(repository)
    if (file and file.exists()) or not is_loopback(host):
        return nullcontext()
    tools = [tool.described() for tool in TOOLS.values()]
    token, variables = app.config[TERMINAL_TOKEN], variables_of_answers()
    digest = digest_of(variables, token)
    server = RunningServer(host, port, token, variables, digest, tools)
    return announced(settings.data_dir, server)


def open_port(settings: Settings) -> socket.socket:
    """Return a socket bound to the port of the settings. Raises CodeQAError.

    If no port was set, the next free one is taken and printed.
    """
    host, port = settings.host, settings.port
    count = 1 if "port" in settings.model_fields_set else PORTS_TRIED
    for candidate in range(port, min(port + count, 65_536)):
        try:
            listener = bind(host, candidate)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            raise SettingsError(
                f"The page cannot be served on {host} port {port}: {error.strerror}.",
                "Choose another CODEQA_HOST or CODEQA_PORT.",
            ) from error
        if candidate != port:
            print(f"Port {port} is in use; using {candidate} instead.", file=sys.stderr)
        return listener
    raise CodeQAError(
        f"Port {port} is in use.", "Choose another with --port 5002, or PORT=5002 for make."
    )


def page_address(host: str, port: int) -> str:
    """Return the address for a browser, also if the server listens on every address."""
    name = _reached(host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


def _reached(host: str) -> str:
    return {"::": "::1", **dict.fromkeys(EVERY_ADDRESS - {"::"}, "127.0.0.1")}.get(host, host)


def _print_address(settings: Settings, port: int) -> None:
    """Print the address of the page and the model in use, or why that model cannot be used."""
    address = page_address(settings.host, port)
    print(f"CodeQA is open at {address}  (Ctrl-C stops it)", flush=True)
    if settings.tokens:
        print("Sign in with a token of CODEQA_TOKEN.", flush=True)
    models = Models(settings)
    try:
        if choice := models.current():
            print(f"Questions go to {choice} at {models.address(choice).host}.", flush=True)
    except CodeQAError as error:
        print(f"The language model cannot be used: {error}", file=sys.stderr)
