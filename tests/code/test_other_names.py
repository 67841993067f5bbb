"""Callers that call a definition by another name than its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeqa.code.calls import callees, callers
from codeqa.code.names import same_named
from codeqa.code.usages import usages
from codeqa.parsing import parse_file
from tests.kit.indexed import indexed

COUNT = "export default function count() { return 1; }\n"
CASES: dict[str, tuple[dict[str, str], str, set[str]]] = {
    "a default import": (
        {"count.ts": COUNT, "use.ts": "import n from './count';\nfunction f() { return n(); }\n"},
        "count", {"f"},
    ),
    "a default that is exported by name": (
        {"count.ts": COUNT, "lib/index.ts": "export { default as sum } from '../count';\n",
         "use.ts": "import { sum } from './lib';\nfunction f() { return sum(); }\n"},
        "count", {"f"},
    ),
    "one of two defaults": (
        {"a/count.ts": COUNT, "b/other.ts": COUNT.replace("count", "other"),
         "use.ts": "import x from './a/count';\nimport y from './b/other';\n"
         "function f() { x(); }\nfunction g() { y(); }\n"},
        "count", {"f"},
    ),
    "re-exports one after another": (
        {"x.ts": "export function one() {}\n", "y.ts": "export { one as two } from './x';\n",
         "z.ts": "export * from './y';\n",
         "use.ts": "import { two as three } from './z';\nfunction f() { three(); }\n"},
        "one", {"f"},
    ),
    "a namespace that is exported": (
        {"x.ts": "export function one() {}\n", "i.ts": "export * as g from './x';\n",
         "use.ts": "import { g } from './i';\nfunction f() { g.one(); }\n"},
        "one", {"f"},
    ),
    "require": (
        {"load.js": "module.exports = load;\nfunction load() {}\n",
         "use.js": "const read = require('./load');\nfunction f() { read(); }\n"},
        "load", {"f"},
    ),
    "keys of module.exports": (
        {"load.js": "function load() {}\nmodule.exports = { read: load };\n",
         "use.js": "const { read } = require('./load');\nconst all = require('./load');\n"
         "function f() { read(); }\nfunction g() { all.read(); }\n"},
        "load", {"f", "g"},
    ),
    "a package that hands on what it requires": (
        {"lib/app.js": "exports = module.exports = create;\nfunction create() {}\n",
         "index.js": "module.exports = require('./lib/app');\n",
         "test/t.js": "var app = require('../');\nfunction f() { app(); }\n"},
        "create", {"f"},
    ),
    "a method of a class under another name": (
        {"ring.ts": "export default class Ring { spin() {} }\n",
         "ball.ts": "export class Ball { spin() {} }\n",
         "use.ts": "import Wheel from './ring';\nfunction f() { new Wheel().spin(); }\n"
         "function g(w: Wheel) { w.spin(); }\n"},
        "Ring.spin", {"f", "g"},
    ),
    "packages of Python": (
        {"pkg/__init__.py": "from .sub import b as c\n",
         "pkg/sub/__init__.py": "from .impl import a as b\n",
         "pkg/sub/impl.py": "def a():\n    pass\n",
         "use.py": "from pkg import c as d\nimport pkg\n\n\ndef f():\n    d()\n"
         "\n\ndef g():\n    pkg.c()\n"},
        "a", {"f", "g"},
    ),
    **{f"by {use}": ({"count.ts": COUNT, "use.ts": use}, "count", {"f"}) for use in (
        "import * as c from './count';\nexport { c };\nfunction f() { c.count(); }\n",
        "async function f() { const { default: n } = await import('./count'); n(); }\n",
        "async function f() { const n = (await import('./count')).default; n(); }\n",
        "function f() { const n = require('./count').default; n(); }\n",
        "import n = require('./count');\nfunction f() { n(); }\n",
        "import { default as n } from './count';\nfunction f() { n(); }\n",
        "const a_1 = __importDefault(require('./count'));\nfunction f() { (0, a_1.default)(); }\n",
        "let n;\nif (a) n = require('./count');\nfunction f() { n(); }\n",
    )},
    **{f"by {address}": (
        {"src/lib/util/index.ts": COUNT,
         "src/use.ts": f"import n from '{address}';\nfunction f() {{ n(); }}\n"},
        "count", {"f"}) for address in (
        "@/lib/util", "~/lib/util", "@lib/util", "$lib/util", "#lib/util", "@util", "lib/util",
    )},
    "what require returns": (
        {"load.js": "module.exports = function load() {}\n",
         "use.js": "function f() { require('./load')(); }\n"},
        "load", {"f"},
    ),
    "a value that is exported by another name": (
        {"a.ts": "export function one() {}\n",
         "b.ts": "import { one } from './a';\nexport const two = one;\n",
         "use.ts": "import { two } from './b';\nfunction f() { two(); }\n"},
        "one", {"f"},
    ),
    "an heir of a default export": (
        {"base.js": "export default class Base { go() {} }\n", "use.js": "import B from './base';\n"
         "class C extends B { f() { this.go(); } g() { super.go(); } }\n"},
        "Base.go", {"f", "g"},
    ),
    "an object that a module exports": (
        {"db.py": "class Db:\n    def load(self): ...\nclass Cache:\n    def load(self): ...\n",
         "ext.py": "from db import Db, Cache\ndb = Db()\ncache = Cache()\n",
         "use.py": "from ext import db as d, cache\nimport ext\ndef f(): d.load()\n"
         "def g(): cache.load()\ndef h(): ext.db.load()\n"},
        "Db.load", {"f", "h"},
    ),
    "an object that stands for a file": (
        {"store.js": "class Store { get() {} }\nmodule.exports = new Store();\n",
         "bag.js": "class Bag { get() {} }\nexport default new Bag();\n",
         "use.js": "const s = require('./store');\nfunction f() { s.get(); }\n"
         "import b from './bag';\nfunction g() { b.get(); }\n"},
        "Store.get", {"f"},
    ),
    "modules of a package": (
        {"pkg/__init__.py": "\n", "pkg/a.py": "def one(): ...\n", "other/a.py": "def one(): ...\n",
         "pkg/u.py": "from . import a\nfrom . import a as b\nfrom .. import pkg\n"
         "def f(): a.one()\ndef g(): b.one()\ndef h(): pkg.a.one()\n"},
        "one", {"f", "g", "h"},
    ),
    "a name that a package gives": (
        {"pkg/__init__.py": "from pkg.impl import a\nold = a\n", "pkg/impl.py": "def a(): ...\n",
         "use.py": "import pkg as p\nfrom pkg import old\ndef f(): p.old()\ndef g(): old()\n"},
        "a", {"f", "g"},
    ),
    "a class made where it is used": (
        {"a.py": "class Ring:\n    def spin(self): ...\n",
         "b.py": "class Ball:\n    def spin(self): ...\n",
         "use.py": "from a import Ring as R\ndef f(): R().spin()\ndef g(): x.spin()\n"},
        "Ring.spin", {"f"},
    ),
    "a generic type of Go": (
        {"a.go": "package a\ntype L[T any] struct{}\nfunc (l *L[T]) Push() {}\n"
         "type B struct{}\nfunc (b *B) Push() {}\nfunc f() { l := &L[int]{}; l.Push() }\n"
         "func g(l *L[int]) { l.Push() }\n"},
        "L.Push", {"f", "g"},
    ),
    "a Vue file": (
        {"count.ts": COUNT, "App.vue": "<template><b @click=\"go\">{{ n() }}</b></template>\n"
         "<script setup>\nimport n from './count'\nfunction go() { n() }\n</script>\n"},
        "count", {"App", "go"},
    ),
    "a notebook": (
        {"m.py": "def alpha():\n    pass\n", "n.ipynb": json.dumps(
            {"cells": [{"cell_type": "code", "source": ["%time\n", "from m import alpha\n",
                        "def f():\n", "    alpha()"], "outputs": []}]}, indent=1)},
        "alpha", {"f"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "name", "callers"), CASES.values(), ids=CASES)
def test_callers_by_another_name_are_found(
    tmp_path: Path, files: dict[str, str], name: str, callers: set[str]
) -> None:
    tables = indexed(tmp_path, files)
    units = same_named(tables, name.rpartition(".")[2])
    unit = max((u for u in units if u.qualified_name == name), key=lambda u: u.path)
    sites = [site for site in usages(tables, unit) if site.reference.kind == "call"]
    sure = [site.reference.unit_id for site in sites if site.confidence > 0.6]
    users = tables.by_ids(sure)
    assert {around.name for around in users} == callers
    for around in (user for user in users if user.is_method):
        assert unit.id in {call.called.id for call in callees(tables, around) if call.sure}


SYMBOLS = (
    "before_action %s, only: [:x]", "after_save %s", "validate %s", "rescue_from E, with: %s",
    "go :x, if: [%s]", "a.map(&%s)", "send(%s, 1)", "a.public_send(%s)", "helper_method %s",
    "private %s", "alias_method :two, %s", "delegate %s, to: :a", "set_callback :a, %s",
)  # fmt: skip


@pytest.mark.parametrize("line", SYMBOLS)
def test_a_symbol_that_names_a_method_is_a_use_of_it(line: str) -> None:
    edges = parse_file("a.rb", f"class A\n  {line.replace('%s', ':one')}\nend\n".encode())
    places = [(edge.line, edge.column) for edge in edges.references if edge.name == "one"]
    assert places[:1] == [(2, line.index("%s") + 4)]


def test_the_markup_of_a_component_uses_what_its_object_has() -> None:
    code = """<template><b @click="go(1)">{{ total }}</b></template>
<script>
export default { computed: { total() {} }, methods: { go() {} } }
</script>
"""
    parsed = parse_file("A.vue", code.encode())
    names = {unit.id: unit.name for unit in parsed.units}
    used = {names.get(edge.target) for edge in parsed.references if edge.line == 1}
    assert used == {"go", "total"}


def test_each_name_of_an_assignment_of_several_is_a_constant() -> None:
    code = "AA, BB = 1, 2\nCC = DD = 3\n(EE, FF) = f()\nclass G:\n    HH, II = 1, 2\n"
    units = parse_file("a.py", code.encode()).units
    names = [unit.name for unit in units if unit.kind == "constant"]
    assert names == ["AA", "BB", "CC", "DD", "EE", "FF", "HH", "II"]


def test_the_tests_of_a_crate_import_it_by_its_name(tmp_path: Path) -> None:
    tables = indexed(tmp_path, {
        "Cargo.toml": '[package]\nedition = "2021"\nname = "my-shop"\n',
        "src/lib.rs": "pub mod cart;\npub fn total() {}\n", "src/cart.rs": "pub fn add() {}\n",
        "other/src/cart.rs": "pub fn total() {}\npub fn add() {}\n",
        "tests/it.rs": "use my_shop::total;\nuse my_shop::cart;\n"
        "fn f() { total(); }\nfn g() { cart::add(); }\n",
    })  # fmt: skip
    units = [*same_named(tables, "total"), *same_named(tables, "add")]
    names = {unit.path: [c.caller.name for c in callers(tables, unit)[0]] for unit in units}
    assert names == {"other/src/cart.rs": [], "src/lib.rs": ["f"], "src/cart.rs": ["g"]}


VALUES = {
    "use.py": (
        "y if z else %s", "z or %s", "{%s}", "lambda: %s", "{%s: 1}", "f'{%s}'", "(1, a.%s)",
        "[a.%s]", "%s == y", "%s + 1", "[%s for _ in y]",
    ),
    "use.ts": (
        "b ? %s : c", "b && %s", "b ?? %s", "(x = %s) => x", "() => %s", "`${%s}`", "x[%s]",
        "x === %s", "{ const { y = %s } = x }", "class A { y = %s }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", VALUES)
def test_a_function_or_class_that_is_merely_named_is_used(path: str) -> None:
    heads = {
        "use.py": "import a\nfrom a import one, Kind\n",
        "use.ts": "import { one, Kind } from './a'\n",
    }
    values = VALUES[path] + ("x == Kind.A",)
    lines = [value.replace("%s", "one") for value in values]
    edges = parse_file(path, (heads[path] + ";\n".join(lines) + "\n").encode()).references
    used = {edge.line for edge in edges if edge.name in ("one", "Kind") and edge.kind == "use"}
    first = heads[path].count("\n") + 1
    assert used == set(range(first, first + len(lines)))
