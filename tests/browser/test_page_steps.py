"""What an answer says of its making: steps, how it was understood, hints and what comes next."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, use_model
from browser.conftest import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
STEPS = [
    "embed", "load", "classify", "topic", "features", "policy", "prune", "retrieve",
    "before_generation", "generate", "after_generation", "persist",
]  # fmt: skip


def test_steps_are_listed_with_their_times_as_they_happen(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "silent")
    details = page.get_by_role("button", name="Details")
    expect(details).to_have_attribute("aria-expanded", "false")
    names = page.locator(".details-steps code")
    expect(names.first).to_be_hidden()  # the line above stays calm
    details.click()
    expect(names).to_have_text(STEPS[:9])  # it is not written yet
    expect(page.locator(".details-steps .size").first).to_have_text("3 ms")
    expect(page.locator(".details-facts")).to_contain_text(
        "Taken as a question about the code, 92 % sure (@codebase says so)"
    )
    page.keyboard.press("Escape")
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Details").last.click()
    last = page.locator(".turn").last
    expect(last.locator(".details-steps code")).to_have_text(STEPS)
    expect(last.locator('[data-step="generate"] .size')).to_have_text("0.8 s")
    expect(last.locator(".facts")).to_contain_text(re.compile(r"Took \d+ ms|Took \d\.\d s"))


def test_steps_and_understanding_are_there_after_a_reload_as_well(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    page.locator("#codebase").click()
    ask(page, "rewritten:How long are sessions kept?")
    answered(page)
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        page.get_by_role("button", name="Details").click()
        facts = page.locator(".details-facts")
        expect(facts).to_contain_text("Searched for How long are sessions kept?")
        expect(facts).to_contain_text("by its words: it names <b>code</b>")
        expect(facts).to_contain_text("Rules the-code-is-asked-for")
        expect(page.locator(".details-steps li")).to_have_count(12)
        expect(page.locator(".facts")).to_contain_text("Took")


def test_a_search_that_nobody_asked_for_is_marked(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "one")
    answered(page)
    mark = page.get_by_text("searched automatically")
    expect(mark).to_be_hidden()
    page.evaluate("localStorage.setItem('codeqa.search', 'auto')")
    page.reload()
    expect(page.locator("#codebase")).to_have_attribute("aria-pressed", "false")
    ask(page, "needed: where is that?")
    answered(page)
    expect(mark.last).to_be_visible()
    page.reload()
    expect(mark.last).to_be_visible()


def test_an_answer_without_the_code_offers_to_search_it(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    page.locator("#codebase").click()
    ask(page, "hello, what does it do?")
    answered(page)
    page.reload()
    hint = page.locator(".suggest")
    expect(hint).to_contain_text("The code was not searched for this answer.")
    expect(page.get_by_role("button", name="Search the code", exact=True)).to_have_count(0)
    hint.get_by_role("button", name="Search the code base").click()
    answered(page)
    asked = scripted.chat.asked[-1]
    assert asked["question"] == "@codebase hello, what does it do?"
    assert asked["replaces"] == "turn-1"
    expect(page.locator(".suggest")).to_have_count(0)
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()


def test_what_may_be_asked_next_is_asked_by_a_click_and_only_offered_last(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    ask(page, "suggest:And for how long?|Who signs the cookie?")
    answered(page)
    offered = page.get_by_role("list", name="Questions that may come next")
    expect(offered.get_by_role("button")).to_have_text(
        ["And for how long?", "Who signs the cookie?"]
    )
    page.reload()
    offered.get_by_role("button").last.click()
    answered(page)
    assert scripted.chat.asked[-1]["question"].endswith("Who signs the cookie?")
    expect(offered).to_have_count(0)


def test_what_was_learnt_and_what_a_plugin_did_is_told(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "learn:name=Ada")
    answered(page)
    expect(page.locator(".learnt")).to_have_text("Remembered: name: Ada")
    ask(page, "plugged:The plugin shout broke in after_generation.")
    answered(page)
    expect(page.locator(".turn").last.locator(".turn-notice")).to_have_text(
        "The plugin shout broke in after_generation."
    )
    ask(page, "revise:**Louder.**")
    answered(page)
    page.get_by_text("A plugin changed the answer").click()
    expect(page.locator(".revised strong")).to_have_text("Louder.")
