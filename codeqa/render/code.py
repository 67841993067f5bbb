"""Source code as HTML: one piece per line, coloured by classes."""

from __future__ import annotations

import time
from functools import cache
from html import escape

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, _TokenType
from pygments.util import ClassNotFound

from codeqa.text.tokens import word_set

HIGHLIGHT_CHARACTERS = 600_000
"""Longer texts stay uncoloured: 0.3 s of one core, and no indexed file is much longer."""
LINE_CHARACTERS = 5_000
"""A text with a longer line stays uncoloured: it is data, and lexers backtrack on it."""
COLOUR_SECONDS = 1.0
"""After this a text stays uncoloured: some lexers are quadratic on `a a a …`."""
LEXER_NAMES = {
    "vue": "html", "svelte": "html", "astro": "html", "heex": "html", "stylus": "sass",
    "jsonc": "json", "notebook": "json", "gomod": "text", "requirements": "text",
    "csv": "text", "gitignore": "text", "justfile": "make", "asciidoc": "text",
    "apex": "java", "vb": "vb.net", "assembly": "gas", "yacc": "c", "lex": "c", "cue": "go",
}  # fmt: skip
"""Languages that Pygments lacks or calls otherwise, and what comes nearest."""

SYNTAX_CLASSES = word_set("""
    c c1 ch cm cs k kd kn kp kr ow il kc l ld m mb mf mh mi mo no cpf dl s s1 s2 sa sb sc sd sh ss
    sx se si sr kt nc ne nn fm nf cp na nd nl bp nb ni nt ge gh gs gu gi gd
""")
"""Pygments' classes that have a colour in `static/css/syntax.css`; all else is plain text."""


def highlight_lines(text: str, language: str) -> list[str]:
    """One piece of HTML per line of `text`, coloured as `language`; '' for an empty line.

    Lines are those of `text.split("\\n")` without an empty last one. State carries over:
    a string or comment of several lines is coloured on each. An unknown language, a
    very long text or line stays uncoloured.
    """
    text = normal(text)
    lines = text.split("\n")
    lexer = _lexer(language) if len(text) <= HIGHLIGHT_CHARACTERS else None
    html = None
    if lexer and max(map(len, lines)) <= LINE_CHARACTERS:
        html = _coloured(lexer, text)
    coloured = (escape(text, quote=False) if html is None else html).split("\n")
    return coloured if lines[-1] else coloured[:-1]


def normal(text: str) -> str:
    """Line ends as `\\n` only, without moving anything: offsets into `text` stay true."""
    return text.replace("\r", " ")


def _lexer(language: str) -> Lexer | None:
    name = language.strip().lower()
    try:
        return get_lexer_by_name(LEXER_NAMES.get(name, name), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _coloured(lexer: Lexer, text: str) -> str | None:
    """`text` with spans that never cross a line end; None when it takes COLOUR_SECONDS."""
    end = time.monotonic() + COLOUR_SECONDS
    runs: list[tuple[str, list[str]]] = [("", [])]  # of tokens that look the same
    for kind, piece in lexer.get_tokens(text):
        if time.monotonic() > end:
            return None
        css = _css_class(kind)
        if css != runs[-1][0] and (piece.strip() or not runs[-1][1]):
            runs.append((css, []))
        runs[-1][1].append(piece)
    return "".join(_span(css, escape("".join(pieces), quote=False)) for css, pieces in runs)


def _span(css: str, html: str) -> str:
    if not css:
        return html
    lines = html.split("\n")
    return "\n".join(f'<span class="{css}">{line}</span>' if line else "" for line in lines)


@cache
def _css_class(kind: _TokenType) -> str:
    """The class of `kind` or its nearest named parent; '' where nothing is coloured."""
    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    css = STANDARD_TYPES.get(kind, "")
    return css if css in SYNTAX_CLASSES else ""
