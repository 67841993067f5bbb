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

    def __init_subclass__(cls) -> None:
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


class UsageError(CodeQAError):
    """The call itself is wrong: a missing folder, an unknown filter, a bad value."""

    exit_status = 2
    code = "usage"
    http_status = 400


class SettingsError(CodeQAError):
    """A setting has a value that cannot be used."""

    exit_status = 2
    code = "settings"
    http_status = 400


class RepositoryError(CodeQAError):
    """The repository cannot be read."""

    code = "repository"
    http_status = 400


class IndexMissingError(CodeQAError):
    """Nothing has been indexed yet."""

    code = "index_missing"
    http_status = 409


class IndexFormatError(CodeQAError):
    """The index was written by another format version, embedding or dimension."""

    code = "index_format"
    http_status = 409


class IndexBusyError(CodeQAError):
    """Another run holds the lock of this index."""

    code = "index_busy"
    http_status = 409


class StorageError(CodeQAError):
    """The folder that holds indices and state is full, read-only or damaged."""

    code = "storage"
    http_status = 507


class NotFoundError(CodeQAError):
    """A file, unit or turn that was asked for is not in the index."""

    code = "not_found"
    http_status = 404


class EmbeddingError(CodeQAError):
    """An embedding provider failed: key, network, rate limit or dimension."""

    code = "embedding"
    http_status = 502


class RerankerError(CodeQAError):
    """The chosen reranker cannot be loaded or run: packages, checkpoint, network or time."""

    code = "reranker"
    http_status = 502


class ModelError(CodeQAError):
    """A language model failed."""

    code = "model"
    http_status = 502


class ContextLengthError(ModelError):
    """What was sent is longer than the model can read; less of it may do."""

    code = "context_length"


class ToolsRefusedError(ModelError):
    """The model, or its server, does not take descriptions of tools."""


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
