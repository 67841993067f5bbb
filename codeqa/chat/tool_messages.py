"""How calls of tools and what they give go to a model, and what of that enters the context."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codeqa.code.tools import TOOLS, ToolResult
from codeqa.context import chunk_id
from codeqa.llm import ToolCall
from codeqa.types import Chunk

KEPT_CHARACTERS = 400
"""What stays of a result that is shortened."""
RESULTS = "[RESULTS]"
"""What calls gave that were written as text begins so."""
SHORTENED = "[… shortened; call it again for all of it]"


def new_chunks(known: Sequence[Chunk], result: ToolResult, tool: str) -> list[Chunk]:
    """The places with text of `result` that lie in no chunk that is known, as chunks."""
    found: list[Chunk] = []
    for place in result.places:
        lines = (place.path, place.start_line, place.end_line)
        if not place.text or place.note.startswith("at "):
            continue
        if any(one.holds(*lines) for one in (*known, *found)):
            continue
        found.append(
            Chunk(
                chunk_id(place.path, place.location, place.text),
                *lines,
                place.language,
                place.text,
                why=f"found by {tool}",
                name=place.name,
                kind=place.kind,
            )
        )
    return found


def shorten(messages: list[dict[str, Any]], room: int) -> None:
    """Cut the oldest results of tools until all of them have at most `room` characters; the
    latest stays whole."""
    results = [
        one for one in messages if one["role"] == "tool" or str(one["content"]).startswith(RESULTS)
    ]
    size = sum(len(one["content"]) for one in results)
    for one in results[:-1]:
        if size <= room:
            return
        if len(one["content"]) > KEPT_CHARACTERS + len(SHORTENED):
            size -= len(one["content"])
            one["content"] = f"{one['content'][:KEPT_CHARACTERS]}\n{SHORTENED}"
            size += len(one["content"])


def declared(name: str) -> Mapping[str, Any]:
    """A tool as OpenAI's API takes it."""
    tool = TOOLS[name]
    function = {"name": name, "description": tool.description, "parameters": tool.schema()}
    return {"type": "function", "function": function}


def described(name: str) -> str:
    """A tool as text: `grep(pattern, path = "", …): what it does`."""
    tool = TOOLS[name]
    parts = []
    for argument, how in tool.schema().get("properties", {}).items():
        default = f" = {json.dumps(how['default'])}" if "default" in how else ""
        parts.append(f"{argument}: {how.get('type', 'string')}{default}")
    return f"{name}({', '.join(parts)}): {tool.description}"


def model_message(text: str, calls: Sequence[ToolCall], as_text: bool) -> dict[str, Any]:
    """The model's own message, as it is sent back to it."""
    if as_text:
        return {"role": "assistant", "content": text}
    made = [
        {
            "id": call.id,
            "type": "function",
            # Servers read them again, and refuse what is no JSON.
            "function": {
                "name": call.name,
                "arguments": call.arguments if read_arguments(call.arguments) else "{}",
            },
        }
        for call in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def read_arguments(written: str) -> dict[str, Any] | None:
    """What a model wrote as the arguments of a call, '' for none; None for no object of JSON."""
    try:
        given = json.loads(written or "{}")
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def result_messages(answers: Iterable[tuple[ToolCall, str]], as_text: bool) -> list[dict[str, Any]]:
    """What the calls gave, as messages."""
    if as_text:
        parts = [f"{call.name} {call.arguments}\n{text}" for call, text in answers]
        return [{"role": "user", "content": "\n\n".join((RESULTS, *parts))}]
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in answers]
