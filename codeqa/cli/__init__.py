"""The command `codeqa`: reads the arguments, calls the engine and prints.

Results go to stdout, everything else to stderr. Exit statuses: 0 done, 1 failed, 2 bad usage.
"""

from codeqa.cli.main import main

__all__ = ["main"]
