"""The Model Context Protocol: other agents read repositories with the tools of `EVERY_TOOL`.

A message goes in, and its answer comes out: `codeqa mcp` carries them over stdio, a server that
runs has them at `POST /mcp`. The first answers take none of the engine, so importing this loads
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from codeqa import __version__
from codeqa.errors import CodeQAError, places_of

if TYPE_CHECKING:
    from codeqa.engine import Engine

_log = logging.getLogger(__name__)
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol, the newest first; in what is spoken here they are the same."""
INVALID, UNKNOWN_METHOD, FAILED = -32600, -32601, -32603
"""Codes of JSON-RPC."""
INSTRUCTIONS = """\
CodeQA has indexed {repositories}: every definition, call and document.
- A question in words ("where are sessions signed?"): search_code, with the code that you expect as
  guess. Whole functions with their lines: prefer it to grep and to opening files one by one.
- A name you know: symbol, for its code, callers, callees, subclasses, impact, paths. Resolved,
  where grep gives every line with the same letters.
- Exact text, messages: grep. A file or lines of it: open_file. Files, routes, tests, overview:
  list_all. Why and when: history.
- An issue to work on: review. A whole answer with citations, made by CodeQA itself: ask."""


def answer(
    message: object, repositories: str, engine: Callable[[], Engine]
) -> dict[str, Any] | None:
    """What is answered to a message of a client; None for one that wants no answer.

    `repositories` is how those of `engine` are called.
    """
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        error: dict[str, Any] = {"code": INVALID, "message": "This is no message of JSON-RPC."}
        return {"jsonrpc": "2.0", "id": None, "error": error}
    if "id" not in message:
        return None
    told: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        if (result := _result(message, repositories, engine)) is not None:
            return told | {"result": result}
        error = {"code": UNKNOWN_METHOD, "message": f"There is no method {message['method']}."}
    except Exception as failed:  # the client is to learn of it, and goes on
        _log.error("A call of an agent failed: %s", places_of(failed))
        error = {"code": FAILED, "message": "Unexpected error; the log of CodeQA has it."}
    return told | {"error": error}


def _result(
    message: Mapping[str, Any], repositories: str, engine: Callable[[], Engine]
) -> dict[str, Any] | None:
    """None for a method that there is not."""
    given = message.get("params") or {}
    match message["method"]:
        case "initialize":
            wanted = given.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "codeqa", "title": "CodeQA", "version": __version__},
                "instructions": INSTRUCTIONS.format(repositories=repositories),
            }
        case "ping":
            return {}
        case "tools/list":
            from codeqa.engine import EVERY_TOOL

            tools = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": tool.schema(),
                    "annotations": {"readOnlyHint": True},
                }
                for tool in EVERY_TOOL.values()
            ]
            return {"tools": tools}
        case "tools/call":
            try:
                found = engine().call(str(given.get("name")), **given.get("arguments") or {})
            except CodeQAError as error:
                return {"content": [{"type": "text", "text": str(error)}], "isError": True}
            return {"content": [{"type": "text", "text": found.text}], "isError": False}
    return None
