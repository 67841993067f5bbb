"""Installs Debian's PostgreSQL for the tests where that may be done; they start servers of their
own. Where there is none, those tests are skipped."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from chromium import install_package


def main() -> int:
    if not shutil.which("initdb") and not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        install_package("postgresql")
    return 0


if __name__ == "__main__":
    sys.exit(main())
