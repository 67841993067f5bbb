"""Constants are units of their own: where they say something, and only there."""

from __future__ import annotations

from codeqa.parsing import extract
from codeqa.types import Unit

COMMENTED = {
    "bash": "# Waits.\nreadonly LIMIT=3\n",
    "c": "#ifndef H\n/* Waits. */\n#define LIMIT 3\n#endif\n",
    "cpp": "namespace n {\n// Waits.\nstatic const int limit = 3;\n}\n",
    "csharp": "class A {\n  /// Waits.\n  private static readonly int Limit = 3;\n}\n",
    "go": "package a\n\nconst (\n\t// Waits.\n\tlimit = 3 * time.Second\n)\n",
    "java": "class A {\n  /** Waits. */\n  public static final int LIMIT = 3;\n}\n",
    "javascript": "// Waits.\nexport const limit = { seconds: 3 };\n",
    "kotlin": "class A {\n  companion object {\n    // Waits.\n    const val LIMIT = 3\n  }\n}\n",
    "lua": "-- Waits.\nlocal LIMIT = 3\n",
    "php": "<?php\nclass A {\n  /** Waits. */\n  const LIMIT = 3;\n}\n",
    "python": 'limit = 3\n"""Waits."""\n',
    "ruby": "module A\n  # Waits.\n  LIMIT = 3\nend\n",
    "rust": "/// Waits.\npub const LIMIT: usize = 3;\n",
    "scala": "object A {\n  // Waits.\n  val limit = 3\n}\n",
    "swift": "struct A {\n  /// Waits.\n  static let limit = 3\n}\n",
    "typescript": "// Waits.\nexport const limit: number = 3;\n",
}


def constants(text: str, language: str = "python", role: str = "source") -> list[Unit]:
    found = extract("a", text.encode(), language, role).units
    return [unit for unit in found if unit.kind == "constant"]


def test_a_constant_is_found_by_its_name_and_its_comment() -> None:
    for language, text in COMMENTED.items():
        (unit,) = constants(text, language)
        assert (unit.name.lower(), unit.doc_comment) == ("limit", "Waits."), language
        assert "Waits." in unit.source_code and "3" in unit.source_code, language


def test_a_comment_beside_a_value_or_below_it_says_what_it_is_for() -> None:
    (unit,) = constants("first = 1\nlimit = 3  # seconds to wait\nlast = 2\n")
    assert (unit.name, unit.doc_comment, unit.start_line) == ("limit", "seconds to wait", 2)
    (unit,) = constants('class A:\n    limit = 3\n    """Seconds\n    to wait."""\n')
    assert (unit.start_line, unit.end_line) == (2, 4)
    assert (unit.qualified_name, unit.signature) == ("A.limit", "limit = 3")


def test_what_says_nothing_is_no_unit() -> None:
    assert not constants("logger = get_logger()\n__all__ = [\n    'a',\n    'b',\n]\n")
    assert not constants("def f():\n    LIMIT = 3  # local\n")
    assert not constants("LIMIT = 3\n", role="test")
    assert not constants("fn f() {\n    // Local.\n    const LIMIT: u8 = 3;\n}\n", "rust")
    assert not constants("int f(void) {\n  static int calls = 0; /* local */\n}\n", "c")


def test_an_object_with_functions_owns_them_and_is_no_constant() -> None:
    text = "// Handlers.\nconst handlers = {\n  open() {},\n  close: () => {},\n};\n"
    found = extract("a", text.encode(), "javascript").units
    names = [unit.qualified_name for unit in found if unit.is_method]
    assert names == ["handlers.open", "handlers.close"]
    assert not constants(text, "javascript")


def test_a_class_is_shown_with_its_constants_and_a_constant_has_its_uses() -> None:
    text = "class A:\n    #: Seconds.\n    limit = 3\n\n    def wait(self):\n        pass\n"
    units = {unit.qualified_name: unit for unit in extract("a", text.encode(), "python").units}
    assert units["A"].head_end_line == 4
    assert units["A"].method_declarations == ("def wait(self)",)
    text = "LIMIT = 3\n\n\ndef wait():\n    sleep(LIMIT)\n"
    parsed = extract("a", text.encode(), "python")
    (unit,) = [unit for unit in parsed.units if unit.kind == "constant"]
    assert [edge.line for edge in parsed.references if edge.target == unit.id] == [5]


def test_what_stands_alone_between_functions_is_one_unit() -> None:
    text = "def a():\n    pass\n\n\nTABLE = {\n    1: call(),\n}\n\n\ndef b():\n    pass\n"
    found = extract("a", text.encode(), "python")
    (unit,) = [unit for unit in found.units if not unit.is_method]
    assert (unit.kind, unit.start_line, unit.end_line) == ("constant", 5, 7)
    assert [one.unit_id for one in found.references] == [unit.id]
