"""The one entrance of the parser: a path and its bytes in, units and references out."""

from __future__ import annotations

from dataclasses import replace

from codeqa.languages import detect
from codeqa.parsing.documents import parse_document
from codeqa.parsing.extract import extract
from codeqa.parsing.grammar import TooSlowError
from codeqa.repository.secrets import mask_secret_bytes
from codeqa.types import ParsedFile

_MARK = b"\xef\xbb\xbf"
"""UTF-8's byte order mark, which belongs to no line."""


def parse_file(path: str, data: bytes, role: str = "source") -> ParsedFile:
    """Everything that one read of a file yields; raises nothing because of its content.

    Bytes that are not UTF-8 become U+FFFD and are counted; secret-looking strings become
    asterisks. A file that its grammar cannot read in bounded time, or finds nothing in, is
    cut into chunks like one without a grammar.
    """
    language = detect(path, data)
    data, masked = mask_secret_bytes(data)
    data, replaced = _utf8(data.removeprefix(_MARK))
    name = language.name if language is not None else "text"
    parsed = ParsedFile(path, name, (), ())
    if language is not None and language.grammar:
        try:
            parsed = extract(path, data, language.key, role)
        except TooSlowError:
            parsed = replace(parsed, has_errors=True)
    if not parsed.units:
        units = parse_document(path, data.decode("utf-8"), name, role)
        parsed = replace(parsed, units=units)
    if replaced or masked:
        parsed = replace(parsed, replaced_bytes=replaced, masked=masked)
    return parsed


def _utf8(data: bytes) -> tuple[bytes, int]:
    """`data` as valid UTF-8, and how many of its bytes were not."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        kept = len(data.decode("utf-8", "ignore").encode("utf-8"))
        return data.decode("utf-8", "replace").encode("utf-8"), len(data) - kept
    return data, 0
