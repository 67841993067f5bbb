"""Recognise files that are secrets, and mask secret-looking strings in all others.

A file is left out when its name says that it holds a secret, or when it consists of one. In every
other file secret-looking strings are replaced by as many asterisks, so that lines and columns stay
true: private key blocks and the forms of `secret_forms.toml`, which are hardly ever anything else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from fnmatch import translate
from importlib.resources import files

import re2

_FORMS = tomllib.loads(files(__package__).joinpath("secret_forms.toml").read_text("utf-8"))
_NAMES = re.compile("|".join(map(translate, _FORMS["names"].split())))
_TEMPLATE_NAME = re.compile(
    r"(?:^|[._-])(?:example|sample|template|tmpl|tpl|dist|defaults?|schema|erb|j2)(?:[._-]|$)"
)
_TEMPLATE_ENDINGS = (".md", ".rst", ".py", ".ts", ".js", ".go", ".rb", ".java", ".sh", ".pub")


def is_secret_name(name: str) -> bool:
    """Return whether a file of this name (last component) is left out unread."""
    lowered = name.lower()
    if not _NAMES.match(lowered):
        return False
    return not (_TEMPLATE_NAME.search(lowered) or lowered.endswith(_TEMPLATE_ENDINGS))


_BETWEEN = r"(?:\\[nrt]|[\s\\\"',|#*+]){0,80}"
"""Characters between the lines of a key, also in string literals and comments."""

_APART = "(?<![A-Za-z0-9])"
_WELL_APART = "(?<![A-Za-z0-9_-])"
"""The beginning of a word: `task-…` is no `sk-…`, and `my-key-…` no `key-…`."""

_KEY_BLOCK = (
    "-----BEGIN ",
    r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[\s\\nr\"']{1,20}(?:Proc-Type|DEK-Info|Comment|Version):[^\r\n\\]{0,100})*"
    rf"((?:{_BETWEEN}+[A-Za-z0-9+/=]{{24,}}+){{1,1000}}"
    rf"(?:{_BETWEEN}+[A-Za-z0-9+/=]{{1,24}}(?={_BETWEEN}-----END))?)",
)


def _forms(table: str) -> list[list[str]]:
    """Return mark and rest of each form of a table of `secret_forms.toml`."""
    return [[mark, rest.replace("EXAMPLE", _FORMS["example"])] for mark, rest, _ in _FORMS[table]]


def _any(forms: Iterable[Iterable[str]]) -> str:
    return "|".join(f"(?:{mark}){rest}" for mark, rest in forms)


_WORDS, _PREFIXES = _forms("word"), _forms("prefix")
_WITHIN = [_KEY_BLOCK] + _forms("within")
_SECRET = re.compile(
    f"{_WELL_APART}(?:{_any(_WORDS)})|{_APART}(?:{_any(_PREFIXES)})|{_any(_WITHIN)}".encode()
)
_LATIN = re2.Options()
_LATIN.encoding = re2.Options.Encoding.LATIN1
_MARK = re2.compile("|".join(mark for mark, _ in _WORDS + _PREFIXES + _WITHIN).encode(), _LATIN)
"""Found in every file that is parsed, in 0.3 % of that time; `_SECRET` alone would take longer."""
_NOT_BREAK = re.compile(rb"[^\r\n]")


def mask_secrets(text: str) -> str:
    """Replace secret-looking strings of `text` by asterisks of equal length."""
    data, count = mask_secret_bytes(text.encode("utf-8", "surrogatepass"))
    return data.decode("utf-8", "surrogatepass") if count else text


def mask_diff(diff: str) -> str:
    """Do `mask_secrets` for a diff, in which each line of a file begins with a sign."""
    signs = re.findall("(?m)^[-+ ]?", diff)
    lines = mask_secrets(re.sub("(?m)^[-+ ]", "", diff)).split("\n")
    return "\n".join(sign + line for sign, line in zip(signs, lines, strict=True))


def mask_secret_bytes(data: bytes) -> tuple[bytes, int]:
    """Do `mask_secrets` for the bytes of a file; return also how many secrets were masked."""
    masked, count, end = bytearray(data), 0, 0
    for mark in _MARK.finditer(data):
        start = mark.start()
        if start >= end and (match := _SECRET.match(data, start)):
            first, last = match.span(match.lastindex or 0)
            masked[first:last] = _NOT_BREAK.sub(b"*", data[first:last])
            count, end = count + 1, match.end()
    return bytes(masked), count


_ARMOUR = re.compile(rb"-----(?:BEGIN|END) [A-Z0-9 ]{1,60}-----")
_SMALL_FILE = 16_384  # bytes; a file that consists of secrets is smaller than this


def is_secret_content(data: bytes, is_source: bool = False) -> bool:
    """Return whether a file consists of a secret: a key file or, but for source, mostly masked."""
    if len(data) > _SMALL_FILE:
        return False
    stripped = data.strip()
    if any(b"PRIVATE KEY" in armour for armour in _ARMOUR.findall(stripped)):
        if stripped.startswith(b"-----BEGIN") and stripped.endswith(b"-----"):
            return True
        if b'"private_key"' in stripped and b'"client_email"' in stripped:
            return True  # a service account's key file
    if is_source:
        return False
    masked, count = mask_secret_bytes(stripped)
    return count > 0 and 2 * (masked.count(b"*") - stripped.count(b"*")) > len(stripped)
