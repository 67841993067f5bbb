"""A model to be asked from any thread."""

from __future__ import annotations

import concurrent.futures
import weakref
from collections.abc import Generator, Sequence
from types import TracebackType

from codeqa.llm.background import Background, End, Feed, closed
from codeqa.llm.connection import Connection
from codeqa.llm.endpoint import Cancelled, Endpoint, Message, TokenUsage, never
from codeqa.text.tokens import well_formed

ASK_SECONDS = 0.05
"""How often `cancelled` is asked while nothing comes."""
TIMEOUT_SECONDS = 120.0
"""Silence after which a model counts as lost, unless the settings say otherwise."""


class Model:
    """The model of an endpoint; safe to share between threads.

    It has one thread, and keeps connections open for the next request, until it is closed or
    nobody holds it any more.
    """

    def __init__(self, endpoint: Endpoint, timeout: float = TIMEOUT_SECONDS) -> None:
        self.endpoint = endpoint
        self._connection = Connection(endpoint, timeout)
        self._background = Background(f"model at {endpoint.host}")
        self._finish = weakref.finalize(self, _close, self._background, self._connection)

    @property
    def name(self) -> str:
        """`provider/name`."""
        return self.endpoint.name

    @property
    def model(self) -> str:
        """The model's name at its host."""
        return self.endpoint.model

    @property
    def host(self) -> str:
        """Host name that texts are sent to."""
        return self.endpoint.host

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        cancelled: Cancelled = never,
    ) -> Generator[str | TokenUsage, None, None]:
        """Yield the answer's text in pieces as they come, never empty, and at last its TokenUsage
        where the provider says it.

        Once `cancelled()` is true, or the iterator is closed, the request is closed as well and
        the iterator ends. Raises ModelError, ContextLengthError when less might do.
        """
        if cancelled():
            return
        feed = Feed()
        task = self._background.submit(self._connection.chat(list(messages), max_tokens, feed))
        ended = False
        try:
            while not cancelled():
                piece = feed.get(ASK_SECONDS)
                # A request that does not let itself be ended in time ends with its loop.
                if piece is None and not self._background.alive:
                    piece = feed.get(0) or End(closed())
                if isinstance(piece, End):
                    ended = True
                    if piece.error is not None:
                        raise piece.error
                    return
                if piece is not None:
                    yield piece
        finally:
            if not ended:
                task.cancel()

    def complete(
        self, messages: Sequence[Message], max_tokens: int, cancelled: Cancelled = never
    ) -> str:
        """The whole answer; what there is of it once `cancelled()` is true.

        It is streamed as well: so a slow model shows that it lives. Raises ModelError.
        """
        pieces = self.stream(messages, max_tokens=max_tokens, cancelled=cancelled)
        return well_formed("".join(piece for piece in pieces if isinstance(piece, str)))

    def list_models(self) -> list[str]:
        """Names of the models of this endpoint's server. Raises ModelError."""
        try:
            return self._background.submit(self._connection.list_models()).result()
        except concurrent.futures.CancelledError:
            raise closed() from None

    def prepare(self) -> concurrent.futures.Future[None]:
        """Load the client meanwhile: the first request need not wait for it."""
        return self._background.submit(self._connection.open())

    def close(self) -> None:
        """End what runs, close all connections and the thread."""
        self._finish()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _close(background: Background, connection: Connection) -> None:
    background.close(connection.close())
