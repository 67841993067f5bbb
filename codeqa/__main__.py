"""`python -m codeqa` is the command `codeqa`."""

import sys

from codeqa.cli import main

if __name__ == "__main__":
    sys.exit(main())
