"""Callers that call a definition by another name than its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeqa.code.names import same_named
from codeqa.code.usages import usages
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
    unit = next(unit for unit in units if unit.qualified_name == name)
    sites = [site for site in usages(tables, unit) if site.reference.kind == "call"]
    sure = [site.reference.unit_id for site in sites if site.confidence > 0.6]
    assert {around.name for around in tables.by_ids(sure)} == callers
