"""Read tool calls that a model writes into its text where its server does not read them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from codeqa.llm.dialects import DIALECTS, any_of
from codeqa.llm.values import ToolCall

MOST_BEFORE, MOST_UNDECIDED, LONGEST_CALL = 240, 400, 4_000
"""Characters of text before a call without a mark, of one that has not named its tool yet, and of
one that is read."""
_SAYS = {name: any_of(*alternatives) for name, alternatives in DIALECTS["calls"].items()}
_PLACE = any_of(*DIALECTS["calls"]["mark"], *DIALECTS["calls"]["part_of_mark"])
_NAME_KEYS, _VALUE_KEYS = DIALECTS["call_names"], DIALECTS["call_values"]
_FENCE, _TICKS = re.compile(r"\s*(?:```|~~~)"), re.compile("`+")


class WrittenCalls:
    """Withholds calls of `tools` from the text of one answer.

    A call begins with a mark outside code, or it is the whole answer but for a short introduction;
    else it is quoted. `tools` has the names of each tool's arguments in their order.
    """

    def __init__(self, tools: Mapping[str, Sequence[str]]) -> None:
        self._tools, names = tools, "|".join(tools)
        self._name = re.compile(
            rf"(?:(?<=[\"'=>\]\[.:{{(\n｜|])|(?<=[,;:] ))({names})(?=[\"'>({{\[<:\s｜]|\.call\()"
        )
        self._unmarked = re.compile(
            r"(?:```\w*\s*)?(?:<[^<>\n]{1,40}>\s*)?\[?\s*(?:(?:print\()?(?:\w+[.:])?"
            rf"(?:{names})(?:\(|\s*\{{)|\{{.{{,300}}?\"(?:{'|'.join(_NAME_KEYS)})\"\s*:\s*\"(?:\w+\.)?(?:{names})\")",
            re.DOTALL,
        )
        self._buffer, self._line, self._shown, self._fenced = "", "", 0, False
        self._begun = self._marked = False

    @property
    def length(self) -> int:
        """Characters of calls so far: some models never stop by themselves."""
        return len(self._buffer) if self._marked else 0

    def feed(self, piece: str) -> str:
        """Return what of the text so far is no call, without what was returned before."""
        # Each place in what is undecided costs as much as that is long, so it is kept short.
        parts = (piece[at : at + MOST_UNDECIDED] for at in range(0, len(piece), MOST_UNDECIDED))
        return "".join(map(self._feed, parts))

    def _feed(self, piece: str) -> str:
        self._buffer += piece
        if self._begun and not self._marked and len(self._buffer) > LONGEST_CALL:
            self._begun, self._shown = False, MOST_BEFORE
        end = 0 if self._begun else self._next_call()
        text, self._buffer = self._buffer[:end], self._buffer[end:]
        self._fenced, self._line = self._after(text)
        self._shown += len(text)
        return text

    def end(self) -> tuple[list[ToolCall], str]:
        """Return the calls, or the rest of the text where there are none."""
        text = f"\n{self._buffer[:LONGEST_CALL]}\n"
        calls, end = self._read(text) if self._begun else ([], 0)
        is_call = calls and (self._marked or _SAYS["closers"].fullmatch(text, end))
        return (calls, "") if is_call else ([], self._buffer)

    def _next_call(self) -> int:
        """Return where in the buffer a call begins or may begin."""
        text, at = self._buffer, 0
        while at < len(text):
            match = _PLACE.search(text, at)
            line = text.find("\n", at - 1) + 1 if at or self._line else 0
            places = [match.start()] if match else []
            if at <= line < MOST_BEFORE - self._shown:
                places.append(line)
            at = min(places, default=len(text))
            if at < len(text) and self._may_be_call(text[:at], text[at:]):
                break
            at += 1
        return min(at, len(text))

    def _may_be_call(self, before: str, text: str) -> bool:
        fenced, line = self._after(before)
        if fenced or len(_TICKS.findall(line)) % 2:
            return False
        if _SAYS["mark"].match(text):
            self._begun = self._marked = bool(self._name.search(text, 0, MOST_UNDECIDED))
            return self._begun or len(text) < MOST_UNDECIDED
        if not line and len(before) + self._shown < MOST_BEFORE:
            self._begun = bool(self._unmarked.match(text))
            may_be = len(text) < MOST_UNDECIDED and _SAYS["part_of_call"].match(text)
            if self._begun or may_be:
                return True
        return bool(_SAYS["part_of_mark"].match(text))

    def _after(self, text: str) -> tuple[bool, str]:
        """Return whether a fenced block is open after `text`, and the line so far, shortened."""
        *lines, last = (self._line + text).split("\n")
        fenced = self._fenced ^ (sum(bool(_FENCE.match(line)) for line in lines) % 2 == 1)
        ticks = "`" * (len(_TICKS.findall(last)) % 2)
        return fenced, last if len(last) < MOST_BEFORE else f"x{ticks}"

    def _read(self, text: str) -> tuple[list[ToolCall], int]:
        """Return the calls in `text`, and where the last one ends."""
        calls: dict[tuple[str, str], None] = {}
        at = end = 0
        token = re.compile(r"\{|" + self._name.pattern)
        while match := token.search(text, at):
            if match[1]:
                arguments, at = self._arguments(match[1], text, match.end())
                calls[match[1], arguments], end = None, at
            else:
                value, at = _decoded(text, match.start())
                for call in self._of_json(value):
                    calls[call], end = None, at
        return [ToolCall(f"look_{n}", *call) for n, call in enumerate(calls)], end

    def _of_json(self, value: Any) -> Iterator[tuple[str, str]]:
        """Yield the calls in JSON."""
        values: list[Any] = [value]
        for one in values:  # grows meanwhile
            if isinstance(one, dict):
                function = one.get("function")
                one = one | function if isinstance(function, dict) else one
                names = [str(one.get(key)).rpartition(".")[2] for key in _NAME_KEYS]
                arguments: Any = next((one[key] for key in _VALUE_KEYS if key in one), {})
                pairs = [(name, arguments) for name in names if name in self._tools][:1]
                pairs = pairs or [(name, one[name]) for name in self._tools if name in one]
                for name, arguments in pairs:
                    yield name, arguments if isinstance(arguments, str) else json.dumps(arguments)
                values += () if pairs else one.values()
            elif isinstance(one, list):
                values += one

    def _arguments(self, name: str, text: str, at: int) -> tuple[str, int]:
        """Return the arguments that follow the name of a tool, and their end."""
        match = _SAYS["arguments"].search(text, at, at + 100)
        if not match:
            return "{}", at
        values: dict[str, Any] = {}
        value, end = _decoded(text, match.start())
        if value is not None:
            return value if isinstance(value, str) else json.dumps(value), end
        if match[0][0] == "<":
            at = match.start()
            while parameter := _SAYS["parameter"].match(text, at):
                inside = parameter[2] or parameter[4] or ""
                values[parameter[1] or parameter[3]] = inside.strip("\n")
                at = parameter.end()
        else:
            order, at = iter(self._tools[name]), match.end()
            while pair := _SAYS["keyword"].match(text, at):
                values[pair[1] or next(order, "")] = pair[2] or pair[3] or _literal(pair[4] or "")
                at = pair.end()
        return json.dumps(values, default=str), at


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """Return the JSON at `at` and its end; None and the next place where there is none."""
    with suppress(ValueError, RecursionError):
        return json.JSONDecoder(strict=False).raw_decode(text, at)
    return None, at + 1


def _literal(text: str) -> Any:
    with suppress(SyntaxError, ValueError, MemoryError, RecursionError):
        return ast.literal_eval(text)
    return text
