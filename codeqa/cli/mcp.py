"""`codeqa mcp`."""

from __future__ import annotations

import sys

import click

from codeqa.cli.command import command
from codeqa.cli.repos import chosen_repository
from codeqa.settings import load_settings

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
@click.option("--repo", multiple=True, help="Folder or name of a repository; several may be given.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Serve http://127.0.0.1:PORT/mcp, not stdio."
)
def mcp_command(repo: tuple[str, ...], port: int | None) -> None:
    """Serve the tools to other agents by the Model Context Protocol.

    The repository must be indexed. Needs: pip install 'codeqa[mcp]'. See docs/mcp.md.
    """
    from codeqa.mcp import names_of, serve_http, serve_stdio

    roots = [chosen_repository(load_settings(), one) for one in repo or (None,)]
    if port:
        click.echo(f"Serving {', '.join(names_of(roots))} at http://{HOST}:{port}/mcp", err=True)
        serve_http(load_settings, names_of(roots), HOST, port)
        return
    if sys.stdin.isatty():
        click.echo("Waiting for an agent on standard input; see docs/mcp.md.", err=True)
    serve_stdio(load_settings, names_of(roots))
