"""Tool calls in the parts that servers send them in."""

from __future__ import annotations

from typing import Any

import pytest

from codeqa.llm.answer import AnswerReader

FIND, NAME = '{"pattern": "a"}', '{"name": "b"}'
HALVES = FIND[:6], FIND[6:]


def part(index: Any = None, id_: Any = None, name: Any = None, arguments: Any = None) -> Any:
    """One part of a call, without what is None."""
    function = {"name": name, "arguments": arguments}
    fields = {"index": index, "id": id_}
    return {
        **{key: value for key, value in fields.items() if value is not None},
        "function": {key: value for key, value in function.items() if value is not None},
    }


def made(*parts: Any, field: str = "tool_calls") -> list[tuple[str, str]]:
    """The calls of an answer in these parts, each with an id of its own."""
    answer = AnswerReader()
    for one in parts:
        value = one if isinstance(one, list) or field != "tool_calls" else [one]
        assert not [*answer.take({"choices": [{"delta": {field: value}}]})]
    assert len({call.id for call in answer.calls}) == len(answer.calls)
    return [(call.name, call.arguments) for call in answer.calls]


TWO_CALLS = {
    "as OpenAI does": [
        part(0, "x", "grep", ""), *(part(0, arguments=half) for half in HALVES),
        part(1, "y", "symbol", ""), part(1, arguments=NAME)],
    "interleaved": [
        part(0, "x", "grep", ""), part(1, "y", "symbol", ""), part(0, arguments=HALVES[0]),
        part(1, arguments=NAME[:5]), part(0, arguments=HALVES[1]), part(1, arguments=NAME[5:])],
    "several in one event": [
        [part(0, "x", "grep", HALVES[0]), part(1, "y", "symbol", NAME[:5])],
        [part(0, arguments=HALVES[1]), part(1, arguments=NAME[5:])]],
    "names and ids in each part": [
        *(part(0, "x", "grep", half) for half in HALVES), part(1, "y", "symbol", NAME[:5]),
        part(1, "y", "symbol", NAME[5:])],
    "names in each part and no ids": [
        *(part(0, None, "grep", half) for half in HALVES), part(1, None, "symbol", NAME)],
    "empty names and blank ids after the first part": [
        part(0, "x", "grep", ""), *(part(0, " ", "", half) for half in HALVES),
        part(1, "y", "symbol", ""), part(1, "", "", NAME)],
    "all numbered 0, without ids": [part(0, "", "grep", FIND), part(0, "", "symbol", NAME)],
    "all numbered 0, in parts with ids": [
        part(0, "x", "grep", ""), part(0, arguments=FIND),
        part(0, "y", "symbol", ""), part(0, arguments=NAME)],
    "without numbers": [part(None, "x", "grep", FIND), part(None, "y", "symbol", NAME)],
    "without numbers, interleaved by ids": [
        part(None, "x", "grep", ""), part(None, "y", "symbol", ""),
        part(None, "x", None, FIND), part(None, "y", None, NAME)],
    "without numbers and ids": [part(None, None, "grep", FIND), part(None, None, "symbol", NAME)],
    "one id for all": [part(0, "x", "grep", FIND), part(1, "x", "symbol", NAME)],
    "one id for all, interleaved": [
        part(0, "x", "grep", ""), part(1, "x", "symbol", ""),
        part(0, "x", None, FIND), part(1, "x", None, NAME)],
    "an id like those that are missing": [
        part(0, "call_1", "grep", FIND), part(1, None, "symbol", NAME)],
    "one id and number for all": [part(0, "x", "grep", FIND), part(0, "x", "symbol", NAME)],
    "function null at first": [
        {"index": 0, "id": "x", "function": None}, {"index": 1, "id": "y", "function": None},
        part(0, None, "grep", FIND), part(1, None, "symbol", NAME)],
    "arguments as objects": [
        part(0, "x", "grep", {"pattern": "a"}), part(1, "y", "symbol", {"name": "b"})],
    "with numbers as texts": [part("0", "x", "grep", FIND), part("1", "y", "symbol", NAME)],
}  # fmt: skip
ONE_CALL = {
    "a number that grows": [
        part(0, "x", "grep", ""), part(1, arguments=HALVES[0]), part(2, arguments=HALVES[1])],
    "a new id in each part": [
        part(0, "x", "grep", ""), *(part(0, half, None, half) for half in HALVES)],
    "a new id in each part with a name": [part(0, half, "grep", half) for half in HALVES],
    "arguments null at first": [
        {"index": 0, "id": "x", "function": {"name": "grep", "arguments": None}},
        part(0, arguments=FIND)],
    "all arguments so far in each part": [
        part(0, "x", "grep", text) for text in (HALVES[0], FIND, FIND)],
    "the whole call again at the end": [
        part(0, "x", "grep", ""), *(part(0, arguments=half) for half in HALVES),
        part(0, "x", "grep", FIND)],
    "the name again at the end": [part(0, "x", "grep", FIND), part(0, "x", "grep", "")],
    "the name in parts": [
        part(0, "x", "gr", ""), part(0, None, "ep", ""), part(0, arguments=FIND)],
    "the name so far in each part": [
        part(0, "x", "gr", ""), part(0, "x", "grep", ""), part(0, arguments=FIND)],
    "the name at last": [part(0, "x", None, ""), part(0, None, "grep", FIND)],
    "function null at last": [part(0, "x", "grep", FIND), {"index": 0, "function": None}],
    "arguments encoded twice": [part(0, "x", "grep", '"{\\"pattern\\": \\"a\\"}"')],
    "a number only at last": [part(None, "x", "grep", ""), part(0, arguments=FIND)],
    "what is no call around it": ["x", None, {"function": "x"}, part(0, "x", "grep", FIND), 3],
}  # fmt: skip


@pytest.mark.parametrize("how", TWO_CALLS)
def test_calls_in_parts_are_told_apart(how: str) -> None:
    assert made(*TWO_CALLS[how]) == [("grep", FIND), ("symbol", NAME)]


@pytest.mark.parametrize("how", ONE_CALL)
def test_the_parts_of_one_call_stay_together(how: str) -> None:
    assert made(*ONE_CALL[how]) == [("grep", FIND)]


def test_a_call_in_the_form_of_2023_is_read() -> None:
    heads = {"name": "grep", "arguments": ""}, {"arguments": HALVES[0]}, {"arguments": HALVES[1]}
    repeated = [{"name": "grep", "arguments": half} for half in HALVES]
    for parts in ([*heads, None], repeated):
        assert made(*parts, field="function_call") == [("grep", FIND)]
