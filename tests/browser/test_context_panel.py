"""The panel: a file at its lines, what an answer was made from and how that was found."""

from __future__ import annotations

import json
import re

import pytest
from browser.actions import (
    answered,
    copied,
    expecting,
    get_answer,
    open_context,
)
from browser.conftest import ScriptedServer
from browser.fakes import DRAFT
from playwright.sync_api import expect

from codeqa.types import Chunk

SENT, DROPPED = "src/store/sessions.py:25-33", "src/store/long.py:1-2000"
HIT = "src/store/long.py:1200-1210"
BAR = ".chunk-choice-bar"


def test_an_address_opens_a_file_at_its_lines_and_says_when_it_cannot(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open("/?file=README.md")
    expect(page.locator("#panel-note")).to_contain_text("has changed")
    page.get_by_role("button", name="Close the panel").click()
    assert "file=" not in page.url
    expecting(page, "404 (NOT FOUND)")
    page.goto(f"{scripted.address}/?file=nowhere.py&lines=1-2")
    expect(page.locator("#panel-body")).to_contain_text("not an indexed file")


def test_it_shows_the_messages_exactly_as_they_were_sent(scripted: ScriptedServer) -> None:
    scripted.keep("@codebase x")
    scripted.use_model()
    page = scripted.open(scripted.keep("@codebase x"))
    page.get_by_role("button", name="Context").first.click()
    panel = page.get_by_role("complementary", name="Source and context")
    expect(panel).to_contain_text("Nothing was sent to a model")
    page.get_by_text("Everything found, best first").click()
    page.get_by_text("What these words mean").click()
    expect(page.locator(".legend dt")).to_have_text(["text", "vector", "symbol", "<b>odd</b>"])
    expect(page.locator(".search-stages li")).to_have_count(1)  # nothing was drafted
    page.keyboard.press("Escape")
    open_context(page)
    expect(panel).to_contain_text("Sent to gpt-4o at api.openai.com · 3,120 tokens")
    messages = scripted.chat.turn("turn-2").sent
    sent = [text for message in messages for text in message.parts]
    assert page.locator(".message pre").all_text_contents() == sent
    names = ["System prompt", "Earlier question", "Earlier answer", "Question and instruction"]
    for name, summary in zip(names, page.locator(".message summary").all(), strict=False):
        expect(summary).to_contain_text(name)
    page.get_by_role("button", name="Copy as JSON").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert [part["text"] for one in json.loads(copied(page)) for part in one["content"]] == sent
    expect(page.locator(".chunks .dropped")).to_contain_text("did not fit")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.get_by_role("button", name="Context").last).to_be_focused()


def test_it_tells_names_and_reasons_of_pieces_and_folded_the_scores_and_channels_of_all_hits(
    scripted: ScriptedServer,
) -> None:
    scripted.use_model()
    page = scripted.open(scripted.keep("@codebase x", rerank=True))
    open_context(page)
    placed = "score 1.73 · symbol #1 · vector #2 · text #3 · hyde-2 vector #1 · hyde-1 text #5"
    chunk = page.get_by_role("region", name="Pieces of code").locator("li").first
    expect(chunk.locator(".name")).to_have_text("SecureCookie.open_session")
    expect(chunk.locator(".where")).to_have_text("sessions.py:25-33 src/store/named")
    expect(page.locator(".placed:visible")).to_have_count(0)

    found = page.get_by_role("region", name="How it was found")
    lines = found.locator(".stage-line")
    for line, words in zip(
        lines.all(), ("First draft.*2.1 s", "Second draft", "Search", "Rerank.*84 ms"), strict=True
    ):
        expect(line).to_have_text(re.compile(words, re.DOTALL))
    lines.first.press("Enter")
    draft = page.get_by_label("First draft", exact=True)
    expect(draft).to_be_visible()
    assert draft.text_content() == DRAFT  # with its markup, as text
    expect(found).to_contain_text("Written by gpt-4o at api.openai.com")

    page.get_by_text("Everything found, best first").click()
    hits = found.locator(".hits li")
    expect(hits).to_have_count(3)
    expect(hits.first).to_contain_text("method; named; holds 3 of 4 words")
    expect(hits.first.locator(".placed")).to_have_text(placed)
    hits.first.locator(".open").click()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.get_by_role("button", name="Back", exact=True).click()
    expect(hits.first).to_be_in_viewport()  # open, and where it was


def test_pieces_are_left_out_and_put_in_and_the_question_asked_again_with_these(
    scripted: ScriptedServer,
) -> None:
    scripted.use_model()
    page = scripted.open(scripted.keep("@codebase x"))
    open_context(page)
    bar = page.get_by_role("group", name="Chosen code")
    out = page.get_by_role("button", name=f"Leave {SENT} out")
    out.press("Space")
    bar.get_by_role("button", name="Reset").click()
    expect(bar).to_be_hidden()
    out.click()
    expect(bar).to_contain_text("1 piece left out: used when you regenerate this answer")
    page.get_by_role("button", name=f"Pin {SENT}").click()  # one piece is either
    expect(out).to_have_attribute("aria-pressed", "false")
    expect(bar).to_contain_text("1 piece pinned")
    out.click()
    page.get_by_role("button", name=f"Pin {DROPPED}").click()
    page.get_by_text("Everything found, best first").click()
    page.get_by_role("button", name=f"Pin {HIT}").click()
    expect(page.locator("#announce")).to_contain_text("2 pieces pinned, 1 piece left out")
    bar.get_by_role("button", name="Regenerate with your choice").click()
    expect(page.locator("#panel")).to_be_hidden()
    expect(page.locator(".turn-notice")).to_have_text(
        "Asked with 2 pieces pinned, 1 piece left out"
    )
    page.get_by_role("button", name="Regenerate").click()  # the same once more
    expect(page.get_by_role("group", name="Version 3 of 3")).to_be_visible()
    for asked, replaces in zip(scripted.chat.asked[1:], ("turn-1", "turn-2"), strict=True):
        assert asked["question"] == "@codebase x" and asked["replaces"] == replaces
        assert asked["pin"] == [DROPPED, HIT] and asked["exclude"] == [SENT]


def test_what_is_chosen_stays_until_it_is_asked_with_by_whatever_button(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open(scripted.keep("@codebase x"))
    open_context(page)
    out, bar = page.get_by_role("button", name=f"Leave {SENT} out"), page.locator(BAR)
    out.click()
    expect(bar).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.locator("#toast")).to_have_text(
        "Your choice is used when you regenerate this answer"
    )
    get_answer(page, "another question")  # it is not about that one
    page.get_by_role("button", name="Context").first.click()
    expect(out).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Close the panel").click()
    expect(page.get_by_role("button", name="Regenerate")).to_have_text(
        ["Regenerate with your choice", "Regenerate"]
    )
    page.get_by_role("button", name="Regenerate").first.click()
    expect(page.locator(".turn")).to_have_count(1)
    answered(page)
    assert [asked["exclude"] for asked in scripted.chat.asked] == [[], [], [SENT]]
    open_context(page)  # of the answer that was asked for so
    expect(bar).to_contain_text("Asked with 1 piece left out")
    left_out = page.get_by_role("region", name="Pieces of code").locator("li").last
    expect(left_out).to_contain_text("left out")
    expect(left_out.get_by_role("button", name=f"Leave {SENT} out")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(bar.get_by_role("button", name="Regenerate with your choice")).to_be_hidden()
    bar.get_by_role("button", name="Reset").click()
    expect(bar).to_contain_text("Nothing is chosen: used when you regenerate this answer")
    bar.get_by_role("button", name="Regenerate with your choice").click()
    expect(page.get_by_role("group", name="Version 3 of 3")).to_be_visible()
    answered(page)
    asked = scripted.chat.asked[-1]
    assert (asked["pin"], asked["exclude"]) == ([], [])


def test_a_long_context_is_folded_behind_its_first_pieces_and_any_number_is_left_out(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = scripted.chat.turn("turn-1")
    chunks = [Chunk(f"c{n}", f"src/m{n % 3}.py", n, n, "python", "x") for n in range(1, 36)]
    kept.chunks, kept.dropped = chunks[:-4], chunks[-4:]
    monkeypatch.setattr(scripted.chat, "turn", lambda *_: kept)
    page = scripted.open(scripted.keep("@codebase x"))
    open_context(page)
    pieces = page.get_by_role("region", name="Pieces of code")
    expect(pieces.locator("li:visible")).to_have_count(8)
    pieces.get_by_text("23 more, 4 did not fit").click()
    expect(pieces.locator("li:visible")).to_have_count(35)
    page.evaluate("document.querySelectorAll('.chunks .exclude').forEach(one => one.click())")
    page.locator(BAR).get_by_role("button", name="Regenerate with your choice").click()
    answered(page)
    assert len(scripted.chat.asked[-1]["exclude"]) == 31
