"""The dialog in which a language model is chosen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import (
    answered,
    ask,
    choose_provider,
    choose_radio,
    expecting,
    loaded,
    use_model,
)
from browser.conftest import Server
from browser.fake_models import FakeModels
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
BAD_GATEWAY = "502 (BAD GATEWAY)"


def models_of(server: Server) -> FakeModels:
    assert server.models is not None
    return server.models


def test_without_a_model_the_page_says_what_one_adds_and_nothing_is_looked_for(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    chip = page.get_by_role("button", name="No language model. Choose one")
    expect(chip).to_have_text("No model")
    expect(page.locator("#without-model")).to_contain_text("explains in its own words")
    assert models_of(scripted).probed == 0  # only who opens the dialog wants to know
    page.locator("#without-model").get_by_role("button", name="Choose one").click()
    dialog = page.get_by_role("dialog", name="Language model")
    expect(dialog.get_by_role("radio", name=re.compile("^Ollama"))).to_be_focused()
    choose_radio(dialog, re.compile("^No model"))
    expect(dialog).to_contain_text("A model adds")
    expect(dialog.get_by_role("button", name="Use no model")).to_be_hidden()  # it is so already
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#without-model button")).to_be_focused()


def test_what_runs_here_comes_first_then_what_has_a_key(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    page.locator("#model-chip").click()
    expect(page.locator(".provider-title").nth(1)).to_have_text("Ollama")
    expect(page.locator(".provider-detail").nth(1)).to_have_text("running, 3 models")
    expect(page.locator(".provider-title").nth(5)).to_have_text("OpenAI")
    expect(page.locator(".provider-detail").nth(5)).to_have_text("found OPENAI_API_KEY")
    where = page.locator("#model-where")
    expect(where).to_contain_text("Runs on this machine: questions and code stay here.")
    expect(page.get_by_label("Model", exact=True)).to_have_value("qwen3:8b")
    expect(page.get_by_label("Key", exact=True)).to_be_hidden()
    expect(page.get_by_role("radio", name=re.compile("^Ollama"))).to_be_focused()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(where).to_contain_text(
        "Questions and the code found for them would be sent to api.openai.com."
    )
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    assert models_of(scripted).current() is None and not models_of(scripted).tested


def test_a_model_is_listed_tested_and_used(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    dialog = choose_provider(page, "OpenAI")
    field = dialog.get_by_label("Model", exact=True)
    dialog.get_by_role("button", name="List models").click()
    options = dialog.get_by_role("option")
    expect(options).to_have_count(4)
    expect(field).to_be_focused()
    field.press_sequentially("-mini")
    expect(options).to_have_text(["gpt-4o-mini"])
    page.keyboard.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", "model-options-0")
    page.keyboard.press("Enter")
    expect(field).to_have_value("gpt-4o-mini")
    expect(dialog).to_be_visible()  # Enter took the suggestion, nothing more
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_have_text(
        "gpt-4o-mini at api.openai.com answered in 640 ms."
    )
    assert models_of(scripted).current() is None  # a test chooses nothing
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#model-chip")).to_have_text("gpt-4o-miniapi.openai.com")
    expect(page.locator("#model-chip")).to_be_focused()
    expect(page.locator("#without-model")).to_be_hidden()
    page.reload()
    expect(page.locator("#model-chip")).to_have_text("gpt-4o-miniapi.openai.com")
    ask(page, "x")
    answered(page)
    expect(page.locator(".facts")).to_contain_text("gpt-4o-mini · api.openai.com")


def test_a_first_visit_lands_on_what_could_be_used_at_once(
    scripted: Server, open_page: OpenPage
) -> None:
    models = models_of(scripted)
    page = open_page(scripted.address)
    dialog = page.get_by_role("dialog", name="Language model")
    title = page.locator("#model-provider")
    for local, exported, landed in (
        (True, True, "Ollama"),
        (False, True, "OpenAI"),
        (False, False, "Choose a model"),
    ):
        models.local, models.exported = local, exported
        page.locator("#model-chip").click()
        expect(dialog.locator(".providers-looking")).to_have_count(0)
        expect(title).to_have_text(landed)
        page.keyboard.press("Escape")
    page.locator("#model-chip").click()
    expect(dialog).to_contain_text(
        "No model is in use. Choose one from the list, or go on without."
    )
    expect(dialog.get_by_role("button", name=re.compile("^Use"))).to_be_hidden()
    expect(dialog.get_by_role("radio", checked=True)).to_have_count(0)
    page.keyboard.press("ArrowDown")  # from the first row, which only has the focus
    expect(title).to_have_text("Ollama")


def test_rows_stay_where_they_are_while_servers_are_looked_for(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    page.route("**/api/models/local", lambda route: (page.wait_for_timeout(400), route.continue_()))
    page.locator("#model-chip").click()
    tops = """() => [...document.querySelectorAll(".provider")]
      .map(row => [row.querySelector("input").value, row.getBoundingClientRect().top])"""
    expect(page.locator(".providers-looking")).to_have_text("Looking for models…")
    before = page.evaluate(tops)
    expect(page.locator(".providers-looking")).to_have_count(0)
    assert len(before) > 8
    assert page.evaluate(tops) == before


def test_a_test_can_be_cancelled_and_its_verdict_goes_with_what_it_was_about(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    dialog = choose_provider(page, "OpenAI")
    field, verdict = dialog.get_by_label("Model", exact=True), dialog.get_by_role("status")
    field.fill("patience")
    with page.expect_event("requestfailed") as aborted:
        dialog.get_by_role("button", name="Test", exact=True).click()
        expect(verdict).to_have_text("Asking for one word…")
        dialog.get_by_role("button", name="Cancel", exact=True).click()
    assert aborted.value.url.endswith("/api/models/test")
    expect(verdict).to_be_empty()
    models_of(scripted).patient.set()
    test = dialog.get_by_role("button", name="Test", exact=True)

    def tested() -> None:
        test.click()
        expect(verdict).to_contain_text("answered in 640 ms")

    field.fill("gpt-4o")
    tested()
    field.press_sequentially("-mini")
    expect(verdict).to_be_empty()
    tested()
    dialog.get_by_label("Key", exact=True).fill("k")
    expect(verdict).to_be_empty()
    tested()
    choose_radio(dialog, re.compile("Mistral"))
    expect(verdict).to_be_empty()
    choose_radio(dialog, re.compile("Another address"))
    dialog.get_by_label("Address", exact=True).fill("localhost:9999/v1")
    field.fill("mine")
    tested()
    dialog.get_by_label("Address", exact=True).press("End")
    dialog.get_by_label("Address", exact=True).press_sequentially("/")
    expect(verdict).to_be_empty()


def test_models_that_do_not_chat_are_not_suggested(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    dialog = choose_provider(page, "OpenAI")
    dialog.get_by_role("button", name="List models").click()
    expect(dialog.get_by_role("status")).to_contain_text("4 models: choose one.")
    expect(dialog.get_by_role("option").first).to_have_text("gpt-4o")
    for other in ("embed", "whisper", "tts", "dall-e", "moderation"):
        expect(dialog.get_by_role("option", name=re.compile(other))).to_have_count(0)


def test_a_key_is_asked_for_kept_and_forgotten_and_never_shown(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    expecting(page, BAD_GATEWAY)
    dialog = choose_provider(page, "Anthropic")
    key = dialog.get_by_label("Key", exact=True)
    expect(key).to_have_attribute("type", "password")
    expect(dialog).to_contain_text("Kept on this machine, readable by you alone")
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog.get_by_role("status")).to_contain_text("Enter a key for api.anthropic.com first.")
    expect(key).to_be_focused()
    key.fill("wrong key")
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text("The server refused the key")
    expect(dialog.get_by_role("status")).to_contain_text("Enter another key, then test again.")
    key.fill("a good key")
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()
    assert models_of(scripted).keys == {"api.anthropic.com": "a good key"}

    page.locator("#model-chip").click()
    expect(key).to_have_value("")
    expect(dialog).to_contain_text("A key for api.anthropic.com is kept on this machine.")
    assert "a good key" not in page.content()
    dialog.get_by_role("button", name="Forget key").click()
    expect(dialog.get_by_role("status")).to_have_text("The key is forgotten.")
    expect(dialog.get_by_role("button", name="Forget key")).to_be_hidden()
    assert models_of(scripted).keys == {}


def test_a_key_that_was_not_used_does_not_stay_in_the_dialog(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    dialog = choose_provider(page, "Groq")
    key = dialog.get_by_label("Key", exact=True)
    key.fill("half typed")
    choose_radio(dialog, re.compile("Mistral"))
    expect(key).to_have_value("")
    key.fill("half typed")
    page.keyboard.press("Escape")
    expect(page.locator("#model-key")).to_have_value("")


def test_another_address_names_the_host_before_anything_is_sent(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    dialog = choose_provider(page, "Another address")
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text("Enter the address of the server first.")
    expect(dialog).to_contain_text("any server with OpenAI’s chat-completions API")
    address = dialog.get_by_label("Address", exact=True)
    address.fill("models.example/v1")
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text("Begin the address with https://")
    expect(address).to_be_focused()
    address.fill("https://models.example/v1")
    expect(page.locator("#model-where")).to_contain_text("would be sent to models.example.")
    address.fill("127.0.0.1:9999/v1")  # on this machine that is enough
    expect(page.locator("#model-where")).to_contain_text("Runs on this machine")
    dialog.get_by_label("Model", exact=True).fill("mine")
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()
    chosen = models_of(scripted).current()
    assert (chosen.provider, chosen.model, chosen.address) == (
        "custom", "mine", "http://127.0.0.1:9999/v1",
    )  # fmt: skip
    expect(page.locator("#model-chip")).to_have_text("minethis machine")
    page.locator("#model-chip").click()
    expect(address).to_have_value("http://127.0.0.1:9999/v1")


def test_going_back_to_no_model_is_one_choice(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    use_model(page)
    dialog = choose_provider(page, "^No model")
    dialog.get_by_role("button", name="Use no model").click()
    expect(page.locator("#model-chip")).to_have_text("No model")
    assert models_of(scripted).current() is None


def test_the_suggestions_close_before_the_dialog_does(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    dialog = choose_provider(page, "Ollama")
    field = dialog.get_by_label("Model", exact=True)
    field.click()
    expect(dialog.get_by_role("option")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(dialog.get_by_role("listbox")).to_be_hidden()
    expect(dialog).to_be_visible()
    field.click()
    dialog.get_by_role("option", name="llama3.2:3b").click()
    expect(field).to_have_value("llama3.2:3b")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_on_a_phone_the_dialog_is_a_list_and_then_a_form(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, width=390, height=844, has_touch=True, is_mobile=True)
    page.locator("#model-chip").tap()
    dialog = page.get_by_role("dialog", name="Language model")
    use = dialog.get_by_role("button", name="Use", exact=False)
    expect(use).to_be_hidden()
    dialog.locator("label.provider").filter(has_text="OPENAI_API_KEY").tap()
    expect(use).to_be_in_viewport()
    expect(dialog.locator(".providers")).to_be_hidden()
    dialog.get_by_role("button", name="Back to the providers").tap()
    dialog.locator("label.provider").filter(
        has_text="OPENAI_API_KEY"
    ).tap()  # the same one once more
    use.tap()
    expect(page.locator("#model-chip-name")).to_have_text("gpt-4o")
    assert not page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )


def test_who_does_not_own_the_server_cannot_choose_for_it(
    guarded: Server, open_page: OpenPage
) -> None:
    pages = {}
    for token in ("open sesame", "second key"):
        page = pages[token] = open_page(guarded.address)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        loaded(page)
        ask(page, f"asked with {token}")
        answered(page)
    page = pages["second key"]
    expect(page.locator("#conversations .title")).to_have_text(["asked with second key"])
    page.locator("#model-chip").click()
    dialog = page.get_by_role("dialog", name="Language model")
    expect(dialog.locator("#models-notice")).to_contain_text("Only the owner of this server")
    expect(dialog.locator("#model-form")).to_have_attribute("inert", "")
    expect(dialog.locator(".providers-looking")).to_have_count(0)
    assert models_of(guarded).probed == 0
