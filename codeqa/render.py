"""Render Markdown and code as HTML, and make Markdown safe to open in other programs.

Text becomes markup only here. The HTML is safe to insert into a page whatever the text was: raw
HTML is text, every tag, attribute and class is on a list, nothing loads from anywhere. Classes
colour code (`static/css/syntax.css`), for the page allows no inline style. Answers are rendered
block by block while they are written, so footnotes and maths have rules of their own here: with
those of mdit-py-plugins a later block changes an earlier one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from io import StringIO
from itertools import pairwise, takewhile
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, _TokenType
from pygments.util import ClassNotFound

from codeqa.formulas import mathml, maths_block_rule, maths_rule
from codeqa.languages import language_called
from codeqa.text.markdown import CITATION, CODE_LOCATION
from codeqa.text.tokens import word_set

LINE_CHARACTERS = 5_000
"""A text with a longer line stays uncoloured: it is data, and lexers backtrack on it."""
COLOUR_SECONDS = 1.0
"""After this a text stays uncoloured: some lexers are quadratic on `a a a …`."""

SYNTAX_CLASSES = word_set("""
    c c1 ch cm cs k kd kn kp kr ow il kc l ld m mb mf mh mi mo no cpf dl s s1 s2 sa sb sc sd sh ss
    sx se si sr kt nc ne nn fm nf cp na nd nl bp nb ni nt ge gh gs gu gi gd
""")
"""Pygments' classes that have a colour in `static/css/syntax.css`; all else is plain text."""

Cite = Callable[[str, int, int], str | None]
"""Path, first and last line → address that shows them, None if they do not exist, '' for text that
is no citation, such as `[16:9]`."""

MARKDOWN_CHARACTERS = 400_000
"""Longer texts are shown as plain text: parsing takes up to a second."""

MOST_FORMULAS = 2_000
"""Those after them stay text, for each takes 0.1 ms."""

_EXCERPT = re.compile(r"(.+):(\d{1,9})-(\d{1,9})")
_SCHEMES = {"http", "https", "mailto"}
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_EXTERNAL = re.compile(r"(?:https?://|mailto:)[^\s/]", re.IGNORECASE)

END = "codeqa-end"
"""Appended to a text to see whether it becomes part of the last block."""
_TOP_ITEM = ("list_item_open", 1)
_OPEN_ENDED = ("bullet_list_open", "ordered_list_open", "code_block")
"""Blocks that may go on after a blank line."""
_CODE_OR_DANGER = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|<|&|!(?=\[)|\](?=[(:])", re.DOTALL)
_DANGER = re.compile(r"<|&|!(?=\[)|\](?=[(:])")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t].*\w")
"""The beginning of a list item that stays one whatever text follows."""
_FOOTNOTE = re.compile(r"\[\^([\w-]{1,20})\](:?)")
_TASKS = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
_ESCAPES = {"<": "&lt;", "&": "&amp;", "!": "\\!", "]": "\\]"}
_TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6",
    "hr", "li", "ol", "p", "pre", "s", "span", "strong", "sup", "table", "tbody", "td", "th",
    "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {
    "a": {"href", "title", "target", "data-path", "data-start", "data-end"},
    "span": {"title"},
    "div": {"data-language", "data-place", "title"},
    "ol": {"start"},
}
_MATHML = word_set("""
    math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup
    msup mtable mtd mtext mtr munder munderover
""")
_MATHML_ATTRIBUTES = word_set("""
    accent columnalign columnlines columnspacing depth display displaystyle fence form height
    largeop linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize
    movablelimits notation rowlines rowspacing rspace scriptlevel stretchy voffset width
""")
_CLASSES = {
    "a": {"citation", "external"},
    "span": SYNTAX_CLASSES
    | {"citation", "unverified", "folder", "lines", "image", "maths", "set", "task"},
    "div": {"code-block", "table-wrap", "maths", "set"},
    "pre": {"plain", "maths"},
}


def render_markdown(text: str, cite: Cite | None = None) -> str:
    """Render `text` as sanitised HTML.

    Citations `[path:12-34]` outside code become links where `cite` knows the lines, and
    are struck where they do not exist; a location written as code becomes a link where
    `cite` knows the lines. Without `cite` both stay as they are.
    """
    text = normal(text)
    if len(text) > MARKDOWN_CHARACTERS:
        return sanitise(f'<pre class="plain">{escape(text)}</pre>')
    parser = _parser()
    environment: dict[str, Any] = {"cite": cite, "links": []}
    html = parser.renderer.render(parser.parse(text, environment), parser.options, environment)
    return sanitise(str(html))


def split_blocks(text: str) -> tuple[list[str], str]:
    """Cut a growing Markdown text into complete blocks and the rest.

    No later text changes how a complete block renders; fences, lists and tables are
    never cut. The blocks and the rest join to `text` (carriage returns are blanks), and
    their renderings join to the rendering of the whole.
    """
    text = normal(text)
    # Only whole lines count: a line that is still being written may turn into anything.
    whole = text.rfind("\n") + 1
    if not whole or len(text) > MARKDOWN_CHARACTERS:
        return [], text
    lines = text[:whole].split("\n")[:-1]
    starts = [
        (token.type, token.map[0])
        for token in _parser().parse(text[:whole] + END, {"growing": True})
        if token.level == 0 and token.nesting >= 0 and token.map
    ]
    if len(starts) > 1 and starts[-1][1] == len(lines) and starts[-2][0] in _OPEN_ENDED:
        starts.pop()
    # A block ends where the next one begins.
    bounds = [0]
    bounds += (line for _, line in starts[1:])
    blocks = ["".join(f"{line}\n" for line in lines[start:end]) for start, end in pairwise(bounds)]
    return blocks, text[sum(map(len, blocks)) :]


def finished_items(text: str) -> int:
    """Return the offset of the last item of the list at the beginning of `text`; 0 for one item.

    `text` is the rest that `split_blocks` returns. Everything before the offset renders as it will
    in the end, except for paragraphs in a list with blank lines.
    """
    end = text.rfind("\n") + 1
    if not _ITEM.match(text, end):
        text = text[:end]
    tokens = _parser().parse(normal(text), {"growing": True})
    if not tokens or tokens[0].type not in _OPEN_ENDED[:2]:
        return 0
    inside = takewhile(lambda token: token.level > 0, tokens[1:])
    starts = [item.map[0] for item in inside if item.map and (item.type, item.level) == _TOP_ITEM]
    if len(starts) < 2:
        return 0
    return sum(len(line) + 1 for line in text.split("\n")[: starts[-1]])


def inert_markdown(text: str) -> str:
    """Return the Markdown `text` with HTML as text and images as links.

    Code keeps every character where a reader of Markdown can tell it from HTML. An open fence
    is closed, so that text below it is not code.
    """
    text = normal(text).rstrip()
    for danger in (_CODE_OR_DANGER, _DANGER):
        if _is_alive(text):
            text = danger.sub(lambda match: _ESCAPES.get(match[0], match[0]), text)
    tokens = _reader().parse(f"{text}\n\n{END}")
    last = next(token for token in reversed(tokens) if token.map)
    if last.type == "fence" and last.content.rstrip().endswith(END):
        return f"{text}\n{last.markup}"
    return text


def _is_alive(text: str) -> bool:
    """Return whether it holds HTML, an image, or a link that may run something."""
    for block in _reader().parse(text):
        for token in [block] + (block.children or []):
            if token.type in ("html_block", "html_inline", "image"):
                return True
            scheme = _SCHEME.match(str(token.attrs.get("href", "")))
            if token.type == "link_open" and scheme and scheme[1].lower() not in _SCHEMES:
                return True
    return False


def sanitise(html: str) -> str:
    """Return `html` with nothing but the tags, attributes, classes and schemes of the lists."""
    return nh3.clean(
        html,
        tags=_TAGS | _MATHML,
        attributes=_ATTRIBUTES | dict.fromkeys(_MATHML, _MATHML_ATTRIBUTES),
        allowed_classes=_CLASSES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer",
    )


@cache
def _parser() -> MarkdownIt:
    # Reference definitions would let a later block change an earlier one.
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Html)
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.inline.ruler.before("link", "citation", _citation_rule)
    parser.inline.ruler.before("link", "footnote", _footnote_rule)
    parser.inline.ruler.before("escape", "maths", maths_rule)
    parser.block.ruler.before("fence", "maths", maths_block_rule, {"alt": ["paragraph"]})
    parser.core.ruler.push("tasks", _tasks_rule)
    # Every address is parsed; what is not wanted is dropped when it is rendered.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


@cache
def _reader() -> MarkdownIt:
    """Make the parser of Markdown as other programs read it."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _citation_rule(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "[" or state.linkLevel:
        return False
    match = CITATION.match(state.src, state.pos, state.posMax)
    if match is None or (state.env or {}).get("cite") is None:
        return False
    if not silent:
        token = state.push("citation", "", 0)
        token.content = match[0]
        path, start, end = match.groups()
        token.meta = {"path": path, "start": int(start), "end": int(end or start)}
    state.pos = match.end()
    return True


def _footnote_rule(state: StateInline, silent: bool) -> bool:
    """Parse a mark, and its number where the note stands; nothing leads from one to the other."""
    match = _FOOTNOTE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("footnote", "", 0).content = match[1]
    # The colon belongs to the number of a note, which begins a line; elsewhere it is text.
    state.pos = match.end(1) + 1 if state.pos else match.end()
    return True


def _tasks_rule(state: StateCore) -> None:
    """Make `[x]` at the beginning of an item a box."""
    for item, inline in zip(state.tokens, state.tokens[2:], strict=False):
        children = inline.children or []
        text = children[0] if children else None
        if item.type == "list_item_open" and text and (box := _TASKS.get(text.content[:4])):
            text.content = text.content[3:]
            children.insert(0, Token("task", "", 0, content=box))


class _Html(RendererHTML):
    """Renders each token with the method of its name; `env` holds `cite` and the open links."""

    def citation(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        path, start, end = (tokens[index].meta[key] for key in ("path", "start", "end"))
        address = env["cite"](path, start, end)
        if address:
            return _link_to(address, path, start, end)
        if address is not None:
            return escape(tokens[index].content)
        title = "No indexed file has these lines"
        span = _span_html(path, start, end)
        return f'<span class="citation unverified" title="{title}">{span}</span>'

    def code_inline(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        cite = env.get("cite")
        span = CODE_LOCATION.fullmatch(tokens[index].content.strip()) if cite else None
        if span and not env["links"]:
            path, start, end = span[1], int(span[2]), int(span[3] or span[2])
            if address := cite(path, start, end):
                return _link_to(address, path, start, end)
        return f"<code>{escape(tokens[index].content)}</code>"

    def fence(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        """Render code; a location after the language (`path:12-34`) numbers its lines."""
        language, _, span = tokens[index].info.strip().partition(" ")
        if language == "math":
            return _formula(f"$$\n{tokens[index].content}$$", "pre", env)
        match, cite = _EXCERPT.fullmatch(span), env.get("cite")
        attribute = ""
        if match and cite and cite(match[1], int(match[2]), int(match[3])):
            attribute = f' data-place="{escape(span)}"'
        code = "\n".join(highlight_lines(tokens[index].content, language.lower()))
        return (
            f'<div class="code-block" data-language="{escape(language.lower()[:40])}"{attribute}>'
            f"<pre><code>{code}\n</code></pre></div>\n"
        )

    code_block = fence  # type: ignore[assignment]

    def footnote(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return f"<sup>{escape(tokens[index].content)}</sup>"

    def maths(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        return _formula(tokens[index].content, "span", env)

    def maths_block(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        return _formula(tokens[index].content, "pre", env)

    def task(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return f'<span class="task">{tokens[index].content}</span>'

    def image(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
        """Render the description of a picture; nothing is fetched."""
        text = self.renderInlineAsText(tokens[index].children or [], options, env)
        return f'<span class="image">{escape(text or "image")}</span>'

    def link_open(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        """Render a link to another site; of other links only the text stays."""
        address = str(tokens[index].attrGet("href") or "")
        env["links"].append(bool(_EXTERNAL.match(address)))
        if not env["links"][-1]:
            return ""
        apart = "" if address.lower().startswith("mailto:") else ' target="_blank"'
        return f'<a class="external" href="{escape(address)}" title="{escape(address)}"{apart}>'

    def link_close(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        return "</a>" if env["links"].pop() else ""

    def table_open(self, *_: Any) -> str:
        return '<div class="table-wrap"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"


def _formula(source: str, tag: str, env: dict[str, Any]) -> str:
    """Render a formula as MathML, or as its source where that cannot be read."""
    env["formulas"] = env.get("formulas", 0) + 1
    if env["formulas"] > MOST_FORMULAS or not (html := mathml(source)):
        return f'<{tag} class="maths">{escape(source)}</{tag}>'
    tag = "div" if tag == "pre" else tag
    return f'<{tag} class="maths set" title="{escape(source.strip())}">{html}</{tag}>'


def _span_html(path: str, start: int, end: int) -> str:
    lines = f"{start}" if start == end else f"{start}-{end}"
    folder, slash, name = path.rpartition("/")
    before = f'<span class="folder">{escape(folder)}/</span>' if slash else ""
    return f'{before}<span class="lines">{escape(name)}:{lines}</span>'


def _link_to(address: str, path: str, start: int, end: int) -> str:
    where = f"line {start}" if start == end else f"lines {start} to {end}"
    return (
        f'<a class="citation" href="{escape(address)}" data-path="{escape(path)}" '
        f'data-start="{start}" data-end="{end}" title="{escape(path)}, {where}">'
        f"{_span_html(path, start, end)}</a>"
    )


# Code


def highlight_lines(text: str, language: str) -> list[str]:
    """Return the HTML of each line of `text`, coloured as `language`; '' for an empty line.

    Lines are those of `text.split("\\n")` without an empty last one. State carries over:
    a string or comment of several lines is coloured on each. An unknown language, a text that
    takes long and one with a very long line stay uncoloured.
    """
    text = normal(text)
    longest = max(map(len, text.split("\n")))
    html = _coloured(language, text) if longest <= LINE_CHARACTERS else None
    lines = (escape(text, quote=False) if html is None else html).split("\n")
    return lines if lines[-1] else lines[:-1]


def normal(text: str) -> str:
    """Return `text` with `\\n` as its only line end; offsets stay the same."""
    return text.replace("\r", " ")


def _coloured(language: str, text: str) -> str | None:
    """Return `text` with spans that never cross a line end.

    None for an unknown language, and after COLOUR_SECONDS.
    """
    name = language.strip().lower()
    name = language_called(name).lexer or name
    try:
        lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    end, tokens = time.monotonic() + COLOUR_SECONDS, []
    for kind, part in lexer.get_tokens(text):
        if time.monotonic() > end:
            return None
        tokens.append((_colour_kind(kind), part))
    html = StringIO()
    HtmlFormatter(nowrap=True).format(tokens, html)
    return html.getvalue()


@cache
def _colour_kind(kind: _TokenType) -> _TokenType:
    """Return `kind` or its nearest parent with a colour, or the root, which is plain."""
    while kind.parent is not None and STANDARD_TYPES.get(kind) not in SYNTAX_CLASSES:
        kind = kind.parent
    return kind
