"""Collect tool calls whose parts come in the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeqa.llm.values import ToolCall
from codeqa.text import json_object, json_value


@dataclass
class _PartialCall:
    """A call as far as it has come."""

    id: str
    index: Any
    name: str = ""
    arguments: str = ""

    @property
    def is_whole(self) -> bool:
        return self.arguments.rstrip().endswith("}") and json_object(self.arguments) is not None


class CallParts:
    """Collects the calls of one answer.

    Servers agree about little: ids and indices may be missing, the same for all calls or new in
    each part, names repeated, and arguments an object or everything so far. A call that has come
    whole is never continued by other arguments.
    """

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, part: Any) -> int:
        """Add a part of a call, and return how many characters of arguments it has."""
        part = part if isinstance(part, Mapping) else {}
        function = part.get("function")
        function = function if isinstance(function, Mapping) else {}
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        id_, index = str(part.get("id") or "").strip(), part.get("index")
        name = str(function.get("name") or "")
        call = self._continued(id_, index, name, arguments)
        if call is None:
            call = _PartialCall(id_, index)
            self._calls.append(call)
        call.name = name if name.startswith(call.name) else call.name + name
        repeats = call.arguments and arguments.startswith(call.arguments)  # `{{` begins no JSON
        call.arguments = arguments if repeats else call.arguments + arguments
        return len(arguments)

    def _continued(self, id_: str, index: Any, name: str, arguments: str) -> _PartialCall | None:
        """Return the call that a part goes on with, None where it begins one."""
        has_label = index is not None or (name and not id_)

        def fits(call: _PartialCall) -> tuple[bool, bool]:
            return call.id == id_ != "", bool(has_label and call.index == index)

        call = max(reversed(self._calls), key=fits, default=None)
        if call and any(fits(call)):
            is_other = name and call.name and _is_other(call, id_, index, name, arguments)
            return None if is_other else call
        if call is None or name or (id_ and index is not None):
            return None
        return next((call for call in reversed(self._calls) if not call.is_whole), self._calls[-1])

    @property
    def calls(self) -> list[ToolCall]:
        """The calls with a name, each with an id of its own."""
        calls: dict[str, ToolCall] = {}
        for number, call in enumerate(self._calls):
            if call.name:
                id_ = call.id if call.id and call.id not in calls else f"look_{number}"
                once = json_value(call.arguments)  # some servers encode them twice
                arguments = once if isinstance(once, str) else call.arguments
                calls[id_] = ToolCall(id_, call.name, arguments)
        return list(calls.values())


def _is_other(call: _PartialCall, id_: str, index: Any, name: str, arguments: str) -> bool:
    """Return whether a part with a name and the id or index of `call` begins another one."""
    if None not in (index, call.index) and index != call.index:
        return True
    has_other_id = bool(id_ and call.id and id_ != call.id)
    if call.is_whole:
        return has_other_id or name != call.name or not call.arguments.startswith(arguments)
    if has_other_id:
        return name != call.name or not call.arguments
    return not name.startswith(call.name) and bool(call.arguments or arguments)
