"""Keep what lies around code that a grammar cannot read.

Where braces stand among the errors of a tree, definitions far around the cause are lost. A search
by halves finds the blocks that hold it; their lines are overwritten, so that all else is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

MAX_BYTES = 5_000_000
"""Bytes that a search parses, about a second's; a cause in a file of 100 functions takes ten
parses. A limit of time would make the index depend on the machine."""
MAX_DEPTH = 100
"""Blocks inside each other beyond which a file is left as it is."""
_HOLDER = re.compile(rb"\b(?:class|struct|union|enum|interface|trait|object|namespace|extern)\b")
"""What holds definitions, which are worth more than what is between them."""


@dataclass(slots=True)
class _Block:
    """Lines between one that ends with `{` and one that begins with `}`, indented alike."""

    indent: int
    start: int
    end: int = -1
    inner: list[_Block] = field(default_factory=list)


def is_broken(root: tree_sitter.Node) -> bool:
    """Return whether braces stand among the errors of a tree."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_missing and node.type in ("{", "}"):
            return True
        if node.is_error and any(child.type in ("{", "}") for child in node.children):
            return True
        stack.extend(child for child in node.children if child.has_error)
    return False


def without_broken_blocks(data: bytes, parse: Callable[[bytes], tree_sitter.Node]) -> bytes:
    """Overwrite what is in the smallest blocks without which all braces of a file can be read."""
    output = _search(data, lambda part: is_broken(parse(part)))
    if is_broken(parse(output)):  # alone, a block may have errors without braces
        output = _search(data, lambda part: parse(part).has_error)
    return output


def _search(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    blank, blocks = re.sub(rb"[^\r\n]", b" ", data), _blocks(data)
    broken: list[_Block] = []
    groups = [(_copied(blank, data, blocks), blocks)]
    if fails(groups[0][0]):
        return data  # the cause lies outside of blocks
    for _ in range(MAX_BYTES // max(1, len(data))):
        if not groups:
            break
        frame, group = groups.pop()
        opened = _copied(data, frame, group)
        if not fails(opened):
            continue
        if len(group) > 1:
            middle = len(group) // 2
            groups += [(frame, group[middle:]), (frame, group[:middle])]
            continue
        block = group[0]
        inside = _copied(blank, opened, block.inner)
        if block.inner and not fails(inside):
            groups.append((inside, block.inner))
        elif not _HOLDER.search(data, data.rfind(b"\n", 0, block.start) + 1, block.start):
            broken.append(block)
    return _copied(blank, data, broken)


def _copied(text: bytes, into: bytes, blocks: Iterable[_Block]) -> bytes:
    """Return `into` with what `text` has in `blocks`."""
    output = bytearray(into)
    for block in blocks:
        output[block.start : block.end] = text[block.start : block.end]
    return bytes(output)


def _blocks(data: bytes) -> list[_Block]:
    """Return the outer blocks of a file, with those inside of them."""
    root = _Block(-1, 0)
    stack, start = [root], 0
    for line in data.split(b"\n"):
        end, text = start + len(line), line.lstrip()
        indent = len(line) - len(text)
        if text.startswith(b"}"):
            while stack[-1].indent > indent <= stack[-2].indent:
                unclosed = stack.pop()
                stack[-1].inner[-1:] = unclosed.inner
            if stack[-1].indent >= indent:  # more where the head has several lines
                stack.pop().end = start
        if text.partition(b"//")[0].rstrip().endswith(b"{"):
            stack[-1].inner.append(_Block(indent, end))
            stack.append(stack[-1].inner[-1])
            if len(stack) > MAX_DEPTH:
                return []
        start = end + 1
    while len(stack) > 1:
        unclosed = stack.pop()
        stack[-1].inner[-1:] = unclosed.inner
    return root.inner
