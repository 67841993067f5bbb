"""Which definition a place means: import resolvers, and usages over a real index."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeqa.code.calls import callees
from codeqa.code.evidence import UsageSite
from codeqa.code.imports import import_evidence
from codeqa.code.tools.search import definitions
from codeqa.code.usages import usages
from codeqa.store import Tables
from codeqa.types import Unit
from tests.kit.indexed import indexed

PATHS = [
    "src/shop/__init__.py", "src/shop/cart.py", "src/shop/db/__init__.py", "src/shop/db/sql.py",
    "tests/test_cart.py", "setup.py",
    "web/app.ts", "web/lib/index.ts", "web/lib/http.tsx", "web/util.js", "web/api.d.ts", "index.ts",
    "core/src/lib.rs", "core/src/store/mod.rs", "core/src/store/disk.rs", "core/src/shape.rs",
    "core-macros/src/lib.rs", "core/tests/it.rs",
    "main.go", "render/json.go", "render/xml.go", "internal/fs/fs.go", "http/own.go",
    "java/com/acme/store/Client.java", "java/com/acme/store/Error.java",
    "java/com/acme/Main.java",
]  # fmt: skip


IMPORTS = [
    ("python", "tests/test_cart.py", "shop.cart", ["src/shop/cart.py"]),
    ("python", "tests/test_cart.py", "shop.Cart", []),
    ("python", "src/shop/cart.py", ".db.sql", ["src/shop/db/sql.py"]),
    ("python", "src/shop/db/sql.py", "..cart", ["src/shop/cart.py"]),
    ("python", "src/shop/db/sql.py", ".", ["src/shop/db/__init__.py"]),
    ("python", "src/shop/cart.py", "os.path", []),
    ("typescript", "web/app.ts", "./lib", ["web/lib/index.ts"]),
    ("typescript", "web/lib/http.tsx", "../util.js", ["web/util.js"]),
    ("typescript", "web/app.ts", "./lib/http.js", ["web/lib/http.tsx"]),
    ("typescript", "web/app.ts", "./api", ["web/api.d.ts"]),
    ("typescript", "web/app.ts", "@/lib/http", ["web/lib/http.tsx"]),
    ("javascript", "web/util.js", "../../outside", []),
    ("rust", "core/src/lib.rs", "crate::store", ["core/src/store/mod.rs"]),
    ("rust", "core/src/shape.rs", "crate::store::disk::Disk", []),
    ("rust", "core/src/store/disk.rs", "super",
     ["core/src/store/disk.rs", "core/src/store/mod.rs"]),
    ("rust", "core/src/store/mod.rs", "self::disk", ["core/src/store/disk.rs"]),
    ("rust", "core/src/lib.rs", "core_macros", ["core-macros/src/lib.rs"]),
    ("go", "main.go", "example.com/x/internal/fs/v2", ["internal/fs/fs.go"]),
    ("go", "main.go", "net/http", []),
    ("java", "java/com/acme/Main.java", "com.acme.store.Client",
     ["java/com/acme/store/Client.java", "java/com/acme/store/Error.java"]),
    ("ruby", "a.rb", "main", []),
]  # fmt: skip


def test_an_import_leads_to_its_files() -> None:
    for language, importer, module, files in IMPORTS:
        paths = [path for path in PATHS if import_evidence(language, importer, module, path)]
        assert sorted(paths) == files, (importer, module)


def test_go_knows_its_module_path_and_a_python_word_is_sure_on_a_likely_search_path() -> None:
    assert import_evidence("go", "cmd/x.go", "example.com/app", "app.go", "example.com/app") == 0.9
    assert import_evidence("go", "cmd/x.go", "other.org/b", "b/b.go", "example.com/app") > 0
    assert import_evidence("go", "x.go", "example.com/app/a", "b/a/a.go", "example.com/app") == 0
    assert import_evidence("python", "tests/t.py", "utils", "src/utils.py") == 0.9
    assert import_evidence("python", "tools/a.py", "utils", "tools/utils.py") == 0.9
    assert import_evidence("python", "tests/t.py", "utils", "deep/down/utils.py") == 0.7


FILES = {
    # Python
    "src/shop/__init__.py": "from .cart import Cart, total as total\nfrom .cart import open_cart\n",
    "src/shop/cart.py": (
        "class Cart:\n    def __init__(self, owner):\n        self.items = []\n\n"
        "    def add(self, item):\n        self.check(item)\n\n"
        "    def check(self, item):\n        pass\n\n\n"
        "def total(cart):\n    return sum(cart.items)\n\n\n"
        "def open_cart():\n    cart = Cart('x')\n    cart.add(1)\n    return total(cart)\n"
    ),
    "src/shop/pages.py": (
        "from shop import Cart, total\nimport shop.cart\nfrom other import open_cart\n\n\n"
        "def page():\n    cart = Cart('me')\n    cart.add(2)\n    print(total(cart))\n"
        "    shop.cart.open_cart()\n    open_cart()\n\n\n"
        "class Big(Cart):\n    def grow(self):\n        self.add(3)\n"
    ),
    "src/shop/loose.py": "def run(cart, thing):\n    cart.add(1)\n    thing.add(2)\n    add(3)\n",
    "src/shop/till.py": (
        "from shop.cart import Cart\nimport shop.cart as cart\n\n\n"
        "class Till(Cart):\n    def check(self, item):\n        super().check(item)\n\n"
        "    def count(self):\n        self.check(1)\n        cart.check(2)\n\n\n"
        "def ring():\n    till = Till('me')\n    till.check(3)\n"
        "    def bell():\n        pass\n    bell()\n"
    ),
    "src/shop/bell.py": "from shop.till import bell\n\nbell()\n",
    "src/shop/sets.py": "class Tags:\n    def add(self, tag):\n        pass\n",
    "src/kitchen.py": (
        "class Cook:\n    def chop(self, food):\n"
        '        """Cut it into pieces. Sharp knives only."""\n'
        "        return list(food)\n\n    def is_hot(self):\n        return True\n\n"
        '    def clean_up(self, mess):\n        """Wipe it away."""\n        mess.wipe()\n\n\n'
        "class Meal(Cook):\n    def prepare(self, food):\n        pieces = self.chop(food)\n"
        "        try:\n            return self.is_hot()\n        except OSError as mess:\n"
        "            self.clean_up(mess)\n"
    ),
    # TypeScript
    "web/lib/index.ts": "export { Http } from './http';\nexport * from './format';\n",
    "web/lib/http.ts": "export class Http {\n  send(x: string) { return x; }\n}\n",
    "web/lib/format.ts": "export function dress(x: string) { return x; }\n",
    "packages/money/src/index.ts": "export function round(x: number) { return x; }\n",
    "web/blocks.ts": (
        "import { round } from '@acme/money';\n"
        "test(() => { const made = () => 1;\n  made(); });\n"
        "test(() => { const made = () => 2;\n  round(made()); });\n"
    ),
    "web/app.ts": (
        "import { Http, dress } from './lib';\n\nconst http = new Http();\n"
        "export function start() {\n  http.send(dress('a'));\n}\n"
    ),
    # Go
    "go.mod": "module example.com/app\n",
    "main.go": (
        'package main\n\nimport "example.com/app/render"\n\n'
        "func main() {\n\trender.Draw()\n\thelp()\n\tvar p render.Pen\n\tp.Down()\n}\n"
    ),
    "help.go": "package main\n\nfunc help() {}\n",
    "render/draw.go": (
        "package render\n\n// Pen draws.\ntype Pen struct{}\n\nfunc (p *Pen) Down() {}\n\n"
        "func Draw() { helper() }\n"
    ),
    "render/helper.go": "package render\n\nfunc helper() {}\n",
    # Java
    "java/com/acme/store/Client.java": (
        "package com.acme.store;\n\npublic class Client {\n  public void open() {}\n"
        "  public static Client create() { return new Client(); }\n}\n"
    ),
    "java/com/acme/Main.java": (
        "package com.acme;\n\nimport com.acme.store.Client;\n\nclass Main {\n"
        "  void run() {\n    Client client = Client.create();\n    client.open();\n  }\n"
        "  boolean isPlainText(String word) {\n    return word.isPlainText();\n  }\n}\n"
    ),
    # Rust
    "core/src/lib.rs": (
        "mod store;\nuse crate::store::Disk;\n\npub fn boot() {\n    let disk = Disk::new();\n"
        "    disk.spin();\n    store::clear();\n}\n"
    ),
    "core/src/store.rs": (
        "pub struct Disk;\n\nimpl Disk {\n    pub fn new() -> Self { Disk }\n"
        "    pub fn spin(&self) {}\n}\n\npub fn clear() {}\n"
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """One small repository in five languages, indexed into real tables."""
    return indexed(tmp_path_factory.mktemp("structure"), FILES)


def unit(tables: Tables, path: str, name: str) -> Unit:
    units = [one for one in tables.in_file(path) if one.kind != "module"]
    return next(one for one in units if one.qualified_name == name)


def places(uses: list[UsageSite], least: float) -> set[tuple[str, int, str]]:
    """(path, line, kind) of the usages that are at least so sure."""
    sure = [use.reference for use in uses if use.confidence >= least]
    return {(one.path, one.line, one.kind) for one in sure}


CART, PAGES, MAIN_JAVA = "src/shop/cart.py", "src/shop/pages.py", "java/com/acme/Main.java"
USES = {
    "a function through the package that passes it on": (
        CART, "total", 0.85,
        {("src/shop/__init__.py", 1, "import"), (PAGES, 1, "import"), (PAGES, 9, "call"),
         (CART, 19, "call")},
    ),
    "a method through the type of its receiver, or self in a class that inherits": (
        CART, "Cart.add", 0.8, {(CART, 18, "call"), (PAGES, 8, "call"), (PAGES, 16, "call")},
    ),
    "no import of that name from elsewhere": (
        CART, "open_cart", 0.0, {("src/shop/__init__.py", 2, "import"), (PAGES, 10, "call")},
    ),
    "no method of that name in another class": ("src/shop/sets.py", "Tags.add", 0.5, set()),
    "a member through self, and super in a class that overrides it, nothing else of that class": (
        CART, "Cart.check", 0.5, {(CART, 6, "call"), ("src/shop/till.py", 7, "call")},
    ),
    "a function inside of another, which no import reaches": (
        "src/shop/till.py", "ring.bell", 0.0, {("src/shop/till.py", 19, "call")},
    ),
    "the nearest of several values with one name": (
        "web/blocks.ts", "made", 0.6, {("web/blocks.ts", 3, "call")},
    ),
    "a package of the repository by the name of its folder": (
        "packages/money/src/index.ts", "round", 0.7,
        {("web/blocks.ts", 1, "import"), ("web/blocks.ts", 5, "call")},
    ),
    "no method on an object of a class that comes with the language": (
        MAIN_JAVA, "Main.isPlainText", 0.5, set(),
    ),
    "a constructor by the name of its class": (
        CART, "Cart.__init__", 0.8, {(PAGES, 7, "call"), (CART, 17, "call")},
    ),
    "TypeScript through an index file": (
        "web/lib/format.ts", "dress", 0.85,
        {("web/app.ts", 1, "import"), ("web/app.ts", 5, "call")},
    ),
    "TypeScript through what a variable holds": (
        "web/lib/http.ts", "Http.send", 0.8, {("web/app.ts", 5, "call")},
    ),
    "a function of a Go package": ("render/draw.go", "Draw", 0.85, {("main.go", 6, "call")}),
    "a function of the own Go package": (
        "render/helper.go", "helper", 0.85, {("render/draw.go", 8, "call")},
    ),
    "a function of Go's main package": ("help.go", "help", 0.85, {("main.go", 7, "call")}),
    "a Go method through its receiver's type": (
        "render/draw.go", "Pen.Down", 0.5, {("main.go", 9, "call")},
    ),
    "a static Java method": (
        "java/com/acme/store/Client.java", "Client.create", 0.9, {(MAIN_JAVA, 7, "call")},
    ),
    "a Java method through its variable": (
        "java/com/acme/store/Client.java", "Client.open", 0.85, {(MAIN_JAVA, 8, "call")},
    ),
    "a Rust method": ("core/src/store.rs", "Disk::spin", 0.85, {("core/src/lib.rs", 6, "call")}),
    "a function of a Rust module": (
        "core/src/store.rs", "clear", 0.85, {("core/src/lib.rs", 7, "call")},
    ),
}  # fmt: skip
"""Path, qualified name, the least confidence, and the uses that are at least so sure."""


def test_uses_are_found_across_files(tables: Tables) -> None:
    for what, (path, name, least, expected) in USES.items():
        assert places(usages(tables, unit(tables, path, name)), least) == expected, what


def test_a_receiver_called_like_the_class_is_a_hint_and_no_more(tables: Tables) -> None:
    found = usages(tables, unit(tables, CART, "Cart.add"))
    hint = [use for use in found if use.reference.path == "src/shop/loose.py"]
    by_line = {use.reference.line: use for use in hint}
    assert 0.5 < by_line[2].confidence < 0.85
    assert by_line[3].confidence <= 0.3
    assert by_line[4].confidence <= 0.3
    assert found == sorted(found, key=lambda use: -use.confidence) and len(found) > 2


def test_a_class_is_imported_called_and_inherited_from_and_a_document_has_no_uses(
    tables: Tables,
) -> None:
    kinds = {kind for _, _, kind in places(usages(tables, unit(tables, CART, "Cart")), 0.85)}
    assert kinds == {"import", "call", "inherits"}
    disk = usages(tables, unit(tables, "core/src/store.rs", "Disk"))
    assert ("core/src/lib.rs", 2, "import") in places(disk, 0.85)
    assert usages(tables, tables.in_file("go.mod")[0]) == []


CALLS = {
    "shop/till.py": "from shop.money import add\n\n\nclass Base:\n"
    "    def close(self):\n        return 1\n\n\nclass Till(Base):\n"
    "    def pay(self, coins):\n        self.count(coins)\n        total = add(coins)\n"
    "        log(total)\n        self.count(total)\n        return self.close()\n\n"
    "    def count(self, coins):\n        return len(coins)\n",
    "shop/money.py": "def add(coins):\n    return sum(coins)\n",
    "shop/other.py": "def add(words):\n    return words\n\n\ndef get(word):\n    return word\n",
    "shop/tidy.py": "import re\n\n\n" + "@overload\ndef tidy(x: int) -> int: ...\n\n\n" * 3
    + "def tidy(x):\n    return x\n",
    "shop/uses.py": "from shop.tidy import tidy\n\n\ndef use():\n    return tidy(1)\n",
    "shop/boxes.py": "class Box:\n    def tidy(self):\n        return self\n",
}  # fmt: skip


def test_callees_are_definitions_with_code_once_each_in_order(tmp_path: Path) -> None:
    tables = indexed(tmp_path, CALLS)
    (pay,) = [unit for unit in tables.named(["pay"]) if unit.name == "pay"]
    calls = callees(tables, pay)
    assert [(call.called.span, call.line) for call in calls] == [
        ("shop/till.py:17-18", 11), ("shop/money.py:1-2", 12), ("shop/till.py:5-6", 15),
    ]  # fmt: skip
    assert [call.called.name for call in callees(tables, pay, limit=1)] == ["count"]
    # A call means neither the file of that name nor the signatures of what it calls.
    (use,) = (unit for unit in tables.named(["use"]) if unit.name == "use")
    (called,) = callees(tables, use)
    assert called.called.source_code.endswith("return x")
    assert [one.is_stub for one in definitions(tables, "tidy")] == [False] * 2 + [True] * 3
    assert definitions(tables, "tidy")[0] == called.called
