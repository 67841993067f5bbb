"""Extraction: nothing in a file makes it fail, and its spans are those of the text."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import Clock

from codeqa import parsing
from codeqa.languages import languages
from codeqa.parsing import parse_file
from codeqa.types import ParsedFile
from tests.update_goldens import fixtures

KEYS = sorted(key for key, language in languages().items() if language.grammar)
SOURCES = [(path.name, path.read_bytes()) for path in fixtures()]


JUNK = [b"(", b"{{{", b'"', b"'''", b"*/", b"\n", b"\xc3", b"\0"]
WORDS = re.findall(
    r"\S+|\n\t?",
    "def class f ( ) { } [ ] : ; , . = => -> :: \" ' # // /* */ @ x é 1 import from function \n "
    "struct impl trait fn pub type interface enum new this self return \n\t",
)


def check(parsed: ParsedFile, data: bytes) -> None:
    """What holds for every file whatever it contains."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    lines = text.split("\n")
    for unit in parsed.units:
        assert 1 <= unit.start_line <= unit.end_line <= len(lines)
        if unit.kind not in ("document", "config"):
            assert unit.source_code == "\n".join(lines[unit.start_line - 1 : unit.end_line])
        assert unit.head_end_line == 0 or unit.start_line <= unit.head_end_line <= unit.end_line
    ids = {unit.id for unit in parsed.units}
    assert len(ids) == len(parsed.units)
    for edge in parsed.references:
        assert edge.unit_id in ids | {""}
        assert edge.target in ids | {""}
        assert bool(edge.target) == (edge.confidence > 0)
        assert 1 <= edge.line <= len(lines)
        assert 1 <= edge.column <= len(lines[edge.line - 1]) + 1


def mutated(data: bytes, seed: int) -> bytes:
    """The source with pieces cut out, doubled, swapped and overwritten."""
    rng = random.Random(seed)
    pieces = bytearray(data)
    for _ in range(rng.randrange(1, 12)):
        start = rng.randrange(len(pieces) + 1)
        end = min(len(pieces), start + rng.randrange(60))
        action = rng.randrange(4)
        if action == 0:
            del pieces[start:end]
        elif action == 1:
            pieces[start:start] = pieces[start:end]
        elif action == 2:
            pieces[start:end] = rng.choice(JUNK)
        else:
            other = rng.choice(SOURCES)[1]
            at = rng.randrange(len(other))
            pieces[start:end] = other[at : at + 80]
    return bytes(pieces)


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(100, 400), marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize(("name", "data"), SOURCES, ids=[name for name, _ in SOURCES])
def test_mutated_source_never_fails(name: str, data: bytes, seeds: range) -> None:
    for seed in seeds:
        broken = mutated(data, seed)
        check(parse_file(name, broken, "source"), broken)


words_of_code = st.lists(st.sampled_from(WORDS), max_size=80).map(lambda words: " ".join(words))


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=300) | words_of_code.map(str.encode), key=st.sampled_from(KEYS))
def test_any_bytes_and_any_words_of_code_are_read(data: bytes, key: str) -> None:
    name = "file" + languages()[key].extensions[0]
    check(parse_file(name, data, "source"), data)


class Ticking(Clock):
    """The time of a file is over at the parser's fortieth look at the clock."""

    def thread_time(self) -> float:
        self.advance(parsing.SECONDS_PER_FILE / 40)
        return self.now


@pytest.mark.parametrize("key", KEYS)
def test_very_deep_nesting_is_survived(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "time", Ticking())
    name = "file" + languages()[key].extensions[0]
    for opening in (b"(", b"{", b"((x)"):
        data = b"x = " + opening * 2_000 + b"\n"
        check(parse_file(name, data, "source"), data)


def test_a_file_that_holds_its_grammar_up_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "time", Ticking())
    data = b"type X = " + b"-|" * 8_000 + b"\n"
    parsed = parse_file("union.ts", data, "source")
    check(parsed, data)
    assert parsed.has_errors
    assert {unit.kind for unit in parsed.units} == {"chunk"}


def test_deep_nesting_is_read_and_functions_nested_a_thousand_deep_keep_their_owners() -> None:
    nested = b"(" * 50_000 + b")" * 50_000
    code = b"def f():\n    return g(" + nested + b")\n\n\ndef h():\n    f()\n"
    parsed = parse_file("deep.py", code)
    assert [unit.name for unit in parsed.units] == ["f", "h"]
    depth = 1000
    data = "".join("function f() {\n" for _ in range(depth)) + "}\n" * depth
    units = parse_file("deep.js", data.encode(), "source").units
    assert len([unit for unit in units if unit.kind == "function"]) == depth
    assert max(unit.qualified_name.count(".") for unit in units) == depth - 1


def test_broken_source_yields_what_parses_or_is_cut_into_chunks() -> None:
    data = b"def good(a):\n    return a\n\n\ndef broken(:\n    )))\n\n\n"
    data += b"def also(b):\n    return good(b)\n"
    parsed = parse_file("broken.py", data, "source")
    assert parsed.has_errors
    assert {"good", "also"} <= {unit.name for unit in parsed.units}
    assert any(edge.name == "good" and edge.target for edge in parsed.references)
    parsed = parse_file("broken.py", b"(\n" * (parsing.MAX_BROKEN_CHILDREN + 10), "source")
    assert parsed.has_errors
    assert {unit.kind for unit in parsed.units} == {"chunk"} and len(parsed.units) > 100


def test_bytes_that_are_not_utf8_are_replaced_and_counted_and_a_byte_order_mark_goes() -> None:
    data = b'\xef\xbb\xbfdef f():\n    return "caf\xe9 \xff"\n'
    parsed = parse_file("old.py", data, "source")
    assert parsed.replaced_bytes == parsed.units[0].source_code.count("\ufffd") == 2
    assert parsed.units[0].source_code.startswith("def")


def test_columns_count_characters_windows_line_ends_stay_and_line_feeds_alone_end_a_line() -> None:
    parsed = parse_file("a.py", 'def f(x): pass\n\nf("ééé", f(1))\n'.encode(), "source")
    assert [(e.line, e.column) for e in parsed.references] == [(3, 1), (3, 10)]
    data = b"# doc\r\ndef f():\r\n    return 1\r\n\r\n\r\ndef g():\r\n    f()\r\n"
    parsed = parse_file("a.py", data, "source")
    assert [(u.name, u.start_line, u.end_line) for u in parsed.units] == [("f", 1, 3), ("g", 6, 7)]
    assert parsed.units[0].doc_comment == "doc"
    assert "\r" not in parsed.units[0].signature
    data = "x = '\u2028\x0c'\n\n\ndef f():\n    return 1\n".encode()
    assert [u.start_line for u in parse_file("a.py", data, "source").units if u.name == "f"] == [4]


def test_ids_stay_when_other_code_moves() -> None:
    def ids(code: bytes) -> dict[str, str]:
        return {unit.name: unit.id for unit in parse_file("a.py", code).units if unit.is_method}

    before = ids(b"def f(): pass\n\n\ndef g(): pass\n")
    assert ids(b"import x\n\n\ndef g(): pass\n\n\ndef f(): pass\n") == before


def test_same_named_definitions_all_survive() -> None:
    source = b"".join(b"class %c:\n    def run(self): pass\n" % name for name in b"ABA")
    source += b"def run(): pass\n"
    files = [parse_file(path, source) for path in ("one.py", "two.py")]
    units = [unit for parsed in files for unit in parsed.units if unit.is_method]
    assert len({unit.id for unit in units}) == len(units) == 8
    assert [unit.qualified_name for unit in units[:4]] == ["A.run", "B.run", "A.run", "run"]


def test_the_role_and_language_of_a_file_reach_its_units_and_a_licence_header_is_none() -> None:
    units = parse_file("a.tsx", b"export const A = () => <p/>;\n", "test").units
    assert {(unit.role, unit.language) for unit in units} == {("test", "typescript")}
    data = b"# Copyright 2020 X. All rights reserved.\n# Licensed under Y.\n\ndef f():\n    pass\n"
    assert [unit.name for unit in parse_file("a.py", data, "source").units] == ["f"]


def test_long_top_level_code_is_cut_into_pieces_that_cover_it() -> None:
    lines = [f"setting_{n} = {n}" for n in range(180)]
    units = parse_file("settings.py", ("\n".join(lines) + "\n").encode(), "source").units
    assert units[0].kind == "module"
    assert all(unit.kind == "chunk" for unit in units[1:])
    assert [n for u in units for n in range(u.start_line, u.end_line + 1)] == list(range(1, 181))
    assert max(unit.end_line - unit.start_line for unit in units) < 50


def test_packed_code_on_one_long_line_is_not_repeated_for_each_definition() -> None:
    data = ";".join(f"function f{n}() {{ return g({n}) }}" for n in range(500)).encode()
    units = parse_file("packed.js", data, "source").units
    assert sum(len(unit.source_code) for unit in units) <= len(data)


def test_an_import_of_an_address_without_a_name_costs_no_file() -> None:
    code = b"const x = require('../') as typeof import('../')\nfunction f() { return x.y() }\n"
    for path in ("a.ts", "a.tsx"):
        parsed = parse_file(path, code, "source")
        check(parsed, code)
        assert "f" in {unit.name for unit in parsed.units}
        assert any(edge.kind == "import" for edge in parsed.references)


RUST_MACROS = """
cfg_rt! {
    pub fn spawn() { wake() }
    cfg_unstable! {
        impl Task {
            pub fn wake(&self) {}
        }
    }
}
"""


def test_items_inside_rust_macros_are_units_at_their_own_lines_and_columns() -> None:
    data = RUST_MACROS.encode()
    parsed = parse_file("a.rs", data)
    check(parsed, data)
    places = {(u.qualified_name, u.kind, u.start_line, u.end_line) for u in parsed.units}
    assert places >= {("spawn", "function", 3, 3), ("Task::wake", "method", 6, 6)}
    assert {("cfg_rt", 2, 1), ("wake", 3, 22), ("cfg_unstable", 4, 5), ("Task", 5, 14)} == {
        (edge.name, edge.line, edge.column) for edge in parsed.references
    }


NO_ITEMS = {
    "expression": "fn f() -> T {\n    quote! {\n        fn held() {}\n    }\n}\n",
    "statement": "fn f() {\n    select! {\n        fn held() {}\n    }\n}\n",
    "rule": "macro_rules! m {\n  () => {\n    n! {\n    fn held() {}\n    }\n  };\n}\n",
    "broken": "m! {\n    fn held() -> {}\n}\n",
    "unaligned": "m! {\n    fn held() {} }\n",
    "comment": "/*\nm! {\n    fn held() {}\n}\n*/\n",
    "string": 'const T: &str = "\nm! {\n    fn held() {}\n}\n";\n',
    "one that spoils the tree": "m! {\n    fn held() {}\n    and => words\n}\n",
}


def test_what_no_rust_macro_holds_as_an_item_is_no_definition() -> None:
    for kind, code in NO_ITEMS.items():
        data = f"{code}\n{RUST_MACROS}".encode()
        parsed = parse_file("a.rs", data)
        check(parsed, data)
        names = {unit.name for unit in parsed.units if unit.is_method}
        assert "held" not in names, kind
        assert names >= {"spawn", "wake"} or kind == "one that spoils the tree", kind


def test_many_rust_macros_are_read_in_bounded_time() -> None:
    assert len(parse_file("a.rs", b"m! {\nfn f(){}\n}\n" * 1_000).units) > 1_000
    parse_file("a.rs", b"m! {\nfn f(){}\n" * 2_500)
    parse_file("a.rs", b"m! { //\n" * 10_000)
