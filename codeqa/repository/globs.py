"""git's globs (wildmatch) as regular expressions over bytes."""

from __future__ import annotations

import re

_CLASSES = {
    b"alnum": re.compile(rb"[A-Za-z0-9]"),
    b"alpha": re.compile(rb"[A-Za-z]"),
    b"blank": re.compile(rb"[ \t]"),
    b"cntrl": re.compile(rb"[\x00-\x1f\x7f]"),
    b"digit": re.compile(rb"[0-9]"),
    b"graph": re.compile(rb"[\x21-\x7e]"),
    b"lower": re.compile(rb"[a-z]"),
    b"print": re.compile(rb"[\x20-\x7e]"),
    b"punct": re.compile(rb"[!-/:-@\[-`{-~]"),
    b"space": re.compile(rb"[ \t\n\r\f\v]"),
    b"upper": re.compile(rb"[A-Z]"),
    b"xdigit": re.compile(rb"[A-Fa-f0-9]"),
}

_STAR, _DEEP, _REST = "*", "**/", "**"


class BadPatternError(ValueError):
    """git lets such a pattern match nothing."""


def glob_regex(glob: bytes, by_name: bool) -> bytes:
    """Regex for a full match of `glob`; `by_name`: it is matched against one component.

    Raises BadPatternError for a glob that git lets match nothing.
    """
    return _translate(_tokens(glob, by_name))


def _tokens(glob: bytes, by_name: bool) -> list[str | bytes]:
    """Split a glob into regexes of one byte each and the three kinds of star."""
    tokens: list[str | bytes] = []
    i = 0
    while i < len(glob):
        byte = glob[i : i + 1]
        if byte == b"*":
            end = i
            while glob[end : end + 1] == b"*":
                end += 1
            whole = end - i > 1 and not by_name and (i == 0 or glob[i - 1 : i] == b"/")
            if whole and glob[end : end + 1] == b"/":
                tokens.append(_DEEP)
                end += 1
            else:
                tokens.append(_REST if whole and end == len(glob) else _STAR)
            i = end
        elif byte == b"?":
            tokens.append(rb"[^/]")
            i += 1
        elif byte == b"[":
            regex, i = _bracket(glob, i + 1)
            tokens.append(regex)
        elif byte == b"\\":
            if i + 1 == len(glob):
                raise BadPatternError
            tokens.append(re.escape(glob[i + 1 : i + 2]))
            i += 2
        else:
            tokens.append(re.escape(byte))
            i += 1
    return tokens


def _bracket(glob: bytes, i: int) -> tuple[bytes, int]:
    """Regex of the bracket expression whose content begins at `i`, and what follows it."""
    negated = glob[i : i + 1] in (b"!", b"^")
    i += negated
    members: set[int] = set()
    previous = -1
    first = True
    while first or glob[i : i + 1] != b"]":
        first = False
        if i >= len(glob):
            raise BadPatternError
        byte = glob[i]
        if glob.startswith(b"[:", i):
            end = glob.find(b":]", i + 2)
            if end < 0 or glob[i + 2 : end] not in _CLASSES:
                raise BadPatternError
            match = _CLASSES[glob[i + 2 : end]].match
            members.update(code for code in range(256) if match(bytes([code])))
            previous, i = -1, end + 2
            continue
        if byte == ord("-") and previous >= 0 and glob[i + 1 : i + 2] not in (b"]", b""):
            i += 1
            if glob[i : i + 1] == b"\\":
                i += 1
                if i >= len(glob):
                    raise BadPatternError
            members.update(range(previous, glob[i] + 1))
            previous, i = -1, i + 1
            continue
        if byte == ord("\\"):
            i += 1
            if i >= len(glob):
                raise BadPatternError
            byte = glob[i]
        members.add(byte)
        previous, i = byte, i + 1
    chosen = (set(range(256)) - members if negated else members) - {ord("/")}
    if not chosen:
        raise BadPatternError
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(chosen)) + b"]", i + 1


def _translate(tokens: list[str | bytes]) -> bytes:
    """Join the tokens to one regex that takes no more than quadratic time.

    What stands between two stars of one component, or between two `**/`, is matched at its
    leftmost place and never tried again (an atomic group): the star after it can take up
    whatever a later place would have skipped, so nothing is lost, and a hostile pattern such
    as `*a*a*a*a*b` cannot run for ever.
    """
    if tokens and tokens[-1] == _REST:
        return _translate([*tokens[:-1], rb"[\s\S]"]) + rb"[\s\S]*"
    stretches: list[list[str | bytes]] = [[]]
    for token in tokens:
        if token == _DEEP:
            stretches.append([])
        else:
            stretches[-1].append(token)
    regex = _stretch(stretches[0])
    for number, stretch in enumerate(stretches[1:], 1):
        inner = rb"(?:[^/]+/)*?" + _stretch(stretch)
        regex += inner if number == len(stretches) - 1 else rb"(?>" + inner + rb")"
    return regex


def _stretch(tokens: list[str | bytes]) -> bytes:
    """Regex of whole components without `**`, each with its stars made atomic."""
    components: list[list[list[bytes]]] = [[[]]]
    for token in tokens:
        if isinstance(token, str):
            components[-1].append([])
        elif token == b"/":
            components.append([[]])
        else:
            components[-1][-1].append(token)
    return b"/".join(_component(pieces) for pieces in components)


def _component(pieces: list[list[bytes]]) -> bytes:
    joined = [b"".join(piece) for piece in pieces]
    if len(joined) == 1:
        return joined[0]
    middle = b"".join(rb"(?>[^/]*?" + piece + rb")" for piece in joined[1:-1] if piece)
    return joined[0] + middle + rb"[^/]*" + joined[-1]
