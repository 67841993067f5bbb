"""Questions that have an answer of their own kind, over a small repository."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import chat_kit
import pytest

from codeqa.engine import Engine

FILES = {
    "README.md": "# Shop\n\nA small shop that sells teapots over the network to everyone.\n",
    "src/shop/hooks.py": "class Hooks:\n    close_callbacks = []\n\n"
    "    def on_close(self, f):\n"
    '        """Keep a callback for the end."""\n'
    "        self.close_callbacks.append(f)\n        return f\n\n"
    "    def close(self):\n"
    '        """Call the callbacks."""\n'
    "        for f in self.close_callbacks:\n            f()\n\n"
    "    def count(self):\n        return len(self.close_callbacks)\n",
    "src/shop/app.py": "def main(hooks):\n    hooks.on_close(print)\n    hooks.close()\n",
    "tests/test_hooks.py": "def test_hooks(hooks):\n" + "    hooks.on_close(print)\n" * 4,
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("kinds")
    engine = chat_kit.index(folder, FILES).open(folder / "said")
    yield engine
    engine.close()


def ask(engine: Engine, question: str) -> str:
    """The answer; all that it cites has been verified."""
    events = chat_kit.ask(engine, f"@codebase {question}", conversation=uuid.uuid4().hex)
    cited = events[-1].data["citations"]
    assert all(citation["verified"] for citation in cited)
    return chat_kit.answer(events)


def test_who_calls_what_is_registered_stands_before_who_registers_it(engine: Engine) -> None:
    text = ask(engine, "where are on_close callbacks called?")
    kept = text.index("**It keeps what it is given in `close_callbacks`, which is read in**:")
    reader = text.index("- [src/shop/hooks.py:11] in `Hooks.close`: `for f in self.close_callbacks")
    used = text.index("**Used in 5 places, 4 of them in tests**:")
    source = text.index("- [src/shop/app.py:2] in `main`, ")
    assert kept < reader < used < source < text.index("- [tests/test_hooks.py:")
    assert "- and 1 more, in tests" in text and "in `Hooks.count`" not in text
