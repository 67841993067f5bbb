"""Vectors of questions, by which topics and earlier questions are told apart."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from codeqa.chat.topic import Vector
from codeqa.errors import EmbeddingError
from codeqa.search import says_something
from codeqa.text.tokens import well_formed

log = logging.getLogger(__name__)


class Encoder(Protocol):
    """The query side of an embedding on this machine."""

    @property
    def name(self) -> str: ...

    def embed_query(self, text: str) -> Vector: ...


class QuestionVectors:
    """Makes vectors with the encoder that `find` gives, asked for once; it may give None.

    No question is worth failing for the lack of a vector: without one nothing is compared.
    """

    def __init__(self, find: Callable[[], Encoder | None]) -> None:
        self._find = find
        self._found: Encoder | None = None
        self._looked = False
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the embedding; '' without one."""
        encoder = self._encoder()
        return encoder.name if encoder else ""

    def __call__(self, text: str) -> Vector | None:
        """Vector (d,) of `text`; None where the embedding knows no word of it, or where none of
        them does more than ask: "why is that?" is like every other such question and belongs
        to every topic."""
        encoder = self._encoder()
        if encoder is None or not says_something(text):
            return None
        try:
            vector = encoder.embed_query(well_formed(text))
        except EmbeddingError as error:
            log.warning("a question got no vector: %s", error)
            return None
        return vector if vector.any() else None

    def _encoder(self) -> Encoder | None:
        with self._lock:
            if not self._looked:
                try:
                    self._found = self._find()
                except EmbeddingError as error:
                    log.warning("questions get no vectors: %s", error)
                self._looked = True
            return self._found


def write_vector(vector: Vector) -> bytes:
    """`vector` as it is stored: float16, little endian."""
    return vector.astype("<f2").tobytes()


def read_vector(stored: bytes) -> Vector:
    """Inverse of `write_vector`, as float32."""
    import numpy as np

    return np.frombuffer(stored, dtype="<f2").astype(np.float32)
