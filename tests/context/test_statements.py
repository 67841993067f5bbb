"""Statements of fragments in several languages, and which of them are shown in little room."""

from __future__ import annotations

import textwrap

from codeqa.context.statements import choose_lines, outlined, statements

FRAGMENTS = {
    "python": """\
        def pick(self, wanted):
            # The first that fits.
            for one in self.all:
                if one == wanted:
                    return one
            raise LookupError(
                wanted
            )
    """,
    "rust": """\
        fn pick(&self, wanted: u8) -> Option<u8> {
            // The first that fits.
            for one in self.all() {
                if one == wanted {
                    return Some(one);
                }
            }
            self.fallback(
                wanted,
            )
        }
    """,
    "c": """\
        static int
        pick(struct box *b, int wanted)
        {
            // The first that fits.
            for (int at = 0; at < b->size; at++) {
                if (b->all[at] == wanted)
                    return at;
            }
            return fallback(b,
                            wanted);
        }
    """,
}


def nested(code: str, language: str) -> list[tuple[int, str]]:
    """(depth, first line) of every statement."""
    lines, parts = code.split("\n"), statements(code, language)
    depths: list[int] = []
    for one in parts:
        depths.append(depths[one.parent] + 1 if one.parent >= 0 else 0)
    return [(depths[n], lines[one.first].strip()) for n, one in enumerate(parts)]


def test_a_method_cut_out_of_its_class_has_its_statements_nested() -> None:
    for language in sorted(FRAGMENTS):
        code = textwrap.indent(textwrap.dedent(FRAGMENTS[language]).strip("\n"), "    ")
        lines = code.split("\n")
        found = statements(code, language)
        depths = [depth for depth, _ in nested(code, language)]
        assert depths[:4] == [0, 1, 2, 3]
        loop, last = found[1], [one for one in found if one.parent == 0][-1]
        assert "The first that fits." in lines[loop.start]
        assert loop.first == loop.start + 1
        assert last.start == loop.end
        assert "wanted" in "".join(lines[last.start + 1 : last.end])
        assert found[0].end == len(lines)


def test_little_room_shows_whole_statements_and_what_they_lie_in() -> None:
    for language in sorted(FRAGMENTS):
        code = textwrap.dedent(FRAGMENTS[language]).strip("\n")
        lines = code.split("\n")
        inner = next(n for n, line in enumerate(lines) if "if" in line.split() or "if (" in line)
        weights = [float(number == inner) for number in range(len(lines))]
        room = len(lines) - (2 if language == "python" else 1)
        shown = choose_lines(lines, statements(code, language), weights, [1] * len(lines), room)
        text = outlined(lines, shown, 1)
        assert lines[inner + 1] in text, "the condition with what follows from it"
        assert lines[0] in text, "the head of what it lies in"
        assert text.count("\n") < room
        assert "…" in text or language == "python"  # what is left out there stands at its end


def test_of_a_long_chain_of_branches_those_around_what_matters_are_shown() -> None:
    branches = "".join(f" else if (kind == {n}) {{\n    act_{n}();\n  }}" for n in range(1, 20))
    code = f"void choose(int kind) {{\n  if (kind == 0) {{\n    act_0();\n  }}{branches}\n}}"
    lines = code.split("\n")
    weights = [float("act_7" in line) for line in lines]
    spans = choose_lines(lines, statements(code, "cpp"), weights, [1] * len(lines), 8)
    shown = outlined(lines, spans, 1)
    assert "  } else if (kind == 7) {\n    act_7();\n" in shown
    assert shown.startswith("void choose(int kind) {\n  if (kind == 0) {\n")


def test_every_branch_holds_its_statements() -> None:
    for language, code, expected in (
        ("python", "try:\n    a()\nexcept E:\n    b()\nelse:\n    c()", ["a()", "b()", "c()"]),
        ("c", "if (a)\n    b();\nelse\n    c();", ["b();", "c();"]),
        ("ruby", "if a\n  b\nelsif c\n  d\nelse\n  e\nend", ["b", "d", "e"]),
        ("rust", "match a {\n    1 => {\n        b();\n    }\n    _ => c(),\n}", ["b();"]),
    ):
        found = [text for depth, text in nested(code, language) if depth]
        assert [text for text in found if text in expected] == expected


def test_where_no_tree_helps_indentation_does() -> None:
    for language, code in (
        ("toml", "[a]\nlist = [\n  1,\n  2,\n]\nb = 2"),
        ("python", "x = [\n" + "    1,\n" * 9 + "]\nb = 2"),  # a long literal
        ("rust", "m! {\n    a => {\n        b\n    }\n" + "    c => d,\n" * 9 + "}\nlet b = 2;"),
    ):
        lines = code.split("\n")
        found = statements(code, language)
        assert lines[found[-1].first].replace("let ", "").rstrip(";") == "b = 2"
        inside = [lines[one.first].strip() for one in found if one.parent >= 0]
        assert inside and not any(line[0] in ")]}" for line in inside)


def test_long_and_hostile_code_comes_to_an_end() -> None:
    for language, code in (
        ("c", "void f() {\n" + "{\n" * 1500),
        ("python", "\n".join(" " * depth + "if a:" for depth in range(1000))),
    ):
        lines = code.split("\n")
        found = statements(code, language)
        choose_lines(lines, found, [1.0] * len(lines), [len(line) + 1 for line in lines], 4000)
