"""Source code as HTML: one piece per line, coloured by classes."""

from __future__ import annotations

import time
from functools import cache
from html import escape

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, _TokenType
from pygments.token import Token as Syntax
from pygments.util import ClassNotFound

HIGHLIGHT_CHARACTERS = 600_000
"""Longer texts stay uncoloured: 0.3 s of one core, and no indexed file is much longer."""
LINE_CHARACTERS = 5_000
"""A text with a longer line stays uncoloured: it is data, and lexers backtrack on it."""
COLOUR_SECONDS = 1.0
"""After this a text stays uncoloured: some lexers are quadratic on `a a a …`."""
SYNTAX: tuple[tuple[str, tuple[str, str], tuple[_TokenType, ...]], ...] = (
    ("comment", ("#6a6358", "#a29f98"), (Syntax.Comment,)),
    ("keyword", ("#a3215c", "#f48fb1"), (Syntax.Keyword, Syntax.Operator.Word)),
    ("constant", ("#9a4a00", "#f2b880"), (Syntax.Keyword.Constant, Syntax.Number,
                                         Syntax.Name.Constant, Syntax.Literal)),
    ("string", ("#2f6b1e", "#a8d490"), (Syntax.String, Syntax.Comment.PreprocFile)),
    ("escape", ("#8a5a00", "#e6cf7e"), (Syntax.String.Escape, Syntax.String.Interpol,
                                       Syntax.String.Regex)),
    ("type", ("#0b6477", "#79d3e0"), (Syntax.Name.Class, Syntax.Name.Exception,
                                     Syntax.Keyword.Type, Syntax.Name.Namespace)),
    ("function", ("#2450b2", "#8fb8ff"), (Syntax.Name.Function,)),
    ("decorator", ("#6a3fb0", "#c8a8ff"), (Syntax.Name.Decorator, Syntax.Comment.Preproc,
                                          Syntax.Name.Attribute, Syntax.Name.Label)),
    ("builtin", ("#6a3fb0", "#c8a8ff"), (Syntax.Name.Builtin, Syntax.Name.Tag,
                                        Syntax.Name.Entity)),
    ("heading", ("#1d1b18", "#f3f1ec"), (Syntax.Generic.Heading, Syntax.Generic.Subheading,
                                        Syntax.Generic.Strong, Syntax.Generic.Emph)),
    ("inserted", ("#116329", "#7ee787"), (Syntax.Generic.Inserted,)),
    ("deleted", ("#a4262c", "#ff9b95"), (Syntax.Generic.Deleted,)),
)  # fmt: skip
"""Role, its colours on the light and the dark ground (contrast ≥ 4.5), and what has it."""

LEXER_NAMES = {
    "vue": "html", "svelte": "html", "astro": "html", "heex": "html", "stylus": "sass",
    "jsonc": "json", "notebook": "json", "gomod": "text", "requirements": "text",
    "csv": "text", "gitignore": "text", "justfile": "make", "asciidoc": "text",
    "apex": "java", "vb": "vb.net", "assembly": "gas", "yacc": "c", "lex": "c", "cue": "go",
}  # fmt: skip
"""Languages that Pygments lacks or calls otherwise, and what comes nearest."""

SYNTAX_CLASSES = {name for name in STANDARD_TYPES.values() if name}
"""Every class that a coloured piece may have."""


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


def stylesheet() -> str:
    """CSS of the syntax colours: light, dark when the page or else the system says so."""
    light = "; ".join(f"--syntax-{role}: {colours[0]}" for role, colours, _ in SYNTAX)
    dark = "; ".join(f"--syntax-{role}: {colours[1]}" for role, colours, _ in SYNTAX)
    lines = [
        "/* Syntax colours, written by `python -m codeqa.render`. */",
        f":root {{ {light}; }}",
        "@media (prefers-color-scheme: dark) {",
        f'  :root:not([data-theme="light"]) {{ {dark}; }}',
        "}",
        f':root[data-theme="dark"] {{ {dark}; }}',
    ]
    for role, _, kinds in SYNTAX:
        names = sorted(
            css
            for kind, css in STANDARD_TYPES.items()
            if css and _css_class(kind) and _role(kind) == role
        )
        extra = " font-style: italic;" if Syntax.Comment in kinds else ""
        selector = ", ".join(f".{name}" for name in names)
        lines.append(f"{selector} {{ color: var(--syntax-{role});{extra} }}")
    return "\n".join([*lines, ""])


def _role(kind: _TokenType) -> str:
    """The role of the longest listed kind that `kind` belongs to; '' for plain text."""
    found = [(len(k), role) for role, _, kinds in SYNTAX for k in kinds if kind in k]
    return max(found, default=(0, ""))[1]


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
    return STANDARD_TYPES.get(kind, "") if _role(kind) else ""
