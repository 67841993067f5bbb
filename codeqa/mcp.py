"""Answer messages of the Model Context Protocol, by which other agents use `EVERY_TOOL`.

`codeqa mcp` carries them over stdio, a running server offers them at `POST /mcp`. The first answers
need no engine, so importing this loads nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from typing import TYPE_CHECKING, Any

from codeqa import __version__
from codeqa.errors import CodeQAError, places_of
from codeqa.text import json_object

if TYPE_CHECKING:
    from codeqa.engine import Engine

_log = logging.getLogger(__name__)
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol, the newest first; CodeQA speaks them all in the same way."""
UNREADABLE, INVALID, UNKNOWN_METHOD, FAILED = -32700, -32600, -32601, -32603
"""Error codes of JSON-RPC."""
PROGRESS_SECONDS = 2.0
"""Between two notices that a call goes on: clients give up one that is silent for a minute."""
LISTS = {"prompts": "prompts", "resources": "resources", "resources/templates": "resourceTemplates"}
"""Lists that CodeQA does not offer; some clients ask for them, and give up at an error."""
INSTRUCTIONS = """\
CodeQA has indexed {repositories}: every definition, call and document.
- A question in words ("where are sessions signed?"): search_code, with the code that you expect as
  guess. Whole functions with their lines: prefer it to grep and to opening files one by one.
- A name you know: symbol, for its code, callers, callees, subclasses, impact, paths. Resolved,
  where grep gives every line with the same letters.
- Exact text, messages: grep. A file or lines of it: open_file. Files, routes, tests, overview:
  list_all. Why and when: history.
- An issue to work on: review. A whole answer with citations, made by CodeQA itself: ask."""


def read(data: bytes) -> Any:
    """Return the message or messages in a line or body; UNREADABLE for what is no JSON."""
    try:  # a lone surrogate, which JSON may contain, becomes a question mark
        return json.loads(json.dumps(json.loads(data), ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return UNREADABLE


def with_progress(
    message: Any, reply: Callable[[], Any], seconds: float = PROGRESS_SECONDS
) -> Iterator[Any]:
    """Yield `reply()`, and before it, if `message` asks for that, notices that the work goes on."""
    with ThreadPoolExecutor(1) as thread:
        work, token = thread.submit(reply), progress_token(message)
        for number in count(1):
            if token is None or wait([work], seconds).done:
                break
            text = f"working for {number * seconds:.0f} s"
            progress = {"progressToken": token, "progress": number, "message": text}
            yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
        if result := work.result():
            yield result


def progress_token(message: Any) -> int | str | None:
    """Return the token under which the client wants to know of progress; None if it does not."""
    about = parameters(message).get("_meta")
    token = about.get("progressToken") if isinstance(about, dict) else None
    return token if isinstance(token, int | str) else None


def parameters(message: Any) -> dict[str, Any]:
    """Return the parameters of a message, none where they are no object."""
    values = message.get("params") if isinstance(message, dict) else None
    return values if isinstance(values, dict) else {}


def answer(
    message: Any, repositories: str, engine: Callable[[], Engine]
) -> dict[str, Any] | list[dict[str, Any]] | None:
    """Return the answer to a message of a client, or to several; None where none is needed.

    `repositories` names the repositories of `engine`.
    """
    if isinstance(message, list) and message:
        replies = [_reply(one, repositories, engine) for one in message]
        return list(filter(None, replies)) or None
    return _reply(message, repositories, engine)


def _reply(message: Any, repositories: str, engine: Callable[[], Engine]) -> dict[str, Any] | None:
    is_object = isinstance(message, dict)
    if is_object and "method" not in message and ("result" in message or "error" in message):
        return None  # the answer to a request, of which CodeQA makes none
    is_request = is_object and isinstance(message.get("method"), str)
    if not (is_request and isinstance(message.get("id"), str | int | float | None)):
        code, text = INVALID, "This is not a JSON-RPC message."
        if message is UNREADABLE:
            code, text = UNREADABLE, "This is not JSON in UTF-8."
        error: dict[str, Any] = {"code": code, "message": text}
        return {"jsonrpc": "2.0", "id": None, "error": error}
    if "id" not in message or message["method"].startswith("notifications/"):
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
    method, values = message["method"], parameters(message)
    match method:
        case "initialize":
            version = values.get("protocolVersion")
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
                arguments = values.get("arguments")
                if isinstance(arguments, str):  # as some models write them
                    arguments = json_object(arguments)
                arguments = arguments if isinstance(arguments, dict) else {}
                result = engine().call(str(values.get("name")), **arguments)
            except CodeQAError as error:
                return {"content": [{"type": "text", "text": str(error)}], "isError": True}
            return {"content": [{"type": "text", "text": result.text}], "isError": False}
    kind = LISTS.get(method.removesuffix("/list"))
    return {kind: []} if kind else None
