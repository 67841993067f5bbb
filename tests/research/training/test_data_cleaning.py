"""The rules by which a comment, a name or a heading becomes a query."""

from __future__ import annotations

from research.training import cleaning

SENTENCES = [
        ("Opens the file. Closes it later.", "Opens the file.", "Closes it later."),
        ("Opens the file.\n\n@param name its name", "Opens the file.", "@param name its name"),
        ("Opens the file\n\nArgs:\n  name: its name", "Opens the file", "Args:\n  name: its name"),
        ("Opens a file, e.g. Main.java. Then reads.", "Opens a file, e.g. Main.java.",
         "Then reads."),
        ("@param name its name", "", "@param name its name"),
        ("", "", ""),
]  # fmt: skip


def test_where_the_first_sentence_ends() -> None:
    for comment, sentence, rest in SENTENCES:
        assert cleaning.first_sentence(comment) == (sentence, rest)


MARKUP = [
    (
        "Gets {@code a b} of {@link Map#get(Object) its key}, {@link A#put(B, C)}, {@link #d}",
        "Gets a b of its key, put, d",
    ),
    ("Wraps :class:`~flask.Flask` objects", "Wraps flask.Flask objects"),
    ("See [the guide](https://x.org/a) for it", "See the guide for it"),
    ("<p>Opens <code>the</code> file</p>", "Opens the file"),
    ("Calls `read()` and **waits**", "Calls read and waits"),
    ("The server’s “name”", 'The server\'s "name"'),
]


def test_markup_of_comments_becomes_prose() -> None:
    for markup, prose in MARKUP:
        assert cleaning.plain(markup) == prose


REFUSED = [
    ("word " * 61, "wrong_length"),
    ("Öffnet die benannte Datei", "not_ascii"),
    ("Adds 1 2 3 4 5 6 7 8 9 10 11 12 to them", "few_letters"),
    ("if (x == y) return the value", "is_code"),
    ("Licensed under the terms below", "is_notice"),
    ("Use the other method, this is deprecated", "is_deprecation"),
    ("See the other method for details", "says_nothing"),
    ("Opens the named file and reads it", ""),
    ("Returns whether the client's connection is (still) open", ""),
]


def test_each_kind_of_useless_sentence_is_refused_by_its_own_rule() -> None:
    for sentence, rule in REFUSED:
        assert cleaning.refusal(sentence) == rule


def test_a_doc_comment_gives_a_query_or_is_refused() -> None:
    comment = "Handler.run starts the `worker` threads.\n\nThey stop with it."
    query = cleaning.query_of(comment, "Handler.run", "run")
    assert query == ("starts the worker threads", "They stop with it.", "")
    query = cleaning.query_of("Public: Opens the door.", "Handler.run", "run")
    assert query == ("Opens the door", "", "")
    query = cleaning.query_of("See above.\n\nMore.", "Handler.run", "run")
    assert query == ("", "See above.\n\nMore.", "wrong_length")


QUERIES = [
    (cleaning.name_query, "parseHttpHeader", "parse http header"),
    (cleaning.name_query, "parseHeader", ""),
    (cleaning.test_query, "test_header_without_value_is_kept", "header without value is kept"),
    (cleaning.test_query, "emptyHeaderIsKeptTest", "empty header is kept"),
    (cleaning.test_query, "testHeader", ""),
    (cleaning.heading_query, "2. How requests are routed", "How requests are routed"),
    (cleaning.heading_query, "Reading `config` files first", "Reading config files first"),
    (cleaning.heading_query, "Install", ""),
]


def test_names_that_say_enough_are_queries() -> None:
    for rule, text, query in QUERIES:
        assert rule(text) == query
