"""What the events of an answer say, in whatever pieces and shapes they come."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from codeqa.llm.answer import Answer

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


def text_of(pieces: list[str]) -> str:
    """The text of an answer whose content comes in `pieces`."""
    answer = Answer()
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    taken = [one for event in events for one in answer.take(event) if isinstance(one, str)]
    return "".join(taken) + answer.rest()


@given(TEXTS, TEXTS, st.lists(st.integers(0, 80), max_size=8), st.booleans())
def test_leading_thoughts_are_left_out_however_they_are_cut(
    thought: str, answer: str, cuts: list[int], opened: bool
) -> None:
    thought = thought.replace("<", "")
    answer = answer.lstrip().removeprefix("<think>")
    whole = f" \n<think>{thought}</think>\n{answer}" if opened else answer
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    got = text_of([whole[a:b] for a, b in itertools.pairwise(places)])
    if opened or not answer.lstrip().startswith("<think>"):
        assert got == answer.lstrip()


def test_text_that_only_begins_like_a_thought_is_kept_and_space_around_one_is_not() -> None:
    for text in ("<thi", "<thing>", "  <th", "a <think>b</think>"):
        assert text_of(list(text)) == text.lstrip()
    assert text_of([" <think>so</think>", " \n", " ", " and", " on"]) == "and on"


def test_whatever_an_event_holds_it_is_read_or_skipped() -> None:
    answer = Answer()
    odd = [
        None, 3, "x", [], {}, {"choices": {}}, {"choices": [3]}, {"choices": [{"delta": 4}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"content": ["x", {"type": "text"}]}}]}, {"usage": []},
        {"usage": {"prompt_tokens": "many", "completion_tokens": -3}},
    ]  # fmt: skip
    assert [piece for event in odd for piece in answer.take(event)] == []
    assert answer.reason == "" and answer.usage is None
