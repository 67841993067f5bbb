"""All steps in order, from a folder of git mirrors to a table.

collect → mine → split → featurise → train → export → evaluate; every step goes on where it was
stopped. The first four need CodeQA's own requirements, `tokenizers` and numpy; training needs
PyTorch as well (research/requirements-training.txt has all).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from research.training.console import parser, say

EXAMPLES = """\
  python -m research.training.run ~/mirrors --out ~/training
  python -m research.training.run ~/mirrors --out ~/training --benchmark ~/evals/trees \\
      --until featurise
"""

STEPS = ("collect", "mine", "split", "featurise", "train", "export", "evaluate")


def commands(
    mirrors: Path, out: Path, benchmark: Sequence[Path], processes: int
) -> dict[str, list[str]]:
    """Step → its arguments."""
    texts = ["--benchmark", *map(str, benchmark)] if benchmark else []
    arguments = {step: ["--out", str(out)] for step in STEPS}
    arguments["collect"].insert(0, str(mirrors))
    arguments["mine"] += ["--processes", str(processes)]
    arguments["split"] += texts
    return arguments


def run(
    mirrors: Path, out: Path, benchmark: Sequence[Path], processes: int, steps: Sequence[str]
) -> int:
    """Run the steps, each in a process of its own; the exit status of the first that fails."""
    arguments = commands(mirrors, out, benchmark, processes)
    for step in steps:
        started = time.monotonic()
        say(f"== {step}")
        status = subprocess.run(
            [sys.executable, "-m", f"research.training.{step}", *arguments[step]], check=False
        ).returncode
        if status:
            say(f"{step} ended with status {status}; run the same command again to go on there")
            return status
        say(f"== {step}: {time.monotonic() - started:,.0f} s")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of the whole."""
    options = parser("run", __doc__, EXAMPLES)
    options.add_argument("mirrors", type=Path, help="folder of git mirrors, in any usual layout")
    options.add_argument("--benchmark", type=Path, nargs="*", default=(),
                         help="trees and files that no row may repeat")  # fmt: skip
    options.add_argument("--processes", type=int, default=2, help="for mining")
    options.add_argument("--since", choices=STEPS, default=STEPS[0], help="first step")
    options.add_argument("--until", choices=STEPS, default=STEPS[-1], help="last step")
    chosen = options.parse_args(arguments)
    steps = STEPS[STEPS.index(chosen.since) : STEPS.index(chosen.until) + 1]
    return run(chosen.mirrors, chosen.out, chosen.benchmark, chosen.processes, steps)


if __name__ == "__main__":
    sys.exit(main())
