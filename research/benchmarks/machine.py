"""What figures depend on beside the code (machine, Python, commit, command), what a running
process and a folder take, and how a server that is measured is waited for."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import os
import platform
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS_TO_START = 60.0


def conditions(command: list[str]) -> dict[str, Any]:
    """Command, commit and machine of a run, to stand beside its figures."""
    return {
        "command": shlex.join(command),
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
    }


def commit() -> str:
    """Short hash of the checkout, with `+` when there are changes on top; '' without git."""
    found = _git("rev-parse", "--short", "HEAD")
    return found + ("+" if found and _git("status", "--porcelain", "-uno") else "")


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system, Python and the load of the moment."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(load, 1),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_page(port: int, token: str = "") -> None:
    """Until the server at `port` can answer."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", "/ready", headers=headers)
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    raise SystemExit("the page did not start")


def memory_mb(pid: int | str = "self") -> float:
    """Memory that a process holds now; 0.0 where the system does not tell it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) * 1024 / 1e6, 1)
    return 0.0


def open_files(pid: int | str = "self") -> int:
    """Descriptors that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def disk_of(folder: Path) -> tuple[float, int]:
    """MB and number of the files below `folder`; those that vanish meanwhile do not count."""
    sizes = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file():
                sizes.append(path.stat().st_size)
    return round(sum(sizes) / 1e6, 1), len(sizes)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or sys.platform


def _memory() -> int:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError, AttributeError):
        return 0
