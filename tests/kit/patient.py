"""A fixture for a module: no limit of the product ends ordinary work on a busy machine. A test of
such a limit sets it itself."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.kit.waiting import PATIENCE

LIMITS = {
    "codeqa.chat.ask": ("FLUSH_SECONDS",),
    "codeqa.chat.conversations": ("FLUSH_SECONDS",),
    "codeqa.cli.served": ("HELLO_SECONDS",),
    "codeqa.code.descriptions": ("RESOLVE_SECONDS",),
    "codeqa.code.tools.walk": ("WALK_SECONDS",),
    "codeqa.code.tools.history": ("GIT_SECONDS",),
    "codeqa.indexing.background": ("UPDATE_SECONDS",),
    "codeqa.llm.client": ("CONNECT_SECONDS", "FETCH_SECONDS", "LOCAL_SECONDS"),
    "codeqa.llm.models": ("LOCK_SECONDS",),
    "codeqa.render": ("COLOUR_SECONDS",),
    "codeqa.repositories.files": ("SEARCH_SECONDS",),
    "codeqa.repository.remotes": ("HOST_SECONDS",),
    "codeqa.repository.walk": ("GIT_SECONDS", "SOON_SECONDS"),
    "codeqa.search.rerank_models": ("HOSTED_SECONDS", "LOCAL_SECONDS"),
    "codeqa.state.cache": ("SOCKET_SECONDS",),
    "codeqa.state.database": ("BUSY_SECONDS",),
    "codeqa.web.board": ("ENDING_SECONDS", "LATE"),
    "codeqa_server.streams": ("ALIVE_SECONDS", "ENDING_SECONDS"),
}


@pytest.fixture(scope="module")
def patient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, names in LIMITS.items():
            for name in names:
                patch.setattr(import_module(module), name, int(PATIENCE))
        yield
