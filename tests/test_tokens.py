from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codeqa.text import has_tag, strip_tag
from codeqa.text.tokens import estimate_tokens, name_key, search_tokens, split_identifier


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("getHTTPResponse_v2", ["get", "http", "response", "v", "2"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("XMLParser", ["xml", "parser"]),
        ("__init__", ["init"]),
        ("http404", ["http", "404"]),
        ("Größe", ["größe"]),
        ("变量_名", ["变量", "名"]),
        ("_", []),
    ],
)
def test_identifiers_are_split_where_a_reader_would(word: str, parts: list[str]) -> None:
    assert split_identifier(word) == parts


def test_the_whole_identifier_is_kept_beside_its_parts() -> None:
    assert search_tokens("call getUser(id)") == ["call", "get", "user", "getuser", "id"]


def test_spellings_of_one_name_share_a_key() -> None:
    assert {name_key(n) for n in ("getUser", "get_user", "GetUser", "get-user")} == {"getuser"}


@pytest.mark.parametrize("text", ["def f(x): return x", "的的的的", "a" * 300, "x\n" * 50])
def test_the_estimate_grows_with_the_text_and_is_never_zero(text: str) -> None:
    assert 0 < estimate_tokens(text) < estimate_tokens(text * 2)
    assert estimate_tokens("") == 0


@given(st.lists(st.sampled_from(["@codebase", "@CODEBASE", " ", "x", "_", "\n"])).map("".join))
@example("@codebase@CODEBASE")
def test_no_tag_is_left_where_one_was_taken_away(text: str) -> None:
    assert not has_tag(strip_tag(text))
