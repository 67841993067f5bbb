"""Find formulas in Markdown, and make MathML of them.

The package latex2mathml reads them; what it leaves out of the ways in which models write, and of
the spacing that browsers need, is mended here.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from unicodedata import category
from xml.etree import ElementTree

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

FORMULA_CHARACTERS = 4_000
"""Longer formulas stay text."""
_MARKS = re.compile(r"(\$\$?|\\[(\[])(.+?)(?:\$\$?|\\[)\]])\s*([.,;:]?)", re.DOTALL)
_REWRITTEN = {
    r"\\(begin|end)\{(?:aligned|align|alignat|alignedat|eqnarray|flalign)\*?\}": r"\\\1{align*}",
    r"(\\begin\{align\*\})(?:\{\d+\}|\[\w\])": r"\1",
    r"\\(begin|end)\{(?:gather|gathered|multline)\*?\}": r"\\\1{matrix}",
    r"\\arg(?![a-zA-Z])": r"\\operatorname{arg}",
    r"\\operatorname\*?\s*\{(?![a-zA-Z]+\})": r"\\mathrm{",
    r"\\(?:label\{[^}]*\}|nonumber|notag)": "",
}
_REFUSED = re.compile(r"\\(?:new|def|Declare|href|class|style)")
"""Macros, which can grow without bounds, and what reaches beyond a formula."""
_WIDE = re.compile(r"(?<![\w.#])(?:\d{3}|[4-9]\d(?:\.\d+)?e[mx]|\d+(?:\.\d+)?(?:cm|in|pc))")
_ESCAPED = re.compile(r"\\([_#%&${}])")
_WITH_LIMITS = ("lim", "max", "min", "sup", "inf", "argmax", "argmin")

_MATHS = re.compile(
    r"(?<![\w$\\])(?:\$(?![\s$])[^$\n`]*[^$\s\\`]\$|\$\$[^$`]+\$\$)(?![\w$({@])"
    r"|\\\((?:[^\\]|\\[^()\[])+\\\)|(?<!\w)\\\[(?:[^\\]|\\[^()\[\]])+\\\]"
)
"""Formulas as models write them; `$HOME/$PATH` is none. No second `\\(` before the end: many would
take quadratic time."""
_PROSE = re.compile(
    r"\\\[(?!\s|[^\\]*(?:[\^=]|\\[^\]]))"
    r"|\$+\s*(?:\d[\d.,]*\S?\s+[A-Za-z]{2}|[^{\\]*\s(?:and|or|to|the|is|of|with|for|from|in)\s)"
)
"""The beginning of what is no formula: `\\[link\\]`, `$5 or 6$`, `$? and $!`."""
_MATHS_BLOCK = re.compile(
    r"(\$\$)|(\\\[)|\\begin(\{(?:equation|align|gather|multline|eqnarray)\*?\})"
)
_LONGEST_FORMULA = 20
"""Lines of a formula that begins beside its mark: no end is looked for further below."""


def maths_rule(state: StateInline, silent: bool) -> bool:
    """Parse a formula within a line, for markdown-it."""
    match = _MATHS.match(state.src, state.pos, state.posMax)
    if match is None or _PROSE.match(match[0]):
        return False
    if not silent:
        state.push("maths", "", 0).content = match[0]
    state.pos = match.end()
    return True


def maths_block_rule(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Parse the lines from `$$`, `\\[` or `\\begin{align}` to its end or to an empty one."""
    lines = [state.getLines(first, first + 1, state.blkIndent, False)]
    match = _MATHS_BLOCK.match(opening := lines[0].strip())
    if match is None or _PROSE.match(opening):
        return False
    body = opening[match.end() :]
    closing = "$$" if match[1] else "\\]" if match[2] else f"\\end{match[3]}"
    is_whole = body.endswith(closing) and not match[1]
    if closing in body and not is_whole:
        return False  # text goes on behind it
    if silent:  # ends a paragraph: not yet where its end may lie below
        return is_whole or not body
    for line in range(first + 1, end):
        beyond = body and len(lines) > _LONGEST_FORMULA
        if is_whole or beyond or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            break
        lines.append(state.getLines(line, line + 1, state.blkIndent, False))
        is_whole = closing in lines[-1]
    else:
        is_whole = is_whole or "growing" in state.env
    if not is_whole and body:
        return False
    token = state.push("maths_block", "", 0)
    token.content, token.map = "\n".join(lines), [first, first + len(lines)]
    state.line = first + len(lines)
    return True


def mathml(written: str) -> str:
    """Return the MathML of a formula with its marks; '' where it cannot be read."""
    written = written.strip()
    if len(written) > FORMULA_CHARACTERS or _REFUSED.search(written):
        return ""
    mark, source, after = "$$", written, ""
    if match := _MARKS.fullmatch(written):
        mark, source, after = match.groups()
    elif not written.startswith("\\begin{"):
        return ""
    # Its tables take 0.4 s to load, so they are with the first formula.
    from latex2mathml.converter import convert_to_element

    for pattern, instead in _REWRITTEN.items():
        source = re.sub(pattern, instead, source)
    try:
        display = "block" if mark in ("$$", "\\[") else "inline"
        tree = convert_to_element(source.strip(), xmlns="", display=display)
        if not all(_mend(element) for element in tree.iter()):
            return ""
        return ElementTree.tostring(tree, encoding="unicode") + after
    except Exception:  # whatever it stumbles over: the reader sees the source
        return ""


def _mend(element: ElementTree.Element) -> bool:
    """Give an element the text and the spaces that are meant; False where it is unread."""
    written = _ESCAPED.sub(r"\1", element.text or "")
    if written.startswith("\\") or written in ("&", "{", "}"):
        return False
    text = unescape(written)  # signs are references to characters
    first = element[0] if len(element) else None
    if element.tag == "msub" and first is not None and first.text in _WITH_LIMITS:
        element.tag = "munder"
        first.set("movablelimits", "true")
    elif element.get("width", "").startswith("+") or (element.tag == "mo" and first is not None):
        element.tag = "mrow"  # browsers know no width that is added
        element.attrib.clear()
    elif element.tag == "mi" and len(text) == 1 and category(text) in ("Sm", "Ps", "Pe"):
        element.tag = "mo"
    elif element.tag in ("mi", "mo") and len(text) > 1 and text.isalpha():
        element.tag = "mo"
        element.attrib |= {"lspace": "0.167em", "rspace": "0.167em"}
    elif text in ("∞", "∅"):
        element.tag = "mi"
    element.text = text
    return not any(map(_WIDE.search, element.attrib.values()))
