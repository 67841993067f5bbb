"""Markdown and code become HTML that is right, and safe whatever goes in."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from urllib.parse import quote, urlsplit

import pytest
from browser.payloads import PAYLOADS
from chat_kit import SlowClock
from conftest import ROOT
from hypothesis import example, given
from hypothesis import strategies as st

from codeqa.render import SYNTAX_CLASSES, highlight_lines, render_markdown, sanitise, split_blocks
from codeqa.web.ai_sdk import BlockRenderer

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")


SAFE_TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "li", "ol", "p", "pre", "s", "span", "strong", "sup", "table", "tbody", "td", "th", "thead",
    "tr", "ul",
}  # fmt: skip
SAFE_ATTRIBUTES = {
    "href", "title", "rel", "target", "class", "start", "data-path", "data-start", "data-end",
    "data-language",
}  # fmt: skip


def cite(path: str, start: int, end: int) -> str | None:
    """Every path that ends in `.py` has 100 lines."""
    return (
        f"/?file={quote(path)}&lines={start}-{end}" if path.endswith(".py") and end < 101 else None
    )


class Checker(HTMLParser):
    """Collects whatever should not be in the HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in SAFE_TAGS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name not in SAFE_ATTRIBUTES:
                self.wrong.append(f"{tag} {name}={value}")
            schemes = ("", "http", "https", "mailto")
            if name == "href" and urlsplit(value or "").scheme not in schemes:
                self.wrong.append(f"{tag} href={value}")

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(html: str) -> tuple[list[str], str]:
    """What is wrong with it, and its text."""
    checker = Checker()
    checker.feed(html)
    checker.close()
    return checker.wrong, checker.text


# Markdown


def test_a_citation_becomes_a_link_to_the_lines() -> None:
    html = render_markdown("See [src/a_b/app.py:12-34].", cite)
    assert 'class="citation"' in html and 'href="/?file=src/a_b/app.py&amp;lines=12-34"' in html
    assert 'data-path="src/a_b/app.py" data-start="12" data-end="34"' in html
    assert "app.py:12-34</span></a>" in html


def test_a_path_with_odd_characters_is_cited_as_it_is_inside_other_markup_too() -> None:
    for path in ("app/[slug]/page.py", "a b/c.py", "src/__init__.py", "a*b*.py"):
        for text in (f"in [{path}:1-2] and", f"- one [{path}:1-2]", f"> **x [{path}:1-2]**"):
            assert f'data-path="{path}"' in render_markdown(text, cite)


def test_a_citation_that_does_not_exist_is_marked_and_no_link() -> None:
    html = render_markdown("[gone.rs:1-2] and [a.py:99-200]", cite)
    assert html.count('class="citation unverified"') == 2
    assert "<a " not in html and "No indexed file has these lines" in html
    assert render_markdown("x[0:5], [16:9]", lambda *place: "") == "<p>x[0:5], [16:9]</p>\n"


def test_a_place_written_as_code_becomes_a_link_where_there_are_such_lines() -> None:
    html = render_markdown("| where |\n|---|\n| `a.py:3-5` |\n\nnot `gone.rs:1-2`, nor `a:b`", cite)
    assert 'data-path="a.py" data-start="3" data-end="5"' in html
    assert "<code>gone.rs:1-2</code>" in html and "<code>a:b</code>" in html
    linked = render_markdown("[see `a.py:3-5`](https://example.com)", cite)
    assert "<code>a.py:3-5</code>" in linked and "citation" not in linked
    assert "<code>a.py:3-5</code>" in render_markdown("`a.py:3-5`")


def test_a_citation_in_code_stays_code() -> None:
    for text in ("`[a.py:1-2]`", "```\n[a.py:1-2]\n```", "    [a.py:1-2]"):
        assert "citation" not in render_markdown(text, cite)


def test_nothing_is_loaded_and_no_link_leads_nowhere() -> None:
    for text, html in (
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"),
        ("[a.py:1-2]", "<p>[a.py:1-2]</p>\n"),  # without a way to check it
        ("https://example.org", "<p>https://example.org</p>\n"),
        ("![a plan](https://e.org/x.png)", '<p><span class="image">a plan</span></p>\n'),
        *(
            (f"[x]({target})", "<p>x</p>\n")
            for target in ("docs/a.md", "/etc/passwd", "//evil.example", "#x", "file:///a")
        ),
    ):
        assert render_markdown(text) == html


def test_an_external_link_opens_apart_and_tells_nothing_to_its_target() -> None:
    html = render_markdown("[x](https://example.org/a)")
    assert 'class="external" href="https://example.org/a"' in html
    assert 'rel="noopener noreferrer"' in html and html.count('target="_blank"') == 1
    cited = render_markdown("[a.py:1-2] [me](mailto:a@example.org)", lambda *_: "/?file=a.py")
    assert 'href="/?file=a.py"' in cited and "mailto:" in cited and "target" not in cited


def test_tables_and_code_are_dressed_by_classes() -> None:
    html = render_markdown("| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n```python\ndef f(): pass\n```")
    assert "<td>1</td>" in html and "<td>2</td>" in html
    assert 'data-language="python"' in html and 'class="k">def</span>' in html
    assert "style=" not in html


def test_a_text_of_a_megabyte_is_shown_plain() -> None:
    assert render_markdown("[a](b)" * 200_000).startswith('<pre class="plain">')
    assert "<span" not in highlight_lines("x = '" + "a" * 1_000_000, "python")[0]


# Safety


def test_a_payload_in_an_answer_a_path_or_code_is_harmless() -> None:
    for payload in PAYLOADS:
        path = payload.replace("\n", " ")
        for text in (payload, f"before {payload} after", f"[{path}.py:1-2]"):
            assert not checked(render_markdown(text, cite))[0], payload
        html = render_markdown(f"[{path}.py:1-2]", lambda *_, path=path: path)
        assert not checked(html)[0], path
        for language in ("html", "javascript", "php", "unknown"):
            wrong, plain = checked("\n".join(highlight_lines(payload, language)))
            assert not wrong, payload
            assert plain.rstrip("\n") == payload.replace("\r", " ").rstrip("\n")


@given(st.text(max_size=400))
def test_no_text_renders_to_anything_unsafe(text: str) -> None:
    assert not checked(render_markdown(text, cite))[0]


def test_what_is_not_on_the_lists_is_removed() -> None:
    html = sanitise(
        '<p class="evil" onclick="x">a<script>b</script><span class="k bad">c</span></p>'
    )
    assert html == '<p>a<span class="k">c</span></p>'


# Blocks of a growing text

PIECES = [
    "para one\n", "with [a.py:1-2] more\n", "\n", "\n\n", "# head\n", "- item\n", "  - nested\n",
    "  more of it\n", "1. first\n", "7. seventh\n", "> quote\n", "lazy\n", "```python\n",
    "def f():\n", "    return 1\n", "```\n", "~~~\n", "````\n", "---\n", "===\n", "| a | b |\n",
    "|---|--:|\n", "| [a.py:1] | 2 |\n", "[x]: https://e.org\n", "[x]\n", "<div>\n",
    "</div>\n", "    indented\n",
    "* star\n", "+ plus\n", "\\\n", "a  \n", "*not\n", "closed*\n", "text without an end", "`",
    "\t- tab\n",
    "\r\n", "x\ry\n", "&amp;\n", "😀 end\n", "- [ ] task\n", "***\n", "#\n", "-\n", "1.\n",
    "$$\n", "\\[\n", "\\]\n", "\\[ a\n", "$$ b\n", "c $$\n", "   $$\n", "\\begin{align}\n",
    "\\[ x \\]\n", "in $x_1$\n",
    "[^1]: note\n", "- [x] done\n", "2. second\n", "- $x$",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("- a\n\n  b\n\nc\n")
@example("```\na\n\n\nb\n")
@example("para\n#")
@example("> a\n\n> b\n\n")
def test_blocks_join_to_the_text_and_their_renderings_to_the_whole(text: str) -> None:
    blocks, rest = split_blocks(text)
    assert "".join([*blocks, rest]) == text.replace("\r", " ")
    parts = [render_markdown(part, cite) for part in [*blocks, rest]]
    assert "".join(parts).strip() == render_markdown(text, cite).strip()


def test_a_block_is_complete_when_nothing_can_change_it() -> None:
    for text, blocks in (
        ("```\na\n\nb\n", []),  # a fence is complete once it is closed
        ("```\na\n\nb\n```\n", ["```\na\n\nb\n```\n"]),
        ("- a\n- b\n\n", []),  # a list once something else begins
        ("- a\n- b\n\nnext\n", ["- a\n- b\n\n"]),
        ("# Title", []),  # a line once it has ended
        ("# Title\n", ["# Title\n"]),
    ):
        assert split_blocks(text) == (blocks, text.removeprefix("".join(blocks)))


LIST_BEGIN, LIST_END = re.compile(r"^<[uo]l.*?>\s*"), re.compile(r"</[uo]l>\s*$")


@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
@example("- a\n- b\n\n  c\n- d\n\ne\n", [1])
@example("1. a\n   - b\n2. c\n* d\n", [3])
@example("- a\n- b\n\nThe end", [4])
def test_a_list_that_comes_item_by_item_becomes_the_list_as_a_whole(
    text: str, sizes: list[int]
) -> None:
    text = text.replace("\r", " ")
    renderer, found, at = BlockRenderer(cite), [], 0
    for size in itertools.cycle(sizes):
        found += renderer.feed(text[at : at + size])
        if (at := at + size) >= len(text):
            break
    html, last = "", -1
    for block in (one["block"] for one in [*found, *renderer.finish()]):
        if block["index"] == last:  # its items go on, of which the page takes all
            assert re.fullmatch(r"<([uo]l).*</\1>\n", block["html"], re.DOTALL)
            html = LIST_END.sub("", html) + LIST_BEGIN.sub("", block["html"])
        else:
            html += block["html"]
        last = block["index"]
    assert joined_by_items(html) == joined_by_items(render_markdown(text, cite))


def joined_by_items(html: str) -> str:
    """Without paragraphs, which an item of a list with blank lines is one of."""
    return re.sub(r"</?p>|\s+", "", html)


def test_tasks_notes_and_maths_are_readable_where_nothing_sets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("codeqa.render.mathml", lambda formula: "")
    for text, html in (
        ("- [x] done\n- [ ] not", "<li>☑ done</li>\n<li>☐ not</li>"),
        ("It is so[^1].\n\n[^1]: As told.", "so<sup>1</sup>.</p>\n<p><sup>1</sup> As told.</p>"),
        ("$n_1 * m_2$ *is*", "$n_1 * m_2$ <em>is</em>"),
        ("\\(a_1*b_1*\\)", "<p>\\(a_1*b_1*\\)</p>"),
        ("$$\na\n+ b_1 < c_1\n$$", "$$\na\n+ b_1 &lt; c_1\n$$"),
        ("$HOME/$PATH and $5 or $6, `$x$`", "$HOME/$PATH and $5 or $6, <code>$x$</code>"),
        ("\\(a \\\\ \\frac{b*c*d}{2}\\)", "<p>\\(a \\\\ \\frac{b*c*d}{2}\\)</p>"),
        ("So\n\\[ a_1*b_1* \\]\nis", "\\[ a_1*b_1* \\]"),
        ("list\\[int\\] and \\[*x*\\]", "list[int] and [<em>x</em>]"),
    ):
        assert html in re.sub(r"</?span.*?>", "", render_markdown(text))


FORMULAS = (
    "$O(n \\log n)$", "The cost is $O(n^2)$, not $n$.", "($n$)", "$n$-gram", "$n_1 * m_2$ is",
    "\\(a_1*b_1*\\)", "So \\[ x_1 = y_1 \\] holds", "\\[x^2\\]", "so $$a_1 + b_1$$ and more",
    "**$O(n)$**", "$\\text{if } x \\text{ and } y$", "$5 \\times 3$", "it is $0.5$.", "$n log n$",
    "$x$, $y$; $z$.", "> $x_1*y_1*$", "$p < 0.05$", "| a |\n|---|\n| $x_1$ |", "$y=\\frac{1}{2}$?",
    "$$\n\\begin{aligned}\na &= b\\\\\n- c\n\\end{aligned}\n$$", "\\[ a = b\n- c_1 * d_1 *\n\\]",
    "$$ a\n+ b\n$$", "$$\na\n$$.", "1. So\n   $$\n   a_1*b*\n   $$\n2. x", "text\n\\[ a \\]\nmore",
    "\\begin{align}\na &= b \\\\\nc_1 &= d_1\n\\end{align}", "```math\nx_1\n```",
)  # fmt: skip
NO_FORMULAS = (
    "$HOME and $PATH", "$HOME/$PATH", "costs $5 and $10", "between $5 or 10$ a month", "US$5, US$6",
    "$5 million, or 6$", "`$x$`", "``a $x$ b``", "export PATH=$PATH:$HOME/bin", "\\$5 and \\$6",
    "$(foo) and $(bar)", "${a} and ${b}", "echo $1 $2 $3", "$? and $! are", "$_ and $@", "a$b$c",
    "kill $$ and $$ now", "$$(shell x) and $$(y)", "list\\[int\\] and \\[*x*\\]", "\\[link\\](x)",
    "jQuery $('#a') and $('#b')", "$this->foo and $bar", "```\n$x$\n```", "    $x$", "^a$ and ^b$",
    "use $foo, `$bar` and $baz", "$5k to $10k", "$ x $", "\\begin{itemize}", "\\[ a\n\nb \\]",
)  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_kept_whole_without_emphasis(text: str) -> None:
    html = render_markdown(text)
    assert 'class="maths' in html and "<em>" not in html


@pytest.mark.parametrize("text", NO_FORMULAS)
def test_prices_shell_and_code_are_no_formulas(text: str) -> None:
    assert "maths" not in render_markdown(text)


def test_openings_of_formulas_without_an_end_are_read_in_linear_time() -> None:
    for opening in ("\\(", "\\( a ", "\\[", "\\[ a\n", "\\begin{align}\n", "$a ", "$$ "):
        render_markdown(opening * (100_000 // len(opening)))


# Code, line by line


def test_a_string_of_several_lines_is_coloured_on_each() -> None:
    lines = highlight_lines('a = """one\n\ntwo\n"""\n', "python")
    assert len(lines) == 4
    assert lines[0].endswith('<span class="s2">"""one</span>')
    assert lines[1] == "" and lines[2] == '<span class="s2">two</span>'


def test_there_is_one_piece_for_each_line() -> None:
    for text in ("", "a", "a\n\n", "\n", "\n\na", "a\r\nb\r\n", "a\fb\n", "\ufeffa\nb", "\t\n  \n"):
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        for language in ("python", "go", "html", "makefile", "nonsense", ""):
            assert len(highlight_lines(text, language)) == lines


@given(st.text(alphabet="ab\n\"'#/*<>&{}()`$\\ \t=", max_size=200))
def test_colouring_never_changes_the_text(text: str) -> None:
    for language in ("python", "javascript", "ruby"):
        lines = highlight_lines(text, language)
        shown = "\n".join(checked(line)[1] for line in lines)
        assert shown == (text[:-1] if text.endswith("\n") else text)


# The stylesheet


def test_every_class_of_coloured_code_has_a_colour() -> None:
    rules = (ROOT / "static" / "css" / "syntax.css").read_text(encoding="utf-8")
    assert set(re.findall(r"\.(\w+)(?=,| \{)", rules)) == SYNTAX_CLASSES


def luminance(colour: str) -> float:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def variables(theme: int, file: str = "base.css") -> dict[str, str]:
    """The colours of a theme: 0 is the light, 1 the dark one."""
    css = (ROOT / "static" / "css" / file).read_text(encoding="utf-8")
    block = css.split(":root {", 1)[1].split("}", 1)[0]
    both = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", block)
    return {name: colours[theme] for name, *colours in both}


def test_every_colour_of_text_stands_out_from_every_ground_it_is_on() -> None:
    for theme in (0, 1):
        colours = variables(theme)
        texts = variables(theme, "syntax.css")
        assert len(texts) == 12
        for ground in ("surface", "code", "cited"):
            for role, colour in texts.items():
                assert contrast(colour, colours[ground]) >= 4.5, f"{role} on {ground}"
        for ground in ("ground", "surface", "side", "code", "hover", "bubble"):
            for name in ("ink", "muted", "accent"):
                assert contrast(colours[name], colours[ground]) >= 4.5, f"{name} on {ground}"
        assert contrast(colours["accent"], colours["accent-soft"]) >= 4.5
        assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
        assert contrast(colours["bad"], colours["bad-soft"]) >= 4.5


def test_no_style_or_page_loads_anything_from_elsewhere() -> None:
    for path in [*ROOT.glob("static/**/*.*"), *ROOT.glob("templates/*")]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://\w|@import|url\((?!['\"]?data:)", text), path.name


def test_markup_enters_the_page_in_one_place() -> None:
    found = []
    for path in ROOT.glob("static/js/**/*.js"):
        text = path.read_text(encoding="utf-8")
        pattern = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment"
        found += [f"{path.name}:{match[0]}" for match in re.finditer(pattern, text)]
    assert found == ["dom.js:innerHTML"]


def test_a_text_that_its_lexer_is_slow_on_stays_uncoloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeqa.render.time", SlowClock())
    text = "a = 1\n" * 99
    assert "<span" in highlight_lines("a = 1\n", "python")[0]
    assert highlight_lines(text, "python") == ["a = 1"] * 99
