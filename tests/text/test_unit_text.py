"""Small readings of text: words of code, the tag, and the text of a unit, which is read back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codeqa.text import has_tag, strip_tag
from codeqa.text.tokens import estimate_tokens, name_key, search_tokens, split_identifier
from codeqa.text.unit_text import MAGIC, UnitText, decode, encode, unit_text
from codeqa.types import Unit


def test_identifiers_are_split_where_a_reader_would() -> None:
    for word, parts in {
        "getHTTPResponse_v2": "get http response v 2",
        "snake_case_name": "snake case name",
        "XMLParser": "xml parser",
        "__init__": "init",
        "http404": "http 404",
        "Größe": "größe",
        "变量_名": "变量 名",
        "锁": "锁",
        "使用JWTToken令牌": "使用 jwt token 令牌",
        "生体認証でロック": "生体 体認 認証 証で でロ ロッ ック",
        "사용자인증을": "사용 용자 자인 인증 증을",
        "_": "",
    }.items():
        assert split_identifier(word) == parts.split()


def test_a_whole_identifier_is_kept_and_spellings_of_one_name_share_a_key() -> None:
    assert search_tokens("call getUser(id)") == ["call", "get", "user", "getuser", "id"]
    assert {name_key(n) for n in ("getUser", "get_user", "GetUser", "get-user")} == {"getuser"}


def test_the_estimate_grows_with_the_text_and_is_never_zero() -> None:
    for text in ("def f(x): return x", "的的的的", "a" * 300, "x\n" * 50):
        assert 0 < estimate_tokens(text) < estimate_tokens(text * 2)
    assert estimate_tokens("") == 0


@given(st.lists(st.sampled_from(["@codebase", "@CODEBASE", " ", "x", "_", "\n"])).map("".join))
@example("@codebase@CODEBASE")
def test_no_tag_is_left_where_one_was_taken_away(text: str) -> None:
    assert not has_tag(strip_tag(text))


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


def test_other_text_is_refused() -> None:
    for text in ("", "def f(): pass", f"{MAGIC}\npath: a\nowner: \nname: f"):
        with pytest.raises(ValueError):
            decode(text)
