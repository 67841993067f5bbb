"""How to answer: the effort and what it is made of, in one place, and how long it takes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser.actions import (
    answered,
    ask,
    change_settings,
    chip_of,
    get_answer,
    set_answer_options,
    stop,
    use_model,
)
from browser.conftest import ScriptedServer
from browser.fakes import FakeEngine
from playwright.sync_api import Locator, Page, expect

from codeqa.embeddings import local


def last(server: ScriptedServer, *fields: str) -> tuple[Any, ...]:
    return tuple(server.chat.asked[-1][field] for field in fields)


def drafts(page: Page) -> Locator:
    """The number of HyDE texts that is chosen, read while its form is closed."""
    return page.locator('#answer-options input[name="hyde"]:checked')


def test_an_effort_is_sent_decides_on_drafts_and_reranking_and_is_remembered(
    page: Page, scripted: ScriptedServer
) -> None:
    use_model(page)
    expect(page.locator("#expected-normal")).to_have_text("")
    for label, asked in (
        ("Deep", ("deep", True, "two")),
        ("Balanced", ("normal", False, "")),
        ("Fast", ("fast", False, "off")),
    ):
        set_answer_options(page, label)
        expect(page.locator("#effort")).to_have_text(label)
        get_answer(page, "@codebase x")
        assert last(scripted, "effort", "rerank", "hyde") == asked
    page.reload()
    expect(page.locator("#effort")).to_have_text("Fast")
    page.locator("#effort").click()
    # What such answers took here.
    expect(page.locator("#expected-normal")).to_have_text(re.compile(r"^≈ [\d.]+ m?s$"))
    expect(page.locator("#expected-own")).to_have_text("")


def test_what_needs_code_is_searched_for_unless_that_is_chosen_otherwise(
    page: Page, scripted: ScriptedServer
) -> None:
    chip_of(page).click()
    get_answer(page, "needed: where are sessions kept?")
    assert last(scripted, "retrieval", "strict") == ("auto", False)
    assert not scripted.chat.asked[-1]["question"].startswith("@codebase")
    expect(page.locator(".details-body").last).to_contain_text("searched automatically")
    set_answer_options(page, "Strict")
    change_settings(page, "Only with @codebase")
    expect(page.locator("#effort")).to_have_accessible_name(
        "How to answer: balanced, searches only with @codebase, strict"
    )
    page.reload()  # it is remembered
    expect(page.locator(".details-body").last).to_contain_text("searched automatically")
    get_answer(page, "again")
    assert last(scripted, "retrieval", "strict") == ("explicit", True)
    assert last(scripted, "earlier_answers") == (False,)
    change_settings(page, "When needed", "Earlier answers")
    get_answer(page, "once more")
    assert last(scripted, "retrieval", "strict", "earlier_answers") == ("auto", True, True)


def test_without_a_model_the_drafts_say_what_they_lack_and_lead_to_one(
    page: Page, scripted: ScriptedServer
) -> None:
    page.locator("#effort").click()
    form = page.get_by_role("dialog", name="How to answer")
    expect(form).to_contain_text("This needs a language model, and none is in use")
    group = form.get_by_role("group", name="Draft code first")
    expect(group.get_by_role("radio")).not_to_have_count(0)
    # Not one after the other: they are made anew when the settings come.
    expect(group.locator("input:not(:disabled)")).to_have_count(0)
    expect(group.locator("input:checked")).to_have_count(0)
    page.keyboard.press("Escape")
    get_answer(page, "x")
    assert last(scripted, "hyde") == ("",)
    expect(page.locator(".details-body")).not_to_contain_text("HyDE")
    page.locator("#effort").click()
    form.get_by_role("button", name="Choose a model").click()
    expect(page.get_by_role("dialog", name="Language model")).to_be_visible()
    expect(form).to_be_hidden()


def test_the_setting_for_drafts_holds_until_something_is_chosen_and_editing_keeps_what_was_asked(
    page: Page, scripted: ScriptedServer
) -> None:
    use_model(page)
    expect(drafts(page)).to_have_value("two")
    get_answer(page, "x")
    assert last(scripted, "hyde") == ("",)  # the server's setting decides
    expect(page.locator(".details-body")).to_contain_text("Drafted code 2 drafts")
    set_answer_options(page, "Once")
    expect(page.locator("#effort")).to_have_text("Custom")
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    expect(drafts(page)).to_have_value("one")
    get_answer(page, "@codebase again")
    assert last(scripted, "hyde") == ("one",)
    expect(page.locator(".details-body").last).to_contain_text("Drafted code 1 draft")
    set_answer_options(page, "Off")
    question = page.locator(".turn").last
    question.get_by_role("button", name="Edit the question").click()
    expect(drafts(page)).to_have_value("one")
    set_answer_options(page, "Twice")  # for this question alone
    page.locator("#question").press("Enter")
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    assert last(scripted, "hyde") == ("two",)
    expect(drafts(page)).to_have_value("off")


def test_while_drafts_are_written_it_is_said_and_what_the_question_alone_finds_opens(
    page: Page, scripted: ScriptedServer
) -> None:
    use_model(page)
    ask(page, "held late")
    stages = page.locator(".stages")
    expect(stages).to_contain_text("Drafting code to look for")
    found = page.get_by_role("list", name="Found so far", exact=True).get_by_role("link")
    expect(found).to_have_count(3)
    found.first.click()
    expect(page.locator(".source .cited").first).to_be_visible()
    scripted.chat.drafts.release()
    expect(stages).to_contain_text("Drafting again with the code found")
    scripted.chat.drafts.release()
    expect(stages).to_contain_text("4 pieces")
    answered(page)
    expect(page.locator(".found")).to_have_count(0)  # the answer cites them
    expect(page.locator(".answer")).not_to_contain_text("Session.load")  # a draft is no answer
    expect(page.locator(".details-body")).to_contain_text("1 draft, 1 timed out")
    page.get_by_role("button", name="Context").click()
    second = page.locator(".search-stages li").nth(1)
    expect(second).to_have_text(re.compile("Second draft.*timed out", re.DOTALL))
    ask(page, "@codebase silent")
    expect(page.get_by_role("list", name="Found", exact=True)).to_be_visible()  # with the drafts
    expect(page.locator(".found a").first).to_have_text(re.compile("long.py:1200-1210$"))
    stop(page)


def test_the_form_says_in_plain_words_what_each_choice_does_and_costs(
    page: Page, scripted: ScriptedServer, scripted_server: tuple[str, FakeEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    set_answer_options(page, "Sort results again")
    get_answer(page, "@codebase x")
    assert last(scripted, "effort", "rerank") == ("", True)
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    for setting, words in (("auto", "CodeQA itself"), ("a/b", "a/b cannot be used: fastembed")):
        scripted_server[1].settings.reranker = setting
        page.reload()
        page.locator("#effort").click()
        form = page.get_by_role("dialog", name="How to answer")
        again = form.get_by_role("switch", name="Sort results again")
        expect(again).to_be_checked()  # remembered
        expect(again).to_have_accessible_description(re.compile(f"takes longer. Done by: {words}"))
        jargon = re.compile("pip install|HyDE|rerank|ColBERT|token", re.IGNORECASE)
        expect(form).not_to_contain_text(jargon)
    use_model(page)
    page.locator("#effort").click()
    expect(form).to_contain_text("One search, one answer: costs least")
    expect(form).to_contain_text("each time takes seconds and one more request")
