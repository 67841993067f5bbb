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

from dataclasses import dataclass

from codeqa.types import Unit

MAGIC = "codeqa/1"


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
    """Serialise `fields` as format 1."""
    return "\n".join(
        (
            MAGIC,
            "path: " + _line(fields.path),
            "owner: " + _line(fields.owner),
            "name: " + _line(fields.name),
            *_block("doc", fields.doc_comment),
            *_block("signature", fields.signature),
            "body:",
            fields.body,
        )
    )


def decode(text: str) -> UnitText:
    """Inverse of `encode`. Raises ValueError when `text` is not of format 1."""
    lines = text.split("\n")
    if lines[0] != MAGIC:
        raise ValueError(f"not the text of a unit: it begins {lines[0][:20]!r}")
    try:
        return _decode(lines)
    except IndexError:
        raise ValueError("the text of a unit is cut off") from None


def _decode(lines: list[str]) -> UnitText:
    path, owner, name = (
        _unline(lines[index].removeprefix(label))
        for index, label in ((1, "path: "), (2, "owner: "), (3, "name: "))
    )
    doc, position = _unblock(lines, 4, "doc")
    signature, position = _unblock(lines, position, "signature")
    if lines[position] != "body:":
        raise ValueError("the text of a unit has no body")
    return UnitText(path, owner, name, doc, signature, "\n".join(lines[position + 1 :]))


def _line(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _unline(value: str) -> str:
    return "\\".join(part.replace("\\n", "\n") for part in value.split("\\\\"))


def _block(label: str, value: str) -> list[str]:
    lines = value.split("\n") if value else []
    return [f"{label}: {len(lines)}", *lines]


def _unblock(lines: list[str], position: int, label: str) -> tuple[str, int]:
    head = lines[position]
    if not head.startswith(label + ": "):
        raise ValueError(f"the text of a unit has no {label}")
    count = int(head[len(label) + 2 :])
    return "\n".join(lines[position + 1 : position + 1 + count]), position + 1 + count
