"""Every error that CodeQA raises on purpose, each with its exit status and HTTP status."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

_KINDS: dict[str, type[CodeQAError]] = {}
"""Code → the first, most general error that has it."""


class CodeQAError(Exception):
    """A failure that can be explained.

    `message` says what failed, `hint` what to do next; both are single sentences.
    """

    exit_status = 1
    code = "error"
    http_status = 500

    def __init_subclass__(cls, code: str = "", http_status: int = 0, exit_status: int = 0) -> None:
        given = {"code": code, "http_status": http_status, "exit_status": exit_status}
        for name, value in given.items():
            if value:
                setattr(cls, name, value)
        if "code" in vars(cls):  # else it is one of its parent's kind, perhaps made otherwise
            _KINDS.setdefault(cls.code, cls)

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def as_data(self) -> dict[str, str]:
        """What an `error` event carries."""
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
    """A file, unit or turn that was asked for is not in the index."""


class ClusterError(CodeQAError, code="cluster", http_status=502):
    """The machines that build an index together cannot be reached, differ, or have stopped."""


class AnswerStoppedError(CodeQAError, code="not_ready", http_status=503):
    """An answer was stopped before its end: by who asked for it, or because the server ends."""


class EmbeddingError(CodeQAError, code="embedding", http_status=502):
    """An embedding provider failed: key, network, rate limit or dimension."""


class RerankerError(CodeQAError, code="reranker", http_status=502):
    """The chosen reranker cannot be loaded or run: packages, checkpoint, network or time."""


class ModelError(CodeQAError, code="model", http_status=502):
    """A language model failed."""


class ContextLengthError(ModelError, code="context_length"):
    """What was sent is longer than the model can read; less of it may do."""


class RateLimitError(ModelError):
    """The provider limits the rate of requests or is overloaded; later it will answer.

    `seconds` is how long it asks to wait, 0 when it does not say.
    """

    def __init__(self, message: str, hint: str = "", seconds: float = 0.0) -> None:
        super().__init__(message, hint)
        self.seconds = seconds


def error_from(data: Mapping[str, Any]) -> CodeQAError:
    """The error that an `error` event tells of, with the statuses of its kind."""
    kind = _KINDS.get(str(data.get("code")), CodeQAError)
    return kind(str(data["message"]), str(data.get("hint", "")))


def places_of(error: BaseException | None) -> str:
    """What `error` and those behind it are, and where in the program: what a log may hold.

    Their words are left out: those of a library may quote the question, code or a key.
    """
    lines: list[str] = []
    while error is not None:
        lines += [f"{type(error).__name__}\n", *traceback.format_tb(error.__traceback__)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "".join(lines).rstrip()
