"""The text of a unit that is embedded (`code` column) and how it splits again.

Format 1, one header line per field, then the body::

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

Multi-line fields state their number of lines, so that the round trip is exact whatever
the code contains, and an embedding that knows nothing of the format reads plain text.
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
    """Serialise `unit`; `comment` is a description that stands before the doc comment."""
    return encode(fields_of(unit, comment))


def fields_of(unit: Unit, comment: str = "") -> UnitText:
    """The fields of `unit`, as `decode` gives them back."""
    doc = "\n".join(part for part in (comment, unit.doc_comment) if part)
    return UnitText(unit.path, unit.class_name, unit.name, doc, unit.signature, unit.source_code)


def encode(fields: UnitText) -> str:
    lines = [MAGIC]
    for label, value in (("path", fields.path), ("owner", fields.owner), ("name", fields.name)):
        lines.append(f"{label}: " + value.replace("\\", "\\\\").replace("\n", "\\n"))
    for label, value in (("doc", fields.doc_comment), ("signature", fields.signature)):
        block = value.split("\n") if value else []
        lines += [f"{label}: {len(block)}", *block]
    return "\n".join((*lines, "body:", fields.body))


def decode(text: str) -> UnitText:
    """Inverse of `encode`. Raises ValueError when `text` is not of format 1."""
    if not (head := _HEAD.match(text)):
        raise ValueError(f"not the text of a unit: it begins {text[:20]!r}")
    parts = (group.split("\\\\") for group in head.groups())
    fields = ["\\".join(one.replace("\\n", "\n") for one in part) for part in parts]
    lines = text[head.end() :].split("\n")
    for label in ("doc", "signature"):
        end = 1 + int("".join(lines[:1]).removeprefix(f"{label}: "))
        fields.append("\n".join(lines[1:end]))
        del lines[:end]
    if lines[:1] != ["body:"]:
        raise ValueError(f"not the text of a unit: {text[:20]!r} … has no body")
    fields.append("\n".join(lines[1:]))
    return UnitText(*fields)
