"""Decide from path and content whether a file is indexed, and for which role.

Left out are binary data, minified code, source maps, lock files, secrets and empty files. Generated
and vendored files are indexed; their role puts them last.

For a role only whole path components and whole parts of file names count: `contest.py`, `latest/`
and `attestation/` are source. The first role that fits decides: a test of a vendored library is
vendored, generated code in an example is generated.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any

from codeqa.languages import detect
from codeqa.repository.secrets import is_secret_content, is_secret_name
from codeqa.text import as_utf8
from codeqa.text.tokens import word_set
from codeqa.types import Skipped

_BINARY, _MINIFIED, _SECRET = "binary", "minified", "looks like a secret"

_NAMES: dict[str, Any] = tomllib.loads(files(__package__).joinpath("roles.toml").read_text("utf-8"))
LOCK_FILES = word_set(_NAMES["skipped"]["lock_files"])
BINARY_ENDINGS = word_set(_NAMES["skipped"]["binary_endings"])

_MAGIC = (b"%PDF-", b"%!PS", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh9")
"""Beginnings of binary files that may hold no NUL in their first 8 KiB."""

SNIFFED_BYTES = 8192  # git's own rule: a NUL in the first 8 KiB means binary

_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b") + b"\x7f"
MAX_CONTROL_SHARE = 0.1  # of control characters in the first 8 KiB, above which it is no text

_MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs|css|html)$")
_WEB_CODE = (".js", ".mjs", ".cjs", ".css", ".jsx", ".ts")
_LONG_LINES_NORMAL = (".ipynb", ".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".csv", ".tsv")
"""Formats whose paragraphs, rows or images are one line each."""

LONG_LINE = 1_000  # bytes; nobody writes such a line of code by hand
LONG_LINE_WEB = 500  # bytes; minifiers often break at this column
LONG_SHARE = 0.8  # of a file in long lines, above which it is minified or a dump on one line
BYTES_PER_CALL = 100  # in long lines of code, at most; of minified code 20, of data thousands


HEAD_BYTES = 2048  # where generators write that a file is generated


class _Names:
    """Names of the folders and files of one role, from a table of `roles.toml`."""

    def __init__(self, table: dict[str, str]) -> None:
        self.folders = word_set(table.get("folders", ""))
        self.at_top = word_set(table.get("at_top", ""))
        self.endings = tuple(word_set(table.get("endings", "")))
        self.folder_endings = tuple(word_set(table.get("folder_endings", "")))
        no_match = "(?!)"
        patterns = ("files", "types", "not", "completions")
        self.files, self.types, self.excluded, self.completions = (
            re.compile(table.get(key, no_match), re.VERBOSE) for key in patterns
        )
        mark = table.get("mark", no_match).encode()
        self.mark = re.compile(mark, re.VERBOSE | re.IGNORECASE | re.MULTILINE)

    def around(self, folders: list[str]) -> bool:
        """Return whether one of `folders`, lower-case and outermost first, has this role."""
        for position, folder in enumerate(folders):
            if folder in self.folders and (position == 0 or folder not in self.at_top):
                return True
            if self.folder_endings and folder.endswith(self.folder_endings):
                return True
        return False

    def fits(self, folders: list[str], name: str, head: bytes) -> bool:
        """Return whether a file has this role by its folders, its name or its `head`."""
        if self.around(folders) or self.files.fullmatch(name.lower()):
            return True
        return bool(self.types.fullmatch(name) or self.mark.search(head))


_ROLES: dict[str, _Names] = {role: _Names(table) for role, table in _NAMES["roles"].items()}
_EXAMPLE, _DOCUMENT = _ROLES.pop("example"), _Names(_NAMES["document"])


def skip_by_name(path: str) -> str:
    """Return why `path` is left out unread; '' when its content decides."""
    name = path[path.rfind("/") + 1 :].lower()
    if name in LOCK_FILES:
        return "lock file"
    if is_secret_name(name):
        return _SECRET
    if "." in name and name[name.rfind(".") + 1 :] in BINARY_ENDINGS:
        return _BINARY
    if name.endswith((".js.map", ".css.map", ".mjs.map", ".cjs.map", ".ts.map")):
        return "source map"
    return _MINIFIED if _MINIFIED_NAME.search(name) else ""


def classify(path: str, data: bytes) -> Skipped | str:
    """Return why the file is left out, else its role (`types.ROLES`)."""
    data = as_utf8(data)
    reason = skip_by_name(path) or _skip_by_content(path, data)
    return Skipped(path, reason) if reason else role_of(path, data)


def _skip_by_content(path: str, data: bytes) -> str:
    if not data.strip():
        return "empty"
    if is_binary(data):
        return _BINARY
    name = path[path.rfind("/") + 1 :].lower()
    language = detect(path)
    if name == ".npmrc" and b"_authToken" in data:
        return _SECRET
    if is_secret_content(data, is_source=bool(language and language.grammar)):
        return _SECRET
    return _MINIFIED if is_minified(name, data) else ""


def is_binary(data: bytes) -> bool:
    """Return whether `data` has an early NUL, a binary beginning or many control characters."""
    head = data[:SNIFFED_BYTES]
    if b"\0" in head or head.startswith(_MAGIC):
        return True
    controls = len(head) - len(head.translate(None, _CONTROL))
    return controls > MAX_CONTROL_SHARE * len(head)


def is_minified(name: str, data: bytes) -> bool:
    """Return whether nearly all of a file lies in lines longer than anybody writes."""
    limit = LONG_LINE_WEB if name.endswith(_WEB_CODE) else LONG_LINE
    # A file whose lines are short on average has no large share in long ones.
    if len(data) <= limit or len(data) < (data.count(b"\n") + 1) * limit * 0.2:
        return False
    if name.endswith(_LONG_LINES_NORMAL):
        return False
    lines = data.split(b"\n")
    long = [line for line in lines if len(line) > limit]
    if sum(map(len, long)) <= LONG_SHARE * len(data):
        return False
    language = detect(name)
    if language is None or not language.grammar:
        return True
    # Data among code, such as tables, fonts and encoded files, leaves code on other lines.
    has_short_lines = any(line.strip() for line in lines if len(line) <= limit)
    return not has_short_lines or (name.endswith(_WEB_CODE) and _is_code(b"\n".join(long)))


def _is_code(long_lines: bytes) -> bool:
    """Return whether `long_lines` hold calls, assignments or rules as often as minified code."""
    calls, ends, rules, values = map(long_lines.count, (b"(", b";", b"{", b"="))
    return max(calls, min(ends, rules + values)) * BYTES_PER_CALL >= len(long_lines)


def role_of(path: str, head: bytes = b"") -> str:
    """Return the role (`types.ROLES`) of a repo-relative path; `head` is the file's beginning."""
    *parents, name = path.split("/")
    folders, lowered = [parent.lower() for parent in parents], name.lower()
    head = head[:HEAD_BYTES]
    if b"generated" not in head.lower():
        head = b""
    for role, names in _ROLES.items():
        if names.fits(folders, name, head):
            return role
    in_example = _EXAMPLE.around(folders)
    example_code = in_example and not lowered.endswith(_DOCUMENT.endings)
    if not example_code and _is_document(folders, lowered):
        return "document"
    return "example" if in_example or _EXAMPLE.files.fullmatch(lowered) else "source"


def _is_document(folders: list[str], name: str) -> bool:
    if _DOCUMENT.folders.intersection(folders[:2]) or _DOCUMENT.at_top.intersection(folders[:1]):
        return True
    if _DOCUMENT.completions.fullmatch("/".join(folders[-1:] + [name])):
        return True
    if _DOCUMENT.excluded.fullmatch(name):
        return False
    without_ending = "." not in name and _DOCUMENT.files.fullmatch(name)
    return bool(name.endswith(_DOCUMENT.endings) or without_ending)
