"""Code in an answer: its language, and the way to its place where it stands in the source."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser.actions import answered, ask, scrolled_sideways
from browser.conftest import Server
from browser.test_page_loop import ASK
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
CITED = "[src/store/sessions.py:25-33]"
OPENED = """```python
def open_session(self, app, request):
    value = request.cookies.get(app.config["SESSION_COOKIE_NAME"])
    if not value:
        return {}
```"""
INVENTED = OPENED.replace("SESSION_COOKIE_NAME", "COOKIE")


def test_code_that_stands_in_a_cited_file_opens_there(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, f"say:See {CITED}.\n\n{OPENED}\n\n{INVENTED}\n\n```\nreturn {{}}\n```\n")
    answered(page)
    for _ in range(2):
        button = page.get_by_role("button", name="Open src/store/sessions.py, lines 26 to 29")
        expect(button).to_be_visible()
        expect(page.locator(".open-file")).to_have_count(1)  # neither the altered nor the short
        expect(page.locator(".code-head .language")).to_have_text(["python", "python", "text"])
        button.click()
        cited = page.locator(".source .row.cited")
        expect(cited).to_have_count(4)
        expect(cited.first).to_contain_text("def open_session(self, app, request):")
        page.keyboard.press("Escape")
        expect(button).to_be_focused()
        page.reload()


def test_code_of_an_answer_without_citations_is_not_looked_up(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    ask(page, f"say:{OPENED}\n")
    answered(page)
    page.wait_for_timeout(200)
    expect(page.locator(".open-file")).to_have_count(0)
    assert not [url for url in asked if "/api/lines" in url]


def test_the_code_of_a_real_answer_opens_where_it_stands(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    ask(page, ASK)
    answered(page)
    button = page.locator(".open-file").first
    expect(button).to_be_visible()
    block = page.locator(".code-block").filter(has=button).first
    first = (block.locator("pre").text_content() or "").strip().split("\n")[0].strip()
    button.click()
    expect(page.locator(".source .cited").first).to_contain_text(first)


def test_a_match_is_exact_but_for_its_indentation(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    match = """async ([text, lines]) => {
      const { matchOf } = await import("/static/js/answer/code_references.js");
      return matchOf(text, lines);
    }"""
    source = ["class A:", "    def f(self):  ", "", "        return self.value", "    x = 1"]
    body = "def f(self):\n\n    return self.value"
    assert page.evaluate(match, [body, source]) == {"start": 1, "end": 3}
    assert page.evaluate(match, [f"\n        {body}\n\n", source]) is None  # of two depths
    deeper = "\n".join(f"      {line}" for line in body.split("\n"))
    assert page.evaluate(match, [deeper, source]) == {"start": 1, "end": 3}
    assert page.evaluate(match, [body.replace("value", "other"), source]) is None
    assert page.evaluate(match, ["x = 1", source]) is None  # it stands anywhere
    assert page.evaluate(match, [body, []]) is None


def test_the_head_of_code_fits_a_phone(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address, width=360, height=740, has_touch=True)
    page.locator("#question").fill(f"say:See {CITED}.\n\n{OPENED}\n")
    page.get_by_role("button", name="Send").tap()
    answered(page)
    button = page.locator(".open-file")
    expect(button).to_be_visible()
    box = button.bounding_box()
    assert box is not None and box["height"] >= 43.5
    assert not scrolled_sideways(page)
