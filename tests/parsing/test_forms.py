"""Ways to write a definition that a grammar misreads or that have several forms."""

from __future__ import annotations

import pytest

from codeqa.languages import detect
from codeqa.parsing import extract, grammar, readable

ANNOTATIONS = ("@A\n", "@A(1) ", "@A(B::class)\n", '@a.b.C("x", y = [1])\n@D\n', "@[A B]\n")
SOFT_WORDS = ("open", "set", "get", "inner", "data", "value", "suspend", "final", "actual", "by")
USES = ("%s(1)", "%s.go()", "%s += 1", "val x = !%s", "use(%s)", "foo { %s(it) }", "val x = %s")

KOTLIN = [
    *(f"{annotation}{word} class X" for annotation in ANNOTATIONS for word in ("data", "private")),
    *(f"{annotation}interface X {{\n  fun go()\n}}" for annotation in ANNOTATIONS),
    *(f"{annotation}annotation class X" for annotation in ANNOTATIONS),
    *(f"fun X() {{\n  {use % word}\n}}" for word in SOFT_WORDS for use in USES),
    "interface X { fun go(): Int }",
    "enum class X(val n: Int) { A(1), B(2); fun go() = n }",
    "class X { companion object { const val Y = 1 } fun go() {} }",
    'fun X() = "${ go() }"',
    "fun X(a: A) = when (a) {\n  is B if a.n > 1 -> 1\n  else if go() -> 2\n  else -> 3\n}",
    "context(log: Log)\nfun X() {}",
    "context(\n  a: A,\n)\nprivate fun X() {}",
    'fun X() = $$"""{ "$id": "$${name}", "${" }"""',
    'fun X() = $$"a${b"',
    'fun X() = """a""""',
    'class X {\n  val a\n    @JvmName("b")\n    get() = 1\n}',
    '@file:A(\n  "b",\n  "c(",\n)\n\nfun X() {}',
    "class X\n  @A(1)\n  internal constructor(val a: B) : C {\n  fun go() = 1\n}",
    "class X<T>(@all:A(b = B.C) val a: T)",
    "annotation class X(\n  val a: Array<B> = [],\n  vararg val b: C = []\n)",
    "class X {\n  var a = 1; private set\n  val b get() = 1\n}",
    "fun X() {\n  go()\n  in1.go()\n  is2 = 1\n  as3()\n  else4()\n}",
    "fun X(a: context(b.c.D<E>) () -> A, b: context(A, B) Int.(A) -> A) = 1",
    "fun X(): () -> Unit {\n  !open; return { /* nothing */ }\n}",
    "fun X() = a?.let { (b)(it) }",
    "fun X() {\n  val a = 1\n  get {\n    b()\n  }\n}",
    "fun X() {\n  val in1 = a()\n  in1.read()\n  as_list()\n  set2.add(1)\n}",
]
JAVASCRIPT = [
    ("module.exports = function load() {}", "load"),
    ("exports = module.exports = function load() {}", "load"),
    ("module.exports = wrap(async function load() {})", "load"),
    ("module.exports = class Ring { spin() {} }", "Ring Ring.spin"),
    ("exports['odd-name'] = () => 1", "odd-name"),
    ("const load = function read() {}", "load"),
    ("const Row = memo(function Row() {})", "Row"),
    ("export default memo(forwardRef(function Row() {}))", "Row"),
    ("app.get('/', auth, async function list() {})", "list"),
    ("(function main() {})()", "main"),
    ("S.prototype = { area: function () {}, side() {} }", "S.area S.side"),
    ("Object.assign(a.S.prototype, { grow() {} })", "S.grow"),
    ("S.prototype['grow'] = function () {}", "S.grow"),
    ("const api = Object.freeze({ get() {} })", "api.get"),
]
TYPESCRIPT = [
    ("const api = { get() {} } as const", "api.get"),
    ("const api = { get() {} } as const satisfies Api", "api.get"),
    ("function mix() { return class Mixed extends B { go() {} } }", "mix mix.Mixed mix.Mixed.go"),
]
HEREDOCS = [
    "x = <<~A\n  #{\n    <<~B\n      b\n    B\n  }\nA\n",
    "wrap(<<~A)\n  #{items.map { |i| <<~B }.join}\n    <li>\n  B\nA\n",
    'x = <<-"A".squish\n  #{c ? <<-B : <<-C}\n  b\n  B\n  c\n  C\n  A\n',
]


def names(language: str, text: str) -> set[str]:
    units = extract("file", text.encode(), language).units
    return {unit.qualified_name for unit in units if unit.kind not in ("module", "chunk")}


@pytest.mark.parametrize("text", KOTLIN)
def test_kotlin_reads_what_it_says_and_all_that_follows(text: str) -> None:
    assert {"X", "after", "Last.go"} <= names(
        "kotlin", f"{text}\nfun after() {{}}\nclass Last {{\n  fun go() {{}}\n}}\n"
    )


@pytest.mark.parametrize("text", ["@A(1)\n@B\n", "@A(1) private "])
def test_annotations_of_a_file_belong_to_what_they_stand_above(text: str) -> None:
    parsed = extract("file", f"/** Doc. */\n{text}class X\n".encode(), "kotlin")
    assert (parsed.units[0].name, parsed.units[0].start_line) == ("X", 1)
    assert "A" in {edge.name for edge in parsed.references}


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        *(("javascript", *case) for case in JAVASCRIPT),
        *(("typescript", *case) for case in JAVASCRIPT if "class" not in case[0]),
        *(("typescript", *case) for case in TYPESCRIPT),
    ],
)
def test_a_script_names_each_definition_once(language: str, text: str, expected: str) -> None:
    assert names(language, text) == set(expected.split())


@pytest.mark.parametrize("heredoc", HEREDOCS)
def test_a_heredoc_in_a_heredoc_ends_where_it_ends(heredoc: str) -> None:
    body = heredoc.replace("\n", "\n    ")
    text = f"class Page\n  def one\n    {body}\n  end\n  def two; end\nend\n"
    assert {"Page", "Page::one", "Page::two"} <= names("ruby", text)


def test_of_many_heredocs_on_a_line_only_the_first_is_looked_into() -> None:
    spec = grammar("ruby")
    text = b"x = <<A, <<B\n#{<<C}\nC\nA\n<<D\nB\n"
    assert readable(spec.repairs, text, []).split(b"\n")[0] == b"x = ___, <<B"


def test_the_value_of_an_attribute_does_not_end_in_another_one() -> None:
    for attribute in (' @a="', ' :a="', ' v-a="'):
        text = f"<template><div{attribute * 5}></div></template>\n<script>go()</script>\n"
        parsed = extract("a.vue", text.encode(), "vue")
        assert [edge.name for edge in parsed.references] == ["go"] and not parsed.has_errors


def test_a_local_variable_of_lua_may_have_an_attribute() -> None:
    text = "local Stack <const> = {}\nlocal go <const> = function() end\n"
    assert names("lua", text) == {"Stack", "go"}


@pytest.mark.parametrize(
    ("path", "data", "language"),
    [
        ("Robot.m", b'#import "Robot.h"\n', "objectivec"),
        ("Robot.m", b"// Robot\n@implementation Robot\n@end\n", "objectivec"),
        ("robot.m", b"% walk\nfunction walk(n)\nend\n", "matlab"),
        ("Robot.h", b"@interface Robot : NSObject\n@end\n", "objectivec"),
        ("tool.es6", b"", "javascript"),
        ("Dangerfile", b"", "ruby"),
    ],
)
def test_a_file_is_of_the_language_that_its_ending_and_text_say(
    path: str, data: bytes, language: str
) -> None:
    assert getattr(detect(path, data), "name", "") == language


def test_context_parameters_belong_to_the_function_below() -> None:
    text = "class A {\n  context(\n    log: Log,\n  )\n  fun save() {\n  }\n}\n"
    (save,) = (
        unit for unit in extract("a.kt", text.encode(), "kotlin").units if unit.name == "save"
    )
    assert (save.start_line, save.end_line) == (2, 6)


@pytest.mark.parametrize(
    ("ending", "markup"),
    [
        ("vue", '<b @click="() => { go() }" />'),
        ("vue", '<b :class="[go() ? a : { b: c }]" />'),
        ("svelte", "{#if go()}<b/>{:else if go()}{/if}"),
        ("svelte", "{#each go() as x (x.id)}<b/>{/each}"),
        ("svelte", "{@html go()}<b {...go()} onclick={() => { go(); }} />"),
        ("svelte", "{#await go() then y}{y}{/await}"),
        ("astro", "\r\n---\r\nconst x = go();\r\n---\r\n<p>{x}</p>"),
    ],
)
def test_expressions_of_markup_are_read_without_errors(ending: str, markup: str) -> None:
    parsed = extract(f"a.{ending}", f"{markup}\n".encode(), ending)
    calls = [edge.name for edge in parsed.references if edge.kind == "call"]
    assert calls == ["go"] * markup.count("go()")
    assert not parsed.has_errors
