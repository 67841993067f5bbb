"""Answer messages of the Model Context Protocol, by which other agents use `EVERY_TOOL`.

`codeqa mcp` carries them over stdio, a running server offers them at `POST /mcp`. The first answers
need no engine, so importing this loads nothing.
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
"""Versions of the protocol, the newest first; CodeQA speaks them all in the same way."""
INVALID, UNKNOWN_METHOD, FAILED = -32600, -32601, -32603
"""Error codes of JSON-RPC."""
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
    """Return the answer to a message of a client; None for a message that needs none.

    `repositories` names the repositories of `engine`.
    """
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        error: dict[str, Any] = {"code": INVALID, "message": "This is not a JSON-RPC message."}
        return {"jsonrpc": "2.0", "id": None, "error": error}
    if "id" not in message:
        return None
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        if (result := _result(message, repositories, engine)) is not None:
            return reply | {"result": result}
        error = {"code": UNKNOWN_METHOD, "message": f"There is no method {message['method']}."}
    except Exception as exception:  # the client gets to know, and can go on
        _log.error("A call of an agent failed: %s", places_of(exception))
        error = {"code": FAILED, "message": "Unexpected error; see the log of CodeQA."}
    return reply | {"error": error}


def _result(
    message: Mapping[str, Any], repositories: str, engine: Callable[[], Engine]
) -> dict[str, Any] | None:
    """Return the result of a request; None for an unknown method."""
    parameters = message.get("params") or {}
    match message["method"]:
        case "initialize":
            version = parameters.get("protocolVersion")
            return {
                "protocolVersion": version if version in VERSIONS else VERSIONS[0],
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
                arguments = parameters.get("arguments") or {}
                result = engine().call(str(parameters.get("name")), **arguments)
            except CodeQAError as error:
                return {"content": [{"type": "text", "text": str(error)}], "isError": True}
            return {"content": [{"type": "text", "text": result.text}], "isError": False}
    return None
