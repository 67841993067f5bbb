"""Bytes to text, in whatever portions they arrive."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from codeqa.llm.estimate import estimate_messages, estimate_tokens, message_text
from codeqa.llm.events import Answer, Events, Thinking

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


def portions(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(
    st.lists(TEXTS, max_size=8),
    st.lists(st.integers(0, 400), max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_events_are_the_same_however_they_are_cut(
    texts: list[str], cuts: list[int], end: str, ends: bool
) -> None:
    payloads = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    whole = "".join(f": comment{end}event: x{end}data: {p}{end}{end}" for p in payloads)
    data = whole.encode()
    if not ends:
        data = data.rstrip(b"\r\n")
    events = Events()
    got = [one for portion in portions(data, cuts) for one in events.feed(portion)]
    got += events.close()
    assert [one.decode() for one in got] == payloads


def test_the_lines_of_one_event_are_joined() -> None:
    events = Events()
    assert list(events.feed(b"data: a\ndata:b\nid: 3\n\ndata\n\n")) == [b"a\nb", b""]


@given(TEXTS, TEXTS, st.lists(st.integers(0, 80), max_size=8), st.booleans())
def test_leading_thoughts_are_left_out_however_they_are_cut(
    thought: str, answer: str, cuts: list[int], opened: bool
) -> None:
    thought = thought.replace("<", "")
    answer = answer.lstrip().removeprefix("<think>")
    whole = f" \n<think>{thought}</think>\n{answer}" if opened else answer
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    thinking = Thinking()
    got = "".join(thinking.feed(whole[a:b]) for a, b in itertools.pairwise(places))
    got += thinking.close()
    if opened:
        assert got == answer.lstrip()
        assert thinking.thought
    elif not answer.startswith("<think>"):
        assert got == (answer if answer.strip() else "")


def test_text_that_only_begins_like_a_thought_is_kept() -> None:
    for text in ("<thi", "<thing>", "  <th", "a <think>b</think>"):
        thinking = Thinking()
        got = "".join(thinking.feed(character) for character in text) + thinking.close()
        assert got == text


def test_a_thought_without_an_end_is_no_answer() -> None:
    thinking = Thinking()
    assert thinking.feed("<think>on and on") + thinking.close() == ""
    assert thinking.thought


def test_a_long_thought_takes_no_memory() -> None:
    thinking = Thinking()
    thinking.feed("<think>")
    for _ in range(1000):
        thinking.feed("x" * 1000)
    assert len(thinking._held) < 20


def test_whatever_an_event_holds_it_is_read_or_skipped() -> None:
    answer = Answer()
    odd = [
        "null", "3", '"x"', "[]", "{}", '{"choices": {}}', '{"choices": [3]}',
        '{"choices": [{"delta": 4}]}', '{"choices": [{"delta": {"content": 5}}]}',
        '{"choices": [{"delta": {"content": ["x", {"type": "text"}]}}]}',
        '{"choices": [{"finish_reason": 7}]}', '{"usage": []}', "{", "\udcff",
        '{"usage": {"prompt_tokens": "many", "completion_tokens": -3}}',
    ]  # fmt: skip
    assert "".join(answer.take(one.encode("utf-8", "surrogateescape")) for one in odd) == ""
    assert answer.error is None and answer.reason == ""


def test_a_request_is_estimated_with_what_stands_around_each_message() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert message_text({"role": "user", "content": parts}) == "one\n\ntwo"
    assert message_text({"role": "user", "content": None}) == ""
    one = estimate_messages([{"role": "user", "content": "x" * 300}])
    assert estimate_tokens("x" * 300) < one < estimate_tokens("x" * 300) + 10
