"""A function that a grammar cannot read costs no other definition, nor their owners and lines."""

from __future__ import annotations

import pytest

from codeqa.parsing import parse_file

HEADS = {
    "a.kt": ("class Shop(\n    val n: Int,\n) : Base() {\n", "    fun {}(a: Int) {{\n"),
    "a.cs": ("namespace N;\nclass Shop\n{\n", "    void {}(int a)\n    {{\n"),
    "a.java": ("class Shop {\n", "    void {}(int a,\n            int b) {{\n"),
    "a.cpp": ("namespace n {\nclass Shop {\n", "    void {}(int a) const {{\n"),
    "a.ts": ("export class Shop {\n", "    {}(a: number): void {{\n"),
    "a.swift": ("class Shop {\n", "    func {}(a: Int) {{\n"),
    "a.php": ("<?php\nclass Shop {\n", "    function {}($a) {{\n"),
    "a.scala": ("class Shop {\n", "    def {}(a: Int): Unit = {{\n"),
}
NAMES = [f"f{number}" for number in range(9)]
JUNK = ("%% ( {", "} else if ((( {", "x = = [ {", "case {{ ::", "go(a { b")


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("path", HEADS)
def test_what_lies_around_unreadable_code_is_found_in_its_place(path: str, junk: str) -> None:
    head, function = HEADS[path]
    bodies = [f"        go(a);\n        {junk if name == 'f4' else 'go(a);'}\n" for name in NAMES]
    parts = [
        f"{function.format(name)}{body}    }}\n" for name, body in zip(NAMES, bodies, strict=True)
    ]
    end = "};\n}\n" if path == "a.cpp" else "}\n"
    file = parse_file(path, (head + "".join(parts) + end).encode())
    lines = {unit.name: unit.end_line for unit in file.units if unit.class_name == "Shop"}
    first, size = head.count("\n"), parts[0].count("\n")
    wanted = {name: first + size * n for n, name in enumerate(NAMES, 1) if name != "f4"}
    assert set(NAMES) <= set(lines)
    assert {name: lines[name] for name in NAMES if name != "f4"} == wanted
    assert file.has_errors
    callers = {reference.line for reference in file.references if reference.name == "go"}
    assert len(callers) >= 2 * (len(NAMES) - 1)


def test_a_class_whose_own_lines_cannot_be_read_keeps_its_functions() -> None:
    code = "class Shop {\n  int = = { ;\n  int sell() {\n    return 1;\n  }\n};\nint after();\n"
    names = {unit.name for unit in parse_file("a.cpp", code.encode()).units}
    assert {"sell", "after"} <= names
