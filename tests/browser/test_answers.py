"""An answer while it is written, once it is complete, when it fails, and what stands below it."""

from __future__ import annotations

import re

from browser.actions import (
    CLIPBOARD,
    answered,
    ask,
    being_written,
    chip_of,
    copied,
    expecting,
    get_answer,
    loaded,
    rests,
    scrolled_sideways,
    stop,
    until,
    use_model,
)
from browser.conftest import OpenPage, ScriptedServer
from browser.fakes import ANSWER
from playwright.sync_api import Page, expect

STEPS = [
    "embed", "load", "classify", "topic", "features", "policy", "prune", "retrieve",
    "before_generation", "generate", "after_generation", "persist",
]  # fmt: skip
CITED = "[src/store/sessions.py:25-33]"
CODE = """```python
def open_session(self, app, request):
    value = request.cookies.get(app.config["SESSION_COOKIE_NAME"])
    if not value:
        return {}
```"""


def test_a_whole_answer_is_rendered_copied_and_cited(
    scripted: ScriptedServer, open_page: OpenPage
) -> None:
    page = open_page(scripted, permissions=CLIPBOARD)
    get_answer(page, "x")
    expect(page.locator(".unfinished")).to_have_text("")
    expect(page.locator(".answer table td.align-right a.citation")).to_have_count(1)
    expect(page.locator(".answer .code-head").first).to_contain_text("python")
    expect(page.locator("span.citation.unverified")).to_contain_text("nowhere.py:1-2")
    expect(page.locator("#announce")).to_have_text(re.compile("^The answer is complete, with"))
    page.get_by_role("button", name="Copy answer").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert copied(page) == ANSWER.strip()
    page.locator(".code-block .copy").last.click()
    expect(page.locator(".code-block .copy").last).to_have_text("Copied")
    assert copied(page).startswith("def open_session") and copied(page).endswith("return {}")


MARKED = """() => [...CSS.highlights.get('no-evidence')].map(String)"""


def test_sentences_without_evidence_are_counted_listed_and_marked_where_they_stand(
    page: Page, scripted: ScriptedServer
) -> None:
    get_answer(page, "unproven")
    evidence = page.locator("details.evidence")
    expect(evidence.locator("summary")).to_have_text("4 of 7 sentences have their evidence")
    assert page.evaluate(MARKED) == []
    evidence.locator("summary").click()
    expect(evidence.locator("li")).to_have_text(
        [re.compile("^called while"), re.compile("^the base class"), re.compile("nowhere")]
    )
    expect(evidence.locator("li").last).to_be_visible()
    assert until(lambda: len(page.evaluate(MARKED)) == 3)
    assert page.evaluate(MARKED)[0].startswith("called while a request is opened")
    evidence.locator("summary").click()
    assert until(lambda: page.evaluate(MARKED) == [])
    page.reload()
    expect(evidence.locator("summary")).to_have_text("4 of 7 sentences have their evidence")


def test_an_answer_is_written_block_by_block_until_it_is_stopped(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "slow")
    being_written(page, blocks=3)
    stop(page)
    ask(page, "silent")
    stages = page.locator(".stages").last
    expect(stages).to_contain_text("Writing")
    page.get_by_role("button", name="Stop").click()
    expect(stages).to_contain_text("Stopped")
    assert scripted.chat.cancelled.wait(10), "the server goes on with nobody reading"
    get_answer(page, "again")
    expect(page.locator(".turn")).to_have_count(3)


def test_a_reader_keeps_the_place_unless_the_end_was_asked_for(page: Page) -> None:
    ask(page, "slow")
    scroller = page.locator("#scroller")
    jump = page.get_by_role("button", name="Jump to latest")
    place, left = "e => e.scrollTop", "e => e.scrollHeight - e.scrollTop - e.clientHeight"

    def stays(before: int) -> bool:
        being_written(page, blocks=page.locator(".block").count() + 15)
        return bool(scroller.evaluate(place) == before)

    expect(jump).to_be_visible()
    assert scroller.evaluate(place) < 40  # reading begins at the question
    page.mouse.move(700, 300)
    page.mouse.wheel(0, 60)
    assert stays(rests(scroller))
    jump.click()
    expect(jump).to_be_hidden()
    being_written(page, blocks=page.locator(".block").count() + 15)
    assert until(lambda: scroller.evaluate(left) < 60)  # it follows, since that was asked for
    page.mouse.wheel(0, -300)
    assert stays(rests(scroller))
    jump.click()  # nor is the place taken by keys that the scroller never hears
    scroller.evaluate("e => { e.scrollTop -= 900 }")
    assert stays(rests(scroller))
    stop(page)


def test_the_block_in_progress_has_its_form_but_no_markup(page: Page) -> None:
    show = """async text => {
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
        assert tuple(page.evaluate(show, text)) == expected


def test_a_citation_that_was_not_sent_stays_a_link_and_one_without_lines_is_struck(
    page: Page,
) -> None:
    get_answer(page, "unverified")
    expect(page.locator("#announce")).to_contain_text("1 not in the context, 1 not verified")
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        sent, outside, gone = (
            page.locator(f'a.citation[data-start="{line}"]').first for line in (25, 1200, 8)
        )
        expect(sent).to_have_class("citation")
        expect(outside).to_have_class("citation outside")
        expect(outside).to_have_css("text-decoration", re.compile("underline .*dotted"))
        expect(outside).to_have_attribute("title", re.compile("^Not in the context"))
        expect(gone).to_have_class("citation unverified")
        expect(gone).to_have_css("text-decoration-line", "line-through")
    outside.click()
    expect(page.locator(".source .cited").first).to_have_attribute("data-line", "1200")


def test_code_that_stands_in_a_cited_file_opens_there(page: Page) -> None:
    invented = CODE.replace("SESSION_COOKIE_NAME", "COOKIE")
    get_answer(page, f"say:See {CITED}.\n\n{CODE}\n\n{invented}\n\n```\nreturn {{}}\n```\n")
    for reloaded in (False, True):
        if reloaded:
            page.reload()
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

    looked_up: list[str] = []
    page.on("request", lambda r: looked_up.append(r.url) if "/api/lines" in r.url else None)
    get_answer(page, f"say:{CODE}\n")  # cites nothing
    expect(page.locator(".open-file")).to_have_count(1)
    assert not looked_up


def test_code_matches_exactly_but_for_its_indentation(page: Page) -> None:
    match = """async ([text, lines]) => {
      const { matchOf } = await import("/static/js/answer/code_references.js");
      return matchOf(text, lines);
    }"""
    source = ["class A:", "    def f(self):  ", "", "        return self.value", "    x = 1"]
    body = "def f(self):\n\n    return self.value"
    deeper = "\n".join(f"      {line}" for line in body.split("\n"))
    there = {"start": 1, "end": 3}
    assert page.evaluate(match, [body, source]) == there
    assert page.evaluate(match, [deeper, source]) == there
    assert page.evaluate(match, [f"\n        {body}\n\n", source]) is None  # of two depths
    assert page.evaluate(match, [body.replace("value", "other"), source]) is None
    assert page.evaluate(match, ["x = 1", source]) is None  # it stands anywhere
    assert page.evaluate(match, [body, []]) is None


def test_stages_and_steps_are_told_while_they_last_and_kept(page: Page) -> None:
    use_model(page)
    ask(page, "silent")
    details = page.get_by_role("button", name="Details")
    expect(details).to_have_attribute("aria-expanded", "false")
    names = page.locator(".details-steps code")
    expect(names.first).to_be_hidden()  # the line above stays calm
    details.click()
    expect(names).to_have_text(STEPS[:9])  # it is not written yet
    expect(page.locator(".details-steps .size").first).to_have_text("3 ms")
    expect(page.locator(".details-facts")).to_contain_text(
        "Taken as a question about the code, 92 % sure (@codebase says so)"
    )
    expect(page.locator(".stages")).to_contain_text("Waiting for gpt-4o")
    expect(page.locator(".stages .time").last).to_have_text(re.compile(r"^\d+ s$"))
    stop(page)

    chip_of(page).click()
    get_answer(page, "rewritten:How long are pizza sessions kept?")
    last = page.locator(".turn").last
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        last.get_by_role("button", name="Details").click()
        facts = last.locator(".details-facts")
        expect(facts).to_contain_text("Searched for How long are pizza sessions kept?")
        expect(facts).to_contain_text("left out, for this is a new topic: no code has pizza")
        expect(facts).to_contain_text("by its words: it names <b>code</b>")
        expect(facts).to_contain_text("Rules the-code-is-asked-for")
        expect(last.locator(".details-steps code")).to_have_text(STEPS)
        expect(last.locator('[data-step="generate"] .size')).to_have_text("0.8 s")
        expect(last.locator(".facts")).to_contain_text(re.compile(r"Took \d+ ms|Took \d\.\d s"))


def test_an_answer_says_model_host_tokens_reranker_and_why_another_was_used(page: Page) -> None:
    get_answer(page, "alone")
    facts = page.locator(".facts")
    expect(facts).to_contain_text("4 of 4 files")
    expect(facts).not_to_contain_text("Answered by")
    expect(facts).not_to_contain_text("Reranked by")
    use_model(page)
    page.locator("#rerank").click()
    get_answer(page, "hurt")
    for told in ("gpt-4o · api.openai.com", "≈ 3,120 in, ≈ 412 out", "Reranked by built-in"):
        expect(facts.last).to_contain_text(told)
    expect(page.locator(".turn-notice")).to_contain_text("ColBERT model is not on this machine")
    page.reload()
    expect(facts.last).to_contain_text("Reranked by built-in")
    expect(page.locator(".turn-notice")).to_contain_text("ColBERT model is not on this machine")


def test_what_was_kept_says_when_and_whether_the_model_answered_or_was_only_asked(
    page: Page, scripted: ScriptedServer
) -> None:
    use_model(page)
    get_answer(page, "one")
    ask(page, "modelfail")
    expect(page.get_by_role("alert")).to_be_visible()
    ask(page, "silent")
    expect(page.locator(".stages").last).to_contain_text("Waiting for gpt-4o")
    page.get_by_role("button", name="Stop").click()
    assert scripted.chat.cancelled.wait(10)
    page.reload()
    turns = page.locator(".turn")
    expect(turns).to_have_count(3)
    for turn, told in zip(turns.all(), ("Answered", "Asked", "Asked"), strict=True):
        expect(turn.locator(".asked-at")).to_have_text(re.compile(rf"^{told} at \d\d:\d\d$"))
        by = "Answered by" if told == "Answered" else "Asked"
        expect(turn.locator(".facts dt").first).to_have_text(by)
    question = turns.first.locator(".question").bounding_box()
    answer = turns.first.locator(".answer").bounding_box()
    assert question is not None and answer is not None
    assert answer["y"] - question["y"] - question["height"] > 24  # as when it was written


def test_an_error_says_what_to_do_and_a_failing_model_leaves_its_text_and_ways_on(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "fail")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("It did not work.")
    expect(alert).to_contain_text("Try it again.")
    expect(alert.get_by_role("button")).to_have_text(["Try again"])  # no model would help
    alert.get_by_role("button", name="Try again").click()
    expect(alert).to_contain_text("It did not work.")
    expect(page.locator(".turn")).to_have_count(1)

    use_model(page)
    page.get_by_role("button", name="New conversation").first.click()
    ask(page, "modelfail")
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        expect(alert).to_contain_text("The model's server refused the key.")
        expect(alert).to_contain_text("Enter another key, then try again.")
        expect(page.locator(".answer")).to_contain_text("It began well,")
    expect(page.locator(".turn")).to_contain_text("Asked")
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
    page.get_by_role("button", name="Regenerate").click()  # that asks the model once more
    expect(alert).to_be_visible()
    assert scripted.chat.asked[-1]["use_model"] is True


def test_an_answer_without_the_code_says_so_and_offers_to_search_it(
    page: Page, scripted: ScriptedServer
) -> None:
    chip_of(page).click()
    get_answer(page, "hello, what does it do?")
    expect(page.locator(".stages")).to_contain_text("No code was used")
    page.reload()
    hint = page.locator(".suggest")
    expect(hint).to_contain_text("The code was not searched for this answer.")
    expect(page.get_by_role("button", name="Search the code", exact=True)).to_have_count(0)
    hint.get_by_role("button", name="Search the code base").click()
    answered(page)
    asked = scripted.chat.asked[-1]
    assert asked["question"] == "@codebase hello, what does it do?"
    assert asked["replaces"] == "turn-1"
    expect(hint).to_have_count(0)
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()


def test_what_comes_next_what_was_learnt_and_what_a_plugin_did_stand_below(
    page: Page, scripted: ScriptedServer
) -> None:
    get_answer(page, "suggest:And for how long?|Who signs the `cookie`?")
    offered = page.get_by_role("list", name="Questions that may come next")
    expect(offered.get_by_role("button")).to_have_text(
        ["And for how long?", "Who signs the cookie?"]
    )
    expect(offered.locator("code")).to_have_text("cookie")
    page.reload()
    offered.get_by_role("button").last.click()
    answered(page)
    assert scripted.chat.asked[-1]["question"].endswith("Who signs the `cookie`?")
    expect(offered).to_have_count(0)  # only offered last
    last = page.locator(".turn").last
    get_answer(page, "learn:name=Ada")
    expect(last.locator(".learnt")).to_have_text("Remembered: name: Ada")
    get_answer(page, "plugged:The plugin shout broke in after_generation.")
    expect(last.locator(".turn-notice")).to_have_text("The plugin shout broke in after_generation.")
    get_answer(page, "revise:**Louder.**")
    page.get_by_text("A plugin changed the answer").click()
    expect(page.locator(".revised strong")).to_have_text("Louder.")


def test_escape_leaves_an_answer_alone_while_something_is_open_over_it(
    page: Page, scripted: ScriptedServer
) -> None:
    loaded(page)
    ask(page, "slow")
    being_written(page)
    page.locator("#model-chip").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.get_by_role("button", name="More for “slow”").press("Enter")
    expect(page.get_by_role("menu")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    page.get_by_role("button", name="Edit the question").focus()
    page.keyboard.press("Shift+Escape")  # goes to the field
    expect(page.locator("#question")).to_be_focused()
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


FLOW = """flowchart LR
n1["Flask.<b>wsgi_app</b>"]
n2["says #quot;no#quot;"]
n1 --> n2
n2 -->|again| n1
n1 --> n3["last"]
n3 --> n3
"""


def test_a_diagram_is_drawn_as_text_and_lines_and_what_is_not_known_stays_code(
    phone: Page,
) -> None:
    page = phone
    unknown = f"```mermaid\n{FLOW}n1 -.-> n2\n```"
    get_answer(page, f"say:So:\n\n```mermaid\n{FLOW}```\n\n{unknown}\n")
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        drawn, code = (page.locator(".code-block").nth(number) for number in (0, 1))
        drawing = drawn.get_by_role("img", name="Diagram: 3 boxes, 3 arrows")
        expect(drawing).to_be_visible()
        boxes = drawing.locator("rect + text")
        expect(boxes).to_have_text(["Flask.<b>wsgi_app</b>", 'says "no"', "last ↻"])
        expect(drawing.locator("desc")).to_contain_text(
            'says "no" to Flask.<b>wsgi_app</b> (again)'
        )
        expect(drawing.locator(".head")).to_have_count(3)
        first, second, third = (boxes.nth(number).bounding_box() for number in range(3))
        assert first and second and third and first["x"] < second["x"]
        assert abs(second["y"] - third["y"]) > 20, "side by side in their layer"
        assert not scrolled_sideways(page)
        drawn.get_by_role("button", name="Text").press("Enter")
        expect(drawing).to_be_hidden()
        expect(drawn.locator("pre")).to_have_text(FLOW)
        expect(code.locator("pre")).to_contain_text("n1 -.-> n2")
        expect(code.get_by_role("img")).to_have_count(0)


def test_a_large_diagram_is_drawn_also_where_it_goes_in_circles(page: Page) -> None:
    names = [f'n{number}["module.function_{number}"]' for number in range(60)]
    arrows = [f"n{one} --> n{(one + 1) % 60}" for one in range(60)]
    arrows += [f"n{one} --> n{(7 * one + 1) % 60}" for one in range(0, 60, 4)]
    boxes = page.evaluate(
        """async (source) => {
          const { drawDiagram } = await import("/static/js/answer/diagram.js");
          const own = ({ x, y, width, height }) =>
            [x, y, width, height].map((one) => one.baseVal.value);
          return [...drawDiagram(source).querySelectorAll("rect")].map(own);
        }""",
        "\n".join(["flowchart TD", *names, *arrows]),
    )
    assert len(boxes) == 60
    apart = [
        abs(x - left) >= width - 0.01 or abs(y - top) >= height - 0.01
        for at, (x, y, width, height) in enumerate(boxes)
        for left, top, *_ in boxes[:at]
    ]
    assert all(apart)
    chain = [f"n{one} --> n{one + 1}" for one in range(119)]
    endless = [["a --> a"] * 100_000, [*chain, *(f"n{one % 9} --> n119" for one in range(270))]]
    drawn = page.evaluate(
        """async (sources) => {
          const { drawDiagram } = await import("/static/js/answer/diagram.js");
          return sources.map(drawDiagram);
        }""",
        ["\n".join(["flowchart TD", *lines]) for lines in endless],
    )
    assert drawn == [None, None], "a model that repeats itself does not stop the page"
