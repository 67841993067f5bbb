"""Says when something changed in a folder, as the operating system tells it, else by looking."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

QUIET_MS, AT_MOST_MS = 50, 1_000
"""Changes are told together once none has come for so long, or when the first is so old: editors
write a file in several steps, and a change of branch writes thousands."""
WAKE_MS = 250
POLL_MS = 2_000
"""Between two looks at all files, where events cannot be had: a network folder, or more folders
than the system watches for one user."""

logger = logging.getLogger(__name__)


def changes(root: Path, own: Sequence[Path], stop: threading.Event) -> Iterator[None]:
    """Yield once when changes will be noticed from now on, then after changes below `root`, until
    `stop` is set. What git keeps for itself, but for what says which files count, and what lies in
    `own` is no change.

    What happens while nobody asks is told with the next step. Raises OSError when `root` is gone,
    and OSError or RuntimeError when looking fails as well.
    """
    from watchfiles import watch

    ignored = tuple(f"{folder.as_posix()}/" for folder in (root / ".git", *own))

    rules = {(root / ".git" / name).as_posix() for name in ("index", "info/exclude")}

    def counts(_: object, path: str) -> bool:
        name = Path(path).as_posix()
        return name in rules or not f"{name}/".startswith(ignored)

    began = False
    for polling in (False, True):
        try:
            for changed in watch(
                root, watch_filter=counts, stop_event=stop, debounce=AT_MOST_MS, step=QUIET_MS,
                rust_timeout=WAKE_MS, yield_on_timeout=True, raise_interrupt=False,
                force_polling=polling, poll_delay_ms=POLL_MS,
                # Asked of events it would hide that the limit of watched folders is reached.
                ignore_permission_denied=polling,
            ):  # fmt: skip
                if changed or not began:
                    began = True
                    yield
            return
        except (OSError, RuntimeError):  # the limit of watched folders, and what has no name
            if polling or not root.is_dir():
                raise
        logger.warning("Changes of %s cannot be had from the system and are looked for.", root)
