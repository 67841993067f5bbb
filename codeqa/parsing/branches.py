"""Take out the conditional lines (`#if` … `#endif`) that cut through a statement.

A grammar reads all branches of a condition, each as whole statements. Where one opens a brace that
the code behind it closes, or holds a part of a list, the lines are overwritten: of several branches
the first stays, unless a condition above says otherwise. Offsets and line breaks stay the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_DEPTH = 1000
"""Open brackets beyond which a file is left as it is: each branch keeps a copy of them."""

_TOKEN = re.compile(
    rb"""[^\s"'/\#(){}\[\]][^\n"'/\#(){}\[\]]*
    |(?P<open>[({\[])|(?P<close>[)}\]])
    |(?m:^)[ \t]*\#[ \t]*(?P<word>\w*)(?P<rest>(?:\\\r?\n|/\*[^\n]*?\*/|(?!//|/\*)[^\n])*)
    |(?P<comment>[ \t\r]+|//[^\n]*|/\*.*?(?:\*/|\Z))
    |\"\"\".*?(?:\"\"\"|\Z)|(?<=@)"(?:[^"]|"")*+"?|(?<=R)"(?P<tag>\w*)\(.*?(?:\)(?P=tag)"|\Z)
    |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\S""",
    re.DOTALL | re.VERBOSE,
)
"""Words, brackets, conditions, comments and blanks, strings."""
_CONDITION = re.compile(rb"\s*(!?)\s*(?:defined\b)?[\s(]*(\w+)[\s)]*")
_BLANK = bytes(byte if byte in b"\r\n" else 32 for byte in range(256))
_SPACE = rb"(?:\s|//[^\n]*\n|/\*[^*]{0,500}\*/)*+"
_NEXT = re.compile(
    rb"(?:%b(?:#[ \t]*(?:if|endif)[^\n]*)?+){0,3}((?:else|case|default)\b|=>)" % _SPACE
)
_LABELS = {b"case", b"default"}
_LATER = frozenset({b"elif", b"elifdef", b"elifndef", b"else", b"endif"})
_WHOLE = b";{}:"
"""What stands before whole statements."""


@dataclass(slots=True)
class _Branch:
    name: bytes
    """What is asked for; the branch is read where that is `value`."""
    value: bool
    start: int
    lowest: int
    """The fewest open brackets in it."""
    end: int = 0
    blocks: bool = False
    """Whether braces end in it."""
    last: int = 0
    """The last byte that is neither blank nor a comment; 0 if there is none."""
    brackets: bytes = b""
    """The open brackets at its end."""


@dataclass(slots=True)
class _Group:
    before: int
    """The last byte before the condition."""
    brackets: bytes
    words: set[bytes] = field(default_factory=set)
    """`else`, `case` and `default` at an end."""
    branches: list[_Branch] = field(default_factory=list)
    lines: list[tuple[int, int]] = field(default_factory=list)


def join_branches(data: bytes) -> bytes:
    """Overwrite the conditional lines that cut through statements, and the branches left out."""
    output, brackets = bytearray(data), bytearray()
    assumed = {b"0": False, b"1": True}
    groups: list[_Group] = []
    last = _WHOLE[0]
    for token in _TOKEN.finditer(data):
        kind, end = token.lastgroup, token.end()
        if kind != "rest":
            last = last if kind == "comment" else token[0].rstrip()[-1]
            if kind == "open":
                brackets += token[0]
                if len(brackets) > MAX_DEPTH:
                    return data
            elif kind == "close":
                _add_closing(token[0], brackets, groups)
            continue
        word, start = token["word"], token.start()
        if word in (b"if", b"ifdef", b"ifndef"):
            before = last or groups[-1].before
            groups.append(_Group(before, bytes(brackets)))
        elif not groups or word not in _LATER:
            last = last if brackets.endswith((b"(", b"[")) else _WHOLE[0]
            continue
        else:
            branch = groups[-1].branches[-1]
            branch.end, branch.last, branch.brackets = start, last, bytes(brackets)
        group = groups[-1]
        group.lines.append((start, end))
        group.words.update(match[1] for match in [_NEXT.match(data, end)] if match)
        if word == b"endif":
            groups.pop()
            branch = _close(group, assumed, output)
            brackets[:], last = branch.brackets, branch.last or group.before
            _add_inner(branch, groups)
        else:
            name, value = _condition(word, token["rest"])
            brackets[:], last = group.brackets, 0
            group.branches.append(_Branch(name, value, end, len(brackets)))
    return bytes(output)


def _add_closing(bracket: bytes, brackets: bytearray, groups: list[_Group]) -> None:
    del brackets[-1:]
    for group in groups[-1:]:
        branch = group.branches[-1]
        branch.lowest = min(branch.lowest, len(brackets))
        branch.blocks |= bracket == b"}"


def _add_inner(inner: _Branch, groups: list[_Group]) -> None:
    for group in groups[-1:]:
        branch = group.branches[-1]
        branch.lowest = min(branch.lowest, inner.lowest)
        branch.blocks |= inner.blocks


def _condition(word: bytes, rest: bytes) -> tuple[bytes, bool]:
    """Return a name, and the value that it has where the branch is read; '' if always."""
    if word == b"else":
        return b"", True
    match = _CONDITION.fullmatch(rest)
    if match is None:
        return b" ".join(rest.split()), True
    return match[2], not (match[1] or word.endswith(b"ndef"))


def _close(group: _Group, assumed: dict[bytes, bool], output: bytearray) -> _Branch:
    """Overwrite what of a group cuts through statements; return the branch that stays."""
    branches = group.branches
    balanced = all(
        branch.brackets == group.brackets and branch.lowest >= len(group.brackets)
        for branch in branches
    )
    ends = {b.last for b in branches if not (balanced and b.blocks) or b.last == ord(":")} - {0}
    in_list = group.brackets.endswith((b"(", b"["))
    whole = group.before in _WHOLE + b")" and all(end in b";}" for end in ends)
    if balanced and whole and not group.words and not in_list:
        return branches[0]
    for start, end in group.lines:
        output[start:end] = output[start:end].translate(_BLANK)
    if balanced and (ends == {ord(",")} or (whole and group.words <= _LABELS)):
        return branches[0]
    chosen = _Branch(b"", True, 0, len(group.brackets), brackets=group.brackets)
    for branch in branches:
        value = assumed.get(branch.name)
        if not chosen.start and value in (None, branch.value):
            chosen = branch
            assumed.setdefault(branch.name, branch.value)
        else:
            output[branch.start : branch.end] = output[branch.start : branch.end].translate(_BLANK)
    assumed.pop(b"", None)
    return chosen
