"""An engine whose answers are written down, behind the seam that `open_engine` gives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from codeqa.errors import CodeQAError, NotFoundError
from codeqa.types import Chunk, ContextBlock, Event, Hit, IndexStatus, Skipped, Unit

SESSIONS = '''"""Sessions that are kept in a signed cookie."""

from __future__ import annotations

import hashlib


class SessionInterface:
    """The base of everything that keeps sessions.

    Replace it to keep them in a database.
    """

    def open_session(self, app, request):
        """Open the session of a request, or return None."""
        raise NotImplementedError

    def save_session(self, app, session, response):
        raise NotImplementedError


class SecureCookieSessionInterface(SessionInterface):
    salt = "cookie-session"
    digest_method = staticmethod(hashlib.sha1)

    def open_session(self, app, request):
        value = request.cookies.get(app.config["SESSION_COOKIE_NAME"])
        if not value:
            return {}
        max_age = int(app.permanent_session_lifetime.total_seconds())
        try:
            return self.serializer(app).loads(value, max_age=max_age)  # raises when forged
        except ValueError:
            return {}
'''
LONG = "\n".join(f"value_{number} = {number}" for number in range(1, 2001)) + "\n"

FILES = {
    "src/store/sessions.py": ("python", SESSIONS),
    "src/store/long.py": ("python", LONG),
    "README.md": ("markdown", "# Store\n\nKeeps sessions.\n"),
    "src/<img src=x onerror=window.hacked=1>.js": (
        "javascript",
        "<script>window.hacked=1</script>\n",
    ),
}

ANSWER = """This answer is put together from the code itself: signatures, comments and lines.

**`SecureCookieSessionInterface.open_session`** [src/store/sessions.py:25-33] reads the cookie \
named by `SESSION_COOKIE_NAME` and gives an empty session when there is none.

> Open the session of a request, or return None.

```python
def open_session(self, app, request):
    value = request.cookies.get(app.config["SESSION_COOKIE_NAME"])
    if not value:
        return {}
```

Where it is used:

- called while a request is opened [src/store/long.py:1200-1210]
- the base class [src/store/sessions.py:8-20] only declares it
- one that is invented [src/nowhere.py:1-2]

| what | where |
|:-----|------:|
| salt | [src/store/sessions.py:22] |
"""


class FakeChat:
    """Answers by what the question contains: `slow`, `silent`, `fail`, `crash`, `say:…`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.cancelled = threading.Event()

    def ask(
        self,
        question: str,
        *,
        rerank: bool = False,
        conversation: str = "",
        cancelled: Callable[[], bool] | None = None,
    ) -> Iterator[Event]:
        self.asked.append(
            {"question": question, "rerank": rerank, "conversation": conversation}
        )  # fmt: skip
        about = {"intent": "knowledge_base", "confidence": 0.92}
        yield Event("classified", about)
        if "fail" in question:
            yield Event("error", {"message": "It did not work.", "hint": "Try it again."})
            return
        if "crash" in question:
            raise RuntimeError("secret detail of the crash")
        yield Event("retrieved", {"num_docs": 4, "similar_queries": 2})
        yield Event("generating")
        answer = question.split("say:", 1)[1] if "say:" in question else ANSWER
        while "silent" in question:
            if cancelled is not None and cancelled():
                self.cancelled.set()
                return
            time.sleep(0.02)
        if "slow" in question:
            answer = "".join(f"Paragraph {n} of a long answer.\n\n" for n in range(2000))
        for start in range(0, len(answer), 24):
            if cancelled is not None and cancelled():
                self.cancelled.set()
                yield Event("stopped", {"turn": "turn-stopped"})
                return
            if "slow" in question:
                time.sleep(0.01)
            yield Event("token", {"text": answer[start : start + 24]})
        unverified = {"path": "src/store/long.py", "start": 1200, "end": 1210, "verified": False}
        verified = {"path": "src/store/sessions.py", "start": 25, "end": 33, "verified": True}
        yield Event(
            "done",
            {
                **about,
                "retrieval_info": {"num_docs": 4, "similar_queries": 2},
                "query_tags": ["codebase"],
                "turn": "turn-1",
                "citations": [verified, *([unverified] if "unverified" in question else [])],
                "coverage": "4 of 4 files, text and symbols; no vectors",
            },
        )

    def context(self, turn_id: str) -> ContextBlock:
        if turn_id != "turn-1":
            raise NotFoundError("There is no such answer.", "Ask again.")
        chunk = Chunk("c1", "src/store/sessions.py", 25, 33, "python", "x" * 310, why="name match")
        left = Chunk("c2", "src/store/long.py", 1, 2000, "python", "y" * 40_000)
        text = "[CONTEXT]\n=== CHUNK 1 ===\nId: c1\nPath: <b>src</b>/store/sessions.py\n"
        return ContextBlock(text, (chunk,), (left,))


class FakeFiles:
    def read(self, path: str) -> Any:
        if path not in FILES:
            raise NotFoundError(f"{path!r} is not an indexed file.", "Only those can be opened.")
        language, text = FILES[path]
        return SimpleNamespace(
            path=path, language=language, text=text, changed=path == "README.md"
        )  # fmt: skip

    def paths(self) -> list[str]:
        return sorted(FILES)

    def line_count(self, path: str) -> int | None:
        return FILES[path][1].count("\n") if path in FILES else None


class FakeIndex:
    def __init__(self) -> None:
        self.current = IndexStatus(
            repository="/home/you/src/store", name="store", state="ready", files=4, units=31,
            references=120, skipped={"binary": 2, "larger than 1,000,000 bytes": 1},
            updated_at=time.time() - 130,
        )  # fmt: skip

    def status(self) -> IndexStatus:
        return self.current

    def skipped(self) -> list[Skipped]:
        return [
            Skipped("logo.png", "binary"),
            Skipped("<i>font</i>.woff", "binary"),
            Skipped("data/dump.sql", "larger than 1,000,000 bytes"),
        ]

    def start_background(self) -> None: ...

    def stop(self) -> None: ...


class FakeSearch:
    def search(self, question: str, **options: Any) -> Any:
        if question != "store":
            raise CodeQAError("no more")
        unit = Unit("src/store/sessions.py", "python", "class", "SessionInterface",
                    "SessionInterface", SESSIONS, 8, 20)  # fmt: skip
        return SimpleNamespace(units=(Hit(unit, 1.0),))


class FakeEngine:
    def __init__(self) -> None:
        root = Path("/home/you/src/store")
        self.location = SimpleNamespace(id="store-0123abcd", name="store", root=root)
        self.index, self.search = FakeIndex(), FakeSearch()
        self.chat, self.files = FakeChat(), FakeFiles()

    def close(self) -> None: ...
