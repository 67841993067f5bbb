"""Install Debian's PostgreSQL for the tests, if that is permitted.

They start servers of their own, and are skipped where there is no PostgreSQL.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from chromium import install_package


def main() -> int:
    """Install it unless it is there."""
    if not shutil.which("initdb") and not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        install_package("postgresql")
    return 0


if __name__ == "__main__":
    sys.exit(main())
