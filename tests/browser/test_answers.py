"""An answer while it is written, once it is complete, when it fails, and what stands below it."""

from __future__ import annotations

import re

from browser import fakes
from browser.actions import (
    answered,
    ask,
    being_written,
    chip_of,
    copied,
    expecting,
    get_answer,
    new_conversation,
    pass_time,
    ready,
    scrolled_sideways,
    set_answer_options,
    stop,
    use_model,
)
from browser.conftest import ScriptedServer
from playwright.sync_api import Page, expect
from waiting import PATIENCE, until

from codeqa.chat.citations import UNSENT

CITED = "[src/store/sessions.py:25-33]"
CODE = """```python
def open_session(self, app, request):
    value = request.cookies.get(app.config["SESSION_COOKIE_NAME"])
    if not value:
        return {}
```"""


def test_a_whole_answer_is_rendered_copied_and_cited(page: Page) -> None:
    get_answer(page, "x")
    assert page.locator(".unfinished").evaluate("node => node.offsetHeight") == 0
    expect(page.locator(".answer table td a.citation")).to_have_count(1)
    expect(page.locator(".answer .code-head").first).to_contain_text("python")
    expect(page.locator("span.citation.unverified")).to_contain_text("nowhere.py:1-2")
    expect(page.locator("#announce")).to_have_text(re.compile("^The answer is complete, with"))
    page.get_by_role("button", name="Copy answer").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert copied(page) == fakes.ANSWER.strip()
    page.locator(".code-block .copy").last.click()
    expect(page.locator(".code-block .copy").last).to_have_text("Copied")
    assert copied(page).startswith("def open_session") and copied(page).endswith("return {}")


def test_a_citation_that_is_pointed_at_shows_its_lines_alone_and_leads_to_the_host(
    page: Page,
) -> None:
    get_answer(page, "x")
    page.evaluate("window.lateFrom = 200")  # no pause is too short for the pointer
    preview, long = page.locator(".preview"), page.locator("a.citation").filter(has_text="long.py")
    long.hover()
    with page.expect_response("**/api/file?*") as answer:
        pass_time(page, 0.25)
    assert len(answer.value.json()["lines"]) == 8
    expect(preview).to_contain_text("value_1200 = 1200")
    expect(preview.locator(".number").last).to_have_attribute("data-line", "1207")
    link = preview.get_by_role("link", name="Open on GitHub")
    expect(link).to_have_attribute("href", re.compile("/src/store/long.py#L1200-L1210$"))
    link.hover()  # it stays for that
    pass_time(page, 1)
    expect(preview).to_be_visible()
    page.keyboard.press("Escape")
    expect(preview).to_be_hidden()
    long.click()
    expect(page.locator("#panel-lines")).to_have_text("Lines 1200–1210")
    page.locator("a.citation").first.hover()
    pass_time(page, 1)
    expect(preview).to_be_visible()
    long.hover()  # these stand in the panel
    pass_time(page, 1)
    expect(preview).to_be_hidden()


def test_an_answer_tells_its_steps_and_is_written_block_by_block_until_it_is_stopped(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "slow")
    being_written(page, blocks=3)
    stop(page)
    ask(page, "silent")
    turn = page.locator(".turn").last
    stages, names = turn.locator(".stages"), turn.locator(".details-steps dt")
    expect(stages).to_contain_text("Reading 4 pieces of code")
    expect(names.first).to_be_hidden()  # the line above stays calm
    stages.click()
    expect(names).to_have_count(9)  # it is not written yet
    expect(names.nth(7)).to_have_text("Searched")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(stages).to_contain_text("Stopped")
    assert scripted.chat.cancelled.wait(PATIENCE), "the server goes on with nobody reading"
    get_answer(page, "again")
    expect(page.locator(".turn")).to_have_count(3)


def test_how_long_a_model_asks_to_wait_counts_down(
    modelled: Page, scripted: ScriptedServer
) -> None:
    page, line = modelled, modelled.locator(".stages")
    ask(page, "busy")
    words = "api.openai.com asks to wait {} s"
    expect(page.locator("#announce")).to_have_text(words.format(30))
    for seconds in (30, 29):
        expect(line).to_have_text(words.format(seconds) + "…")
        expect(page.locator(".stages.waiting .time")).to_be_hidden()
        scripted.chat.more.release()
    expect(line).to_have_text("Waiting for gpt-4o…")
    stop(page)


def test_a_reader_keeps_the_place_unless_the_end_was_asked_for(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "slow")
    scroller, jump = page.locator("#scroller"), page.get_by_role("button", name="Jump to latest")
    place, left = "e => e.scrollTop", "e => e.scrollHeight - e.scrollTop - e.clientHeight"

    def more_is_written() -> float:
        before: float = scroller.evaluate(place)
        blocks = page.locator(".block").count()
        scripted.chat.more.release()
        being_written(page, blocks + fakes.PART)
        return before

    being_written(page, fakes.PART)
    expect(jump).to_be_visible()
    assert more_is_written() == scroller.evaluate(place) < 40  # reading begins at the question
    jump.click()
    expect(jump).to_be_hidden()
    more_is_written()
    until(lambda: scroller.evaluate(left) < 60)  # it follows, since that was asked for
    scroller.evaluate("e => { e.scrollTop -= 900 }")
    expect(jump).to_be_visible()
    assert more_is_written() == scroller.evaluate(place)
    stop(page)


JUMPS = """() => {
  window.jumps = 0;
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) window.jumps += value;
  }).observe({ type: "layout-shift" });
}"""
WATCH = """() => {
  window.watched = { raw: [], lefts: [] };
  new MutationObserver(() => {
    const words = ".turn.writing .unfinished:not([data-form=code]) > :first-child";
    for (const node of document.querySelectorAll(words)) {
      if (/[[\\]]/.test(node.innerText)) window.watched.raw.push(node.innerText);
      window.watched.lefts.push(node.getBoundingClientRect().left);
    }
  }).observe(document.body, { childList: true, subtree: true });
}"""
LISTS = """The way of a request:

1. **First** the context [src/store/sessions.py:25-33] is pushed.
2. Then each function runs:
   - those of the application
   - those of blueprints
3. At last the *view*.

```python
x = 1
```

| what | where |
|:-----|------:|
| salt | `here` |

And so on.
"""


def test_items_of_a_list_are_rendered_as_they_come_and_nothing_jumps(
    page: Page, scripted: ScriptedServer
) -> None:
    page.evaluate(WATCH)
    text = LISTS * 3
    ask(page, f"paced say:{text}")
    writing = page.locator(".turn.writing .answer")
    for piece in range(0, len(text), 24):
        scripted.chat.more.release()
        page.evaluate("new Promise(requestAnimationFrame)")
        if piece == 72:
            expect(writing.locator(".block").first).to_be_visible()
            page.evaluate(JUMPS)
    answered(page)
    expect(page.locator(".block > ol").first.locator("> li")).to_have_count(3)
    expect(page.locator(".block > ol").first.locator("> li > ul > li")).to_have_count(2)
    assert page.evaluate("window.jumps") <= 0.02
    left = page.locator(".block").first.evaluate("node => node.getBoundingClientRect().left")
    watched = page.evaluate("window.watched")
    assert watched["raw"] == [] and set(watched["lefts"]) == {left}


def test_of_what_is_being_written_only_the_last_part_is_drawn_anew_and_no_mark_is_seen(
    page: Page,
) -> None:
    ready(page)
    kept, seen, heights = page.evaluate(
        """async (blocks) => {
          const { showUnfinished } = await import("/static/js/answer/streaming.js");
          const shown = { written: (place) => document.createTextNode(place) };
          const forms = ["- item\\n", "1. item\\n", "| cell |\\n", "some words\\n"];
          const kept = ["```\\n", ...forms].map((begins, at) => {
            const [node, line] = [document.createElement("div"), forms[at - 1] ?? "code\\n"];
            const text = begins + line.repeat(119);
            showUnfinished(node, text, shown);
            const before = [...node.children];
            showUnfinished(node, text + line, shown);
            return [...node.children].map((part, number) => part === before[number]);
          });
          const node = document.querySelector("#announce").cloneNode();
          document.body.append(node);
          const seen = blocks.flatMap((text) => [...text].map((_, at) => {
            showUnfinished(node, text.slice(0, at + 1), shown);
            return node.innerText;
          }));
          const { Turn } = await import("/static/js/answer/turn.js");
          const turn = new Turn({ text: "x" }, {});
          document.querySelector("#thread").append(turn.node);
          turn.take({ text: "One.\\n\\nTwo" });
          await new Promise(requestAnimationFrame);
          const before = turn.node.querySelector(".answer").offsetHeight;
          turn.take({ block: { html: "<p>One.</p>", index: 0, length: 6 } });
          return [kept, seen, [before, turn.node.querySelector(".answer").offsetHeight]];
        }""",
        [
            "## The way",
            "The **`first` thing** is `f(**more)` [src/a.py:1-3].",
            "- one [a.py:1]\n- **two**\n  - `x`",
            "1. first\n2. second",
            "```python\nx = 1\n```\n",
        ],
    )
    assert kept == [[True, True, False]] * 5
    bare = re.compile(r"[`#\[\]]|(?<![(*])\*|^-|^\d\.?$", re.M)
    assert [text for text in seen if bare.search(text)] == []
    assert {"The way", "The first thing is f(**more) src/a.py:1-3."} <= set(seen)
    assert heights[1] > heights[0] - 20  # else the end would seem to be left by the reader


def test_what_an_answer_was_made_from_is_told_and_the_same_after_a_reload(page: Page) -> None:
    get_answer(page, "alone")
    facts, stages = page.locator(".details-body"), page.locator(".stages")
    expect(facts).to_contain_text("4 of 4 files")
    expect(facts).not_to_contain_text("Model")
    expect(stages).to_have_text(re.compile(r"^4 pieces of code · [\d.]+ m?s$"))
    use_model(page)
    set_answer_options(page, "Sort results again")
    get_answer(page, "@codebase hurt unverified alike")
    expect(page.locator("#announce")).to_contain_text("2 not verified")
    for words in (
        "gpt-4o · api.openai.com",
        "≈ 3,120 in, ≈ 412 out · $0.0032",
        "Sorted again by built-in",
        "12 steps in 0.8 s, the longest: Wrote the answer, 0.8 s",
    ):
        expect(facts.last).to_contain_text(words)
    turn = page.locator(".turn").nth(1)
    steps = turn.locator(".details-steps dt")
    expect(steps).to_have_count(12)
    turn.locator(".stages").click()
    expect(steps.first).to_be_hidden()  # on request
    turn.locator(".details-facts summary").click()
    expect(steps.first).to_be_visible()
    turn.locator(".stages").click()
    expect(turn.locator(".turn-notice")).to_contain_text("ColBERT model is not on this machine")
    sent, unsent, gone = (
        turn.locator(f'a.citation[data-start="{line}"]').first for line in (25, 1200, 8)
    )
    earlier = turn.locator("details.earlier")
    expect(earlier.locator("summary")).to_have_text("The model was also sent 2 earlier answers")
    expect(earlier.locator("li")).to_have_text(
        [re.compile("where is a session opened.*<b>alone</b>"), re.compile("how is a cookie")]
    )
    expect(earlier.locator("a")).to_have_attribute("href", re.compile("c=another"))
    get_answer(page, "rewritten:How long are pizza sessions kept?")
    for words in (
        "Searched for How long are pizza sessions kept?",
        "left out, because this is a new topic: no code has pizza",
        "by its words: it names <b>code</b>",
    ):
        expect(facts.last).to_contain_text(words)

    ask(page, "modelfail")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The model's server refused the key.")
    before = words_of_answers(page)
    page.reload()
    expect(page.locator(".turn")).to_have_count(4)
    assert words_of_answers(page)[:3] == before[:3]
    expect(alert).to_contain_text("The model's server refused the key.")
    expect(alert).to_contain_text("Enter another key, then try again.")
    expect(page.locator(".answer").last).to_contain_text("It began well,")
    expect(facts.first).to_have_text(re.compile(r"Answered at \d\d:\d\d"))
    expect(facts.last).to_have_text(re.compile(r"Asked at \d\d:\d\d"))
    for struck in (unsent, gone):
        expect(struck).to_have_class("citation unverified")
        expect(struck).to_have_css("text-decoration-line", "line-through")
    expect(sent).to_have_class("citation")
    expect(unsent).to_have_attribute("title", f"Not verified: {UNSENT}")
    unsent.click()  # its lines exist
    expect(page.locator(".source .cited").first).to_have_attribute("data-line", "1200")
    page.set_viewport_size({"width": 375, "height": 800})
    assert not scrolled_sideways(page)


def words_of_answers(page: Page) -> list[str]:
    """The words of each turn with all that is folded, but for when and how long and, which is not
    kept, who put a question anew."""
    page.evaluate("document.querySelectorAll('.turn details').forEach(one => { one.open = true; })")
    not_kept = r"[\d.]+ m?s\b|(Answered|Asked)\s+at \d\d:\d\d\n| \(rewritten by the model\)"
    return [re.sub(not_kept, "", text) for text in page.locator(".turn").all_inner_texts()]


def test_an_error_says_what_to_do_and_a_failing_model_leaves_ways_on(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "fail")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("It did not work.")
    expect(alert).to_contain_text("Try it again.")
    expect(alert.get_by_role("button")).to_have_text(["Try again"])  # no model would help

    use_model(page)
    new_conversation(page)
    ask(page, "modelfail")
    alert.get_by_role("button", name="Try again").click()
    expect(page.locator(".stages")).to_contain_text("Failed")
    first = scripted.chat.asked[-1]["replaces"]
    assert first.startswith("turn-")
    alert.get_by_role("button", name="Change the model").click()
    expect(page.get_by_role("dialog", name="Language model")).to_be_visible()
    page.keyboard.press("Escape")
    alert.get_by_role("button", name="Answer without the model").click()
    answered(page)
    asked = scripted.chat.asked[-1]
    assert asked["use_model"] is False and asked["replaces"] not in ("", first)
    expect(page.locator(".turn")).to_have_count(1)
    expect(alert).to_have_count(0)


def test_an_answer_without_the_code_says_so_and_offers_to_search_it(
    page: Page, scripted: ScriptedServer
) -> None:
    chip_of(page).click()
    get_answer(page, "hello, what does it do?")
    expect(page.locator(".stages")).to_contain_text("No code was used")
    page.reload()
    hint = page.locator(".suggest")
    hint.get_by_role("button", name="Search the code base").click()
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    answered(page)
    asked = scripted.chat.asked[-1]
    assert (asked["question"], asked["replaces"]) == ("@codebase hello, what does it do?", "turn-1")
    expect(hint).to_have_count(0)


def test_what_comes_next_what_was_learnt_and_what_a_plugin_did_stand_below(
    page: Page, scripted: ScriptedServer
) -> None:
    get_answer(page, "suggest:And for how long?|Who signs the `cookie`?")
    page.reload()
    offered = page.get_by_role("list", name="Questions that may come next")
    offered.get_by_role("button", name="Who signs the cookie?").click()
    expect(page.locator(".turn")).to_have_count(2)
    answered(page)
    assert scripted.chat.asked[-1]["question"].endswith("Who signs the `cookie`?")
    expect(offered).to_have_count(0)  # only offered last
    last = page.locator(".turn").last
    get_answer(page, "learn:name=Ada")
    expect(last.locator(".learnt")).to_have_text("Remembered: name: Ada")
    get_answer(page, "plugged:The plugin shout broke in after_generation.")
    expect(last.locator(".turn-notice")).to_have_text("The plugin shout broke in after_generation.")
    get_answer(page, f"plugged:{'folder/' * 30}shout.py broke.")
    assert page.locator("#scroller").evaluate("node => node.scrollWidth <= node.clientWidth")
    get_answer(page, "revise:**Louder.**")
    page.get_by_text("A plugin changed the answer").click()
    expect(page.locator(".revised strong")).to_have_text("Louder.")


def test_escape_leaves_an_answer_alone_while_something_is_open_over_it(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "slow")
    being_written(page)
    page.locator("#model-chip").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.locator("#effort").press("Enter")
    form = page.get_by_role("dialog", name="How to answer")
    expect(form.get_by_role("radio", name=re.compile("^Balanced"))).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(form.get_by_role("radio", name=re.compile("^Fast"))).to_be_checked()
    expect(page.locator("#announce")).to_have_text("How to answer: fast")
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    expect(page.locator("#effort")).to_be_focused()
    page.get_by_role("button", name="More for “slow”").press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    field, modes = page.locator("#question"), page.get_by_role("listbox", name="Modes")
    field.press_sequentially("/p")
    expect(modes).to_be_visible()
    page.keyboard.press("Escape")
    expect(modes).to_be_hidden()
    expect(field).to_have_value("/p")
    expect(page.locator(".turn")).to_have_class(re.compile("writing"))
    assert not scripted.chat.cancelled.is_set()
    stop(page)


def test_an_answer_whose_connection_is_lost_is_tried_again_in_its_place(
    page: Page, scripted: ScriptedServer
) -> None:
    expecting(page, "ERR_INTERNET_DISCONNECTED")
    get_answer(page, "one")
    page.context.set_offline(True)
    page.get_by_role("button", name="Regenerate").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("cannot be reached")
    expect(alert.get_by_role("button")).to_have_text(["Try again"])
    page.context.set_offline(False)
    alert.get_by_role("button", name="Try again").click()
    answered(page)
    (conversation,) = scripted.chat.all()
    assert [turn.question for turn in scripted.chat.turns(conversation.id)] == ["one"]
