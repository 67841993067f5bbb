"""`python -m codeqa` is the command `codeqa`."""

# Only modules that are loaded already: others could come from the working directory.
# ruff: noqa: PTH109, PTH120

import os
import sys

if __name__ == "__main__":
    # `-m` puts the working directory first, where a repository's files would take the place
    # of libraries. It stays when this package itself was found there.
    package_parent = os.path.dirname(os.path.dirname(__file__))
    if sys.path[:1] == [os.getcwd()] != [package_parent]:
        del sys.path[0]
    from codeqa.cli import main

    sys.exit(main())
