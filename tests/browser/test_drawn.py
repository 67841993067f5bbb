"""What an answer holds besides words and code: diagrams, formulas, Arabic; and paper."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from browser.actions import (
    PHONE,
    answered,
    ask,
    comes,
    expecting,
    get_answer,
    row,
    scrolled_sideways,
)
from browser.conftest import ScriptedServer
from playwright.sync_api import Locator, Page, expect

DIAGRAMS = {
    "flowchart TD\n A[Start] --> B{Is it?}\n B -->|Yes| C((End))\n B -- No --> A": "Is it?",
    "graph LR\n subgraph web [Web layer]\n A[(DB)] -.-> B\n end\n style A fill:#f9f": "Web layer",
    "flowchart LR\n A[call(x)] -->|f()| B{items[0] set?}\n B --> C(run())": "items[0] set?",
    'flowchart LR\n A["Map<String, List<int>>"] --> B["says #quot;no#quot;<br>x"]': 'says "no"',
    "sequenceDiagram\n participant U as User\n U->>+S: GET /items\n S-->>-U: 200 OK": "200 OK",
    "classDiagram\n class A {\n <<interface>>\n +List~int~ legs\n }\n A <|-- B": "+List<int> legs",
    "stateDiagram-v2\n [*] --> Idle\n Idle --> Running : start()\n Running --> [*]": "start()",
    "erDiagram\n CUSTOMER ||--o{ ORDER : places": "places",
    "gantt\n dateFormat YYYY-MM-DD\n section A\n One :a1, 2024-01-01, 30d": "One",
    'pie title Languages\n "Python" : 60\n "JS" : 40': "Languages",
    "mindmap\n  root((Plan))\n    One\n    Two": "Plan",
    "architecture-beta\n service a(database)[Orders]\n service b(disk)[B]\n b:L -- R:a": "Orders",
    "gitGraph\n commit\n branch dev\n commit": "dev",
    '---\ntitle: Named\n---\n%%{init: {"theme": "dark"}}%%\ngraph TD; A-->B;': "Named",
}
NEVER = {
    "": "",
    "just words\nand more": "",
    "flowchart TD\n A --> B\n B --> [": " (line 3)",
    "sequenceDiagram\n A->B->C": " (line 2)",
    "flowchart TD\n" + " a --> b\n" * 500: "",
}
HOSTILE = """%%{init: {"securityLevel": "loose", "themeCSS": "*{fill: url(//evil.example)}"}}%%
flowchart LR
  A["<img src=//evil.example/x onerror=window.hacked=1>"] --> B["<script>window.hacked=1</script>"]
  click A href "javascript:window.hacked=1"
  click B call window.hacked()
"""


def drawn(page: Page, number: int = 0) -> Locator:
    """A block of code whose diagram is drawn, or cannot be."""
    block = page.locator(".code-block").nth(number)
    block.locator(".diagram, .undrawn").wait_for()
    return block


def fenced(sources: Iterable[str]) -> str:
    return "say:" + "\n".join(f"```mermaid\n{source}\n```\n" for source in sources)


def test_every_kind_of_diagram_is_drawn_and_its_text_can_be_shown(page: Page) -> None:
    get_answer(page, fenced(DIAGRAMS))
    for number, words in enumerate(DIAGRAMS.values()):
        picture = drawn(page, number).get_by_role("img", name=re.compile("^Diagram: "))
        expect(picture).to_have_attribute("alt", re.compile(re.escape(words)))
        assert picture.evaluate("image => image.naturalWidth * image.naturalHeight") > 1000
    generic = page.get_by_role("img", name=re.compile("says"))
    expect(generic).to_have_attribute("alt", re.compile("Map<String, List<int>>"))
    first = drawn(page)
    first.get_by_role("button", name="Text").press("Enter")
    expect(first.locator(".diagram")).to_be_hidden()
    expect(first.locator("pre")).to_contain_text("B{Is it?}")
    page.reload()
    expect(drawn(page).get_by_role("img")).to_be_visible()


def test_what_is_no_diagram_stays_text_below_a_sentence(page: Page) -> None:
    get_answer(page, fenced(NEVER))
    for number, (source, where) in enumerate(NEVER.items()):
        block = drawn(page, number)
        sentence = f"This diagram cannot be drawn{where}, so here is its text."
        expect(block.locator(".undrawn")).to_have_text(sentence)
        expect(block.locator("pre")).to_contain_text(source[:20])
        expect(block.get_by_role("img")).to_have_count(0)


def test_where_mermaid_is_not_installed_there_is_no_frame_and_the_text_stays(page: Page) -> None:
    page.locator("#thread").evaluate("thread => delete thread.dataset.diagrams")
    get_answer(page, fenced(["graph TD; A-->B"]))
    block = drawn(page)
    expect(block.locator(".undrawn")).to_contain_text("where the server has the package mermaidx")
    expect(block.locator("pre")).to_have_text("graph TD; A-->B\n")
    expect(page.locator("iframe")).to_have_count(0)


def test_a_hostile_diagram_runs_nothing_and_loads_nothing(page: Page) -> None:
    expecting(page, "@import rules are not allowed")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    get_answer(page, fenced([HOSTILE]))
    picture = drawn(page).get_by_role("img")
    assert "onerror" in (picture.get_attribute("alt") or "")
    frame = page.locator("iframe")
    expect(frame).to_have_attribute("sandbox", "allow-scripts")
    hacked = [one.evaluate("window.hacked") for one in page.frames]
    assert hacked == [None, None]
    assert not [address for address in asked if "evil" in address.split(",")[0]]


def test_a_drawing_that_never_ends_is_given_up_and_the_next_one_drawn(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open()
    page.route("**/diagram_frame.js*", lambda route: route.fulfill(body=""), times=1)
    ask(page, fenced(["graph TD; A-->B"]))
    answered(page)
    comes(page, page.locator(".undrawn"))
    get_answer(page, fenced(["graph TD; A-->B"]))
    expect(drawn(page, 1).get_by_role("img")).to_be_visible()


def test_a_long_flowchart_is_turned_where_there_is_little_room(scripted: ScriptedServer) -> None:
    chain = " --> ".join(f"n{number}[a long label {number}]" for number in range(4))
    for size in ({"width": 1280}, PHONE):
        page = scripted.open(**size)
        get_answer(page, fenced([f"flowchart LR\n {chain}"]))
        picture = drawn(page).get_by_role("img")
        width, height = picture.evaluate("image => [image.naturalWidth, image.naturalHeight]")
        assert (width < height) == (size is PHONE)
        assert not scrolled_sideways(page)


FORMULAS = r"""It takes $O(n \log n)$, **not $O(n^2)$**; \(a_1*b_1*\) is \[ x_1 = y_1 \] here.

$$
f(x) = \begin{cases} 0 & \text{if } x < 0 \\ 1 & \text{otherwise} \end{cases}
$$

\[ \sum_{i=1}^{n} \frac{x_i}{\sqrt{n}} \]

| cost | `$x_1$` costs $5 or $10, $HOME and $PATH |
|---|---|
| $n_1$ | $\nosuch{x}$ and $\href{javascript:alert(1)}{x}$ |
"""


def test_formulas_are_set_and_prices_code_and_what_cannot_be_read_stay_text(page: Page) -> None:
    get_answer(page, f"say:{FORMULAS}")
    answer = page.locator(".answer")
    expect(answer.locator("math")).to_have_count(7)
    expect(answer.locator("math[display=block]")).to_have_count(3)
    expect(answer.locator("mfrac")).to_have_count(1)
    expect(answer.locator(".maths.set").first).to_have_attribute("title", r"$O(n \log n)$")
    unread = [r"$\nosuch{x}$", r"$\href{javascript:alert(1)}{x}$"]
    expect(answer.locator(".maths:not(.set)")).to_have_text(unread)
    expect(answer.locator("th").last).to_have_text("$x_1$ costs $5 or $10, $HOME and $PATH")
    expect(answer.locator("em")).to_have_count(0)
    page.set_viewport_size({"width": 360, "height": 740})
    assert not scrolled_sideways(page)


def test_a_formula_that_is_being_written_is_its_source_and_not_emphasis(page: Page) -> None:
    page.wait_for_function("document.getElementById('thread').children.length")
    shown = page.evaluate(
        """async (texts) => {
          const { showUnfinished } = await import("/static/js/answer/streaming.js");
          return texts.map((text) => {
            const node = document.createElement("div");
            showUnfinished(node, text, { written: (place) => place });
            return [...node.querySelectorAll(".maths")].map((one) => one.textContent);
          });
        }""",
        [
            "is $$a_1**b**",
            "so \\(x**2** + y",
            "\\[\nx_1\n+ y",
            "both $x_1$ and $y$.",
            "$HOME and $PATH cost $5 or $10",
        ],
    )
    assert shown == [["$$a_1**b**"], ["\\(x**2** + y"], ["\\[\nx_1\n+ y"], ["$x_1$", "$y$"], []]


def test_words_run_as_their_script_does_and_code_never_leftwards(page: Page) -> None:
    arabic = "الدالة `open_session()` تقرأ الملف"
    get_answer(page, arabic)
    expect(row(page, arabic).locator(".title")).to_have_css("direction", "rtl")
    expect(page.locator(".question > div").last).to_have_css("direction", "rtl")
    latin = "English, then עברית.\n\n```python\nx = 1  # نعم\n```\n"
    get_answer(page, f"say:{arabic}.\n\n`foo` هي دالة\n\n- שלום\n\n{latin}")
    last = page.locator(".turn").last
    directions = last.locator(".block").evaluate_all(
        "blocks => blocks.map((block) => getComputedStyle(block).direction)"
    )
    assert directions == ["rtl", "rtl", "rtl", "ltr", "ltr"]
    for code in last.locator("code, pre").all():
        expect(code).to_have_css("direction", "ltr")
    page.reload()
    parts = page.locator(".turn").last.locator(".block > *")
    expect(parts).to_have_count(len(directions))
    for part, direction in zip(parts.all(), directions, strict=True):
        expect(part).to_have_css("direction", direction)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_shows_all_of_a_conversation_light_and_nothing_of_the_frame(
    scripted: ScriptedServer, scheme: str
) -> None:
    lines = "\n".join(
        f"value_{number} = 'a line of code {'that goes on ' * 20}'" for number in range(40)
    )
    page = scripted.open(width=768, scheme=scheme, own=True)
    diagram = "```mermaid\ngraph TD; A-->B\n```"
    docs = "[the docs](https://example.org/a/b)"
    get_answer(page, f"say:See {docs}.\n\n```python\n{lines}\n```\n\n{diagram}\n")
    drawn(page, 1)
    for _ in range(3):
        get_answer(page, "alone")
    screens = page.locator("#scroller").evaluate("node => node.clientHeight")
    page.emulate_media(media="print")
    for hidden in (".sidebar", ".dock", ".actions", ".copy", ".unfold", ".edit", ".jump"):
        assert not [one for one in page.locator(hidden).all() if one.is_visible()], hidden
    height = page.locator("#scroller").evaluate("node => node.clientHeight")
    assert height > 2 * screens and height >= page.locator("#thread").evaluate(
        "e => e.scrollHeight"
    )
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(page.locator(".diagram img")).to_have_css("filter", "none")
    folded = page.locator(".code-block pre").first
    assert folded.evaluate("pre => pre.scrollWidth <= pre.clientWidth")
    expect(folded.get_by_text("value_39")).to_be_visible()
    expect(page.locator(".details-steps").first).to_be_visible()
    assert page.locator(".citation .folder").first.is_visible()
    after = "a => getComputedStyle(a, '::after').content"
    assert "https://example.org/a/b" in page.locator("a.external").evaluate(after)
    assert page.pdf().startswith(b"%PDF")
