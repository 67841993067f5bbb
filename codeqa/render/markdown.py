"""Markdown that is safe whatever went in: as HTML for the page, and as Markdown to be opened
elsewhere, without HTML, images and links that run anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from codeqa.render.code import SYNTAX_CLASSES, highlight_lines, normal
from codeqa.text.citation_format import CITATION, CODE_LOCATION

Cite = Callable[[str, int, int], str | None]
"""Path, first and last line → the address that shows them, None when they do not exist."""

MARKDOWN_CHARACTERS = 400_000
"""What is longer is shown as plain text: parsing stays under a second."""

_SCHEMES = {"http", "https", "mailto"}
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)

END = "codeqa-end"
_CODE_OR_DANGER = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|<|&|!(?=\[)|\](?=[(:])", re.DOTALL)
_DANGER = re.compile(r"<|&|!(?=\[)|\](?=[(:])")
_ESCAPES = {"<": "&lt;", "&": "&amp;", "!": "\\!", "]": "\\]"}
_ALIGNMENTS = {"left", "center", "right"}
_TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6",
    "hr", "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead",
    "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {
    "a": {"href", "title", "data-path", "data-start", "data-end"},
    "span": {"title"},
    "div": {"data-language"},
    "ol": {"start"},
}
_CLASSES = {
    "a": {"citation", "external"},
    "span": SYNTAX_CLASSES | {"citation", "unverified", "folder", "lines", "image"},
    "div": {"code-block", "table-wrap"},
    "pre": {"plain"},
    "th": {f"align-{side}" for side in _ALIGNMENTS},
    "td": {f"align-{side}" for side in _ALIGNMENTS},
}


def render_markdown(text: str, cite: Cite | None = None) -> str:
    """`text` as sanitised HTML.

    Citations `[path:12-34]` outside code become links where `cite` knows the lines, and
    are marked as unverified where it does not; a place written as code becomes a link where
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
    found = [
        token
        for token in _parser().parse(text[:whole], {})
        if token.level == 0 and token.nesting >= 0 and token.map
    ]
    # A block ends where the next one begins; the last may or may not be over.
    marks = [0, *(token.map[0] for token in found[1:] if token.map)]
    marks += [_end_if_closed(token, lines) for token in found[-1:]]
    blocks = [
        "".join(f"{line}\n" for line in lines[begin:end])
        for begin, end in pairwise(marks)
        if end > begin
    ]
    return blocks, text[sum(map(len, blocks)) :]


def inert_markdown(text: str) -> str:
    """`text`, which is Markdown, with HTML as text and images as links.

    Code keeps every character where a reader of Markdown can tell it from HTML. An open fence
    is closed, so that what is written below it is not code.
    """
    text = normal(text).rstrip()
    for danger in (_CODE_OR_DANGER, _DANGER):
        if _is_alive(text):
            text = danger.sub(lambda found: _ESCAPES.get(found[0], found[0]), text)
    return _closed(text)


def _is_alive(text: str) -> bool:
    """Whether it holds HTML, an image, or a link that may do more than lead somewhere."""
    for token in _reader().parse(text):
        for one in (token, *(token.children or ())):
            if one.type in ("html_block", "html_inline", "image"):
                return True
            scheme = _SCHEME.match(str(one.attrs.get("href", "")))
            if one.type == "link_open" and scheme and scheme[1].lower() not in _SCHEMES:
                return True
    return False


def _closed(text: str) -> str:
    """`text` with the fence closed that its end leaves open."""
    last: list[Token] = [token for token in _reader().parse(f"{text}\n\n{END}") if token.map]
    if last and last[-1].type == "fence" and last[-1].content.rstrip().endswith(END):
        return f"{text}\n{last[-1].markup}"
    return text


def sanitise(html: str) -> str:
    """`html` with nothing but the tags, attributes, classes and schemes of the lists."""
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer",
    )


def _end_if_closed(token: Token, lines: Sequence[str]) -> int:
    """Line after the last block when nothing that follows can change it, else 0."""
    first, last = token.map or (0, 0)
    if token.type == "fence":
        # An unclosed fence runs to the end of the text.
        closing = lines[last - 1] if last - 1 > first else ""
        indent = len(closing) - len(closing.lstrip(" "))
        mark = closing.strip()
        closed = indent < 4 and mark and set(mark) == {token.markup[0]}
        return last if closed and len(mark) >= len(token.markup) else 0
    if token.type in ("heading_open", "hr"):
        return last
    if token.type in ("paragraph_open", "table_open") and len(lines) > last:
        # Only a blank line can stand between a last paragraph or table and the end.
        return last + 1
    return 0


@cache
def _parser() -> MarkdownIt:
    # Reference definitions would let a later block change an earlier one.
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Html)
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.inline.ruler.before("link", "citation", _citation_rule)
    # Every address is parsed; what is not wanted is dropped when it is rendered.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


@cache
def _reader() -> MarkdownIt:
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


class _Html(RendererHTML):
    """Each method renders the tokens of its name; the environment holds `cite` and open links."""

    def citation(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        path, start, end = (tokens[index].meta[key] for key in ("path", "start", "end"))
        address = env["cite"](path, start, end)
        if address is not None:
            return _link_to(address, path, start, end)
        title = "Not verified: these lines are not in the index"
        return (
            f'<span class="citation unverified" title="{title}">{_place(path, start, end)}</span>'
        )

    def code_inline(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        cite = env.get("cite")
        place = CODE_LOCATION.fullmatch(tokens[index].content.strip()) if cite else None
        if place and not env["links"]:
            path, start, end = place[1], int(place[2]), int(place[3] or place[2])
            if address := cite(path, start, end):
                return _link_to(address, path, start, end)
        return f"<code>{escape(tokens[index].content)}</code>"

    def fence(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        token = tokens[index]
        language = (token.info.split() or [""])[0].lower()
        code = "\n".join(highlight_lines(token.content, language))
        return (
            f'<div class="code-block" data-language="{escape(language[:40])}">'
            f"<pre><code>{code}\n</code></pre></div>\n"
        )

    def code_block(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return self.fence(tokens, index)

    def image(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
        """Nothing is fetched: a picture is its description."""
        text = self.renderInlineAsText(tokens[index].children or [], options, env)
        return f'<span class="image">{escape(text or "image")}</span>'

    def link_open(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        """A link that leads outside; one into the repository or with code in it is its text."""
        address = str(tokens[index].attrGet("href") or "")
        env["links"].append(_is_external(address))
        if not env["links"][-1]:
            return ""
        return f'<a class="external" href="{escape(address)}" title="{escape(address)}">'

    def link_close(self, tokens: Sequence[Token], index: int, _: Any, env: Any) -> str:
        return "</a>" if env["links"].pop() else ""

    def table_open(self, *_: Any) -> str:
        return '<div class="table-wrap"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        side = str(tokens[index].attrGet("style") or "").removeprefix("text-align:")
        css = f' class="align-{side}"' if side in _ALIGNMENTS else ""
        return f"<{tokens[index].tag}{css}>"

    td_open = th_open


def _place(path: str, start: int, end: int) -> str:
    lines = f"{start}" if start == end else f"{start}-{end}"
    folder, name = path[: path.rfind("/") + 1], path[path.rfind("/") + 1 :]
    shown = f'<span class="lines">{escape(name)}:{lines}</span>'
    if folder:
        shown = f'<span class="folder">{escape(folder)}</span>{shown}'
    return shown


def _link_to(address: str, path: str, start: int, end: int) -> str:
    where = f"line {start}" if start == end else f"lines {start} to {end}"
    return (
        f'<a class="citation" href="{escape(address)}" data-path="{escape(path)}" '
        f'data-start="{start}" data-end="{end}" title="{escape(path)}, {where}">'
        f"{_place(path, start, end)}</a>"
    )


def _is_external(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and bool(parts.netloc or parts.path)
