"""Questions in other languages than English: identifiers are found as in an English question."""

from __future__ import annotations

import pytest

from codeqa.search.hybrid import Search
from codeqa.search.query import parse_query
from codeqa.settings import Settings
from codeqa.store import Tables

pytest_plugins = ("chat_fixtures",)

FILES = {
    "src/session.py": "class SessionStore:\n"
    "    def open_session(self, request):\n        return self.load(request.cookies)\n\n"
    "    def close(self):\n        self.items.clear()\n",
    "src/router.py": "def add_route(rule):\n    return rule\n\n\ndef route(rule):\n"
    "    return add_route(rule)\n",
    "src/noise.py": "".join(
        f"def handler_{n}(request):\n    session = request.session\n    return session.route\n\n\n"
        for n in range(20)
    ),
    "src/die.php": "<?php\nfunction die_hard($con) {\n  return $con;\n}\n"
    "function die($par) {\n  return $par;\n}\n",
    "src/中文.py": "def close_file(f):\n    # 关闭打开的会话文件\n    f.close()\n",
    "src/größe.py": "def measure(x):\n    # Größe der Tür in Metern\n    return x\n",
}


@pytest.fixture
def search(tables: Tables, settings: Settings) -> Search:
    return Search(lambda: tables, settings)


QUESTIONS = {
    "English": "How is {} opened and where is it defined?",
    "German": "Wie wird {} geöffnet und wo ist es definiert?",
    "Chinese": "{}是怎么打开的？在哪里定义？",
    "Chinese, in between": "请解释函数{}的工作原理",
    "Japanese, in between": "関数「{}」はどこで定義されていますか。",
    "Korean": "{}은 어떻게 열리고 어디에 정의되어 있나요?",
    "Thai": "ฟังก์ชัน{}ทำงานอย่างไร",
}


WRITTEN = {
    "open_session": "open_session",
    "SessionStore.open_session": "open_session",
    "`route`": "route",
}


def test_an_identifier_is_found_first_in_any_language(search: Search) -> None:
    for language, question in QUESTIONS.items():
        for written, name in WRITTEN.items():
            first = search.search(question.format(written)).units[0]
            assert first.unit.name == name, (language, written)
            assert any(why.startswith("defines") for why in first.why)


def test_files_are_found_between_letters_without_blanks(search: Search) -> None:
    for question in ("请说明src/router.py的作用", "что делает src/router.py?"):
        assert search.search(question).units[0].unit.path == "src/router.py"


def test_words_of_comments_in_the_language_are_found(search: Search) -> None:
    result = search.search("Wo wird die Größe der Tür berechnet?")
    assert result.units[0].unit.name == "measure"
    assert "größe" in result.units[0].why[0]


def test_decomposed_accents_are_the_same_words() -> None:
    assert parse_query("Gro\u0308ße").words == parse_query("Größe").words == ("größe",)
