"""Choosing a language model: what is offered, where it would send, its key, testing it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from browser.actions import (
    Held,
    choose_provider,
    choose_radio,
    copied,
    expecting,
    get_answer,
)
from browser.conftest import ScriptedServer, Server
from openai_server import openai_server, stream
from playwright.sync_api import Locator, Page, expect

from codeqa.llm import providers
from codeqa.llm.providers import provider_named


def open_dialog(page: Page) -> Locator:
    page.locator("#model-chip").click()
    return page.get_by_role("dialog", name="Language model")


def lacks(field: Locator) -> str:
    """What the browser says beside a field when its form is sent."""
    return str(field.evaluate("node => node.validationMessage"))


def test_what_comes_to_the_first_page_later_moves_nothing(real: Server) -> None:
    page = real.open("/health")
    held = Held(page, re.compile("/api/(first-questions|models/local)"))
    page.goto(real.address)
    parts = [page.locator("#welcome h1"), page.locator("#without-model")]
    expect(parts[1]).to_be_visible()
    held.until_asked(2)
    before = [part.bounding_box() for part in parts]
    held.holds = False  # examples are asked for again as long as there are none
    held.go_on()
    expect(page.locator("#examples button").first).to_be_visible()
    expect(page.locator("#local-models code").first).to_be_visible()
    assert [part.bounding_box() for part in parts] == before


def test_a_model_on_this_machine_answers_after_one_click_on_the_first_page(
    real: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = stream(["Copies are taken off the shelf [bookshop/stock.py:1-5]."])
    with openai_server(lambda path, body: answer, models=("nomic-embed-text", "qwen3:8b")) as model:
        model.pages["/api/ps"] = {"models": []}
        ollama = replace(provider_named("ollama"), base_url=model.base_url)
        monkeypatch.setitem(providers._BY_NAME, "ollama", ollama)
        page = real.open()
        offer = page.get_by_role("button", name="Answer with qwen3:8b from Ollama on this machine")
        expect(page.locator("#local-models button")).to_have_count(1)
        offer.click()
        expect(page.locator("#model-chip")).to_have_text("qwen3:8bthis machine")
        expect(page.locator("#local-models")).to_be_hidden()
        expect(page.get_by_label(re.compile("Question about"))).to_be_focused()
        get_answer(page, "@codebase How are copies of a book reserved?")
        expect(page.locator(".answer")).to_contain_text("Copies are taken off the shelf")
        expect(page.locator(".details-body")).to_contain_text("qwen3:8b · 127.0.0.1")
        page.request.post(f"{real.address}/api/models", data={"provider": ""})
        model.models = ()
        page.goto(real.address)
        expect(page.locator("#local-models")).to_contain_text("Ollama runs on this machine but")
        expect(page.locator("#local-models code")).to_have_text(["ollama pull qwen3"])


def test_the_first_page_says_what_a_model_adds_and_waits_for_no_server_to_say_what_brings_one(
    scripted: ScriptedServer,
) -> None:
    scripted.models.local = False
    page = scripted.open("/health")
    looking = Held(page, "**/api/models/local")
    page.goto(scripted.address)
    expect(page.get_by_role("heading", name=re.compile(r"store\?$"))).to_be_visible()
    chip = page.get_by_role("button", name="No model. Choose a language model")
    expect(chip).to_have_text("No model")
    looking.until_asked()
    commands = page.locator("#local-models code")
    expect(commands).to_have_count(0)
    looking.go_on()
    expect(commands).to_have_text([re.compile("ollama.com/install"), "ollama pull qwen3"])
    page.locator("#local-models").get_by_role("button", name="Copy").last.click()
    expect(page.locator("#local-models")).to_contain_text("Copied")
    assert copied(page) == "ollama pull qwen3"

    page.locator("#without-model").get_by_role("button", name="Choose one").click()
    dialog = page.get_by_role("dialog", name="Language model")
    looking.go_on()
    choose_radio(dialog, re.compile("^No model"))
    expect(dialog).to_contain_text("A model adds")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#without-model button")).to_be_focused()


def test_what_runs_here_comes_first_then_what_has_a_key_and_rows_stay_where_they_are(
    page: Page, scripted: ScriptedServer
) -> None:
    expect(page.locator("#local-models button")).to_have_count(1)  # the first page has looked
    looking = Held(page, "**/api/models/local")
    dialog = open_dialog(page)
    tops = """() => [...document.querySelectorAll(".provider")]
      .map(row => [row.querySelector("input").value, row.getBoundingClientRect().top])"""
    expect(page.locator(".providers-looking")).to_have_text("Looking…")
    before = page.evaluate(tops)
    looking.go_on()
    expect(page.locator(".providers-looking")).to_have_count(0)
    assert len(before) > 8 and page.evaluate(tops) == before

    names, details = page.locator(".provider-title"), page.locator(".provider-detail")
    for at, name, detail in (
        (1, "Another address", "any server with OpenAI’s chat API"),
        (2, "Ollama", "running, 3 models"),
        (6, "OpenAI", "found OPENAI_API_KEY"),
    ):
        expect(names.nth(at)).to_have_text(name)
        expect(details.nth(at)).to_have_text(detail)
    where = page.locator("#model-where")
    expect(where).to_contain_text("Runs on this machine: questions and code stay here.")
    expect(page.get_by_label("Key", exact=True)).to_be_hidden()
    expect(dialog.get_by_role("radio", name=re.compile("^Ollama"))).to_be_focused()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(where).to_contain_text(
        "Your questions and the code for them will be sent to api.openai.com."
    )
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    assert scripted.models.current() is None and not scripted.models.tested

    # A first visit lands on what could be used at once.
    for exported, landed in ((True, "OpenAI"), (False, "Choose a model")):
        page.keyboard.press("Escape")
        scripted.models.local, scripted.models.exported = False, exported
        with page.expect_response("**/api/models/local"):
            open_dialog(page)
            looking.go_on()
        expect(dialog.locator(".providers-looking")).to_have_count(0)
        expect(page.locator("#model-provider")).to_have_text(landed)


def test_a_model_is_listed_tested_used_and_given_up(page: Page, scripted: ScriptedServer) -> None:
    dialog = choose_provider(page, "OpenAI")
    field, result = dialog.get_by_label("Model", exact=True), dialog.get_by_role("status")
    test = dialog.get_by_role("button", name="Test", exact=True)
    dialog.get_by_role("button", name="List models").click()
    options = dialog.get_by_role("option")
    expect(options).to_have_count(4)  # those that chat
    expect(field).to_be_focused()
    field.fill("4O-MINI")
    expect(options).to_have_text(["gpt-4o-mini"])
    for key in ("Tab", "Tab", "ArrowDown"):
        page.keyboard.press(key)
    expect(field).to_have_value("gpt-4o-mini")
    test.click()
    expect(result).to_have_text("gpt-4o-mini at api.openai.com answered in 640 ms.")
    assert scripted.models.current() is None  # a test chooses nothing
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()
    chip = page.locator("#model-chip")
    expect(chip).to_be_focused()
    expect(chip).to_have_text("gpt-4o-miniapi.openai.com")
    page.reload()
    expect(chip).to_have_text("gpt-4o-miniapi.openai.com")

    choose_provider(page, "OpenAI")
    field.fill("patience")  # a test can be cancelled
    with page.expect_event("requestfailed") as aborted:
        test.click()
        expect(result).to_have_text("Asking for one word…")
        dialog.get_by_role("button", name="Cancel", exact=True).click()
    assert aborted.value.url.endswith("/api/models/test")
    expect(result).to_be_empty()
    scripted.models.patient.set()
    field.fill("gpt-4o")
    for change in (  # its result goes with what it was about
        lambda: field.press_sequentially("-mini"),
        lambda: dialog.get_by_label("Key", exact=True).fill("k"),
        lambda: choose_radio(dialog, re.compile("Mistral")),
    ):
        test.click()
        expect(result).to_contain_text("answered in 640 ms")
        change()
        expect(result).to_be_empty()
    choose_radio(dialog, re.compile("^No model"))
    dialog.get_by_role("button", name="Use no model").click()
    expect(chip).to_have_text("No model")
    assert scripted.models.current() is None
    choose_provider(page, "OpenAI")
    expect(field).to_have_value("gpt-4o-mini")


def test_a_key_is_asked_for_kept_and_forgotten_and_never_shown(
    page: Page, scripted: ScriptedServer
) -> None:
    expecting(page, "502 (BAD GATEWAY)")
    dialog = choose_provider(page, "Anthropic")
    key, result = dialog.get_by_label("Key", exact=True), dialog.get_by_role("status")
    expect(key).to_have_attribute("type", "password")
    use = dialog.get_by_role("button", name="Use this model")
    use.click()
    assert lacks(key) == "Enter a key for api.anthropic.com first."
    expect(key).to_be_focused()
    key.fill("wrong-key")
    dialog.get_by_role("button", name="Test").click()
    expect(result).to_contain_text("The server refused the key")
    expect(result).to_contain_text("Enter another key, then test again.")
    for leave in (
        lambda: choose_radio(dialog, re.compile("Mistral")),
        lambda: page.keyboard.press("Escape"),
    ):
        key.fill("half typed")  # what was not used does not stay in the dialog
        leave()
        expect(page.locator("#model-key")).to_have_value("")
    expect(dialog).to_be_hidden()  # a click while it closes would be lost
    held = Held(page, "**/api/models", "GET")
    choose_provider(page, "Anthropic")  # in the list as it stood
    with page.expect_request("**/api/models/local"):  # which is asked for afterwards
        held.go_on()
    page.unroute_all()
    key.fill("a-good-key")
    use.click()
    expect(dialog).to_be_hidden()
    assert scripted.models.keys == {"api.anthropic.com": "a-good-key"}

    open_dialog(page)
    expect(key).to_have_value("")
    expect(dialog).to_contain_text("A key for api.anthropic.com is stored on this machine.")
    assert "a-good-key" not in page.content()
    forget = dialog.get_by_role("button", name="Forget key")
    forget.click()
    expect(result).to_have_text("The key is deleted.")
    expect(forget).to_be_hidden()
    assert scripted.models.keys == {}


def test_another_address_names_the_host_before_anything_is_sent(
    page: Page, scripted: ScriptedServer
) -> None:
    dialog = choose_provider(page, "Another address")
    address = dialog.get_by_label("Address", exact=True)
    test, where = dialog.get_by_role("button", name="Test"), page.locator("#model-where")
    for typed, words in (
        ("", "Enter the address of the server first."),
        ("models.example/v1", "Begin the address with https://"),
    ):
        address.fill(typed)
        test.click()
        assert lacks(address).startswith(words)
        expect(address).to_be_focused()
    address.fill("https://models.example/v1")
    expect(where).to_contain_text("will be sent to models.example.")
    address.fill("127.0.0.1:9999/v1")  # on this machine that is enough
    expect(where).to_contain_text("Runs on this machine")
    dialog.get_by_label("Model", exact=True).fill("mine")
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()
    chosen = scripted.models.current()
    assert (chosen.model, chosen.address) == ("mine", "http://127.0.0.1:9999/v1")
    expect(page.locator("#model-chip")).to_have_text("minethis machine")


def test_behind_tokens_each_sees_their_own_and_only_the_owner_chooses(
    guarded: ScriptedServer,
) -> None:
    for token in ("open sesame", "second key"):
        page = guarded.open()
        expecting(page, "401 (UNAUTHORIZED)")
        if token == "open sesame":
            page.get_by_label("Token").fill("guessed")
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("token is wrong")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name=re.compile("store"))).to_be_visible()
        if token == "open sesame":
            expect(page.locator("#local-models button")).to_have_count(1)
        get_answer(page, f"asked with {token}")
        looked, guarded.models.probed = guarded.models.probed, 0
        assert bool(looked) is (token == "open sesame"), "only the owner's first page looks"
    expect(page.locator("#conversations .title")).to_have_text(["asked with second key"])
    dialog = open_dialog(page)
    expect(dialog.locator("#models-notice")).to_contain_text("Only the owner of this server")
    expect(dialog.locator("#model-form")).to_have_attribute("inert", "")
    expect(dialog.locator(".providers-looking")).to_have_count(0)
    assert guarded.models.probed == 0
