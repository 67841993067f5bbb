"""Who the users are: the user of this machine, or one for each token.

The first token's user is the owner, who also decides what concerns all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from flask import g

from codeqa.web.errors import RequestRefusedError

FAILURES_ALLOWED = 5
FAILURE_SECONDS = 30.0
"""Wrong tokens per address and window; more are not even compared."""
ADDRESSES_KEPT = 10_000
USER_DIGITS = 8
"""Hexadecimal digits of a token's digest that name its user in the state and in Redis."""


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who may use the server."""

    user: str
    """Under which conversations and contexts are kept; nobody else sees them."""
    owner: bool = True
    """Whether it is this user who chooses the language model, where everybody's questions go,
    and which folders everybody sees."""
    mark: str = field(default="", repr=False)
    """What a session that was let in holds; without its token it is worth nothing."""


LOCAL = Member("local")
"""Everybody at a server without a token: the user of this machine."""


class Gate:
    """Compares tokens in constant time and stops guessing; without tokens it stands open."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._members = {
            _digest(token): Member(
                f"token-{_digest(token).hex()[:USER_DIGITS]}",
                token == tokens[0],
                hmac.new(_digest(token), b"session", hashlib.sha256).hexdigest(),
            )
            for token in tokens
        }
        self.closed = bool(tokens)
        self._lock = threading.Lock()
        self._failures: dict[str, tuple[int, float]] = {}

    def member_of_session(self, mark: str) -> Member | None:
        """Whose session holds `mark`; None for nobody's."""
        members = self._members.values()
        found = [member for member in members if _same(mark.encode(), member.mark.encode())]
        return found[0] if found else None

    def admit(self, token: str, address: str) -> Member | None:
        """Whose `token` it is; None for a wrong one.

        Raises RequestRefusedError (429) after many wrong ones from `address`.
        """
        now = time.monotonic()
        with self._lock:
            count, since = self._failures.get(address, (0, now))
            if now - since > FAILURE_SECONDS:
                count, since = 0, now
            if count >= FAILURES_ALLOWED:
                raise RequestRefusedError(429)
            given = _digest(token.strip())
            # All are compared, so that the time tells nothing of which one came near.
            found = [member for own, member in self._members.items() if _same(given, own)]
            if found:
                self._failures.pop(address, None)
                return found[0]
            if len(self._failures) >= ADDRESSES_KEPT:
                self._failures.clear()
            self._failures[address] = (count + 1, since)
        return None


def member_of_request() -> Member:
    """Who sent this request; the checks before every view have found it out."""
    return cast(Member, g.member)


def _same(one: bytes, other: bytes) -> bool:
    return hmac.compare_digest(one, other)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
