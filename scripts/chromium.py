"""Finds a Chromium for the browser tests, and with `--install` gets one.

Debian's package where the system has apt and the right to use it, Playwright's own download
elsewhere. Prints the path of the browser; exit status 1 with a message if there is none.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
MINUTES_FOR_DOWNLOAD = 8


def find_chromium() -> str:
    """Path of a Chromium that starts, or ''."""
    candidates = [shutil.which(name) for name in NAMES]
    candidates += [str(MAC) if MAC.exists() else None, _playwright_browser()]
    return next((path for path in candidates if path and _starts(path)), "")


def install_chromium() -> str:
    """Install Chromium and return its path; '' if no way led to one."""
    if install_package("chromium") and (found := find_chromium()):
        return found
    _say("Downloading Playwright's Chromium")
    _run([sys.executable, "-m", "playwright", "install", "chromium"])
    return find_chromium()


def install_package(name: str) -> bool:
    """Install a package of Debian; False where there is no right to, or no apt."""
    if root_prefix := _apt_prefix():
        _say(f"Installing Debian's package {name}")
        apt = [*root_prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]
        package = [*apt, "install", "--no-install-recommends", name]
        # A fresh system has no list of packages yet.
        return _run(package) or (_run([*apt, "update"]) and _run(package))
    return False


def _apt_prefix() -> list[str]:
    """How to call apt-get as root (`["env"]` or sudo), [] if there is no right or no apt.

    Ubuntu's package `chromium` only starts a snap, which does not run everywhere.
    """
    release = Path("/etc/os-release")
    if not shutil.which("apt-get") or (release.exists() and "ID=ubuntu" in release.read_text()):
        return []
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return ["env"]
    if shutil.which("sudo") and _run(["sudo", "-n", "true"]):
        return ["sudo", "-n"]
    return []


def _playwright_browser() -> str | None:
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            path = playwright.chromium.executable_path
    except Exception:
        # Playwright is missing or has no driver for this system: then it has no browser either.
        return None
    return path if Path(path).exists() else None


def _starts(path: str) -> bool:
    """Whether the browser runs; a snap's stub is found but does not."""
    try:
        subprocess.run([path, "--version"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _run(command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=MINUTES_FOR_DOWNLOAD * 60,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Print the path of Chromium, or install it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install one if none is found")
    install = parser.parse_args().install
    program = find_chromium()
    if not program and install:
        program = install_chromium()
    if not program:
        _say(
            "No Chromium was found, and none could be installed. Install Chromium or Google "
            "Chrome, or run the tests without the page: make test BROWSER=no"
        )
        return 1
    if not install:
        print(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
