"""`codeqa mcp`."""

from __future__ import annotations

import gc
import sys

import click

from codeqa.cli.command import command, print_error, repos_option
from codeqa.cli.repos import chosen_repositories
from codeqa.errors import CodeQAError
from codeqa.repositories import open_location
from codeqa.repositories.multi_repo import member_names
from codeqa.settings import load_settings
from codeqa.store import open_once

HOST = "127.0.0.1"
"""Other machines never: who calls the tools reads all of the code."""


@command(
    "mcp",
    [
        "codeqa mcp                                     for the repository of this folder",
        "codeqa mcp --repo ~/src/flask --repo tokio     for several",
        "codeqa mcp --port 5002                         over HTTP instead of stdio",
        "claude mcp add codeqa -- codeqa mcp --repo ~/src/flask",
    ],
)
@repos_option
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Serve http://127.0.0.1:PORT/mcp, not stdio."
)
def mcp_command(repos: tuple[str, ...], port: int | None) -> None:
    """Serve the tools to other agents by the Model Context Protocol.

    The repository must be indexed. Needs: pip install 'codeqa[mcp]'. See docs/mcp.md.
    """
    gc.disable()  # until it serves: what is loaded stays, and looking at it again takes a sixth
    from codeqa.mcp import serve_http, serve_stdio

    settings = load_settings()
    chosen, _ = chosen_repositories(settings, repos)
    locations = [open_location(settings, one.root) for one in chosen]
    for location in locations:
        try:
            open_once(location)()
        except CodeQAError as error:  # it may be indexed while the agent is there
            print_error(f"{location.root}: {error}")
    named = {name: one.root for name, one in member_names(locations).items()}
    if port:
        click.echo(f"Serving {', '.join(named)} at http://{HOST}:{port}/mcp", err=True)
        serve_http(load_settings, named, HOST, port)
        return
    if sys.stdin.isatty():
        click.echo("Waiting for an agent on standard input; see docs/mcp.md.", err=True)
    serve_stdio(load_settings, named)
