"""Questions that are looked up in the index or in git, in many wordings, without a model."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import chat_kit
import pytest
from repositories import git, write

from codeqa.code.counted import counted_question
from codeqa.engine import Engine

FILES = {
    "kiln/oven.py": '''"""Ovens."""

import os

from kiln.names import HEAT_VARIABLE

MOST_LOAVES = 12


class Oven:
    """Bakes what is put into it."""

    def __init__(self, patience=90, loaves=MOST_LOAVES):
        self.patience = patience
        self.loaves = loaves
        self.heat = os.environ.get(HEAT_VARIABLE, "mild")

    def bake(self, dough):
        """Bake the dough, layer by layer."""
        if not dough:
            return []
        return [dough[0], *self.bake(dough[1:])]


class TileOven(Oven):
    pass


class OvenError(Exception):
    """It is cold."""
''',
    "kiln/names.py": 'HEAT_VARIABLE = "KILN_HEAT"\n\n\n'
    "class NamelessError(ValueError):\n    pass\n",
    "kiln/clay/__init__.py": "import os\n\n\ndef told(name):\n    return os.environ.get(name)\n",
    "kiln/clay/wet.py": '"""Wet clay."""\n\nimport os\n\nfrom kiln.oven import Oven\n\n\n'
    'class MudOven(Oven):\n    wet = os.environ["KILN_WET"]\n',
    "web/flags.ts": "/** How a batch is to be fired. */\nexport enum FireFlags {\n"
    "  /** Nothing special. */\n  PLAIN = 1,\n"
    "  /**\n   * Fire it twice, as the glaze is thick.\n   */\n  TWICE = 2,\n}\n",
    "rust/glaze.rs": "pub enum Glaze {\n    Clear,\n    Salt(u8),\n    Ash { fine: bool },\n}\n\n"
    "impl Glaze {\n    pub fn thick(&self) -> bool { true }\n}\n",
    "kiln/backoff.py": "def exponential_interval(attempt):\n"
    '    """Return how long is waited before the next attempt."""\n    return 2**attempt\n',
}
AUTHOR = ("-c", "user.name=B. Baker", "-c", "user.email=baker@example.org")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("looked_up")
    root = folder / "shop"
    git(folder, "init", "-q", "shop")
    before = FILES["kiln/oven.py"].replace("class TileOven(Oven):\n    pass\n", "")
    for files, subject in (({**FILES, "kiln/oven.py": before}, "Ovens"), (FILES, "Tiles")):
        write(root, files)
        git(root, "add", ".")
        git(root, *AUTHOR, "commit", "-qm", subject)
    write(root, {"kiln/oven.py": FILES["kiln/oven.py"] + "\n\nTILES = TileOven()\n"})
    git(root, *AUTHOR, "commit", "-qam", "One is made")
    opened = chat_kit.index(folder, {}).open(folder / "said")
    yield opened
    opened.close()


def ask(engine: Engine, question: str) -> str:
    """The answer; all that it cites has been verified."""
    events = chat_kit.ask(engine, f"@codebase {question}", conversation=uuid.uuid4().hex)
    assert all(citation["verified"] for citation in events[-1].data["citations"])
    return chat_kit.answer(events)


@pytest.mark.parametrize(
    ("questions", "first"),
    [
        (
            ("what is the default patience of the oven?", "default for patience in Oven",
             "how long is the patience of an Oven"),
            "**`def __init__(self, patience=90, loaves=MOST_LOAVES):`** [kiln/oven.py:13]",
        ),
        (
            ("What does FireFlags.TWICE mean?", "what is FireFlags.TWICE"),
            "**`TWICE = 2,`** [web/flags.ts:8]: Fire it twice, as the glaze is thick.",
        ),
        (
            ("list all variants of Glaze", "List all constants of the Glaze enum.",
             "what variants does the enum Glaze have?"),
            "**`Glaze`** · enum [rust/glaze.rs:1-5] declares 3:\n\n"
            "- `Clear` [rust/glaze.rs:2]\n- `Salt(u8)` [rust/glaze.rs:3]\n- `Ash { fine: bool }` [",
        ),
        (
            ("which exceptions are there?", "list all exception types"),
            "**2 exceptions in 2 files.**",
        ),
        (
            ("which classes are there in kiln/oven.py?", "list all classes in kiln/oven.py",
             "what classes does oven.py contain, nested ones too?"),
            "**3 classes in 1 file.**\n\n- [kiln/oven.py:10-22] `Oven`",
        ),
        (
            ("find all recursive functions", "which functions call themselves?",
             "list every function in kiln/oven.py that calls itself"),
            "**1 recursive function in 1 file.**",
        ),
        (
            ("Which environment variables does the kiln package read?",
             "list the env vars read in kiln/"),
            "**2 environment variables read in 3 places in 3 files.** In 1 place the name",
        ),
        (
            ("what env vars are looked at in the clay folder",),
            "**1 environment variable read in 2 places in 2 files.** In 1 place the name is in a",
        ),
        (
            ("give me all classes in the clay package that extend Oven",),
            "**Oven has 2 subclasses or implementations, 1 of them in clay.**",
        ),
        (
            ("When was TileOven added, and by whom?", "who added TileOven?",
             "which commit introduced `TileOven`? author and date pls",
             "in which commit was the TileOven class introduced"),
            "**TileOven (kiln/oven.py:25-26) was added on ",
        ),
        (
            ("what is on line 21 of kiln/oven.py?", "kiln/oven.py:21", "explain oven.py line 21",
             "kiln/oven.py#L21", "was steht in Zeile 21 von kiln/oven.py"),
            "**`return []`** [kiln/oven.py:21] in `Oven.bake`",
        ),
        (
            ("explain lines 20-21 of kiln/oven.py", "kiln/oven.py#L20-L21", "kiln/oven.py:20-21"),
            "[kiln/oven.py:20-21] in `Oven.bake`\n\n```python kiln/oven.py:20-21\nif not dough:\n",
        ),
        (
            ("Où est calculée l'attente exponentielle entre deux tentatives ?",
             "¿Dónde se calcula la espera exponencial con cada intento?"),
            "**`exponential_interval`** · function [kiln/backoff.py:1-3]: Return how long",
        ),
    ],
)  # fmt: skip
def test_a_question_of_a_kind_is_answered_first_however_it_is_worded(
    engine: Engine, questions: tuple[str, ...], first: str
) -> None:
    told = {question: ask(engine, question) for question in questions}
    assert {q: text[:200] for q, text in told.items() if not text.startswith(first)} == {}


def test_the_commit_that_added_a_definition_is_named_with_its_author(engine: Engine) -> None:
    text = ask(engine, "who added TileOven?")
    assert " by B. Baker in " in text and "B. Baker: Tiles\n" in text
    assert "Ovens" not in text and "One is made" not in text
    assert "No commit here added" in ask(engine, "when was `never_there` added?")


def test_a_name_that_a_variable_stands_for_is_resolved(engine: Engine) -> None:
    text = ask(engine, "list all environment variables")
    assert "- [kiln/oven.py:16] `KILN_HEAT`: " in text and "`KILN_WET`" in text


def test_a_constant_comes_with_the_lines_that_use_it_and_its_value_where_it_is_used(
    engine: Engine,
) -> None:
    text = ask(engine, "what is MOST_LOAVES?")
    assert text.startswith("**`MOST_LOAVES`** · constant") or "`MOST_LOAVES = 12`" in text
    text = ask(engine, "how does Oven.__init__ work")
    assert "With `MOST_LOAVES = 12` [kiln/oven.py:7], `HEAT_VARIABLE" in text


@pytest.mark.parametrize(
    "question",
    [
        "when is the dough added to the oven?", "who adds salt to the glaze",
        "what implements retries and backoff", "which functions should I call?",
        "how are exceptions handled in the oven", "list the things that a baker extends",
    ],
)  # fmt: skip
def test_what_only_sounds_like_one_of_these_is_searched_for(question: str) -> None:
    assert counted_question(question) is None
