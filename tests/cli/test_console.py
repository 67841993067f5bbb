"""Progress, the summary and errors as a person sees them."""

from __future__ import annotations

import io
import threading

import pytest

from codeqa.chat.events import Waiting
from codeqa.cli import command, console
from codeqa.cli.answers import watched
from codeqa.errors import RepositoryError, UsageError
from codeqa.types import IndexSummary, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def failing(error: BaseException) -> int:
    @command.command("fail", [])
    def fail() -> None:
        raise error

    return command.run_command(fail, ())


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (RepositoryError("It is gone.", "Look elsewhere."), 1, "It is gone. Look elsewhere."),
        (UsageError("No such kind."), 2, "No such kind."),
        (PermissionError(13, "Permission denied", "a.py"), 1, "a.py: Permission denied."),
        (ValueError("two\nlines"), 1, "unexpected ValueError: two lines."),
        (KeyboardInterrupt(), 1, "interrupted. What is done is kept"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_is_one_line_and_a_status(
    error: BaseException, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(error) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("codeqa: ") and shown.err.count("\n") == 1
    assert line in shown.err


def shown_on(stream: io.StringIO) -> str:
    """What is shown of 60 seconds of parsing, 1 of which stands still, and 2 of walking."""
    now = [0.0]
    with console.ProgressDisplay(stream, clock=lambda: now[0]) as show:
        for done in range(1, 241):
            now[0] += 0.25
            show(Progress("parsing", done, 241))
        now[0] += 1.0
        show.tick()
        show(Progress("walking", 3, 0))
        for _ in range(8):
            now[0] += 0.25
            show.tick()
    return stream.getvalue()


def test_elsewhere_than_on_a_terminal_lines_say_what_is_done_and_how_much_is_left() -> None:
    lines = shown_on(io.StringIO()).splitlines()
    assert lines[:2] == ["parsing: 1 of 241 (0%)", "parsing: 4 of 241 (1%)"]
    assert lines[2] == "parsing: 7 of 241 (2%), 50 s left", "one every 0.75 of 60 s"
    assert lines[79:] == [
        "parsing: 238 of 241 (98%), 1 s left",
        "parsing: 240 of 241 (99%), 0 s left",
        "walking", "walking, 1 s", "walking, 2 s",
    ]  # fmt: skip


def test_on_a_terminal_each_phase_has_one_line_whose_last_state_stays() -> None:
    parsing, walking, end = shown_on(Terminal()).split("\n")
    assert parsing.count("\r\x1b[K") == 82
    assert parsing.endswith("\x1b[Kparsing: 240 of 241 (99%), 0 s left")
    shown = [*dict.fromkeys(walking.split("\r\x1b[K"))]
    assert shown == ["", "walking", "walking, 1 s", "walking, 2 s"]
    assert end == ""


def test_that_work_is_paused_is_said_once() -> None:
    stream, now = io.StringIO(), [0.0]
    with console.ProgressDisplay(stream, clock=lambda: now[0]) as show:
        show(Progress("indexing, paused", 1, 2))
        now[0] = 3_600.0
        show.tick()
        assert stream.getvalue() == "indexing, paused: 1 of 2 (50%), 0 s left\n"


def test_a_display_that_nobody_listens_to_any_more_ends_quietly() -> None:
    stream, threads = io.StringIO(), set(threading.enumerate())
    show = console.ProgressDisplay(stream, clock=iter(range(99)).__next__)
    show(Progress("walking", 0, 0))
    stream.close()
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)
        assert not thread.is_alive()


def test_on_a_terminal_the_seconds_that_a_model_is_waited_for_count_down() -> None:
    words = "api.example.com asks to wait 7 s"
    events = [Waiting(words, left, begins=True) for left in (7, 0)]
    stream = Terminal()
    list(watched(iter(events), console.Line(stream), use_model=True))
    shown = [line.rstrip() for line in stream.getvalue().split("\r\x1b[K") if line]
    assert shown == ["api.example.com asks to wait 7 s…", "Waiting for the language model…"]


def test_the_summary_tells_everything_in_aligned_columns() -> None:
    summary = IndexSummary(
        repository="/src/flask", files=236, methods=1_200, classes=98, documents=310,
        references=9_876, changed=230, removed=1, unchanged=5, replaced=2, broken=3,
        skipped={"binary": 12, "lock file": 1}, seconds=75.2, bytes_on_disk=12_345_678,
        vectors={"codeqa/code-table-1": 1_608, "openai/large": 20},
        skipped_files={"binary": [f"{n}.png" for n in range(12)]},
        broken_files=[f"{n}.py" for n in range(3)],
    )  # fmt: skip
    stream = io.StringIO()
    console.print_summary(summary, stream)
    assert stream.getvalue().splitlines() == [
        "Indexed /src/flask",
        "  files           236 (230 new or changed, 5 unchanged, 1 removed)",
        "  methods         1,200",
        "  classes         98",
        "  documents       310",
        "  references      9,876",
        "  vectors         1,608 of codeqa/code-table-1",
        "                  20 of openai/large",
        "  parsed in part  3 with syntax errors: 0.py, 1.py, 2.py",
        "  not UTF-8       2 files, indexed with replacements",
        "  skipped         13",
        "                  12 binary: 0.png, 1.png, 2.png, …",
        "                  1 lock file",
        "  time            75.2 s",
        "  on disk         12.3 MB",
    ]


def test_a_table_sets_numbers_right_and_text_left() -> None:
    sizes = [console.human_bytes(size) for size in (7, 999_600, 6_780_000, 12.5e9)]
    assert sizes == ["7 B", "1 MB", "6.78 MB", "12.5 GB"]
    table = console.format_table(("name", "files"), [("flask", "236"), ("go", "1,200")])
    assert table.splitlines() == ["name   files", "flask    236", "go     1,200"]


@pytest.mark.parametrize("characters", [1, 2, 3, 7, 10_000])
def test_an_answer_is_shown_on_a_terminal_without_marks_of_markdown(characters: int) -> None:
    text = r"""
# Head `x`
a \*b\* \_\_init\_\_ \\n [a/__tests__/x.py:3] 2 * 3 *said* ``a `b` ``
- **`f*g*`** and **strong**
````c src/a.c:1-2
"\*" `_` **p
```
\#
````

```mermaid
flowchart LR
n1 --> n2
```
\# end **open"""
    plain = console.PlainText()
    pieces = (text[at : at + characters] for at in range(0, len(text), characters))
    shown = "".join(map(plain.feed, pieces)) + plain.feed("", last=True)
    expected = r"""
<Head x>
a *b* __init__ \n [a/__tests__/x.py:3] 2 * 3 said a `b`
- <f*g*> and <strong>
    "\*" `_` **p
    ```
    \#

# end **open"""
    assert shown == expected.replace("<", "\x1b[1m").replace(">", "\x1b[0m")


HOSTILE = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\x9b31md\re\x08f\u202eg\u2066h\x00i\x7f"


def test_nothing_that_a_terminal_would_obey_is_shown() -> None:
    shown = console.visible(f"{HOSTILE}\tj\nk \u00e9 \u4e2d \U0001f600")
    assert not any((ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert "\u202e" not in shown and "\u2066" not in shown
    assert "a\u241b]52;c;ZXZpbA==\u2407b" in shown and shown.endswith(
        "\tj\nk \u00e9 \u4e2d \U0001f600"
    )


@pytest.mark.parametrize("fence", ["", "```\n"])
def test_an_answer_cannot_command_the_terminal(fence: str) -> None:
    plain = console.PlainText()
    shown = "".join(map(plain.feed, f"{fence}{HOSTILE}\n"))
    assert shown == f"{'    ' * bool(fence)}{console.visible(HOSTILE)}\n"


def test_an_error_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    failing(RepositoryError(HOSTILE))
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1 and "\x1b" not in shown and "\x9b" not in shown
