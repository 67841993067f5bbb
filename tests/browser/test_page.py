"""The page in a real browser, as somebody uses it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browser.actions import (
    answered,
    ask,
    loaded,
    rests,
    scrolled_sideways,
    set_answer_options,
    until,
    use_model,
)
from browser.conftest import Server
from browser.fakes import ANSWER
from browser.payloads import PAYLOADS
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
PHONE = {"width": 390, "height": 844}
ASK = "How are copies of a book reserved?"


# With the real engine


def test_a_question_is_answered_and_its_citation_opens_the_file_at_the_lines(
    real: Server, open_page: OpenPage
) -> None:
    page = open_page(real.address)
    expect(page.get_by_role("heading", name=re.compile("bookshop"))).to_be_visible()
    ask(page, ASK)
    answered(page)
    expect(page.locator(".question")).to_contain_text(f"@codebase{ASK}")
    stages = page.locator(".stages")
    expect(stages).to_contain_text("Understood")
    expect(stages).to_contain_text("pieces of code")
    expect(stages).to_contain_text("Answered")

    citation = page.locator('a.citation[data-path="bookshop/stock.py"]').first
    start, end = (int(citation.get_attribute(f"data-{name}") or 0) for name in ("start", "end"))
    citation.click()
    cited = page.locator(".source .row.cited")
    expect(cited).to_have_count(end - start + 1)
    expect(cited.first).to_be_in_viewport()
    expect(cited.first).to_have_attribute("data-line", str(start))
    lines = (page.locator(".source .row code")).all_text_contents()
    assert "def reserve_copies" in "\n".join(lines[start - 1 : end])
    assert "file=bookshop" in page.url

    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    expect(citation).to_be_focused()


def test_the_context_is_shown_exactly_as_it_was_packed(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    ask(page, ASK)
    answered(page)
    page.get_by_role("button", name="Context").click()
    block = page.get_by_label("The context block", exact=True)
    expect(block).to_contain_text("=== CHUNK 1 ===")
    text = block.text_content() or ""
    assert text.startswith("[CONTEXT]\n")
    first = page.locator(".chunks button").first
    path, _, lines = (first.locator(".where").text_content() or "").rpartition(":")
    assert f"Path: {path}\nLines: {lines}\n" in text
    first.click()
    expect(page.locator(".source .cited").first).to_be_in_viewport()


def test_the_index_and_what_it_skipped_are_in_view(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    expect(page.locator("#index-state")).to_contain_text("Ready")
    expect(page.locator('[data-figure="files"]')).to_have_text("5")
    page.get_by_role("button", name=re.compile("skipped: why")).click()
    panel = page.get_by_role("complementary", name="Source and context")
    expect(panel).to_contain_text("binary")
    expect(panel).to_contain_text("cover.png")


def test_an_example_is_asked_by_a_click(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    example = page.locator("#examples button").first
    question = example.text_content() or ""
    example.click()
    answered(page)
    expect(page.locator(".question")).to_contain_text(question)


def test_a_hostile_file_is_shown_as_it_is(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    ask(page, "what does hostile do?")
    answered(page)
    expect(page.locator(".answer")).to_contain_text("hostile")
    page.get_by_role("button", name="Context").click()
    page.locator('.chunks button[data-path*="onerror"]').first.click()
    expect(page.locator(".source")).to_contain_text("<script>window.hacked=1</script>")
    assert page.evaluate("window.hacked") is None


def test_another_folder_is_indexed_from_the_page(
    real: Server, open_page: OpenPage, shop: Path
) -> None:
    page = open_page(f"{real.address}/repositories")
    expect(page.get_by_role("link", name=re.compile("bookshop"))).to_be_visible()
    page.get_by_label("Folder of a repository").fill(str(shop))
    page.get_by_role("button", name="Index and open").click()
    expect(page.get_by_role("heading", name=re.compile("corner-shop"))).to_be_visible()
    loaded(page)
    ask(page, "open the till")
    answered(page)
    expect(page.locator('a.citation[data-path="till.py"]').first).to_be_visible()


def test_a_folder_that_is_not_there_is_explained_in_the_picker(
    real: Server, open_page: OpenPage
) -> None:
    page = open_page(f"{real.address}/repositories")
    page.watched.expected.append("400 (BAD REQUEST)")  # type: ignore[attr-defined]
    page.get_by_label("Folder of a repository").fill("/nowhere/at/all")
    page.keyboard.press("Enter")
    expect(page.locator("#job")).to_contain_text("not a folder")


# With answers that are written down


def test_an_answer_shows_text_at_once_and_blocks_as_they_are_complete(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(3)).to_be_visible()
    expect(page.locator(".turn")).to_have_class(re.compile("writing"))
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")


@pytest.mark.parametrize("way", ["key", "button"])
def test_an_answer_can_be_stopped_and_the_next_one_asked(
    scripted: Server, open_page: OpenPage, way: str
) -> None:
    assert scripted.chat is not None
    scripted.chat.cancelled.clear()
    page = open_page(scripted.address)
    ask(page, "silent")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.locator(".stages")).to_contain_text("Writing")
    if way == "key":
        page.keyboard.press("Escape")
    else:
        page.get_by_role("button", name="Stop").click()
    expect(page.locator(".stages")).to_contain_text("Stopped")
    assert scripted.chat.cancelled.wait(10), "the server goes on with nobody reading"
    ask(page, "again")
    answered(page)
    expect(page.locator(".turn")).to_have_count(2)


def test_what_is_rendered_is_the_whole_answer(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    expect(page.locator(".unfinished")).to_have_text("")
    expect(page.locator(".answer table td.align-right a.citation")).to_have_count(1)
    expect(page.locator(".answer .code-head").first).to_contain_text("python")
    expect(page.locator("span.citation.unverified")).to_contain_text("nowhere.py:1-2")
    expect(page.locator("#announce")).to_contain_text("The answer is complete")


def test_a_citation_that_was_not_sent_stays_a_link_and_one_without_lines_is_struck(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "unverified")
    answered(page)
    expect(page.locator("#announce")).to_contain_text("1 not in the context, 1 not verified")
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        sent, outside, gone = (
            page.locator(f'a.citation[data-start="{line}"]').first for line in (25, 1200, 8)
        )
        expect(sent).to_have_class("citation")
        expect(outside).to_have_class("citation outside")
        expect(outside).to_have_css("text-decoration", re.compile("underline .*dotted"))
        expect(outside).to_have_attribute("title", re.compile("^Not in the context"))
        expect(gone).to_have_class("citation unverified")
        expect(gone).to_have_css("text-decoration-line", "line-through")
        outside.click()
        expect(page.locator(".source .cited").first).to_have_attribute("data-line", "1200")
        page.keyboard.press("Escape")


def test_enter_sends_and_shift_enter_begins_a_line(scripted: Server, open_page: OpenPage) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    field = page.get_by_label(re.compile("Question about"))
    height = field.bounding_box()["height"]  # type: ignore[index]
    field.press_sequentially("one")
    page.keyboard.press("Shift+Enter")
    field.press_sequentially("two")
    assert field.bounding_box()["height"] > height  # type: ignore[index]
    page.keyboard.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase one\ntwo"
    expect(field).to_have_value("")


def test_the_codebase_chip_is_on_at_first_and_can_be_turned_off(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    chip = page.get_by_role("button", name="@codebase", exact=True)
    expect(chip).to_have_attribute("aria-pressed", "true")
    chip.click()
    set_answer_options(page, "Rerank")
    ask(page, "just this")
    answered(page)
    asked = scripted.chat.asked[-1]
    assert asked["question"] == "just this" and asked["rerank"] is True
    page.get_by_role("button", name="New conversation").first.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".turn")).to_have_count(0)
    ask(page, "fresh")
    answered(page)
    assert scripted.chat.asked[-1]["conversation"] != asked["conversation"]


def test_after_code_was_found_follow_ups_go_on_from_it_until_a_new_conversation(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    chip = page.get_by_role("button", name="@codebase", exact=True)
    field = page.get_by_label(re.compile("Question about"))
    use_model(page)
    ask(page, "nothing of the kind")
    answered(page)
    expect(page.locator(".stages")).to_contain_text("Found nothing")
    expect(chip).to_have_attribute("aria-pressed", "true")  # there is nothing to go on from
    ask(page, "How are sessions kept?")
    answered(page)
    expect(chip).to_have_attribute("aria-pressed", "false")
    expect(chip).to_have_attribute("title", re.compile("follow-ups go on from what was found"))
    expect(field).to_have_attribute("placeholder", "Follow up on what was found")
    ask(page, "and for how long?")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "and for how long?"
    expect(page.locator(".stages").last).to_contain_text("Went on from what was found before")
    expect(page.get_by_role("button", name="Search the code")).to_have_count(1)

    page.get_by_role("button", name="New conversation").first.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(field).to_have_attribute("placeholder", "Ask about store")
    page.go_back()
    expect(page.locator(".turn")).to_have_count(3)
    expect(chip).to_have_attribute("aria-pressed", "false")
    chip.click()
    page.locator(".question").last.hover()
    page.get_by_role("button", name="Edit the question").last.click()
    expect(chip).to_have_attribute("aria-pressed", "false")  # as it was asked
    page.keyboard.press("Escape")
    expect(chip).to_have_attribute("aria-pressed", "true")  # as it stood before
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    expect(chip).to_have_attribute("aria-pressed", "false")


def test_without_a_model_every_question_is_searched_for(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    chip = page.get_by_role("button", name="@codebase", exact=True)
    ask(page, "How are sessions kept?")
    answered(page)
    expect(chip).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    expect(chip).to_have_attribute("aria-pressed", "true")


def test_a_question_without_any_code_says_so(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    page.get_by_role("button", name="@codebase", exact=True).click()
    ask(page, "hello")
    answered(page)
    expect(page.locator(".stages")).to_contain_text("No code was used")


def test_a_tag_that_is_typed_is_as_good_as_the_switch(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    page.get_by_role("button", name="@codebase", exact=True).click()
    ask(page, "@Codebase sessions")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase sessions"
    expect(page.locator(".question > div")).to_have_text("@codebasesessions")
    expect(page.get_by_role("button", name="Search the code")).to_have_count(0)


def test_a_draft_outlives_a_reload_and_not_its_sending(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    loaded(page)
    field = page.get_by_label(re.compile("Question about"))
    field.fill("half a question\nin two lines")
    height = field.bounding_box()["height"]  # type: ignore[index]
    page.reload()
    expect(field).to_have_value("half a question\nin two lines")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    assert field.bounding_box()["height"] == height  # type: ignore[index]
    page.keyboard.press("Enter")
    answered(page)
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    expect(field).to_have_value("")


def test_reading_is_not_interrupted_by_what_arrives(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    scroller = page.locator("#scroller")
    jump = page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_visible()
    assert scroller.evaluate("e => e.scrollTop") < 40  # reading begins at the question
    page.mouse.move(700, 300)
    page.mouse.wheel(0, 60)
    place = rests(scroller)
    page.wait_for_timeout(500)
    assert scroller.evaluate("e => e.scrollTop") == place
    jump.click()
    expect(jump).to_be_hidden()
    left = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
    assert until(lambda: scroller.evaluate(left) < 60)  # it follows, since that was asked for
    page.wait_for_timeout(700)
    assert until(lambda: scroller.evaluate(left) < 60)
    page.mouse.wheel(0, -300)
    place = rests(scroller)
    page.wait_for_timeout(400)
    assert scroller.evaluate("e => e.scrollTop") == place  # and stops as soon as it is not
    page.keyboard.press("Escape")


def test_an_error_says_what_to_do_and_offers_to_try_again(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "fail")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("It did not work.")
    expect(alert).to_contain_text("Try it again.")
    expect(alert.get_by_role("button")).to_have_count(1)  # another model would not help
    alert.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_contain_text("It did not work.")
    expect(page.locator(".turn")).to_have_count(1)


def test_a_server_that_is_gone_is_said(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    expect(page.locator("#examples button").first).to_be_visible()
    page.watched.expected.append("ERR_INTERNET_DISCONNECTED")  # type: ignore[attr-defined]
    page.context.set_offline(True)
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    answered(page)


def test_an_address_opens_a_file_at_its_lines(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(f"{scripted.address}/?file=src/store/long.py&lines=1500-1510")
    cited = page.locator(".source .row.cited")
    expect(cited).to_have_count(11)
    expect(cited.first).to_be_in_viewport()
    expect(page.locator("#panel-title")).to_contain_text("long.py")
    page.get_by_role("button", name="Close the panel").click()
    assert "file=" not in page.url


def test_a_file_that_has_changed_is_said(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(f"{scripted.address}/?file=README.md")
    expect(page.locator("#panel-note")).to_contain_text("has changed")


def test_a_file_that_is_not_indexed_is_explained(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(f"{scripted.address}/?file=nowhere.py&lines=1-2")
    page.watched.expected.append("404 (NOT FOUND)")  # type: ignore[attr-defined]
    expect(page.locator("#panel-body")).to_contain_text("not an indexed file")


def test_answers_and_code_are_copied(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address, permissions=["clipboard-read", "clipboard-write"])
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Copy answer").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == ANSWER.strip()
    page.locator(".code-block .copy").last.click()
    expect(page.locator(".code-block .copy").last).to_have_text("Copied")
    code = page.evaluate("navigator.clipboard.readText()")
    assert code.startswith("def open_session") and code.endswith("return {}")


def test_the_theme_follows_the_system_until_one_is_chosen(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, color_scheme="dark")
    body = page.locator("body")
    dark, light = "rgb(23, 24, 26)", "rgb(251, 250, 247)"
    expect(body).to_have_css("background-color", dark)
    page.get_by_role("button", name="Light").click()
    expect(body).to_have_css("background-color", light)
    page.reload()
    expect(body).to_have_css("background-color", light)
    expect(page.get_by_role("button", name="Light")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="As the system").click()
    expect(body).to_have_css("background-color", dark)


def test_nothing_hostile_runs(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    for batch in (PAYLOADS[:40], PAYLOADS[40:]):
        ask(page, "say:" + "\n\n".join(batch))
        answered(page)
    for payload in PAYLOADS[:6]:
        ask(page, f"say:{payload}")
        answered(page)
    page.goto(f"{scripted.address}/?file=src/<img src=x onerror=window.hacked=1>.js&lines=1-1")
    expect(page.locator(".source")).to_contain_text("<script>")
    assert page.evaluate("window.hacked") is None
    # The policy would have stopped it; nothing even tried.
    expect(
        page.locator("#thread :is(img, iframe, object, embed, form, style, link)")
    ).to_have_count(0)


def test_every_control_has_a_name_and_shows_its_focus(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    nameless = """[...document.querySelectorAll("button, a, input, textarea")]
      .filter(e => e.checkVisibility())
      .filter(e => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length))
      .map(e => e.outerHTML)"""
    assert page.evaluate(nameless) == []
    for _ in range(12):
        page.keyboard.press("Tab")
        focus = """(() => { const e = document.activeElement;
          return ["TEXTAREA", "BODY"].includes(e.tagName)
            || getComputedStyle(e).outlineStyle !== "none"; })()"""
        assert page.evaluate(focus)


def test_a_page_behind_a_token_lets_in_who_has_it(guarded: Server, open_page: OpenPage) -> None:
    page = open_page(guarded.address)
    page.watched.expected.append("401 (UNAUTHORIZED)")  # type: ignore[attr-defined]
    page.get_by_label("Token").fill("guessed")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not the token")
    page.get_by_label("Token").fill("open sesame")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name=re.compile("store"))).to_be_visible()
    loaded(page)
    ask(page, "x")
    answered(page)


# On a phone


@pytest.mark.parametrize("width", [360, 390, 768])
def test_nothing_is_wider_than_a_narrow_screen(
    scripted: Server, open_page: OpenPage, width: int
) -> None:
    page = open_page(scripted.address, width=width, height=740, has_touch=True)
    expect(page.locator("#examples button").first).to_be_visible()
    assert not scrolled_sideways(page)
    page.locator("#question").fill("x")
    page.get_by_role("button", name="Send").tap()
    answered(page)
    assert not scrolled_sideways(page)
    page.get_by_role("button", name="Context").tap()
    expect(page.locator(".chunks")).to_be_visible()
    assert not scrolled_sideways(page)
    page.locator(".chunks button").first.tap()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.get_by_role("button", name="Back to the context").tap()
    expect(page.locator(".chunks")).to_be_visible()
    page.get_by_role("button", name="Close the panel").tap()
    page.locator("a.citation").first.tap()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    assert not scrolled_sideways(page)
    box = page.locator("#panel").bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
    page.get_by_role("button", name="Close the panel").tap()
    expect(page.locator("#panel")).to_be_hidden()


def test_the_panel_is_a_sheet_and_the_sidebar_a_drawer_on_a_phone(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, **PHONE, has_touch=True)
    sidebar = page.locator("#sidebar")
    expect(sidebar).not_to_be_in_viewport()
    page.get_by_role("button", name="Open the menu").tap()
    expect(sidebar).to_be_in_viewport()
    expect(page.locator("#index-state")).to_be_visible()
    page.keyboard.press("Escape")
    expect(sidebar).not_to_be_in_viewport()
    page.goto(f"{scripted.address}/?file=src/store/long.py&lines=700-710")
    box = page.locator("#panel").bounding_box()
    assert box is not None and box["width"] == 390 and 100 < box["y"] < 200
    expect(page.locator(".source .cited").first).to_be_in_viewport()


def test_back_on_a_phone_closes_the_sheet_and_stays_in_the_conversation(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, **PHONE, has_touch=True)
    loaded(page)
    page.locator("#question").fill("x")
    page.get_by_role("button", name="Send").tap()
    answered(page)
    conversation = page.url
    panel = page.locator("#panel")
    citation = page.locator("a.citation").first
    citation.tap()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.go_back()
    expect(panel).to_be_hidden()
    expect(page.locator(".turn")).to_have_count(1)
    assert page.url == conversation

    page.get_by_role("button", name="Context").tap()
    page.locator(".chunks button").first.tap()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.get_by_role("button", name="Close the panel").tap()
    citation.tap()  # at once: the step back may still be on its way
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.get_by_role("button", name="Close the panel").tap()
    expect(panel).to_be_hidden()
    expect(page).to_have_url(conversation)
    page.go_forward()  # to the sheet that was closed
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.go_back()
    expect(panel).to_be_hidden()
    page.get_by_role("button", name="Context").tap()
    expect(page.locator(".chunks")).to_be_visible()
    page.reload()
    expect(page.locator(".chunks")).to_be_visible()
    page.go_back()
    expect(panel).to_be_hidden()
    expect(page.locator(".turn")).to_have_count(1)
    page.go_back()  # now it leads out of the conversation
    expect(page.locator("#welcome")).to_be_visible()


def test_stages_wrap_without_a_dash_that_leads_nowhere(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, **PHONE)
    use_model(page, "OpenAI")
    ask(page, "silent")
    expect(page.locator(".stages")).to_contain_text("Waiting for gpt-4o")
    rows = """() => { const list = document.querySelector(".stages").getBoundingClientRect();
      return [...document.querySelectorAll(".stages li")].map(li => {
        const dash = getComputedStyle(li, "::before"), at = li.getBoundingClientRect();
        return [at.top, at.left + parseFloat(dash.left) >= list.left]; }); }"""
    drawn = page.evaluate(rows)
    assert len({top for top, _ in drawn}) > 1, "they fit into one row: a longer name is needed"
    tops: set[float] = set()
    for top, dashed in drawn:
        assert dashed == (top in tops)  # between two stages of one row, and nowhere else
        tops.add(top)
    page.get_by_role("button", name="Stop").click()


def test_line_numbers_stay_in_one_piece(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address, width=360, height=740)
    cited = "the place [src/store/sessions.py:25-33] and `src/store/sessions.py:25-33` again, "
    ask(page, "say:" + cited * 12)
    answered(page)
    numbers = page.locator(".answer .numbers")
    expect(numbers).to_have_count(24)
    assert page.evaluate(
        "[...document.querySelectorAll('.numbers')].every(e => e.getClientRects().length === 1)"
    )
    assert numbers.first.text_content() == ":25-33"


def test_the_picker_fits_a_phone(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(f"{scripted.address}/repositories", width=360, height=740)
    expect(page.get_by_role("heading", name="Choose a repository")).to_be_visible()
    expect(page.locator("#no-repositories")).not_to_have_text("Looking…")
    assert not scrolled_sideways(page)
