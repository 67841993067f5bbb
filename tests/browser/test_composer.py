"""The field for questions: what is sent, the chip beside it, modes after a slash, what is kept."""

from __future__ import annotations

import re

from browser.actions import (
    answered,
    ask,
    chip_of,
    field_of,
    get_answer,
    new_conversation,
    ready,
    use_model,
)
from browser.conftest import ScriptedServer
from playwright.sync_api import Page, expect


def expect_chip(page: Page, pressed: bool) -> None:
    expect(chip_of(page)).to_have_attribute("aria-pressed", str(pressed).lower())


def test_enter_sends_shift_enter_begins_a_line_and_what_is_not_sent_outlives_a_reload(
    page: Page, scripted: ScriptedServer
) -> None:
    ready(page)
    field = field_of(page)
    field.press_sequentially("one")
    page.keyboard.press("Shift+Enter")
    field.press_sequentially("two")
    page.reload()
    expect(field).to_have_value("one\ntwo")
    page.goto(f"{scripted.address}/repositories")
    page.go_back()
    expect(field).to_have_value("one\ntwo")
    ready(page)
    field.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase one\ntwo"
    page.reload()
    ready(page)
    expect(field).to_have_value("")
    field.fill("asked by a double click")
    page.locator("#send").dblclick()  # the second click does not stop it
    answered(page)
    expect(page.locator(".stages").last).to_contain_text("pieces")


def test_the_chip_is_on_at_first_and_a_tag_that_is_typed_is_as_good(
    page: Page, scripted: ScriptedServer
) -> None:
    field, alert = field_of(page), page.get_by_role("alert")
    for typed, words in (  # only a mode or a tag is not sent
        ("/review ", "What should be reviewed? Write it after /review."),
        ("@codebase /Plan ", "What should be planned? Write it after /plan."),
        ("@codebase", "What should be searched for? Write it after @codebase."),
    ):
        ask(page, typed)
        expect(alert).to_have_text(words)
        expect(field).to_have_accessible_description(words)
        expect(field).to_have_value(typed)
    assert not scripted.chat.asked
    field.press_sequentially(" sessions")
    expect(alert).to_have_count(0)
    expect_chip(page, True)
    expect(chip_of(page)).to_have_accessible_name("Search code: always")
    chip_of(page).click()
    get_answer(page, "just this")
    asked = scripted.chat.asked[-1]
    assert asked["question"] == "just this"
    get_answer(page, "@Codebase sessions")
    assert scripted.chat.asked[-1]["question"] == "@codebase sessions"
    expect(page.locator(".question > div").last).to_have_text("@codebasesessions")
    new_conversation(page)
    expect_chip(page, True)
    get_answer(page, "fresh")
    assert scripted.chat.asked[-1]["conversation"] != asked["conversation"]
    expect_chip(page, True)  # without a model every question is searched for
    expect(field).to_have_attribute("placeholder", "Ask a follow-up")


def test_after_code_was_found_follow_ups_go_on_from_it_until_a_new_conversation(
    page: Page, scripted: ScriptedServer
) -> None:
    use_model(page)
    get_answer(page, "nothing of the kind")
    expect(page.locator(".stages")).to_contain_text("Found no code")
    expect_chip(page, True)  # there is nothing to go on from
    get_answer(page, "How are sessions kept?")
    expect_chip(page, False)
    expect(chip_of(page)).to_have_text("Search code: when needed")
    expect(chip_of(page)).to_have_attribute("title", re.compile("use the code found before"))
    field = field_of(page)
    for width, citation in ((360, False), (1440, True)):
        page.set_viewport_size({"width": width, "height": 800})
        if citation:
            page.locator(".answer .citation").last.click()
        expect(page.locator("#composer-more")).to_be_visible()
        expect(field).to_have_attribute("placeholder", "Ask a follow-up")
        assert page.locator("#composer").evaluate("node => node.offsetHeight") <= 56, "one row"
    page.keyboard.press("Escape")
    get_answer(page, "and for how long?")
    assert scripted.chat.asked[-1]["question"] == "and for how long?"
    expect(page.locator(".stages").last).to_contain_text("Used the code found before")

    new_conversation(page)
    expect_chip(page, True)
    page.go_back()
    expect(page.locator(".turn")).to_have_count(3)
    expect_chip(page, False)
    chip_of(page).click()
    page.get_by_role("button", name="Edit the question").last.click()
    expect_chip(page, False)  # as it was asked
    page.keyboard.press("Escape")
    expect_chip(page, True)  # as it stood before
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    expect_chip(page, False)


def test_a_slash_offers_the_modes_and_the_keyboard_completes_them(
    page: Page, scripted: ScriptedServer
) -> None:
    field, menu = field_of(page), page.get_by_role("listbox", name="Modes")
    options = menu.get_by_role("option")
    modes = ("explain", "locate", "issue", "review", "plan", "change", "files", "all")
    field.press_sequentially("/")
    expect(options).to_have_text([re.compile(f"^/{mode}, mode, .+") for mode in modes])
    words = "Only with a language model"
    expect(menu.get_by_text(words, exact=True)).to_have_count(1)
    needy = options.filter(has_text=f"mode, {words.lower()}")
    expect(needy).to_have_text([re.compile(f"^/{mode},") for mode in modes[3:]])
    expect(field).to_have_attribute("aria-activedescendant", "suggestions-0")
    expect(page.locator("#announce")).to_contain_text("Tab completes")
    page.keyboard.press("ArrowUp")
    expect(menu.get_by_role("option", selected=True)).to_contain_text("/all")
    field.press_sequentially("r")
    expect(options).to_have_text([re.compile("^/review")])
    expect(menu.get_by_role("option", selected=True)).to_contain_text("/review")
    page.keyboard.press("Enter")  # takes it, and sends nothing
    expect(field).to_have_value("/review ")
    expect(menu).to_be_hidden()
    assert not scripted.chat.asked
    field.press_sequentially("the sessions")
    page.keyboard.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase /review the sessions"
    field.press_sequentially("/")
    options.nth(1).click()
    expect(field).to_have_value("/locate ")
    expect(field).to_be_focused()
    field.fill("what is a/b")
    expect(menu).to_be_hidden()
    use_model(page)
    field.fill("/")
    expect(options).to_have_count(8)
    expect(needy).to_have_count(0)


DROP = """([place, files]) => {
  const data = new DataTransfer();
  for (const [name, part, times] of files)
    data.items.add(new File([typeof part === "string" ? part.repeat(times) : new Uint8Array(part)],
      name));
  const options = { dataTransfer: data, bubbles: true, cancelable: true };
  const taken = ["dragover", "drop"].map((kind) =>
    !document.querySelector(place).dispatchEvent(new DragEvent(kind, options)));
  return taken.every(Boolean);
}"""
"""Drop files with these names, each a text so many times or bytes; whether the page takes them."""


def test_what_is_too_long_is_kept_told_and_sent_once_it_is_short(
    page: Page, scripted: ScriptedServer
) -> None:
    ready(page)
    field, alert = field_of(page), page.locator("#composer-problem")
    field.focus()
    text = "é🙂\n@x " * 5_000
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.keyboard.press("Control+v")
    expect(alert).to_contain_text("takes 20,000 characters, and this one has 29,999")
    expect(field).to_have_value(text)
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    assert not scripted.chat.asked
    page.reload()
    expect(alert).to_contain_text("29,999")
    longest = "@codebase " + "é🙂" * 10_000
    field.fill(f"{longest}!")
    expect(alert).to_contain_text("20,001")
    field.press("Backspace")
    expect(alert).to_be_hidden()
    page.keyboard.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == longest


def test_enter_that_ends_a_composition_sends_nothing_in_any_browser(
    page: Page, scripted: ScriptedServer
) -> None:
    ready(page)
    field = field_of(page)
    press = """(field, [key, values]) => field.dispatchEvent(new KeyboardEvent("keydown",
      { key, bubbles: true, cancelable: true, ...values }))"""
    field.fill("にほん")
    for values in ({"isComposing": True}, {"keyCode": 229}, {"keyCode": 229, "isComposing": True}):
        field.dispatch_event("compositionend", {"data": "日本"})  # in Safari it comes before
        for key in ("Enter", "Escape", "ArrowUp"):
            assert field.evaluate(press, [key, values]), "the key is the input method's"
    field.press_sequentially("/")
    field.fill("/")
    expect(page.get_by_role("listbox", name="Modes")).to_be_visible()
    field.evaluate(press, ["Enter", {"keyCode": 229}])
    expect(field).to_have_value("/")
    page.keyboard.press("Escape")
    field.fill("日本")
    assert not scripted.chat.asked
    page.keyboard.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase 日本"


def test_a_dropped_file_is_written_into_the_question_or_refused(
    page: Page, scripted: ScriptedServer
) -> None:
    ready(page)
    field, alert = field_of(page), page.locator("#composer-problem")
    field.fill("Why is that?")
    bom, wide = [0xFF, 0xFE], [*"a→b".encode("utf-16le")]
    files = [["build.log", "E 1\n@x ```\n", 1], ["wide.txt", [*bom, *wide], 1]]
    for place in ("#scroller", "#sidebar", "#question"):
        assert page.evaluate(DROP, [place, []]) is (place != "#question"), "text is a field's own"
    assert page.evaluate(DROP, ["#scroller", files])
    text = "Why is that?\n\nbuild.log:\n````\nE 1\n@x ```\n````\n\nwide.txt:\n```\na→b\n```\n"
    expect(field).to_have_value(text)
    expect(field).to_be_focused()
    expect(page.locator("#mention-chips li")).to_have_count(0)
    for refused, words in (
        (["logo.png", [0x89, 0x50, 0x4E, 0x47, 0], 1], "logo.png is no text"),
        (["old.txt", [0xE4, 0xFF], 1], "old.txt is no text in UTF-8"),
        (["empty", " \n", 1], "empty is empty"),
        (["big.log", "x" * 1000, 21], "big.log does not fit. A question takes 20,000 characters"),
        (["huge.log", "x" * 1000, 9000], "huge.log has 9.0 MB"),
    ):
        assert page.evaluate(DROP, ["#question", [refused]])
        expect(alert).to_contain_text(words)
        expect(field).to_have_value(text)
    page.evaluate("() => { File.prototype.arrayBuffer = async () => { throw Error(); }; }")
    assert page.evaluate(DROP, ["#thread", [["src", "", 1]]])
    expect(alert).to_have_text("src is a folder, or cannot be read.")
    paste = """([name, text]) => {
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File(["x"], name));
      if (text) clipboardData.setData("text/plain", text);
      const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
      return !document.getElementById("question").dispatchEvent(event);
    }"""
    assert page.evaluate(paste, ["shot.png", ""])
    expect(alert).to_contain_text("shot.png is a folder, or")
    assert not page.evaluate(paste, ["table.png", "as text"]), "the text is pasted"
    field.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == f"@codebase {text.strip()}"
    page.get_by_role("button", name="Settings").click()
    assert page.evaluate(DROP, ["#settings", [["x", "y", 1]]]), "it opens nothing"
    page.goto(f"{scripted.address}/repositories")
    assert page.evaluate(DROP, ["body", [["x", "y", 1]]])
