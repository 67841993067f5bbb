"""What the terminal's surfaces share: progress, figures, and errors of one line."""

from codeqa.cli.console.figures import (
    format_pairs,
    format_table,
    human_bytes,
    human_seconds,
    print_summary,
)
from codeqa.cli.console.progress import ProgressDisplay, describe_progress
from codeqa.cli.console.running import BAD_USAGE, DONE, FAILED, front_door, print_error, run_main
from codeqa.cli.console.text import PlainText, visible
from codeqa.cli.console.waiting import Waiting

__all__ = [
    "BAD_USAGE",
    "DONE",
    "FAILED",
    "PlainText",
    "ProgressDisplay",
    "Waiting",
    "describe_progress",
    "format_pairs",
    "format_table",
    "front_door",
    "human_bytes",
    "human_seconds",
    "print_error",
    "print_summary",
    "run_main",
    "visible",
]
