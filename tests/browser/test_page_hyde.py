"""HyDE on the page: chosen, drafted, and shown with what was found and how."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from browser.actions import answered, ask, scrolled_sideways, set_answer_options, use_model
from browser.conftest import Server
from browser.fakes import DRAFT, FakeChat
from browser.test_page_loop import ASK, use
from openai_server import openai_server, stream
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
FIRST_TOKENS, SECOND_TOKENS = 400, 768


def chat_of(server: Server) -> FakeChat:
    assert server.chat is not None
    return server.chat


def choose(page: Page, label: str) -> None:
    set_answer_options(page, label)


def drafts(page: Page) -> Locator:
    """The number of drafts that is chosen, read while its form is closed."""
    return page.locator('#answer-options input[name="hyde"]:checked')


def asked(server: Server, field: str = "hyde") -> Any:
    return chat_of(server).asked[-1][field]


def test_without_a_model_the_drafts_say_what_they_lack_and_lead_to_one(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    page.locator("#effort").click()
    form = page.get_by_role("dialog", name="How to answer")
    expect(form).to_contain_text("Drafts need a language model, and none is in use")
    group = form.get_by_role("group", name="Drafts")
    for option in group.get_by_role("radio").all():
        expect(option).to_be_disabled()
        expect(option).not_to_be_checked()
    page.keyboard.press("Escape")
    ask(page, "x")
    answered(page)
    assert asked(scripted) == ""
    expect(page.locator(".facts")).not_to_contain_text("HyDE")
    page.locator("#effort").click()
    form.get_by_role("button", name="Choose a model").click()
    expect(page.get_by_role("dialog", name="Language model")).to_be_visible()
    expect(form).to_be_hidden()


def test_the_setting_holds_until_something_is_chosen_and_that_is_remembered(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    expect(drafts(page)).to_have_value("two")
    ask(page, "x")
    answered(page)
    assert asked(scripted) == ""  # the server's setting decides
    expect(page.locator(".facts")).to_contain_text("HyDE 2 drafts")
    choose(page, "One")
    expect(page.locator("#effort")).to_have_text("Own")
    set_answer_options(page, "Rerank")
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    expect(drafts(page)).to_have_value("one")
    page.locator("#codebase").click()
    ask(page, "again")
    answered(page)
    assert asked(scripted) == "one" and asked(scripted, "rerank") is True
    expect(page.locator(".facts").last).to_contain_text("HyDE 1 draft")
    choose(page, "Off")
    page.locator("#codebase").click()
    ask(page, "once more")
    answered(page)
    assert asked(scripted) == "off"
    expect(page.locator(".facts").last).not_to_contain_text("HyDE")


def test_a_question_is_asked_again_with_the_drafts_that_it_had(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    choose(page, "One")
    ask(page, "x")
    answered(page)
    choose(page, "Off")
    page.get_by_role("button", name="Regenerate").click()
    answered(page)
    assert asked(scripted) == "one"
    page.reload()
    expect(drafts(page)).to_have_value("off")
    page.locator(".question").hover()
    page.get_by_role("button", name="Edit the question").click()
    expect(drafts(page)).to_have_value("one")
    choose(page, "Two")  # for this question alone
    page.locator("#question").press("Enter")
    answered(page)
    assert asked(scripted) == "two"
    expect(drafts(page)).to_have_value("off")
    page.reload()
    expect(drafts(page)).to_have_value("off")


def test_without_the_model_nothing_is_drafted(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    use_model(page)
    choose(page, "Two")
    ask(page, "modelfail")
    page.get_by_role("button", name="Answer without the model").click()
    answered(page)
    assert asked(scripted) == "" and asked(scripted, "use_model") is False


def test_the_stages_of_drafting_are_shown_while_they_last(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, "pause")
    stages = page.locator(".stages")
    expect(stages).to_contain_text("Drafting code to look for")
    expect(stages).to_contain_text(re.compile(r"Drafted\s*0\.\d s"))
    expect(stages).to_contain_text("Drafting again with what was found")
    answered(page)
    expect(stages).to_have_text(
        re.compile(r"^Understood\s*Drafted\s*0\.\d s\s*Drafted again\s*0\.\d s\s*Found 4 pieces")
    )
    expect(page.locator(".answer")).not_to_contain_text("Session.load")  # a draft is no answer


@pytest.mark.parametrize(
    ("question", "line", "fact", "told"),
    [
        ("skipped", None, "1 draft", "skipped: the first draft found what the question finds"),
        ("late", "The draft took too long", "1 draft, 1 timed out", "timed out"),
        ("lost", "No draft", "1 draft", "failed: The model's server cannot be reached."),
    ],
)
def test_a_draft_that_was_not_made_is_told(
    scripted: Server, open_page: OpenPage, question: str, line: str | None, fact: str, told: str
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, question)
    answered(page)
    stages = page.locator(".stages")
    expect(stages).to_contain_text("Drafted")
    expect(stages).not_to_contain_text("Drafted again")
    if line:
        expect(stages.locator(".stopped")).to_contain_text(line)
    expect(page.locator(".facts > div").filter(has_text="HyDE").locator("dd")).to_have_text(fact)
    page.get_by_role("button", name="Context").click()
    second = page.locator(".search-stages li").nth(1)
    expect(second).to_contain_text("Second draft")
    expect(second).to_contain_text(told)


def test_the_panel_tells_rank_score_reasons_and_channels_of_chunks_and_hits(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    set_answer_options(page, "Rerank")
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Context").click()
    placed = "score 1.73 · symbol #1 · vector #2 · text #3 · hyde-2 vector #1 · hyde-1 text #5"
    chunk = page.get_by_role("region", name="Chunks").locator("li").first
    expect(chunk.locator(".placed")).to_have_text(f"hit 1 · {placed}")
    expect(chunk.locator(".why")).to_have_text("named")
    expect(chunk.get_by_title("Number 3 by: words of the question")).to_have_text("text #3")

    found = page.get_by_role("region", name="How it was found")
    expect(found.locator("header")).to_contain_text("4.1 s")
    lines = found.locator(".stage-line")
    expect(lines).to_have_text(
        [
            re.compile(r"First draft\s*hyde-1\s*2\.1 s"),
            re.compile(r"Second draft\s*hyde-2\s*1\.8 s"),
            re.compile(r"Search\s*31 ms"),
            re.compile(r"Rerank\s*84 ms"),
        ]
    )
    draft = page.get_by_label("First draft", exact=True)
    expect(draft).to_be_hidden()
    lines.first.focus()
    page.keyboard.press("Enter")
    expect(draft).to_be_visible()
    assert draft.text_content() == DRAFT
    expect(found).to_contain_text("Written by gpt-4o at api.openai.com")

    page.get_by_text("All hits, best first").click()
    hits = found.locator(".hits li")
    expect(hits).to_have_count(3)
    expect(hits.first).to_contain_text("SecureCookie.open_session method")
    expect(hits.first).to_contain_text("named; holds 3 of 4 words")
    expect(hits.first.locator(".placed")).to_have_text(placed)
    expect(found.locator(".sent")).to_have_count(1)
    hits.first.locator(".open").click()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    page.get_by_role("button", name="Back to the context").click()
    expect(page.get_by_text("All hits, best first")).to_be_visible()


def test_the_legend_explains_the_channels_that_occur(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Context").click()
    legend = page.locator(".legend")
    expect(legend.locator("dl")).to_be_hidden()
    page.get_by_text("What these words mean").click()
    expect(legend.locator("dt")).to_have_text(["text", "vector", "symbol", "<b>odd</b>"])
    expect(legend.locator("dd").last).to_have_text("another kind of search")
    expect(page.locator(".search-stages li")).to_have_count(1)  # nothing was drafted


def test_what_a_model_or_a_file_says_is_text_in_the_panel(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    use_model(page)
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Context").click()
    page.locator(".hyde-text summary").first.click()
    page.get_by_text("All hits, best first").click()
    expect(page.locator(".hyde-text pre").first).to_contain_text("<b>return</b>")
    expect(page.locator(".hits li").nth(1)).to_contain_text("<b>odd</b> #7")
    expect(page.locator(".hits li").nth(1)).to_contain_text("<img src=x onerror=window.hacked=1>")
    assert page.locator(".context").locator("b, img, script").count() == 0
    assert page.evaluate("window.hacked") is None


def test_a_turn_that_was_not_searched_for_has_no_such_section(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    page.locator("#codebase").click()
    ask(page, "just this")
    answered(page)
    page.get_by_role("button", name="Context").click()
    expect(page.locator(".chunks")).to_be_visible()
    expect(page.get_by_role("region", name="How it was found")).to_have_count(0)
    expect(page.locator(".legend, .placed")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_menu_and_panel_fit_a_phone(scripted: Server, open_page: OpenPage, scheme: str) -> None:
    page = open_page(
        scripted.address, width=360, height=740, has_touch=True, is_mobile=True, color_scheme=scheme
    )
    use_model(page)
    page.locator("#effort").tap()
    form = page.get_by_role("dialog", name="How to answer")
    box = form.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 360
    assert box["y"] >= 0 and box["y"] + box["height"] <= 740
    for option in form.locator("label").all():
        if option.is_visible():
            size = option.bounding_box()
            assert size is not None and size["height"] >= 44
    assert not scrolled_sideways(page)
    form.locator("label").filter(has_text=re.compile("^One")).tap()
    page.touchscreen.tap(180, 40)  # elsewhere
    expect(form).to_be_hidden()
    page.locator("#question").fill("x")
    page.get_by_role("button", name="Send").tap()
    answered(page)
    page.get_by_role("button", name="Context").tap()
    expect(page.locator(".legend summary")).to_be_visible()
    for fold in page.locator(".search-trace summary, .legend summary").all():
        fold.tap()
    expect(page.locator(".legend dl")).to_be_visible()
    assert page.locator("#panel-body").evaluate("e => e.scrollWidth <= e.clientWidth")
    assert not scrolled_sideways(page)


def test_a_real_search_by_two_drafts_is_told_from_the_first_stage_to_the_panel(
    modelled: Server, open_page: OpenPage
) -> None:
    def reply(path: str, body: dict[str, Any]) -> Any:
        most = body.get("max_tokens", body.get("max_completion_tokens"))
        if most == FIRST_TOKENS:
            return stream(["def hostile():\n", "    return shelf_7() + shelf_9()"])
        if most == SECOND_TOKENS:
            return stream(["def reserve_copies(stock, count):\n    raise OutOfStockError"])
        return stream(["Stock takes them off the shelf [bookshop/stock.py:311-320]."])

    with openai_server(reply) as server:
        page = open_page(modelled.address)
        use(page, server)
        expect(drafts(page)).to_have_value("off")  # the server's setting
        choose(page, "Two")
        ask(page, ASK)
        answered(page)
        expect(page.locator(".answer")).to_have_text(re.compile("^Stock takes them off the shelf"))
        expect(page.locator(".stages")).to_contain_text("Drafted")
        limits = [body.get("max_tokens", body.get("max_completion_tokens"))
                  for _, body in server.requests]  # fmt: skip
    assert limits[0] == FIRST_TOKENS and SECOND_TOKENS in limits
    page.reload()
    expect(page.locator(".facts")).to_contain_text("HyDE 2 drafts")
    page.get_by_role("button", name="Context").click()
    page.locator(".hyde-text summary").first.click()
    expect(page.get_by_label("First draft", exact=True)).to_contain_text("return shelf_7()")
    page.get_by_text("All hits, best first").click()
    expect(page.locator(".hits .sent").first).to_be_visible()
    expect(page.locator(".chunks .placed").first).to_contain_text(re.compile(r"text #\d+"))
    expect(page.locator(".hits .placed", has_text="hyde-1").first).to_be_visible()
