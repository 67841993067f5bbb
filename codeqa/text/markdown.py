"""Pieces of Markdown in which repository text stays data.

Whatever a file holds, it cannot leave the piece that it is put into: fences are longer
than any run of backticks inside, quoted prose is escaped character by character except
for code spans and code blocks, and control characters do not reach the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

QUOTED_LINES = 14
QUOTED_CHARACTERS = 900
"""How much of a doc comment or section is quoted: what is read at a glance."""
PIECE_CHARACTERS = 240
"""Longest piece of the stream: stopping takes effect after at most this much text."""

_BACKTICKS = re.compile(r"`+")
_SPECIAL = re.compile(
    r"[\\`*\[\]<]"  # always markup
    r"|(?<![^\W_])_|_(?![^\W_])"  # not inside a snake_case name
    r"|~(?=~)|(?<=~)~|&(?=[#\w]+;)"  # strike-through and entities
    r"|^(?=[#>+=|-])",  # what begins a block
    re.MULTILINE,
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CITABLE = re.compile(r"(?:[^\[\]`<>\n]|\[[^\[\]`<>:\n]*\](?!\())+")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
_ROLE = re.compile(r":[a-z][a-z:-]*:(?=`)")
_ROLE_TARGET = re.compile(r"`~?([^`<]+?)(?:\s*<[^`>]*>)?`")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_REFERENCE = re.compile(r"\[([^\[\]\n]+)\]\[[^\[\]\n]*\]|(?<=`)_{1,2}(?![\w`])")
_DEFINITION = re.compile(r"\s{0,3}\[[^\[\]\n]+\]:\s+\S")
_LABEL = re.compile(r"^\s{0,3}\[([^\[\]\n]+)\]:\s+\S", re.MULTILINE)
_SHORTCUT = re.compile(r"(?<![\]\[!\w])\[([^\[\]\n]+)\](?![\[(:])")
_CODE_DIRECTIVE = re.compile(r"\s*\.\. (?:code-block|code|sourcecode|highlight)::\s*([\w+#.-]*)")
_OPTION = re.compile(r"\s+:[a-z-]+:(?:\s|$)")
_TAGS = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>|<!--.*?-->")
_FENCE = re.compile(r"\s*(```+|~~~+)\s*([\w+#.-]*)")
_BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,2}[.)])\s+(.*)")
_RULE = re.compile(r"\s*([=\-~^\"'*+#_.:])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"\s*\.\. ?(?:[\w-]+::|_|\[|\|)")
_HEADING = re.compile(r"\s*#{1,6}\s+(.*?)\s*#*$")


_BREAKS = (_FENCE, _BULLET, _DIRECTIVE, _HEADING, _DEFINITION)
"""What ends a paragraph without a blank line."""


def clean(text: str) -> str:
    """`text` without control characters, carriage returns and bidirectional overrides."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def escape(text: str) -> str:
    """`text` as literal Markdown: nothing in it is markup."""
    return _SPECIAL.sub(r"\\\g<0>", clean(text))


def code_span(text: str) -> str:
    """Inline code that `text` cannot close, on one line."""
    text = " ".join(clean(text).split()) or " "
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    if not longest:
        return f"`{text}`"
    ticks = "`" * (longest + 1)
    return f"{ticks} {text} {ticks}"


def code_block(code: str, language: str = "") -> str:
    """A fenced block that `code` cannot close."""
    code = _CONTROL.sub("\ufffd", code.replace("\r\n", "\n"))
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def cite(path: str, start: int, end: int) -> str:
    """A citation as the page and the verifier read it; of a single line without its end.

    A path that could be read as something else (a tag, a link, code, another citation) is
    code, followed by the lines.
    """
    lines = f"{start}-{end}" if end > start else f"{start}"
    path = clean(path)
    return f"[{path}:{lines}]" if _CITABLE.fullmatch(path) else f"{code_span(path)} {lines}"


def block_quote(markdown: str) -> str:
    """`markdown` as a block quote."""
    return "\n".join(f"> {line}".rstrip() for line in markdown.split("\n"))


def inline(text: str) -> str:
    """Prose with its code spans kept and everything else literal.

    Roles of reStructuredText become code, links and images their text, tags nothing.
    """
    text = _ROLE.sub("", clean(text))
    text = _IMAGE_OR_LINK.sub(lambda match: match[1], text)
    text = _REFERENCE.sub(lambda match: match[1] or "", text)
    result: list[str] = []
    position = 0
    for match in _CODE_SPAN.finditer(text):
        result.append(escape(_TAGS.sub("", text[position : match.start()])))
        target = _ROLE_TARGET.fullmatch(f"`{match[2]}`")
        result.append(code_span(target[1] if target else match[2]))
        position = match.end()
    result.append(escape(_TAGS.sub("", text[position:])))
    return "".join(result)


def prose(text: str, *, lines: int = QUOTED_LINES, characters: int = QUOTED_CHARACTERS) -> str:
    """The beginning of a doc comment or section as safe Markdown; '' for nothing to read.

    Paragraphs are joined, bullets and code blocks kept, headings made bold, directives,
    rules and badges left out. What is cut ends with an ellipsis of its own line.
    """
    blocks: list[str] = []
    used_lines = used_characters = 0
    text = _plain_references(clean(text).expandtabs(4))
    for block in _blocks(text.split("\n")):
        height = block.count("\n") + 1
        if blocks and (used_lines + height > lines or used_characters + len(block) > characters):
            while blocks and blocks[-1].startswith("**") and blocks[-1].endswith("**"):
                blocks.pop()  # a heading of what is cut
            blocks.append("…")
            break
        if len(block) > 2 * characters and not block.startswith("`"):
            block = block[: block.rfind(" ", 0, characters) + 1 or characters].rstrip("\\ ") + " …"
        blocks.append(block)
        used_lines += height
        used_characters += len(block)
    return "\n\n".join(blocks)


def _plain_references(text: str) -> str:
    """`[Jinja]` as `Jinja` where `text` itself defines what it links to."""
    defined = frozenset(label.lower() for label in _LABEL.findall(text))
    return _SHORTCUT.sub(lambda m: m[1] if m[1].lower() in defined else m[0], text)


def pieces(markdown: str) -> Iterator[str]:
    """`markdown` in pieces of a line or less that join to it again."""
    for line in markdown.splitlines(keepends=True):
        while len(line) > PIECE_CHARACTERS:
            cut = line.rfind(" ", 0, PIECE_CHARACTERS) + 1 or PIECE_CHARACTERS
            yield line[:cut]
            line = line[cut:]
        if line:
            yield line


def _blocks(lines: list[str]) -> Iterator[str]:
    """Paragraphs, lists and code blocks of a text in Markdown, reStructuredText or plain."""
    index = 0
    while index < len(lines):
        line = lines[index]
        fence = _FENCE.match(line)
        if fence:
            index, code = _fenced(lines, index + 1, fence[1])
            if code.strip():
                yield code_block(code, fence[2])
        elif not line.strip() or _RULE.match(line) or _DEFINITION.match(line):
            index += 1
        elif directive := _CODE_DIRECTIVE.match(line):
            index, code = _indented(lines, index + 1)
            if code.strip():
                yield code_block(code, directive[1])
        elif _DIRECTIVE.match(line):
            index = _skip_indented(lines, index)
        elif _indent(line) >= 4 and (index == 0 or not lines[index - 1].strip()):
            index, code = _indented(lines, index)
            yield code_block(code)
        elif heading := _HEADING.fullmatch(line):
            index += 1
            if title := inline(heading[1]).strip():
                yield f"**{title}**"
        elif _BULLET.match(line):
            index, items = _list(lines, index)
            yield items
        else:
            index, paragraph, underlined = _paragraph(lines, index)
            if paragraph.endswith("::"):  # reStructuredText: code follows
                paragraph = paragraph[:-1]
            text = inline(paragraph).strip()
            if text:
                yield f"**{text}**" if underlined else text


def _fenced(lines: list[str], index: int, fence: str) -> tuple[int, str]:
    body = []
    while index < len(lines) and not lines[index].strip().startswith(fence):
        body.append(lines[index])
        index += 1
    return index + 1, "\n".join(body)


def _indented(lines: list[str], index: int) -> tuple[int, str]:
    body = []
    while index < len(lines) and (_indent(lines[index]) >= 3 or not lines[index].strip()):
        body.append(lines[index])
        index += 1
    while body and (not body[0].strip() or _OPTION.match(body[0])):
        body = body[1:]
    margin = min((_indent(line) for line in body if line.strip()), default=0)
    return index, "\n".join(line[margin:] for line in body).rstrip()


def _skip_indented(lines: list[str], index: int) -> int:
    margin = _indent(lines[index])
    index += 1
    while index < len(lines) and (not lines[index].strip() or _indent(lines[index]) > margin):
        index += 1
    return index


def _list(lines: list[str], index: int) -> tuple[int, str]:
    items: list[str] = []
    while index < len(lines):
        bullet = _BULLET.match(lines[index])
        if bullet:
            items.append(bullet[2].strip())
        elif items and lines[index].strip() and _indent(lines[index]) > 0:
            items[-1] += " " + lines[index].strip()
        else:
            break
        index += 1
    return index, "\n".join(f"- {inline(item)}" for item in items)


def _paragraph(lines: list[str], index: int) -> tuple[int, str, bool]:
    """Joined lines up to a blank one, and whether a rule underlines them (a title)."""
    body = [lines[index].strip()]
    index += 1
    while index < len(lines):
        line = lines[index]
        if _RULE.match(line):
            return index + 1, " ".join(body), len(body) == 1
        if not line.strip() or any(p.match(line) for p in _BREAKS):
            break
        body.append(line.strip())
        index += 1
    return index, " ".join(body), False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def joined(blocks: Iterable[str]) -> str:
    """Blocks of Markdown, empty ones left out, with a blank line after each."""
    return "".join(f"{block}\n\n" for block in blocks if block)
