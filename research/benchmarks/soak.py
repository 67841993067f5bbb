"""Long use of a served repository: `python -m research.benchmarks.soak REPOSITORY [--minutes 60]`.

A clone of a git repository is served and followed, with a language model and an embedding that a
scripted server plays. For as long as is asked, at the pace of people, it is

- asked: questions, follow-ups and the tools, every tenth answer left before its end;
- edited: in place, by the rename-writes of editors, new, renamed and deleted files, stashes, and
  changes of branch over hundreds of files; each edit puts a name into the code, or takes one out,
  that nothing else has, and is looked for through the HTTP interface until it is found;
- worked on behind: vectors of the chosen embedding follow each edit, and every ten minutes
  another process builds the whole index anew.

The rule, which stood before the first run of an hour (two trials of a minute came before; after
them its limits of 2 and 15 seconds for finding an edit were dropped for the one below on a
machine whose load was 15). It passes where

- no answer carried a failure, and no request was refused;
- no edit was lost: each was found within `FOUND_WITHIN` seconds, however busy the machine (how soon
  is told beside; `research/benchmarks/fresh.py` measures it on its own);
- at the end the index equals a clean one, row for row;
- over the last two thirds of the time, by the straight line through the samples, memory and tables
  grew by no more than `GROWTH` of their median, and descriptors by no more than `DESCRIPTORS`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from research.benchmarks.machine import ROOT, conditions, disk_of, memory_mb, open_files
from tests.kit.index_rows import clean_rows, rows
from tests.kit.openai_server import Reply, openai_server, stream

FOUND_WITHIN = 60.0
GROWTH, DESCRIPTORS = 0.10, 10
SAMPLE_SECONDS = 30.0
REBUILD_SECONDS = 600.0
DIMENSION = 64
QUESTIONS = (
    "@codebase where are cookies signed?", "@codebase how is a request dispatched?",
    "and why is it done there?", "@codebase who calls `url_for`?", "@codebase what is g?",
    "@codebase how are templates found?", "hello", "@codebase where are errors handled?",
    "@codebase list all the subclasses of Flask", "show me more of that",
)  # fmt: skip
TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("grep", {"pattern": "import"}),
    ("search_code", {"query": "session"}),
    ("list_all", {}),
)
NAME = re.compile(r"soak_[a-z]{12}")


@dataclass(frozen=True, slots=True)
class Sample:
    """What stands at one moment."""

    seconds: float
    memory_mb: float
    open_files: int
    tables_mb: float
    tables_files: int
    state_mb: float
    """Conversations: they are meant to grow."""
    answers: int
    edits: int
    load: float
    """Processes that want a processor, of the whole machine."""


@dataclass(slots=True)
class Log:
    """What happened; each list is written by one thread."""

    samples: list[Sample] = field(default_factory=list)
    answer_seconds: list[float] = field(default_factory=list)
    found_seconds: dict[str, list[float]] = field(default_factory=dict)
    """Kind of edit → seconds until it was found, in order."""
    failures: list[str] = field(default_factory=list)

    def edits(self) -> int:
        return sum(map(len, self.found_seconds.values()))

    def failed(self, what: str) -> None:
        self.failures.append(f"{time.strftime('%H:%M:%S')} {what}")
        print(self.failures[-1], flush=True)


def model(path: str, body: dict[str, Any]) -> Reply:
    """The scripted model: a vector per text, else an answer of some words."""
    if not path.endswith("embeddings"):
        return stream([f"word{number} " for number in range(40)])
    data = []
    for number, text in enumerate(body["input"]):
        dice = random.Random(str(text))
        vector = [dice.gauss(0, 1) for _ in range(DIMENSION)]
        data.append({"object": "embedding", "index": number, "embedding": vector})
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return 200, {}, {"object": "list", "data": data, "model": "m", "usage": usage}


class Client:
    """Requests to the page; what goes wrong is written into the log."""

    def __init__(self, port: int, log: Log) -> None:
        self._port, self._log = port, log

    def post(self, address: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer as JSON; {} after a failure."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request("POST", address, json.dumps(body), JSON)
            response = connection.getresponse()
            text = response.read().decode()
            if response.status != 200:
                self._log.failed(f"{address} {body}: {response.status} {text[:300]}")
                return {}
            return dict(json.loads(text))
        except (OSError, http.client.HTTPException) as error:
            self._log.failed(f"{address} {body}: {type(error).__name__} {error}")
            return {}
        finally:
            connection.close()

    def ask(self, question: str, conversation: str, leave: bool) -> None:
        """Ask and read the answer, to its end or, with `leave`, to its first words."""
        body = {"question": question, "conversation": conversation, "render": True}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        began, last = time.monotonic(), b""
        try:
            connection.request("POST", "/chat/stream", json.dumps(body), JSON)
            response = connection.getresponse()
            if response.status != 200:
                self._log.failed(f"{question}: {response.status} {response.read()[:300]!r}")
                return
            while line := response.readline():
                last = line
                if line.startswith(b"3:"):
                    self._log.failed(f"{question}: {line.decode()}")
                if leave and line.startswith(b"0:"):
                    return
            if not last.startswith(b"d:"):
                self._log.failed(f"{question}: ends with {last!r}")
            self._log.answer_seconds.append(time.monotonic() - began)
        except (OSError, http.client.HTTPException) as error:
            self._log.failed(f"{question}: {type(error).__name__} {error}")
        finally:
            connection.close()

    def finds(self, name: str) -> bool:
        """Whether the index holds a definition of that name."""
        found = self.post("/api/tools/symbol", {"name": name})
        return any(f"def {name}(" in place["text"] for place in found.get("places", ()))


JSON = {"Content-Type": "application/json"}


class Editor:
    """Changes the work tree, each time so that a name appears in it or disappears."""

    def __init__(self, root: Path, dice: random.Random, same_size: bool = False) -> None:
        self.root, self._dice = root, dice
        self._far = git(root, "tag", "--sort=creatordate").split()[-30:][0]
        self.actions: tuple[tuple[int, Callable[[], tuple[str, bool]]], ...] = (
            (40, self.write), (20, self.rename_write), (10, self.create), (8, self.delete),
            (8, self.move), (6, self.stash), (3, self.switch), (5, self.ignore),
        )  # fmt: skip
        if same_size:
            self.actions = ((1, self.back_and_forth),)
            for number, path in enumerate(self._tracked()):
                letters = "".join("abcdefghij"[int(digit)] for digit in f"{number:011}")
                with path.open("a") as file:
                    file.write(f"\n\n{definition(f'soak_{letters}a')}")
            git(root, "commit", "-qam", "a function in each file")

    def once(self) -> tuple[str, str, bool]:
        """Do something; its kind, the name to look for and whether that is to be there."""
        weights = [weight for weight, _ in self.actions]
        action = self._dice.choices([action for _, action in self.actions], weights)[0]
        return action.__name__, *action()

    def write(self) -> tuple[str, bool]:
        path, text, name = self._edited()
        path.write_text(text)
        return name, True

    def back_and_forth(self) -> tuple[str, bool]:
        """The same function has one of its two names, of one length, in turn."""
        path = self._dice.choice(self._tracked())
        text = path.read_text()
        old = NAME.findall(text)[0]
        name = old[:-1] + ("b" if old.endswith("a") else "a")
        path.write_text(text.replace(old, name))
        return name, True

    def rename_write(self) -> tuple[str, bool]:
        path, text, name = self._edited()
        beside = path.with_name(f".{path.name}.swp")
        beside.write_text(text)
        beside.replace(path)
        return name, True

    def create(self) -> tuple[str, bool]:
        made = sorted(self.root.glob("made/**/*.py"))
        if len(made) > 20:
            made[0].unlink()
        name = self._name()
        path = self.root / "made" / self._dice.choice("abc") / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(definition(name))
        return name, True

    def delete(self) -> tuple[str, bool]:
        made = sorted(self.root.glob("made/**/*.py"))
        if not made:
            return self.create()
        names = NAME.findall(made[0].read_text())
        made[0].unlink()
        return names[-1], False

    def move(self) -> tuple[str, bool]:
        """A folder gets another name, and with it a file in it another text."""
        self.create()
        old, new = self.root / "made", self.root / "moved"
        old.rename(new)
        name = self._name()
        file = min(new.rglob("*.py"))
        file.write_text(definition(name))
        new.rename(old)
        return name, True

    def stash(self) -> tuple[str, bool]:
        """All edits go away; the next edit begins from the last commit."""
        name, _ = self.write()
        git(self.root, "stash", "-q")
        git(self.root, "stash", "drop", "-q")
        return name, False

    def switch(self) -> tuple[str, bool]:
        """Hundreds of files become those of a far version, and the next time those of now."""
        if git(self.root, "rev-parse", "HEAD") != git(self.root, "rev-parse", "work"):
            git(self.root, "checkout", "-qf", "work")
        else:
            git(self.root, "checkout", "-qf", self._far)
        return self.write()

    def ignore(self) -> tuple[str, bool]:
        """A folder is ignored; the next time it is not, with another text in it."""
        exclude, file = self.root / ".git" / "info" / "exclude", self.root / "hidden" / "file.py"
        if file.exists() and "hidden/" not in exclude.read_text():
            exclude.write_text("hidden/\n")
            return NAME.findall(file.read_text())[0], False
        name = self._name()
        file.parent.mkdir(exist_ok=True)
        file.write_text(definition(name))
        exclude.write_text("")
        return name, True

    def _edited(self) -> tuple[Path, str, str]:
        """A tracked file, its text with a new name instead of its last one, and that name."""
        path = self._dice.choice(self._tracked())
        name = self._name()
        text = path.read_text()
        if NAME.search(text):
            return path, NAME.sub(name, text), name
        return path, f"{text.rstrip()}\n\n\n{definition(name)}", name

    def _tracked(self) -> list[Path]:
        return [self.root / path for path in git(self.root, "ls-files", "*.py").splitlines()]

    def _name(self) -> str:
        return "soak_" + "".join(self._dice.choices("abcdefghijklmnopqrstuvwxyz", k=12))


def definition(name: str) -> str:
    return f"def {name}(value):\n    return value\n"


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=s", "-c", "user.email=s@localhost", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def asking(client: Client, dice: random.Random, pace: float, stop: threading.Event) -> None:
    number = 0
    while not stop.wait(dice.uniform(0.5, 1.5) * pace):
        number += 1
        client.ask(dice.choice(QUESTIONS), f"c{number // 6}", leave=number % 10 == 0)
        tool, body = dice.choice(TOOLS)
        client.post(f"/api/tools/{tool}", body)


def editing(
    client: Client, editor: Editor, dice: random.Random, pace: float, log: Log,
    stop: threading.Event,
) -> None:  # fmt: skip
    while not stop.wait(dice.uniform(0.5, 1.5) * pace):
        try:
            kind, name, present = editor.once()
        except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
            log.failed(f"the editor itself: {error!r} {getattr(error, 'stderr', '')}")
            continue
        began = time.monotonic()
        while client.finds(name) != present:
            if time.monotonic() - began > FOUND_WITHIN:
                log.failed(f"{kind}: {name} should be {'there' if present else 'gone'}")
                break
            time.sleep(0.05)
        took = time.monotonic() - began
        log.found_seconds.setdefault(kind, []).append(round(took, 2))


def rebuilding(command: Sequence[str], log: Log, stop: threading.Event) -> None:
    while not stop.wait(REBUILD_SECONDS):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            log.failed(f"codeqa index --full: {done.returncode} {done.stderr[-300:]}")


def sample(pid: int, data: Path, log: Log, began: float) -> Sample:
    tables = disk_of(data / "repos")
    return Sample(
        seconds=round(time.monotonic() - began, 1),
        memory_mb=memory_mb(pid),
        open_files=open_files(pid),
        tables_mb=tables[0],
        tables_files=tables[1],
        state_mb=round(disk_of(data)[0] - tables[0], 1),
        answers=len(log.answer_seconds),
        edits=log.edits(),
        load=round(os.getloadavg()[0], 1),
    )


def growth(samples: Sequence[Sample], name: str) -> tuple[float, float]:
    """Growth over the last two thirds of `samples`, by the straight line, and their median."""
    used = samples[len(samples) // 3 :]
    values = [float(getattr(one, name)) for one in used]
    times = [one.seconds for one in used]
    slope = statistics.linear_regression(times, values).slope
    return slope * (times[-1] - times[0]), statistics.median(values)


def verdict(log: Log, equal: bool) -> dict[str, Any]:
    """The figures that the rule is about; `passed` when there is nothing against it."""
    against = [] if equal else ["the index is not what a clean one is"]
    against += [f"{len(log.failures)} failures"] if log.failures else []
    grown = {}
    for name in ("memory_mb", "tables_mb", "open_files"):
        more, median = growth(log.samples, name)
        grown[name] = {"grown": round(more, 1), "median": round(median, 1)}
        if more > (DESCRIPTORS if name == "open_files" else GROWTH * median):
            against.append(f"{name} grew by {more:.1f}")
    return {
        "passed": not against,
        "against": against,
        "answers": len(log.answer_seconds),
        "answer_seconds_median": round(statistics.median(log.answer_seconds), 2),
        "edits": log.edits(),
        "found_seconds": {
            kind: {
                "edits": len(took),
                "median": round(statistics.median(took), 2),
                "most": max(took),
            }
            for kind, took in sorted(log.found_seconds.items())
        },
        "growth_last_two_thirds": grown,
        "index_equals_clean_one": equal,
        "failures": log.failures[:20],
    }


def soak(
    source: Path, minutes: float, port: int, seed: int, same_size: bool
) -> tuple[dict[str, Any], Log]:
    log, stop = Log(), threading.Event()
    with tempfile.TemporaryDirectory() as folder, openai_server(model) as server:
        root, data = Path(folder) / source.name, Path(folder) / "data"
        git(Path(folder), "clone", "-q", "--no-hardlinks", str(source), str(root))
        git(root, "checkout", "-qb", "work")
        environment = {
            **os.environ, "CODEQA_DATA": str(data), "CODEQA_WATCH": "on",
            "CODEQA_MODEL": "custom/scripted", "CODEQA_MODEL_URL": server.base_url,
            "CODEQA_EMBEDDING": "openai/text-embedding-3-small", "OPENAI_API_KEY": "sk-soak",
            "CODEQA_EMBEDDING_DIMENSION": str(DIMENSION), "OPENAI_BASE_URL": server.base_url,
        }  # fmt: skip
        codeqa = [sys.executable, "-m", "codeqa"]
        page = subprocess.Popen(
            [*codeqa, "serve", str(root), "--port", str(port)], cwd=ROOT, env=environment
        )
        client, editor = Client(port, log), Editor(root, random.Random(seed), same_size)
        work: list[tuple[Any, ...]] = [
            (asking, client, random.Random(seed + 1), 12.0, stop),
            (editing, client, editor, random.Random(seed + 2), 5.0, log, stop),
            (rebuilding, ["env", *(f"{k}={v}" for k, v in environment.items() if "_" in k),
                          *codeqa, "index", "--full", str(root)], log, stop),
        ]  # fmt: skip
        threads = [threading.Thread(target=one[0], args=one[1:]) for one in work]
        try:
            wait(port)
            for thread in threads:
                thread.start()
            began = time.monotonic()
            while time.monotonic() - began < 60 * minutes and page.poll() is None:
                log.samples.append(sample(page.pid, data, log, began))
                print(json.dumps(asdict(log.samples[-1])), flush=True)
                for kept in (server.requests, server.headers, server.exchanges):
                    kept.clear()
                stop.wait(SAMPLE_SECONDS)
            if page.poll() is not None:
                log.failed(f"the page ended with {page.returncode}")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            page.terminate()
            page.wait(30)
        return verdict(log, equal(root, data)), log


def equal(root: Path, data: Path) -> bool:
    """Whether the index, brought up to date, holds the rows of a clean one."""
    from codeqa.indexing import Indexer
    from codeqa.settings import load_settings
    from codeqa.store import locate

    settings = load_settings(data=data)
    location = locate(settings, root)
    summary = Indexer(settings, location).run(refine=False)
    print(f"after the end: {summary.changed} changed, {summary.removed} removed", flush=True)
    kept, clean = rows(location), clean_rows(root, data.parent)
    for records in kept.values():
        for record in records:
            for column in ("vector_refined", "tier"):  # a clean index has no such vectors
                record.pop(column, None)
    for records in clean.values():
        for record in records:
            record.pop("tier", None)
    return kept == clean


def wait(port: int) -> None:
    """Until the page can answer."""
    for _ in range(1_200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the page did not start")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", type=Path, help="a git repository with tags")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--port", type=int, default=5618)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument(
        "--same-size", action="store_true", help="edits only rename the same functions in turn"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(arguments)
    source, minutes = options.repository.resolve(), options.minutes
    found, log = soak(source, minutes, options.port, options.seed, options.same_size)
    print(json.dumps(found, indent=1))
    if options.json:
        command = ["python", "-m", "research.benchmarks.soak", *sys.argv[1:]]
        every = max(1, len(log.samples) // 30)
        report = {
            **conditions(command), **found, "samples": [asdict(one) for one in log.samples[::every]]
        }  # fmt: skip
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if found["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
