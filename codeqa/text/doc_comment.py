"""Quotes doc comments and sections of documents in Markdown, reStructuredText or plain text.

reStructuredText is rewritten as Markdown and then parsed. In the result only code is markup.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from codeqa.text.markdown import clean, code_block, code_span, escape

QUOTED_LINES = 14
QUOTED_CHARACTERS = 900
"""How much of a doc comment or section is quoted: what can be read at a glance."""
FENCE = "`" * 40
"""A fence that no code is likely to close."""

_ROLE = re.compile(r":[a-z][a-z:-]*:(?=`)")
_ROLE_TARGET = re.compile(r"~?([^<]+?)(?:\s*<[^>]*>)?")
_REFERENCE = re.compile(r"\[([^\[\]\n]+)\]\[[^\[\]\n]*\]|(?<=`)_{1,2}(?![\w`])")
_CODE_DIRECTIVE = re.compile(r"\s*\.\. (?:code-block|code|sourcecode|highlight)::\s*([\w+#.-]*)")
_DIRECTIVE = re.compile(r"\s*\.\. ?(?:[\w-]+::|_|\[|\|)")
_OPTION = re.compile(r"\s+:[a-z-]+:(?:\s|$)")
_RULE = re.compile(r"\s*([=\-~^\"'*+#_.:])\1{2,}\s*$")
_FENCE = re.compile(r"\s*(```+|~~~+)\s*([\w+#.-]*)")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+(.*)")


def inline(text: str) -> str:
    """Return a line of prose in which only code is markup.

    Roles of reStructuredText become code, links and images their text; tags are removed.
    """
    return _written(_parser().parseInline(_without_roles(clean(text)), {}))


def prose(text: str) -> str:
    """Return the beginning of a doc comment or section as safe Markdown; '' for no text.

    Headings become bold; directives, rules and badges are left out. An ellipsis in its own line
    marks what is cut.
    """
    blocks: list[str] = []
    markdown = _as_markdown(clean(text).expandtabs(4).split("\n"))
    for block in _blocks(_parser().parse(_without_roles("\n".join(markdown)), {})):
        height = sum(text.count("\n") + 1 for text in blocks + [block])
        length = sum(map(len, blocks)) + len(block)
        if blocks and (height > QUOTED_LINES or length > QUOTED_CHARACTERS):
            while blocks and blocks[-1].startswith("**") and blocks[-1].endswith("**"):
                blocks.pop()  # a heading of what is cut
            blocks.append("…")
            break
        if len(block) > 2 * QUOTED_CHARACTERS and not block.startswith("`"):
            cut = block.rfind(" ", 0, QUOTED_CHARACTERS) + 1 or QUOTED_CHARACTERS
            block = block[:cut].rstrip("\\ ") + " …"
        blocks.append(block)
    return "\n\n".join(blocks)


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield paragraphs, headings, lists and code blocks, each as safe Markdown."""
    items: list[str] = []
    for at, token in enumerate(tokens):
        if token.type in ("fence", "code_block") and not token.level:
            if token.content.strip():
                code = textwrap.dedent(token.content.rstrip())
                yield code_block(code, (token.info.split() or [""])[0])
        elif token.type == "list_item_open":
            items.append("-")
        elif token.type.endswith("_list_close") and not token.level:
            yield "\n".join(item for item in items if item != "-")
            items = []
        elif text := _written([token]).strip() if token.content else "":
            if items:
                items[-1] += f" {text}"
            else:
                yield f"**{text}**" if tokens[at - 1].type == "heading_open" else text


def _written(tokens: Sequence[Token]) -> str:
    """Write the text and code of inline tokens, and nothing else of them."""
    parts: list[str] = []
    text = ""
    for token in itertools.chain.from_iterable(token.children or [token] for token in tokens):
        if token.type == "code_inline":
            target = _ROLE_TARGET.fullmatch(token.content)
            parts += [escape(text), code_span(target[1] if target else token.content)]
            text = ""
        elif token.type in ("softbreak", "hardbreak"):
            text += " "
        elif token.type != "html_inline":
            text += token.content
    return "".join(parts + [escape(text)])


def _without_roles(text: str) -> str:
    return _REFERENCE.sub(lambda match: match[1] or "", _ROLE.sub("", text))


def _as_markdown(lines: Sequence[str]) -> list[str]:
    """Rewrite titles, lists and code as Markdown, whatever their indentation; drop directives."""
    result: list[str] = []
    index, margin = 0, -1  # the margin is the indentation of a list, -1 outside of one
    while index < len(lines):
        line = lines[index]
        follows_text = bool(result) and bool(result[-1].strip())
        if follows_text and _RULE.match(line):
            is_title = len(result) < 2 or not result[-2].strip()
            result.append("---" if is_title else "")
            index += 1
            continue
        block, end = _special_block(lines, index)
        if end > index:
            result += block
            index = end
            continue
        index += 1
        bullet = _BULLET.match(line)
        if bullet and (follows_text or _indent(line) < 4):
            result.append(f"- {bullet[1]}")
            margin = _indent(line)
        elif not _RULE.match(line):
            text = line.rstrip()
            if not text or _indent(line) <= margin:  # a list ends
                if text and follows_text:
                    result.append("")
                margin = -1
            result.append("" if text.strip() == "::" else re.sub(r"::$", ":", text))
    return result


def _special_block(lines: Sequence[str], start: int) -> tuple[list[str], int]:
    """Return a directive, fence or prompt as Markdown, and the line after it; else [], `start`."""
    line, end = lines[start], start + 1
    if _DIRECTIVE.match(line):
        while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _indent(line)):
            end += 1
        code = _CODE_DIRECTIVE.match(line)
        if code is None:
            return [""], end
        body = [text for text in lines[start + 1 : end] if not _OPTION.match(text)]
        return _fenced(body, code[1]) + [""], end
    if fence := _FENCE.match(line):
        while end < len(lines) and not lines[end].strip().startswith(fence[1]):
            end += 1
        return _fenced(lines[start + 1 : end], fence[2]), end + 1
    if line.lstrip().startswith(">>> "):
        while end < len(lines) and lines[end].strip():
            end += 1
        return _fenced(lines[start:end], "pycon"), end
    return [], start


def _fenced(code: Iterable[str], language: str) -> list[str]:
    return ["", f"{FENCE}{language}", textwrap.dedent("\n".join(code)).strip("\n"), FENCE]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


@cache
def _parser() -> MarkdownIt:
    """Make a parser that leaves alone what doc comments rarely mean, as `>` for quotes."""
    parser = MarkdownIt("commonmark").disable(["blockquote", "html_block", "emphasis", "hr"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
