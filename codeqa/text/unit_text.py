"""The text of a unit that is embedded (column `code`), and how its fields are read back.

Format 1 has one header line per field, then the body::

    codeqa/1
    path: src/flask/app.py
    owner: Flask
    name: route
    doc: 2
    First line of the doc comment
    second line
    signature: 1
    def route(self, rule: str) -> Callable
    body:
    …

With the number of lines of doc and signature the round trip is exact whatever the code contains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeqa.types import Unit

MAGIC = "codeqa/1"
_HEAD = re.compile(rf"{MAGIC}\npath: (.*)\nowner: (.*)\nname: (.*)\n")


@dataclass(frozen=True, slots=True)
class UnitText:
    """The fields of a unit that an embedding sees."""

    path: str
    owner: str
    name: str
    doc_comment: str
    signature: str
    body: str


def unit_text(unit: Unit, comment: str = "") -> str:
    """Serialise `unit`; the description `comment` goes before its doc comment."""
    return encode(fields_of(unit, comment))


def fields_of(unit: Unit, comment: str = "") -> UnitText:
    """Return the fields of `unit`, as `decode` returns them."""
    doc = "\n".join(filter(None, (comment, unit.doc_comment)))
    return UnitText(unit.path, unit.class_name, unit.name, doc, unit.signature, unit.source_code)


def encode(fields: UnitText) -> str:
    """Return the text that is embedded, from which `decode` gets the fields back."""
    lines = [MAGIC]
    for label, value in (("path", fields.path), ("owner", fields.owner), ("name", fields.name)):
        lines.append(f"{label}: " + value.replace("\\", "\\\\").replace("\n", "\\n"))
    for label, value in (("doc", fields.doc_comment), ("signature", fields.signature)):
        block = value.split("\n") if value else []
        lines += [f"{label}: {len(block)}"] + block
    return "\n".join(lines + ["body:", fields.body])


def decode(text: str) -> UnitText:
    """Invert `encode`. Raises ValueError when `text` is not of format 1."""
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"not the text of a unit: it begins {text[:20]!r}")
    fields = [_unescaped(value) for value in head.groups()]
    lines = text[head.end() :].split("\n")
    for label in ("doc", "signature"):
        end = 1 + int("".join(lines[:1]).removeprefix(f"{label}: "))
        fields.append("\n".join(lines[1:end]))
        del lines[:end]
    if lines[:1] != ["body:"]:
        raise ValueError(f"not the text of a unit: {text[:20]!r} … has no body")
    fields.append("\n".join(lines[1:]))
    return UnitText(*fields)


def _unescaped(value: str) -> str:
    parts = value.split("\\\\")  # an escaped backslash
    return "\\".join(part.replace("\\n", "\n") for part in parts)
