"""What the C library keeps of the memory that a program has given back: glibc; elsewhere, nothing
happens."""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
"""`malloc.h`; see mallopt(3)."""
ARENAS = 2
"""Heaps that the threads of a server share. With eight for each core, as is usual, every one keeps
holes of its own: a served repository took 50 MB more after ten minutes of questions and edits."""


def share_heaps() -> None:
    """Let threads that begin from now on share ARENAS heaps."""
    _call("mallopt", M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Give what is free in all heaps to the system."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    with contextlib.suppress(AttributeError, OSError, TypeError):
        getattr(ctypes.CDLL(None), name)(*arguments)
