"""What somebody does on the page, and what they wait for."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from playwright.sync_api import Error, Locator, Page, Route
from waiting import until

PHONE = {"width": 360, "height": 740, "has_touch": True, "is_mobile": True}
CLIPBOARD = ["clipboard-read", "clipboard-write"]
COMPLETE = ".turns > .turn:last-child:not(.writing)"
"""The last turn, once its answer is complete."""


def field_of(page: Page) -> Locator:
    """The field in which questions are written."""
    return page.locator("#question")


# An `expect` that is not met at once describes the whole page for its error, each time it looks
# again. What many tests wait for is waited for by `wait_for`, which does not.


def ready(page: Page) -> None:
    """Wait until the page takes a question: its scripts run, the conversation of its address is
    there, and no answer is being written. Until then Enter sends nothing."""
    page.locator("body:has(#thread > *) #composer:not(.busy)").wait_for()


WRITE = """(text) => {
  const field = document.getElementById("question");
  field.focus();
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}"""
"""All at once; each new line that is typed takes the browser its time."""


def ask(page: Page, question: str) -> None:
    ready(page)
    page.evaluate(WRITE, question)
    page.keyboard.press("Enter")


def answered(page: Page) -> None:
    """Wait until the last answer is complete."""
    page.locator(f"{COMPLETE} .ways-again > :first-child").wait_for()


def get_answer(page: Page, question: str) -> None:
    ask(page, question)
    answered(page)


def being_written(page: Page, blocks: int = 2) -> None:
    """Wait until the last answer has so many blocks, and more to come."""
    page.locator(".turn.writing .block").nth(blocks - 1).wait_for(state="attached")


def stop(page: Page) -> None:
    page.keyboard.press("Escape")
    page.locator(f"{COMPLETE} .stages", has_text="Stopped").wait_for()


def open_context(page: Page) -> None:
    page.get_by_role("button", name="Context").last.click()
    page.locator(".chunks").first.wait_for()


def copied(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def chip_of(page: Page) -> Locator:
    """The switch that says whether the next question is searched for."""
    return page.locator("#codebase")


def pass_time(page: Page, seconds: float) -> None:
    """Have the page do what it does after so long; see `conftest.STAND_STILL`."""
    page.evaluate("seconds => passTime(1000 * seconds)", seconds)


def comes(page: Page, awaited: Locator) -> None:
    """Wait until something is in view for which the page looks again and again."""

    def met() -> bool:
        with suppress(Error):  # it may just be leaving for another page
            pass_time(page, 1)
        return awaited.is_visible()

    until(met)


def scrolled_sideways(page: Page) -> bool:
    return bool(
        page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    )


def expecting(page: Page, *parts: str) -> None:
    """Messages with these parts on the console are what the test provokes."""
    watched: Any = page.watched  # type: ignore[attr-defined]
    watched.expected.extend(parts)


def row(page: Page, title: str) -> Locator:
    """The conversation with that title in the sidebar."""
    named = page.locator(".title").and_(page.get_by_text(title, exact=True))
    return page.locator("li.conversation").filter(has=named)


def choose_from_menu(page: Page, title: str, item: str) -> None:
    """Open the menu of a conversation and choose one of its entries."""
    entry = row(page, title)
    entry.hover()
    entry.get_by_role("button", name=f"More for “{title}”").click()
    page.get_by_role("menuitem", name=item).click()


def show_switches(page: Page) -> None:
    """Where the field is narrow, what the next question is asked with opens below it."""
    more = page.locator("#composer-more[aria-expanded=false]")
    if more.is_visible():
        more.click()


def choose_provider(page: Page, title: str) -> Locator:
    """Open the dialog of models and choose a provider; gives the dialog."""
    show_switches(page)
    page.locator("#model-chip").click()
    dialog = page.get_by_role("dialog", name="Language model")
    choose_radio(dialog, re.compile(f"^{title}"))
    return dialog


def choose_radio(dialog: Locator, name: re.Pattern[str]) -> None:
    """Choose as people do, by the label: the button itself is one pixel that nobody sees."""
    radio = dialog.page.get_by_role("radio", name=name)
    dialog.locator("label").filter(has=radio).click()


def use_model(page: Page, title: str = "OpenAI") -> None:
    """Have questions answered by the model that the dialog proposes for a provider."""
    choose_provider(page, title).get_by_role("button", name="Use this model").click()
    page.locator("#models").wait_for(state="hidden")


def use_address(page: Page, address: str) -> Locator:
    """Have questions answered by `test-model` there, as somebody with a server of their own does;
    gives the dialog."""
    dialog = choose_provider(page, "Another address")
    dialog.get_by_label("Address", exact=True).fill(address)
    dialog.get_by_label("Model", exact=True).fill("test-model")
    dialog.get_by_role("button", name="Use this model").click()
    dialog.wait_for(state="hidden")
    return dialog


def new_conversation(page: Page) -> None:
    page.get_by_role("button", name="New conversation").first.click()


def set_answer_options(page: Page, *labels: str) -> None:
    """Choose in what opens beside the question, by the labels there, then close it."""
    show_switches(page)
    page.locator("#effort").click()
    for label in labels:
        named = page.locator("#answer-options label").filter(has_text=re.compile(f"^{label}"))
        named.first.click()
    page.keyboard.press("Escape")
    page.locator("#answer-options").wait_for(state="hidden")


def change_settings(page: Page, *labels: str) -> None:
    """Choose in the settings, by the labels there, then close them."""
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    for label in labels:
        dialog.locator("label").filter(has_text=re.compile(f"^{label}")).click()
    dialog.get_by_role("button", name="Close").click()


class Held:
    """Requests to an address, which wait until they are let go on."""

    def __init__(self, page: Page, address: str | re.Pattern[str], method: str = "") -> None:
        self._page = page
        self._routes: list[Route] = []
        self.holds = True
        page.route(address, lambda route: self._take(route, method))

    def _take(self, route: Route, method: str) -> None:
        if self.holds and method in ("", route.request.method):
            self._routes.append(route)
        else:
            route.continue_()

    def until_asked(self, addresses: int = 1) -> None:
        """Wait until so many different addresses were asked for."""
        until(lambda: self._page.evaluate("1") and self.count() >= addresses)

    def count(self) -> int:
        return len({route.request.url for route in self._routes})

    def go_on(self) -> None:
        self.until_asked()
        while self._routes:
            self._routes.pop().continue_()
