"""What a user of `research/benchmarks/users.py` does; read by locust."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

import requests
from locust import HttpUser, between, events, task

SUBJECTS = (
    "a request is routed", "a blueprint is registered", "the session is signed",
    "a template is rendered", "the configuration is read", "an error handler is found",
    "a response is made", "the test client sends", "a command is registered",
    "the application context is pushed",
)  # fmt: skip
USERS, QUESTIONS = itertools.count(), itertools.count()
TIMES: dict[str, list[float]] = {"first_text": [], "whole_answer": [], "search": []}
TOLD: dict[str, Any] = {"asked": [], "broken": [], "errors": []}
GONE = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)


class Asker(HttpUser):
    wait_time = between(30, 60)

    def on_start(self) -> None:
        self.number = next(USERS)
        self.client.headers["Authorization"] = f"Bearer token-of-user-{self.number}"
        # A browser opens connections anew; one that is kept leads to one process for ever.
        self.client.headers["Connection"] = "close"
        time.sleep(random.uniform(0, 45))

    @task(2)
    def ask(self) -> None:
        subject = f"how {random.choice(SUBJECTS)}, asked {next(QUESTIONS)}"
        conversation, started, text = f"c{self.number}", time.monotonic(), False
        body = {"question": f"@codebase {subject}", "conversation": conversation, "render": True}
        ended = False
        try:
            response = self.client.post("/chat/stream", json=body, stream=True, timeout=60)
            if response.status_code not in (0, 200):
                TOLD["errors"].append(f"ask {response.status_code}")
                return
            if response.status_code == 200:
                for line in response.iter_lines(chunk_size=None):
                    if b'"stage":"asked"' in line:  # the page knows from then on that it is kept
                        TOLD["asked"].append(subject)
                    if line.startswith(b"0:") and not text:
                        text = True
                        TIMES["first_text"].append(time.monotonic() - started)
                    elif line.startswith(b"3:"):
                        TOLD["errors"].append(f"ask {line[:200].decode()}")
                    ended = ended or line.startswith(b"d:")
        except GONE:
            pass
        if ended:
            TIMES["whole_answer"].append(time.monotonic() - started)
        else:
            self.look_again(conversation, subject, time.time())

    def look_again(self, conversation: str, subject: str, at: float) -> None:
        """As the page does when its connection breaks: load the conversation, and read on where
        the answer is still being written."""
        for _ in range(60):
            time.sleep(1)
            try:
                opened = self.client.get(f"/api/conversations/{conversation}", timeout=30)
                if opened.status_code == 0:  # no connection, says locust
                    continue
                if opened.status_code == 404 and subject not in TOLD["asked"]:
                    return self.ask()  # the request itself did not arrive: it is sent again
                if opened.json()["answering"]:
                    joined = self.client.get(f"/api/conversations/{conversation}/answer")
                    if joined.status_code == 200:
                        assert b'"broke_off"' in joined.content or b"\nd:" in joined.content
                    continue
            except GONE:
                continue
            last = opened.json()["turns"][-1]
            if last["question"] != subject and subject not in TOLD["asked"]:
                return self.ask()
            if last["question"] != subject:
                end = "not kept"
            elif last["error"]:
                end = last["error"]["code"]
            else:
                end = "whole" if last["finished"] else "stopped"
            end = f"{end}, {'with' if last['answer'] else 'without'} text"
            TOLD["broken"].append({"at": at, "end": end})
            return None
        TOLD["broken"].append({"at": at, "end": "no answer for a minute"})
        return None

    @task(1)
    def search(self) -> None:
        for attempt in range(2):
            started = time.monotonic()
            body = {"query": random.choice(SUBJECTS)}
            try:
                response = self.client.post("/api/tools/search_code", json=body, timeout=60)
            except GONE:
                response = None
            if response is None or response.status_code == 0:
                if attempt:
                    TOLD["errors"].append("search: no connection, twice")
                continue
            TIMES["search"].append(time.monotonic() - started)
            if response.status_code != 200:
                TOLD["errors"].append(f"search {response.status_code}")
            return


@events.quitting.add_listener
def tell(environment: Any, **_: Any) -> None:
    times = {}
    for name, found in TIMES.items():
        marks = statistics.quantiles(found, n=100) if len(found) > 1 else [0.0] * 99
        figures = {"p50_s": marks[49], "p95_s": marks[94], "most_s": max(found, default=0)}
        rounded = {key: round(value, 3) for key, value in figures.items()}
        times[name] = {"count": len(found), **rounded}
    failures: Counter[str] = Counter()
    for one in environment.stats.errors.values():
        failures[re.sub(r"/c\d+", "/…", f"{one.method} {one.name}: {one.error}")] += one.occurrences
    told = {"users": environment.runner.target_user_count, "times": times, **TOLD}
    Path(os.environ["TOLD"]).write_text(json.dumps({**told, "locust_failures": failures}))
