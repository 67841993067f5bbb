"""Where a constant is declared, by its lines alone."""

from __future__ import annotations

import pytest

from codeqa.text.declared import declaring_lines

CODE = {
    "go": "const (\n\tLevelInfo Level = iota\n\tLevelWarn\n\t_\n\tLevelFatal // the last\n)\n"
    'var (\n\tErrGone = errors.New("gone")\n)\n\nfunc f() { g(LevelWarn,\n\t\tErrGone) }\n',
    "c": "#define CFG_MAX 4096\n# define CFG_ON (1 << 3)\n#ifdef CFG_MAX\n"
    "enum { IDLE, BUSY = 3 };\n"
    "typedef enum\n{\n  KIND_A,\n  KIND_B\n} kind;\n"
    "return use(CFG_ON, BUSY,\n  KIND_A,\n  KIND_B);\n",
    "cpp": 'inline constexpr std::string_view kBanner = "hi";\n'
    "static constexpr double kRatio = 1.5;\n"
    "if (x == kRatio) {}\nenum class Shade : uint8_t { Light, Dark };\n",
    "java": "enum Planet {\n  MERCURY(1), VENUS(2),\n  EARTH(3);\n}\n"
    "Planet p = visit(VENUS);\n"
    'interface Keys { String HEADER = "h"; }\n',
    "js": "const T = Object.freeze({ ALPHA: 'a', BETA: 'b' });\n"
    "exports.LIMIT = 4;\nuse(exports.LIMIT);\n",
    "swift": "enum Way {\n  case east, west(Int)\n}\nswitch w {\ncase east: break\n}\n",
    "php": "define('TOP', 2);\necho TOP;\n",
    "rust": "pub enum Color {\n    Crimson,\n    Mix { a: u8 },\n}\nuse(Color::Crimson);\n",
}


@pytest.mark.parametrize(
    ("language", "name", "lines"),
    [
        ("go", "LevelInfo", [2]), ("go", "LevelWarn", [3]), ("go", "LevelFatal", [5]),
        ("go", "ErrGone", [8]), ("c", "CFG_MAX", [1]), ("c", "CFG_ON", [2]), ("c", "IDLE", [4]),
        ("c", "BUSY", [4]), ("c", "KIND_A", [7]), ("c", "KIND_B", [8]), ("cpp", "kBanner", [1]),
        ("cpp", "kRatio", [2]), ("cpp", "Dark", [4]), ("java", "MERCURY", [2]),
        ("java", "VENUS", [2]), ("java", "EARTH", [3]), ("java", "HEADER", [6]),
        ("js", "ALPHA", [1]), ("js", "BETA", [1]), ("js", "LIMIT", [2]), ("swift", "west", [2]),
        ("php", "TOP", [1]), ("rust", "Crimson", [2]), ("rust", "Mix", [3]), ("go", "f", []),
    ],
)  # fmt: skip
def test_a_constant_is_declared_where_it_gets_a_value_or_joins_a_list(
    language: str, name: str, lines: list[int]
) -> None:
    assert list(declaring_lines(CODE[language].split("\n"), name)) == lines
