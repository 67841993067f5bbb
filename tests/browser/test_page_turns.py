"""Answers: regenerated, edited, stopped, failed; what they were made from and what with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from browser.actions import answered, ask, expecting, set_answer_options, use_model
from browser.conftest import Server
from browser.fakes import BLOCK, FakeChat
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def chat_of(server: Server) -> FakeChat:
    assert server.chat is not None
    return server.chat


def kept(server: Server) -> list[Any]:
    """The turns of the one conversation that there is."""
    chat = chat_of(server)
    (conversation,) = chat.all()
    return chat.turns(conversation.id)


def test_regenerating_any_answer_makes_another_version_of_it(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "one")
    answered(page)
    page.get_by_role("button", name="Regenerate").click()
    answered(page)
    assert chat_of(scripted).asked[-1]["replaces"] == "turn-1"
    expect(page.locator(".turn")).to_have_count(1)
    assert [turn.id for turn in kept(scripted)] == ["turn-2"]
    ask(page, "two")
    answered(page)
    assert chat_of(scripted).asked[-1]["after"] == "turn-2"
    page.locator(".turn").first.get_by_role("button", name="Regenerate").click()
    expect(page.locator(".turn")).to_have_count(1)  # what came after belongs to the other version
    answered(page)
    assert chat_of(scripted).asked[-1]["replaces"] == "turn-2"
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    assert [turn.id for turn in kept(scripted)] == ["turn-4"]
    expect(page.locator(".branches-count")).to_have_text("3/3")


def test_a_stopped_answer_is_replaced_as_well(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(2)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator(".block").nth(2)).to_be_visible()
    assert chat_of(scripted).asked[-1]["replaces"] == "turn-1"
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")
    page.get_by_role("button", name="Copy answer").focus()
    page.get_by_role("button", name="Context").click()  # its id is found, too
    expect(page.locator(".chunks")).to_be_visible()


def test_the_last_question_is_edited_in_the_field_and_becomes_another_version(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "How are sesions kept?")
    answered(page)
    page.locator(".question").hover()
    page.get_by_role("button", name="Edit the question").click()
    field = page.get_by_label(re.compile("Question about"))
    expect(field).to_have_value("How are sesions kept?")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    page.get_by_role("button", name="Edit the question").click()
    expect(page.locator("#editing")).to_contain_text("beside the old one")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#editing")).to_be_hidden()
    ask(page, "another one")  # which replaces nothing
    answered(page)
    page.locator(".question").last.hover()
    page.get_by_role("button", name="Edit the question").last.click()
    field.fill("How are sessions kept?")
    page.keyboard.press("Enter")
    answered(page)
    expect(page.locator(".question")).to_have_count(2)
    questions = [turn.question for turn in kept(scripted)]
    assert questions == ["How are sesions kept?", "How are sessions kept?"]


def test_an_untagged_question_offers_to_search_the_code(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, "one")
    answered(page)
    expect(page.get_by_role("button", name="Search the code")).to_have_count(0)
    ask(page, "two")
    answered(page)
    expect(page.locator(".stages").last).to_contain_text("Went on from what was found before")
    page.get_by_role("button", name="Search the code").click()
    expect(page.locator(".question").last).to_contain_text("@codebasetwo")
    answered(page)
    assert chat_of(scripted).asked[-1]["question"] == "@codebase two"
    assert chat_of(scripted).asked[-1]["replaces"] == "turn-2"


def test_an_answer_says_model_host_tokens_reranker_and_why_another_was_used(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "alone")
    answered(page)
    facts = page.locator(".facts")
    expect(facts).to_contain_text("4 of 4 files")
    expect(facts).not_to_contain_text("Answered by")
    expect(facts).not_to_contain_text("Reranked by")
    use_model(page)
    set_answer_options(page, "Rerank")
    ask(page, "hurt")
    answered(page)
    last = page.locator(".turn").last
    for told in ("gpt-4o · api.openai.com", "≈ 3,120 in, ≈ 412 out", "Reranked by built-in"):
        expect(last.locator(".facts")).to_contain_text(told)
    expect(last.locator(".turn-notice")).to_contain_text("ColBERT model is not on this machine")
    page.reload()
    expect(page.locator(".facts").last).to_contain_text("Reranked by built-in")
    expect(page.locator(".turn-notice")).to_contain_text("ColBERT model is not on this machine")


def test_the_context_panel_shows_the_messages_exactly_as_they_were_sent(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, permissions=["clipboard-read", "clipboard-write"])
    use_model(page)
    ask(page, "x")
    answered(page)
    button = page.get_by_role("button", name="Context")
    button.click()
    panel = page.get_by_role("complementary", name="Source and context")
    expect(panel).to_contain_text("Sent to gpt-4o at api.openai.com · 3,120 tokens")
    messages = chat_of(scripted).sent("turn-1").messages
    sent = [text for message in messages for text in message["parts"]]
    assert page.locator(".message pre").all_text_contents() == sent
    expect(page.locator(".message[open] pre")).to_have_text([sent[-2], BLOCK])
    names = ["System prompt", "Earlier question", "Earlier answer", "Question and instruction"]
    for name, summary in zip(names, page.locator(".message summary").all(), strict=False):
        expect(summary).to_contain_text(name)
    page.get_by_text("System prompt").click()
    expect(page.get_by_label("System prompt", exact=True)).to_contain_text("<i>Never</i>")
    page.get_by_role("button", name="Copy as JSON").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert [part["text"] for message in copied for part in message["content"]] == sent

    page.locator(".chunks button").first.click()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.get_by_role("button", name="Back to the context").click()
    expect(page.locator(".chunks .dropped")).to_contain_text("left out: over the budget")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(button).to_be_focused()


def test_without_a_model_the_panel_says_that_nothing_was_sent(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Context").click()
    panel = page.get_by_role("complementary", name="Source and context")
    expect(panel).to_contain_text("Nothing was sent to a model")
    expect(page.get_by_label("The context block", exact=True)).to_have_text(BLOCK)


def test_the_estimate_says_what_a_follow_up_sends(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    estimate = page.locator("#estimate")
    ask(page, "x")
    answered(page)
    expect(estimate).to_be_hidden()  # without a model nothing is sent
    use_model(page)
    ask(page, "y")
    answered(page)
    expect(estimate).to_have_text("sends ≈ 3.5k tokens")
    chip = page.get_by_role("button", name="@codebase", exact=True)
    chip.click()
    expect(estimate).to_be_hidden()  # what a search would find is not known
    chip.click()
    page.get_by_label(re.compile("Question about")).fill("word " * 400)
    expect(estimate).to_have_text("sends ≈ 4.0k tokens")
    page.reload()
    expect(estimate).to_be_visible()
    page.get_by_role("button", name="New conversation").first.click()
    expect(estimate).to_be_hidden()


def test_a_failing_model_leaves_its_text_and_offers_ways_on(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, "modelfail")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The model's server refused the key.")
    expect(alert).to_contain_text("Enter another key, then try again.")
    expect(page.locator(".answer")).to_contain_text("It began well,")
    expect(page.locator(".stages")).to_contain_text("Failed")
    page.reload()
    expect(alert).to_contain_text("The model's server refused the key.")
    expect(page.locator(".answer")).to_contain_text("It began well,")
    alert.get_by_role("button", name="Try again").click()
    expect(page.locator(".stages")).to_contain_text("Failed")
    assert chat_of(scripted).asked[-1]["replaces"] == "turn-1"
    alert.get_by_role("button", name="Change the model").click()
    expect(page.get_by_role("dialog", name="Language model")).to_be_visible()
    page.keyboard.press("Escape")
    alert.get_by_role("button", name="Answer without the model").click()
    answered(page)
    asked = chat_of(scripted).asked[-1]
    assert asked["use_model"] is False and asked["replaces"] == "turn-2"
    expect(page.locator(".turn")).to_have_count(1)
    expect(alert).to_have_count(0)
    page.get_by_role("button", name="Regenerate").click()  # that asks the model once more
    expect(alert).to_be_visible()
    assert chat_of(scripted).asked[-1]["use_model"] is True


def test_what_was_kept_says_when_and_whether_the_model_answered_or_was_only_asked(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, "one")
    answered(page)
    ask(page, "modelfail")
    expect(page.get_by_role("alert")).to_be_visible()
    ask(page, "silent")
    expect(page.locator(".stages").last).to_contain_text("Waiting for gpt-4o")
    page.get_by_role("button", name="Stop").click()
    assert chat_of(scripted).cancelled.wait(10)
    page.reload()
    turns = page.locator(".turn")
    expect(turns).to_have_count(3)
    for turn, told in zip(turns.all(), ("Answered", "Asked", "Asked"), strict=True):
        expect(turn.locator(".asked-at")).to_have_text(re.compile(rf"^{told} at \d\d:\d\d$"))
        expect(turn.locator(".facts dt").first).to_have_text(
            "Answered by" if told == "Answered" else "Asked"
        )
    question = turns.first.locator(".question").bounding_box()
    answer = turns.first.locator(".answer").bounding_box()
    assert question is not None and answer is not None
    assert answer["y"] - question["y"] - question["height"] > 24  # as when it was written


def test_a_failure_without_a_model_offers_only_to_try_again(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "fail")
    alert = page.get_by_role("alert")
    expect(alert.get_by_role("button")).to_have_text(["Try again"])


def test_waiting_for_the_model_is_told_from_writing(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, "silent")
    expect(page.locator(".stages")).to_contain_text("Waiting for gpt-4o")
    expect(page.locator(".stages .time").last).to_have_text(re.compile(r"^\d+ s$"))
    page.keyboard.press("Escape")
    ask(page, "slow")
    expect(page.locator(".stages").last).to_contain_text("Writing")
    page.keyboard.press("Escape")


def test_escape_leaves_an_answer_alone_while_a_menu_or_dialog_is_open(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(2)).to_be_visible()
    page.locator("#model-chip").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.get_by_role("button", name="More for “slow”").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menu")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(page.locator(".turn")).to_have_class(re.compile("writing"))
    assert not chat_of(scripted).cancelled.is_set()
    page.get_by_role("button", name="Stop").click()


def test_an_answer_whose_connection_is_lost_is_tried_again_in_its_place(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    expecting(page, "ERR_INTERNET_DISCONNECTED")
    ask(page, "one")
    answered(page)
    page.context.set_offline(True)
    page.get_by_role("button", name="Regenerate").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("cannot be reached")
    expect(alert.get_by_role("button")).to_have_text(["Try again"])
    page.context.set_offline(False)
    alert.get_by_role("button", name="Try again").click()
    answered(page)
    assert [turn.question for turn in kept(scripted)] == ["one"]


def test_the_block_in_progress_has_its_form_but_no_markup(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    tail = """async text => {
      const { showUnfinished } = await import("/static/js/answer/streaming.js");
      const node = document.createElement("div");
      showUnfinished(node, text);
      return [node.className, node.textContent, node.innerHTML];
    }"""
    shapes = {
        "**bold** and `a<b>` and **not yet": (
            "", "bold and a<b> and **not yet",
            "<strong>bold</strong> and <code>a&lt;b&gt;</code> and **not yet",
        ),
        "## Title": ("", "Title", "Title"),
        "```js\n<img src=x>\n``": ("code", "<img src=x>", "&lt;img src=x&gt;"),
        "<script>x</script> `<i>`": (
            "", "<script>x</script> <i>",
            "&lt;script&gt;x&lt;/script&gt; <code>&lt;i&gt;</code>",
        ),
    }  # fmt: skip
    for text, expected in shapes.items():
        assert tuple(page.evaluate(tail, text)) == expected
