"""The errors that CodeQA raises on purpose, each with its exit status and HTTP status."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

_KINDS: dict[str, type[CodeQAError]] = {}
"""Code → the most general error with it, for `error_from`."""


class CodeQAError(Exception):
    """A failure that can be explained.

    `message` says what failed, `hint` what to do next; both are single sentences.
    """

    exit_status = 1
    code = "error"
    http_status = 500

    def __init_subclass__(cls, code: str = "", http_status: int = 0, exit_status: int = 0) -> None:
        if code:
            cls.code = code
            _KINDS[code] = cls
        cls.http_status = http_status or cls.http_status
        cls.exit_status = exit_status or cls.exit_status

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def as_data(self) -> dict[str, str]:
        """Return the data of an `error` event."""
        return {"message": self.message, "hint": self.hint, "code": self.code}


class UsageError(CodeQAError, code="usage", http_status=400, exit_status=2):
    """The call itself is wrong: a missing folder, an unknown filter, a bad value."""


class SettingsError(CodeQAError, code="settings", http_status=400, exit_status=2):
    """A setting has a value that cannot be used."""


class RepositoryError(CodeQAError, code="repository", http_status=400):
    """The repository cannot be read."""


class IndexMissingError(CodeQAError, code="index_missing", http_status=409):
    """Nothing has been indexed yet."""


class IndexFormatError(CodeQAError, code="index_format", http_status=409):
    """The index was written by another format version, embedding or dimension."""


class IndexBusyError(CodeQAError, code="index_busy", http_status=409):
    """Another run holds the lock of this index."""


class StorageError(CodeQAError, code="storage", http_status=507):
    """The folder that holds indices and state is full, read-only or damaged."""


class NotFoundError(CodeQAError, code="not_found", http_status=404):
    """The requested file, unit or turn does not exist."""


class ClusterError(CodeQAError, code="cluster", http_status=502):
    """The machines of a cluster cannot be reached, differ, or have stopped."""


class AnswerStoppedError(CodeQAError, code="not_ready", http_status=503):
    """An answer was stopped early: by its user, or because the server ends."""


class EmbeddingError(CodeQAError, code="embedding", http_status=502):
    """An embedding provider failed: key, network, rate limit or dimension."""


class RerankerError(CodeQAError, code="reranker", http_status=502):
    """The chosen reranker cannot be loaded or run: packages, checkpoint, network or time."""


class ModelError(CodeQAError, code="model", http_status=502):
    """A language model failed."""


class ContextLengthError(ModelError, code="context_length"):
    """The request is longer than the model can read; a shorter one may do."""


class RateLimitError(ModelError):
    """The provider limits requests or is overloaded, and asks to wait `seconds` (0: unknown)."""

    def __init__(self, message: str, hint: str = "", seconds: float = 0.0) -> None:
        super().__init__(message, hint)
        self.seconds = seconds


def error_from(data: Mapping[str, Any]) -> CodeQAError:
    """Make the error that the data of an `error` event describes."""
    kind = _KINDS.get(str(data.get("code")), CodeQAError)
    return kind(str(data["message"]), str(data.get("hint", "")))


def places_of(error: BaseException | None) -> str:
    """Return the types and tracebacks of `error` and its causes, for a log.

    Messages are left out, because a library may quote the question, code or a key in one.
    """
    lines: list[str] = []
    while error is not None:
        lines += [f"{type(error).__name__}\n", *traceback.format_tb(error.__traceback__)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "".join(lines).rstrip()
