"""Members that are named without a call: read, set or handed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeqa.code.evidence import LIKELY
from codeqa.code.names import same_named
from codeqa.code.usages import reads_of, usages
from tests.kit.indexed import indexed

# language → (path, class with the member `area`, path, functions that name it and others)
CODE = {
    "Python": (
        "w.py", "class W:\n    @property\n    def area(self):\n        return 1\n\n"
        "    def own(self):\n        return self.area + 1\n",
        "use.py", "from w import W\n\ndef f(w: W):\n    return w.area + 1\n\n"
        "def g(w: W):\n    w.area = 2  # w.area\n\n"
        "def h(x: W):\n    # x.area\n    from p.area import x\n    return x.areas\n",
    ),
    "TypeScript": (
        "w.ts", "export class W {\n  get area() { return 1; }\n  own() { return this.area; }\n}\n",
        "use.ts", "import { W } from './w';\nfunction f(w: W) { return w!.area + 1; }\n"
        "function g() { const w = new W(); w.area += 1; }\nfunction h(w) { return w.areas; }\n",
    ),
    "C#": (
        "W.cs", "class W {\n  public int area => 1;\n  int own() { return this.area; }\n}\n",
        "Use.cs", "class Use {\n  int f(W w) { return w.area + 1; }\n"
        "  void g(W w) { w.area = 1; }\n  int h(W w) { return w.areas; }\n}\n",
    ),
    "Kotlin": (
        "W.kt", "class W {\n  val area get() = 1\n  fun own() = this.area\n}\n",
        "Use.kt", 'fun f(w: W) = w.area + 1\nfun g(w: W?) = "${w?.area}"\nfun h(w: W) = w.areas\n',
    ),
    "Go": (
        "w.go", "package p\n\ntype W struct{}\n\nfunc (w *W) area() int { return 1 }\n\n"
        "func (self *W) own() { go1(self.area) }\n",
        "use.go", "package p\n\nfunc f(w *W) { run(w.area) }\n\n"
        "func g(w *W) { x := w.area; x() }\n\nfunc h(w *W) int { return w.areas }\n",
    ),
    "C++": (
        "w.h", "class W {\n public:\n  int area() { return 1; }\n"
        "  auto own() { return &W::area; }\n};\n",
        "use.cpp", '#include "w.h"\nauto f() { return &W::area; }\n'
        "int g(W* w) { auto x = &W::area; return (w->*x)(); }\nint h(W* w) { return w->areas; }\n",
    ),
    "Swift": (
        "W.swift", "class W {\n  var area: Int { return 1 }\n"
        "  func own() -> Int { return self.area }\n}\n",
        "Use.swift", "func f(w: W) -> Int { return w.area + 1 }\nfunc g(w: W?) { use(w?.area) }\n"
        "func h(w: W) -> Int { return w.areas }\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", CODE)
def test_a_member_is_used_where_it_is_named_without_a_call(language: str, tmp_path: Path) -> None:
    path, owner, other, functions = CODE[language]
    tables = indexed(tmp_path, {path: owner, other: functions})
    (area,) = same_named(tables, "area")
    sites = [site for site in usages(tables, area, reads=True) if site.confidence >= LIKELY]
    around = tables.by_ids([site.reference.unit_id for site in sites])
    assert {unit.name for unit in around} == {"f", "g", "own"}


def test_a_name_without_a_definition_may_be_a_field(tmp_path: Path) -> None:
    text = "struct w { int area; };\nint f(struct w *w) { return w->area + w->area; }\n"
    tables = indexed(tmp_path, {"w.c": text, "readme.md": "It has `w.area`.\n"})
    reads = reads_of(tables, "area", ())
    assert [(read.path, read.line, read.receiver) for read in reads] == [("w.c", 2, "w")] * 2
    assert reads_of(tables, "area", reads[:1]) == reads[1:]


def test_a_field_of_another_class_is_only_possible(tmp_path: Path) -> None:
    files = {
        "w.py": "class Wide:\n    def area(self):\n        return 1\n",
        "x.py": "class Other:\n    def f(self, x):\n        return self.area, x.area\n",
    }
    tables = indexed(tmp_path, files)
    (area,) = same_named(tables, "area")
    (site,) = usages(tables, area, reads=True)
    assert site.reference.receiver == "x" and site.confidence < LIKELY
    many = {f"{n}.py": f"class C{n}:\n    def area(self):\n        pass\n" for n in range(20)}
    tables = indexed(tmp_path / "many", files | many)
    (area,) = (unit for unit in same_named(tables, "area") if unit.class_name == "Wide")
    assert [site.reference.receiver for site in usages(tables, area, reads=True)] == ["x"]
