"""Nothing that a model, a file, a provider or a person writes runs in the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser.actions import answered, ask, choose_from_menu, choose_provider, expecting, use_model
from browser.conftest import Server
from browser.fake_models import HOSTILE
from browser.payloads import PAYLOADS
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
FOREIGN = ":is(img, iframe, object, embed, form:not([id]), style, link, script:not([src]))"


def unharmed(page: Page) -> None:
    """Nothing ran; the policy would have stopped it, and nothing even tried."""
    assert page.evaluate("window.hacked") is None
    expect(page.locator(f"body {FOREIGN}")).to_have_count(0)


def test_questions_titles_and_answers_are_text_also_after_a_reload(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    for payload in (PAYLOADS[3], PAYLOADS[7], "say:" + "\n\n".join(PAYLOADS)):
        ask(page, payload)
        answered(page)
    expect(page.locator("#outline a").first).to_have_text(PAYLOADS[3])
    expect(page.locator("#conversations .title")).to_have_text([PAYLOADS[3]])
    assert page.title().startswith(PAYLOADS[3])
    unharmed(page)
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    unharmed(page)
    page.get_by_role("button", name="Edit the question").first.focus()
    page.keyboard.press("Enter")
    unharmed(page)


def test_a_title_is_text_where_it_is_listed_renamed_and_deleted(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "harmless")
    answered(page)
    title = "harmless"
    for payload in (PAYLOADS[3], '"><svg onload=window.hacked=1>', "‮</title><script>x</script>"):
        choose_from_menu(page, title, "Rename")
        page.get_by_label("Title of the conversation").fill(payload)
        with page.expect_response(lambda response: response.request.method == "POST") as saved:
            page.keyboard.press("Enter")
        if not saved.value.ok:  # characters that cannot be shown are refused
            expecting(page, "400 (BAD REQUEST)")
            continue
        title = payload
        expect(page.locator("#conversations .title")).to_have_text([payload])
        unharmed(page)
    choose_from_menu(page, title, "Delete")
    expect(page.locator("#toast")).to_contain_text(title[:20])
    unharmed(page)


def test_models_and_what_providers_say_are_text(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    expecting(page, "502 (BAD GATEWAY)")
    dialog = choose_provider(page, "Ollama")
    field = dialog.get_by_label("Model", exact=True)
    field.click()
    dialog.get_by_role("option", name=HOSTILE).click()
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text(HOSTILE)
    dialog.get_by_role("button", name="Use this model").click()
    expect(page.locator("#model-chip-name")).to_have_text(HOSTILE)
    ask(page, "x")
    answered(page)
    expect(page.locator(".facts")).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Context").click()
    expect(page.locator("#panel-title")).to_contain_text(HOSTILE)
    expect(page.locator(".message pre").last).to_contain_text("<b>src</b>")
    unharmed(page)
    ask(page, "silent")
    expect(page.locator(".stages").last).to_contain_text(f"Waiting for {HOSTILE}")
    page.get_by_role("button", name="Stop").click()
    dialog = choose_provider(page, "Groq")
    dialog.get_by_label("Key", exact=True).fill("wrong")
    dialog.get_by_label("Model", exact=True).fill(PAYLOADS[9])
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text(HOSTILE)
    unharmed(page)


@pytest.mark.parametrize("payload", [HOSTILE, PAYLOADS[16], PAYLOADS[45]])
def test_the_error_of_a_model_is_text(scripted: Server, open_page: OpenPage, payload: str) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, f"modelfail because:{payload}")
    expect(page.get_by_role("alert")).to_contain_text(payload.strip())
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text(payload.strip())
    unharmed(page)


def test_an_address_cannot_smuggle_anything_in(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(f"{scripted.address}/?c=<img src=x onerror=window.hacked=1>&file={HOSTILE}")
    expecting(page, "404 (NOT FOUND)")
    expect(page.get_by_role("alert")).to_contain_text("no such conversation")
    expect(page.locator("#panel-body")).to_contain_text("not an indexed file")
    unharmed(page)
