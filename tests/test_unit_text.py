from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeqa.text.unit_text import MAGIC, UnitText, decode, encode, unit_text
from codeqa.types import Unit

texts = st.text(st.characters(codec="utf-8"), max_size=80) | st.sampled_from(
    ["body:", "doc: 3", "\n", "\\", "\\n", "\\\\n\n", f"{MAGIC}\npath: x", "signature: 1\nbody:\n"]
)


@given(st.builds(UnitText, texts, texts, texts, texts, texts, texts))
def test_fields_come_back_whatever_they_hold(fields: UnitText) -> None:
    assert decode(encode(fields)) == fields


def test_an_embedding_reads_path_owner_name_comment_and_body_as_text() -> None:
    unit = Unit(
        "src/app.py", "python", "method", "route", "Flask.route", "def route(self):\n    pass",
        4, 5, class_name="Flask", signature="def route(self)", doc_comment="Add a URL rule.",
    )  # fmt: skip
    lines = unit_text(unit, "Registers views.").split("\n")
    assert lines[:4] == [MAGIC, "path: src/app.py", "owner: Flask", "name: route"]
    assert "Registers views." in lines and "Add a URL rule." in lines
    assert lines[-2:] == ["def route(self):", "    pass"]


@pytest.mark.parametrize("text", ["", "def f(): pass", f"{MAGIC}\npath: a\nowner: \nname: f"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode(text)
