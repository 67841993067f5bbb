from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeqa.search.channels import filter_of, symbol_strength
from codeqa.search.query import parse_query
from codeqa.search.ranking import fuse
from codeqa.text.tokens import form_pattern, variants, written_forms
from codeqa.types import Unit


def test_question_words_are_left_out_and_identifiers_split() -> None:
    query = parse_query("How does the path_router store routes?")
    assert query.words == ("path_router", "store", "routes")
    assert query.tokens == ("path", "router", "pathrouter", "store", "routes")
    assert not query.symbol_like
    assert parse_query("what is it").words == ("what", "is", "it"), "else nothing is searched for"
    assert parse_query('where is "no such file" raised').phrases == ("no such file",)


def test_filters_are_taken_out_of_the_text_and_what_only_looks_like_one_stays() -> None:
    query = parse_query('routes lang:Python kind:method path:src/ path:"a b/"')
    filters = query.filters
    assert query.text == "routes" and query.filtered
    assert (filters.languages, filters.kinds) == (("python",), ("method",))
    assert filters.paths == ("src/", "a b/")
    filters = parse_query("x -lang:python -lang:go -kind:class -path:a -path:b").filters
    assert filters.excluded_languages == ("python", "go")
    assert (filters.excluded_kinds, filters.excluded_paths) == (("class",), ("a", "b"))
    text = "what kind:of thing, http://x.y, x-lang:go lang: see:this"
    assert parse_query(text).text == text and not parse_query(text).filtered


def test_a_language_is_known_by_other_names() -> None:
    for written, language in {
        "lang:Python": "python",
        "language:.rs": "rust",
        "lang:tsx": "typescript",
        "lang:C++": "cpp",
        "lang:golang": "go",
        "lang:pythn": "pythn",
    }.items():
        assert parse_query(f"x {written}").filters.languages == (language,)


def test_a_path_filter_reaches_folders_at_any_depth() -> None:
    where = filter_of(parse_query("x path:json -path:tests"))
    assert where is not None
    assert where.paths == ("json", "**/json/**", "**/json")
    assert where.excluded_paths == ("**/tests/**", "**/tests")
    assert filter_of(parse_query("x")) is None


def test_names_written_as_code() -> None:
    for text, names, qualified in (
        ("how does Flask.route work", ("route",), ("Flask.route",)),
        ("Json::from_bytes", ("from_bytes",), ("Json.from_bytes",)),
        ("where is `dispatch` defined", ("dispatch",), ()),
        ("who calls render_template()", ("render_template",), ()),
        ("the RouterGroup struct", ("RouterGroup",), ()),
        ("what is in app.py", (), ()),
        ("is e.g. this", (), ()),
    ):
        query = parse_query(text)
        assert (query.names, query.qualified) == (names, qualified), text


def test_files_and_folders_that_are_named() -> None:
    for text, files in {
        "look at src/flask/app.py and CHANGES.rst": ("src/flask/app.py", "CHANGES.rst"),
        "in src/flask/json/": ("src/flask/json/",),
        "what is Flask.route in version 3.1": (),
    }.items():
        assert parse_query(text).files == files


def test_a_name_is_told_from_a_sentence() -> None:
    for text in ("Engine", "What is the Router?", "Flask.route", "get_user()"):
        assert parse_query(text).symbol_like
    for text in ("how are routes registered", "how does get_user check passwords"):
        assert not parse_query(text).symbol_like


def test_questions_about_the_whole_repository() -> None:
    for text in ("what is this project?", "how is the code organised?", "where do I start?",
                 "how is this codebase structured", "overview of the whole code"):  # fmt: skip
        assert parse_query(text).overview, text
    for text in ("overview of the architecture of sessions", "what is the Router?",
                 "how is the session structured", "what does the code in sessions do"):  # fmt: skip
        assert not parse_query(text).overview, text


def test_roles_that_the_question_asks_about() -> None:
    assert parse_query("which tests cover sessions").roles == {"test"}
    roles = parse_query("what does the documentation say, with examples").roles
    assert roles == {"document", "example"}
    assert parse_query("how does it attest").roles == frozenset()


def test_neighbouring_words_are_joined_within_a_phrase() -> None:
    joined = parse_query("the path router of a method table").joined
    assert "pathrouter" in joined
    assert "methodtable" in joined
    assert "routermethod" not in joined


def test_text_holds_a_word_in_any_of_its_forms() -> None:
    forms = "routes route, mapped map, cookies cookie, queries query, classes class, parse parses"
    for word, form in (pair.split() for pair in forms.split(", ")):
        assert form in variants(word) and word not in variants(word)
    for word, text, holds in (
        ("routes", "self.add_route(rule)", True),
        ("path_router", "class pathrouter:", True),
        ("path_router", "# the path router of", True),
        ("path_router", "the router of a path", False),
        ("a.b", "axb", False),
        ("_", "anything", False),
    ):
        assert (form_pattern(word).search(text) is not None) is holds, (word, text)
        assert any(form in text for form in written_forms(word)) is holds, (word, text)


SCRIPTS = "aé_1ßжщ路由を開くエは세션 .@/()ไทย"


@given(st.text(max_size=300) | st.text(alphabet=SCRIPTS, max_size=60))
def test_any_text_is_a_question(text: str) -> None:
    query = parse_query(text)
    assert len(query.words) <= 48 and all(word.strip() for word in query.words)
    assert all(token == token.lower() for token in query.tokens if token.isascii())
    assert query.words or not any(map(str.isalnum, text)) or {*text} - {*SCRIPTS}


def test_channels_are_added_as_z_scores_and_what_one_lacks_counts_as_worse_than_its_worst() -> None:
    assert fuse({"text": {"a": 10.0, "b": 5.0}, "vector": {}}) == {"a": 1.0, "b": 0.5}
    fused = fuse({"text": {"a": 30.0, "b": 20.0, "c": 10.0}, "vector": {"b": 0.9, "d": 0.1}})
    assert max(fused, key=lambda key: fused[key]) == "b"
    assert fused["b"] == 1.0
    assert fused["a"] > fused["c"] > 0.0
    assert fused["d"] > 0.0


def test_a_name_as_it_is_written_counts_more_than_its_owner_or_other_letters() -> None:
    def strength(question: str, name: str) -> float:
        unit = Unit("a.py", "python", "class", name.rpartition(".")[2], name, "", 1, 1)
        named = frozenset({"queryset", "bulkcreate", "newapi"})
        return symbol_strength(unit, parse_query(question), named)

    question = "QuerySet.bulk_create"  # the owner says where
    assert strength(question, "QuerySet.bulk_create") > strength(question, "QuerySet")
    question = "What calls NewAPI?"
    assert strength(question, "NewAPI") > strength(question, "newAPI")
