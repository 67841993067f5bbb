"""An answer while it is written: its page is reloaded or closed, and opened a second time."""

from __future__ import annotations

from browser.actions import ask, being_written, expecting, field_of, get_answer, ready, stop
from browser.conftest import ScriptedServer
from browser.fakes import PART
from playwright.sync_api import Page, expect

FIRST = "Paragraph 0 of a long answer."


def blocks_of(page: Page) -> int:
    return page.locator(".turn").last.locator(".block").count()


def test_a_page_that_is_reloaded_or_opened_twice_reads_the_answer_along(
    page: Page, scripted: ScriptedServer
) -> None:
    get_answer(page, "say:Complete.")
    ask(page, "slow")
    being_written(page)
    page.reload()
    being_written(page)
    other = scripted.open(page.url.removeprefix(scripted.address))
    being_written(other)
    scripted.chat.more.release()
    for one in (page, other):
        being_written(one, 2 * PART)
        last = one.locator(".turn").last
        expect(one.locator(".turn")).to_have_count(2)
        expect(last.locator(".question")).to_contain_text("slow")
        expect(last.locator(".block").first).to_have_text(FIRST)
    stop(other)
    expect(page.locator(".turn").last.locator(".stages")).to_contain_text("Stopped")
    assert blocks_of(page) == blocks_of(other)
    asked = len(scripted.chat.asked)
    get_answer(page, "say:Next.")
    assert len(scripted.chat.asked) == asked + 1


def test_an_answer_goes_on_when_its_page_is_closed(page: Page, scripted: ScriptedServer) -> None:
    ask(page, "slow")
    being_written(page)
    address = page.url.removeprefix(scripted.address)
    page.close()
    scripted.chat.more.release()
    again = scripted.open(address)
    being_written(again, 2 * PART)
    assert not scripted.chat.cancelled.is_set()
    stop(again)


def test_a_question_asked_while_another_tab_is_answered_stays_in_the_field(
    page: Page, scripted: ScriptedServer
) -> None:
    get_answer(page, "say:Complete.")
    other = scripted.open(page.url.removeprefix(scripted.address))
    expecting(other, "409")
    ready(other)
    ask(page, "slow")
    being_written(page)
    ask(other, "and mine?")
    being_written(other)
    expect(field_of(other)).to_have_value("and mine?")
    expect(other.locator("#toast")).to_contain_text("still being answered")
    expect(other.locator(".turn")).to_have_count(2)
    stop(other)
