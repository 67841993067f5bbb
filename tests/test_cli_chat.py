"""`codeqa chat`: on a terminal, from a pipe, and as conversations that are kept."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from conftest import ROOT

from codeqa.chat import AskOptions
from codeqa.cli import conversing, prompt
from codeqa.engine import Engine, open_engine
from codeqa.settings import load_settings

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)

QUESTION = "how is an article put into the basket?"


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "70"}
        self._process, self._terminal = pty.fork()
        if not self._process:
            os.execve(sys.executable, [sys.executable, "-m", "codeqa", *arguments], environment)

    def type(self, keys: str, until: str) -> str:
        """Type `keys`; gives what is shown up to and with `until`."""
        os.write(self._terminal, keys.encode())
        shown, deadline = "", time.monotonic() + 60
        while until not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([self._terminal], [], [], 0.5)[0]:
                try:
                    shown += os.read(self._terminal, 65_536).decode()
                except OSError:  # it has ended
                    break
        return re.sub(r"\x1b\[[?\d]*[a-zA-Z]|\r", "", shown)

    def ended(self) -> int:
        """Its exit status."""
        self.type("", "never shown")
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


@pytest.fixture
def engine(shop: Path, data_dir: Path) -> Iterator[Engine]:
    shutil.copytree(shop.parent / "data", data_dir)
    with closing(open_engine(load_settings(shop), shop)) as engine:
        yield engine


def test_a_conversation_on_a_terminal(
    codeqa: Command, engine: Engine, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped(monkeypatch, QUESTION)
    codeqa("chat", "--no-model", "--repo", shop)
    terminal = Terminal("chat", "-c", "--no-model", "--repo", str(shop))
    shown = terminal.type("", "my shop> ")
    assert "/help lists what can be said" in shown and "Going on with: " in shown
    assert "put into the basket?" in terminal.type("\x1b[A", "basket?")
    assert "strict is on" in terminal.type("\x15/stri\t\n", "my shop> ")
    shown = terminal.type("what does @Basket.add\t do?\n", "my shop> ")
    assert "@Basket.add_article  do?" in shown and "[store/basket.py:7-9]" in shown
    assert shown.count("Searched: 3 of 3 files") == 1
    shown = terminal.type("\x1b[200~and these two?\ntotal_price\x1b[201~\n", "my shop> ")
    assert "def total_price" in shown, "a pasted text of two lines is one question"
    assert re.search(r"\d  store/basket\.py:\d+-\d+  ", terminal.type("/context\n", "my shop> "))
    assert "There is no /nothing here." in terminal.type("/nothing\n", "my shop> ")
    terminal.type("half a line", "half a line")
    time.sleep(0.5)  # Python misses a signal that comes just before it waits for keys
    terminal.type("\x03", "\n")
    assert terminal.ended() == 0
    (kept,) = engine.conversations.all()
    questions = [turn.question for turn in engine.conversations.turns(kept.id)]
    assert questions == [
        QUESTION,
        "what does @Basket.add_article do?",
        "and these two?\ntotal_price",
    ]


def piped(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_lines_of_a_pipe_are_asked_one_after_the_other(
    codeqa: Command, engine: Engine, shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    piped(monkeypatch, QUESTION, "", "/context 1", "and who calls it?", "/quit", "never")
    result = codeqa("chat", "--no-model", "--repo", shop)
    assert result.status == 0 and "\x1b" not in result.out and "never" not in result.out
    assert [line for line in result.out.splitlines() if line.startswith("> ")] == [
        f"> {QUESTION}", "> /context 1", "> and who calls it?", "> /quit",
    ]  # fmt: skip
    assert "add_article" in result.out
    (kept,) = engine.conversations.all()
    assert kept.turns == 2
    piped(monkeypatch, "/new", "/explain total_price", "/model", "/context 99", "/effort no")
    result = codeqa("chat", "-c", "--no-model", "--repo", shop)
    assert result.status == 2 and f"Going on with: {kept.title}" in result.err
    assert "There is no piece 99." in result.err and "There is no effort no." in result.err
    assert "No model is used" in result.out
    assert [one.turns for one in engine.conversations.all()] == [1, 2]
    piped(monkeypatch, QUESTION)
    assert codeqa("chat", "--repo", tmp_path).status == 1, "it has no index"


def test_ctrl_c_ends_an_answer_and_what_came_is_kept(
    codeqa: Command, engine: Engine, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(events: Iterator[Any]) -> int:
        for event in events:
            if event.kind == "token":
                raise KeyboardInterrupt
        return 0

    with monkeypatch.context() as here:
        here.setattr(conversing, "print_answer", interrupted)
        piped(here, QUESTION, "/strict")
        result = codeqa("chat", "--no-model", "--repo", shop)
    assert "Stopped; what came is kept." in result.err and "strict is on." in result.out
    (kept,) = engine.conversations.all()
    (turn,) = engine.conversations.turns(kept.id)
    assert not turn.finished and turn.answer


def test_lines_are_read_where_python_has_no_line_editing(
    codeqa: Command, engine: Engine, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(["total_price"])

    def type_line(text: str) -> str:
        if line := next(lines, ""):
            return line
        raise EOFError

    monkeypatch.setitem(sys.modules, "readline", None)
    monkeypatch.setattr("builtins.input", type_line)
    monkeypatch.setattr(prompt, "_more_is_there", lambda: False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    result = codeqa("chat", "--no-model", "--repo", shop)
    assert result.status == 0 and "def total_price" in result.out


def test_a_file_whose_name_commands_the_terminal_is_not_offered() -> None:
    items = [SimpleNamespace(text=name, kind="file") for name in ("a\x1b[2J.py", "app.py")]
    complete = SimpleNamespace(complete=lambda _: SimpleNamespace(items=items))
    talk = conversing.Conversing(cast(Engine, SimpleNamespace(completion=complete)), AskOptions(""))
    assert talk.completions("what does @a", "@a") == ["@app.py "]
