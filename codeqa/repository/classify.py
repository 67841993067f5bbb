"""What a file is, from its path and its content: never indexed, or what it is for.

Left out: binary data, minified code and source maps, lock files, secrets, empty files.
Generated and vendored files are not left out; their role puts them last.

For a role only whole path components and whole parts of file names count: `contest.py`, `latest/`
and `attestation/` are source. The order of the questions is the order of precedence: a test of
a vendored library is vendored, generated code in an example is generated.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any

from codeqa.languages import detect
from codeqa.repository.secrets import is_secret_content, is_secret_name
from codeqa.text.tokens import word_set
from codeqa.types import Skipped

_BINARY, _MINIFIED, _SECRET = "binary", "minified", "looks like a secret"

_NAMES: dict[str, Any] = tomllib.loads(files(__package__).joinpath("roles.toml").read_text("utf-8"))
LOCK_FILES = word_set(_NAMES["skipped"]["lock_files"])
BINARY_ENDINGS = word_set(_NAMES["skipped"]["binary_endings"])

_MAGIC = (b"%PDF-", b"%!PS", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh9")
"""How files begin that may hold no NUL in their first 8 KiB."""

SNIFFED_BYTES = 8192
"""git's own rule: a NUL in the first 8 KiB means binary."""

_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b") + b"\x7f"
MAX_CONTROL_SHARE = 0.1
"""Control characters in the beginning of a file, above which it is no text."""

_MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs|css|html)$")
_WEB_CODE = (".js", ".mjs", ".cjs", ".css", ".jsx", ".ts")
_LONG_LINES_NORMAL = (".ipynb", ".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".csv", ".tsv")
"""Formats whose paragraphs, rows or images are one line each."""

LONG_LINE = 1_000
"""Bytes; nobody writes such a line of code by hand."""
LONG_LINE_WEB = 500
"""Bytes; minifiers often break at this column."""
LONG_SHARE = 0.8
"""Share of a file in long lines above which it is minified or a dump on one line."""


# Roles

HEAD_BYTES = 2048
"""Where generators write that a file is generated."""


class _Names:
    """Names that tell what a file is for, by one table of `roles.toml`."""

    def __init__(self, table: dict[str, str]) -> None:
        lists = ("folders", "at_top", "endings", "folder_endings")
        self.folders, self.at_top, *endings = (word_set(table.get(one, "")) for one in lists)
        self.endings, self.folder_endings = map(tuple, endings)
        patterns = ("files", "types", "not", "completions")
        self.files, self.types, self.excluded, self.completions = (
            re.compile(table.get(one, "(?!)"), re.VERBOSE) for one in patterns
        )
        mark = table.get("mark", "(?!)").encode()
        self.mark = re.compile(mark, re.VERBOSE | re.IGNORECASE | re.MULTILINE)

    def around(self, folders: list[str]) -> bool:
        """Whether one of `folders`, lower-case and outermost first, says so."""
        return any(
            (folder in self.folders and (position == 0 or folder not in self.at_top))
            or (self.folder_endings and folder.endswith(self.folder_endings))
            for position, folder in enumerate(folders)
        )

    def fits(self, folders: list[str], name: str, head: bytes) -> bool:
        """Whether the folders of a file say so, its name, or its `head`."""
        named = self.files.fullmatch(name.lower()) or self.types.fullmatch(name)
        return bool(self.around(folders) or named or self.mark.search(head))


_ROLES: dict[str, _Names] = {role: _Names(table) for role, table in _NAMES["roles"].items()}
_EXAMPLE, _DOCUMENT = _ROLES.pop("example"), _Names(_NAMES["document"])


def skip_by_name(path: str) -> str:
    """Reason to leave `path` out unread; '' when its content must be looked at."""
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
    """Why the file is left out, else its role (`types.ROLES`)."""
    reason = skip_by_name(path) or _skip_by_content(path, data)
    return Skipped(path, reason) if reason else role_of(path, data)


def _skip_by_content(path: str, data: bytes) -> str:
    if not data.strip():
        return "empty"
    if is_binary(data):
        return _BINARY
    name = path[path.rfind("/") + 1 :].lower()
    language = detect(path)
    if (name == ".npmrc" and b"_authToken" in data) or is_secret_content(
        data, is_source=bool(language and language.grammar)
    ):
        return _SECRET
    return _MINIFIED if is_minified(name, data) else ""


def is_binary(data: bytes) -> bool:
    """Whether `data` is no text: a NUL early on, a known beginning, or mostly controls."""
    head = data[:SNIFFED_BYTES]
    if b"\0" in head or head.startswith(_MAGIC):
        return True
    controls = len(head) - len(head.translate(None, _CONTROL))
    return controls > MAX_CONTROL_SHARE * len(head)


def is_minified(name: str, data: bytes) -> bool:
    """Whether nearly all of a file lies in lines longer than anybody writes."""
    limit = LONG_LINE_WEB if name.endswith(_WEB_CODE) else LONG_LINE
    # A file whose lines are short on average has no large share in long ones.
    if len(data) <= limit or len(data) < (data.count(b"\n") + 1) * limit * 0.2:
        return False
    if name.endswith(_LONG_LINES_NORMAL):
        return False
    long = sum(len(line) for line in data.split(b"\n") if len(line) > limit)
    return long > LONG_SHARE * len(data)


def role_of(path: str, head: bytes = b"") -> str:
    """One of `types.ROLES` for a repo-relative path; `head` is the beginning of the file."""
    *parts, name = path.split("/")
    folders, small = [part.lower() for part in parts], name.lower()
    head = head[:HEAD_BYTES] if b"generated" in head[:HEAD_BYTES].lower() else b""
    for role, names in _ROLES.items():
        if names.fits(folders, name, head):
            return role
    example = _EXAMPLE.around(folders)
    if _is_document(folders, small) and (not example or small.endswith(_DOCUMENT.endings)):
        return "document"
    return "example" if example or _EXAMPLE.files.fullmatch(small) else "source"


def _is_document(folders: list[str], small: str) -> bool:
    names = _DOCUMENT
    named = small.endswith(names.endings) or ("." not in small and names.files.fullmatch(small))
    return bool(
        any(one in names.folders for one in folders[:2])
        or any(one in names.at_top for one in folders[:1])
        or names.completions.fullmatch("/".join((*folders[-1:], small)))
        or (named and not names.excluded.fullmatch(small))
    )
