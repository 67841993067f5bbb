"""Doc comments and sections of documents, in Markdown, reStructuredText or plain, as quoted prose.

Read by a parser of Markdown, once what reStructuredText writes otherwise is brought into its form;
written so that nothing in the text is markup of its own, except for code.
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
"""How much of a doc comment or section is quoted: what is read at a glance."""
LONGEST_FENCE = 40
"""Marks of a fence that no code is likely to close."""

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
    """Prose with its code spans kept and everything else literal.

    Roles of reStructuredText become code, links and images their text, tags nothing.
    """
    return _written(_parser().parseInline(_without_roles(clean(text)), {}))


def prose(text: str) -> str:
    """The beginning of a doc comment or section as safe Markdown; '' for nothing to read.

    Paragraphs are joined, bullets and code blocks kept, headings made bold, directives,
    rules and badges left out. What is cut ends with an ellipsis of its own line.
    """
    blocks: list[str] = []
    markdown = _as_markdown(clean(text).expandtabs(4).split("\n"))
    for block in _blocks(_parser().parse(_without_roles("\n".join(markdown)), {})):
        taken = [*blocks, block]
        height, length = sum(one.count("\n") + 1 for one in taken), sum(map(len, taken))
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
    """Paragraphs, headings, lists and code blocks, each as safe Markdown."""
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
    """Text and code of inline tokens; everything else that they hold is left out."""
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
    return "".join([*parts, escape(text)])


def _without_roles(text: str) -> str:
    return _REFERENCE.sub(lambda match: match[1] or "", _ROLE.sub("", text))


def _as_markdown(lines: list[str]) -> list[str]:
    """Titles, lists and code as Markdown has them, wherever they stand; no directives."""
    result: list[str] = []
    index, margin = 0, -1
    while index < len(lines):
        line = lines[index]
        index += 1
        begin, before = index, bool(result) and bool(result[-1].strip())
        if _DIRECTIVE.match(line):
            while index < len(lines) and (
                not lines[index].strip() or _indent(lines[index]) > _indent(line)
            ):
                index += 1
            if code := _CODE_DIRECTIVE.match(line):
                body = (one for one in lines[begin:index] if not _OPTION.match(one))
                result += _fenced(body, code[1])
            result.append("")
        elif before and _RULE.match(line):
            is_title = len(result) < 2 or not result[-2].strip()
            result.append("---" if is_title else "")
        elif fence := _FENCE.match(line):
            while index < len(lines) and not lines[index].strip().startswith(fence[1]):
                index += 1
            result += _fenced(lines[begin:index], fence[2])
            index += 1
        elif line.lstrip().startswith(">>> "):
            while index < len(lines) and lines[index].strip():
                index += 1
            result += _fenced(lines[begin - 1 : index], "pycon")
        elif (bullet := _BULLET.match(line)) and (before or _indent(line) < 4):
            result.append(f"- {bullet[1]}")
            margin = _indent(line)
        elif not _RULE.match(line):
            if before and line.strip() and _indent(line) <= margin:  # behind a list
                result.append("")
            if not line.strip() or _indent(line) <= margin:
                margin = -1
            result.append("" if line.strip() == "::" else re.sub(r"::$", ":", line.rstrip()))
    return result


def _fenced(code: Iterable[str], language: str) -> list[str]:
    fence = "`" * LONGEST_FENCE
    return ["", f"{fence}{language}", textwrap.dedent("\n".join(code)).strip("\n"), fence]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


@cache
def _parser() -> MarkdownIt:
    """Without what doc comments rarely mean: prompts are no quotes, a star is a star."""
    parser = MarkdownIt("commonmark").disable(["blockquote", "html_block", "emphasis", "hr"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
