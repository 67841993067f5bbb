"""How to answer: the effort and what it is made of, in one place, and how long it takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from browser.actions import answered, ask, set_answer_options, use_model
from browser.conftest import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def last(server: Server) -> dict[str, Any]:
    assert server.chat is not None
    return server.chat.asked[-1]


@pytest.mark.parametrize(
    ("label", "rerank", "hyde"),
    [("Fast", False, "off"), ("Normal", False, ""), ("Deep", True, "two")],
)
def test_an_effort_decides_on_drafts_and_reranking(
    scripted: Server, open_page: OpenPage, label: str, rerank: bool, hyde: str
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    if label == "Normal":
        set_answer_options(page, "Deep")
    set_answer_options(page, label)
    expect(page.locator("#effort")).to_have_text(label)
    ask(page, "x")
    answered(page)
    assert (last(scripted)["rerank"], last(scripted)["hyde"]) == (rerank, hyde)
    page.reload()
    expect(page.locator("#effort")).to_have_text(label)


def test_the_expected_time_is_what_such_answers_took_here_and_unknown_before(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    for name in ("fast", "normal", "deep"):
        expect(page.locator(f"#expected-{name}")).to_have_text("–")
    ask(page, "pause")  # two drafts of 0.3 s each
    answered(page)
    page.locator("#effort").click()
    expect(page.locator("#expected-normal")).to_have_text(re.compile(r"^≈ [01]\.\d s$"))
    expect(page.locator("#expected-deep")).to_have_text("–")
    page.keyboard.press("Escape")
    page.reload()
    page.locator("#effort").click()
    expect(page.locator("#expected-normal")).to_have_text(re.compile(r"^≈ [01]\.\d s$"))


def test_what_failed_or_was_stopped_tells_nothing_of_the_time(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(1)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")
    ask(page, "fail")
    expect(page.get_by_role("alert")).to_be_visible()
    assert page.evaluate("localStorage.getItem('codeqa.answer-times')") is None


def test_strict_and_searching_by_itself_go_with_the_question_and_are_remembered(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    set_answer_options(page, "Strict", "By itself")
    expect(page.locator("#effort")).to_have_text("Normal · strict")
    expect(page.locator("#effort")).to_have_accessible_name(
        "How to answer: normal, searches by itself, strict"
    )
    page.get_by_role("button", name="New conversation").first.click()
    tag = page.get_by_role("button", name="@codebase", exact=True)
    expect(tag).to_have_attribute("aria-pressed", "false")  # the server decides
    expect(tag).to_have_attribute("title", re.compile("where the question needs it"))
    ask(page, "needed: where are sessions kept?")
    answered(page)
    asked = last(scripted)
    assert (asked["retrieval"], asked["strict"]) == ("auto", True)
    assert not asked["question"].startswith("@codebase")
    page.reload()
    expect(page.locator("#effort")).to_have_text("Normal · strict")
    expect(page.locator(".searched-automatically")).to_be_visible()
    set_answer_options(page, "When asked", "Strict")
    ask(page, "again")
    answered(page)
    assert (last(scripted)["retrieval"], last(scripted)["strict"]) == ("explicit", False)


def test_the_form_is_worked_by_keys_and_escape_leaves_an_answer_alone(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(1)).to_be_visible()
    chip = page.locator("#effort")
    chip.focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("dialog", name="How to answer")
    expect(form.get_by_role("radio", name=re.compile("^Normal"))).to_be_focused()
    expect(chip).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowUp")
    expect(form.get_by_role("radio", name=re.compile("^Fast"))).to_be_checked()
    expect(page.locator("#announce")).to_have_text("How to answer: fast")
    page.keyboard.press("Tab")
    expect(form.get_by_role("switch", name=re.compile("^Rerank"))).to_be_focused()
    page.keyboard.press("Space")
    expect(chip).to_have_text("Own")
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    expect(chip).to_be_focused()
    expect(page.locator(".turn")).to_have_class(re.compile("writing"))
    chip.click()
    expect(form).to_be_visible()
    chip.click()  # again closes it
    expect(form).to_be_hidden()
    page.get_by_role("button", name="Stop").click()
