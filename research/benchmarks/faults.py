"""Random faults against a served repository: `python -m research.benchmarks.faults [--rounds N]`.

In each round one fault, or two, is done to a small repository that is served and followed:
processes are killed, files of the index and of the state are damaged, files change while they are
read, clocks jump, the model and Redis fail. The page is asked meanwhile: it must answer, or say in
a sentence why not. Then `codeqa index` must succeed (behind `codeqa doctor --repair` where the
state was damaged), the index must hold the rows of a clean one, the page must find a function that
is there, and no answer may be lost whose file was not damaged. With `--kills` it goes on until so
many processes have been killed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import http.server
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lancedb  # noqa: F401 - loaded for the forks

import app
from codeqa.cli.main import main as command_line
from codeqa.settings import Settings, load_settings
from codeqa.state import State
from codeqa.store import Location, locate
from research.benchmarks.machine import ROOT, conditions
from tests.kit.index_rows import clean_rows, rows
from tests.kit.redis_server import RedisServer, server_binaries

PATIENCE = 90.0
"""Seconds until a command or an answer counts as hanging; the machine may be busy."""
NEWS = 5.0
"""Seconds within which a server sees what another process indexed; it looks each second."""
PATHS = re.compile(r"[\w/]+\.py")
WHOLE = re.compile(r"def (step_\w+)\(value\):\n    return step")
"""A function that was not cut in half."""
QUESTION = "@codebase where is {name}?"


ODD_NAMES = (
    b"bad\xff.py", b"new\nline.py", b"tab\tname.py", b"it's \"quoted\".py", b"\xe2\x80\xae.py",
    b"-rf.py", b" .py", b"%s{}.py", b"x" * 240 + b".py",
)  # fmt: skip
ODD_BYTES = (b"\xff\xfe\x00", b"def f(:\n" * 50, b"x = 1\r\r\n" * 9, b"\x00" * 999, b"def \xe2")


class Failed(Exception):  # noqa: N818 - a finding, not an error of this script
    """What a round found to be wrong."""


class Model(http.server.ThreadingHTTPServer):
    """A language model that fails as `mode` says: works, slow, garbage, html, limited, breaks,
    silent."""

    daemon_threads = True
    mode = "works"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked went away, which is no news."""


class _Answering(http.server.BaseHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is logged."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        mode = self.server.mode  # type: ignore[attr-defined]
        if mode == "limited":
            return self._send(429, "application/json", b'{"error": {"message": "slow down"}}')
        if mode == "html":
            return self._send(200, "text/html", b"<html><h1>Sign in to the hotel's network</h1>")
        if mode == "garbage":
            return self._send(200, "text/event-stream", b"data: \xff\xfe{[\n\ndata: 7\n\n" * 20)
        if mode == "silent":
            time.sleep(3)
            return None
        words = [
            "It",
            " is",
            " in",
            *(f" `{path}`" for path in dict.fromkeys(PATHS.findall(asked))),
        ]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for number, word in enumerate(words):
            time.sleep(0.5 if mode == "slow" else 0)
            if mode == "breaks" and number == 2:
                return None
            delta = {"choices": [{"index": 0, "delta": {"content": word}}]}
            self.wfile.write(f"data: {json.dumps(delta)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        return None

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Child:
    """A fork of this process, which has loaded everything and used nothing of it: a command, or the
    server, that is there at once. It can be killed as any other process."""

    def __init__(
        self, work: Callable[[], int], environment: dict[str, str], bytes_a_file: int = 0
    ) -> None:
        self.status: int | None = None
        """Exit status, negative for a signal; None while it runs."""
        descriptor, self._log = tempfile.mkstemp(prefix="faults-log-")
        self.pid = os.fork()
        if self.pid:
            os.close(descriptor)
            return
        status = 70
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the script
            for name in [name for name in os.environ if "CODEQA" in name]:
                del os.environ[name]
            os.environ.update(environment, PYTHONPATH=str(ROOT))
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            if bytes_a_file:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_a_file, bytes_a_file))
            status = work()
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os._exit(status)

    def wait(self, seconds: float) -> int | None:
        """Its status, once it has ended, for which `seconds` are waited."""
        end = time.monotonic() + seconds
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= end:
                break
            else:
                time.sleep(0.01)
        return self.status

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        if self.wait(0) is None:
            self.signal(signal.SIGKILL)
            self.wait(PATIENCE)

    def said(self) -> str:
        """What it wrote."""
        return Path(self._log).read_text(errors="replace")


class World:
    """The repository, its server, and what may happen to both."""

    def __init__(self, folder: Path, chance: random.Random, port: int) -> None:
        self.folder, self.chance, self.port = folder, chance, port
        self.root, self.data = folder / "repo", folder / "data"
        self.root.mkdir()
        self.model = Model()
        self.redis: RedisServer | None = None
        if server_binaries():
            (folder / "redis").mkdir()
            self.redis = RedisServer(folder / "redis", (), server_binaries()[0])
            self.redis.start()
        self.settings: Settings = load_settings(data=self.data, workers=1)
        self.location: Location = locate(self.settings, self.root)
        self.server: Child | None = None
        self.kills = 0
        self.turns = 0
        self.state_damaged = False
        for number in range(25):
            self.write_module(number)

    # What the repository holds

    def write_module(self, number: int) -> None:
        folder = self.root / self.chance.choice(("src", "tests", "docs/deep"))
        folder.mkdir(parents=True, exist_ok=True)
        body = "\n\n".join(
            f"def step_{number}_{index}(value):\n    return step_{number}_{index - 1}(value + 1)"
            for index in range(self.chance.randint(1, 6))
        )
        (folder / f"module_{number}.py").write_text(f"import os\n\n\n{body}\n")

    def files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*.py") if path.is_file())

    def mutate(self) -> None:
        for file in self.chance.sample(self.files(), k=min(3, len(self.files()))):
            with contextlib.suppress(OSError):
                self.chance.choice([
                    lambda f: f.open("a").write(f"\n\ndef added_{time.time_ns()}(): pass\n"),
                    lambda f: f.unlink(),
                    lambda f: f.rename(f.with_name(f"moved_{time.time_ns()}.py")),
                    lambda f: f.write_bytes(f.read_bytes()[: f.stat().st_size // 2]),
                ])(file)  # fmt: skip
        self.write_module(self.chance.randrange(10**6))

    # Processes

    def environment(self) -> dict[str, str]:
        found = {"CODEQA_DATA": str(self.data), "CODEQA_WORKERS": "1", "CODEQA_BATCH_FILES": "5"}
        found |= {"CODEQA_MODEL": "ollama/some", "CODEQA_HYDE": "off", "CODEQA_EFFORT": "fast"}
        found["CODEQA_MODEL_URL"] = f"http://127.0.0.1:{self.model.server_address[1]}/v1"
        if self.redis:
            found["REDIS_URL"] = self.redis.url
        return found | {"HOME": str(self.folder)}

    def start(self, *arguments: str, bytes_a_file: int = 0) -> Child:
        """`codeqa` with these arguments."""
        return Child(lambda: command_line(arguments), self.environment(), bytes_a_file)

    def index(self, *options: str) -> Child:
        return self.start("index", str(self.root), *options)

    def ended(self, process: Child, what: str) -> str:
        if process.wait(PATIENCE) is None:
            self.kill(process)
            raise Failed(f"{what} hangs:\n{process.said()[-1500:]}")
        said = process.said()
        if "Traceback" in said or "nexpected" in said:
            raise Failed(f"{what}: {said[-1500:]}")
        return said

    def run(self, *arguments: str) -> str:
        process = self.start(*arguments)
        said = self.ended(process, arguments[0])
        if process.status:
            raise Failed(f"{' '.join(arguments)} ended with {process.status}: {said[-900:]}")
        return said

    def kill(self, process: Child) -> None:
        process.kill()
        self.kills += process.status == -signal.SIGKILL

    def serve(self) -> None:
        if self.server is not None and self.server.wait(0) is None:
            return
        arguments = [str(self.root), "--port", str(self.port)]
        self.server = Child(lambda: app.main(arguments), self.environment())
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.server.wait(0) is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=PATIENCE).close()
                return
            time.sleep(0.05)
        raise Failed(f"the server does not start:\n{self.log()}")

    def log(self) -> str:
        return self.server.said()[-2500:] if self.server else ""

    def ask(self, question: str, conversation: str = "c") -> str:
        body = json.dumps({"question": question, "conversation": conversation}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/chat/stream", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                return str(reply.read().decode())
        except urllib.error.HTTPError as error:
            return f"refused {error.code}: {error.read().decode()}"

    # Faults, each one that names itself

    def fault_kill_the_server(self) -> None:
        assert self.server is not None
        time.sleep(self.chance.uniform(0, 0.6))
        self.kill(self.server)

    def fault_kill_indexing(self) -> None:
        for _ in range(self.chance.randint(2, 8)):
            self.mutate()
            process = self.index(*self.chance.choice(([], [], ["--full"])))
            time.sleep(self.chance.uniform(0.5, 3))
            self.kill(process)

    def fault_kill_both(self) -> None:
        process = self.index("--full")
        time.sleep(self.chance.uniform(1, 2.5))
        self.mutate()
        self.fault_kill_the_server()
        self.kill(process)

    def fault_two_writers(self) -> None:
        processes = [self.index(), self.index("--full"), self.index()]
        self.mutate()
        for process in processes:
            self.ended(process, "index beside others")
            if process.status:
                raise Failed("one of three writers fails")

    def fault_damage_the_index(self) -> None:
        files = [path for path in Path(self.location.folder).rglob("*") if path.is_file()]
        for path in self.chance.sample(files, k=min(self.chance.choice((1, 1, 3)), len(files))):
            with contextlib.suppress(OSError):
                name = path.relative_to(self.location.folder)
                kind = damage(path, self.chance, ["cut", "emptied", "deleted"])
                print("     ", kind, name, flush=True)

    def fault_damage_the_index_of_a_dead_server(self) -> None:
        self.fault_kill_the_server()
        self.fault_damage_the_index()

    def fault_damage_the_state(self) -> None:
        path = self.data / f"state.sqlite{self.chance.choice(('', '', '-wal', '-shm'))}"
        self.state_damaged = True
        # That one is mapped into memory: the system ends who reads behind a new end of it.
        kept_long = ["flipped", "one bit", "deleted"] if path.name.endswith("-shm") else []
        if path.is_file():
            print("     ", damage(path, self.chance, kept_long), path.name)

    def fault_state_is_locked(self) -> None:
        with contextlib.closing(sqlite3.connect(self.data / "state.sqlite")) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            threading.Thread(target=self.ask, args=("hello", "locked"), daemon=True).start()
            time.sleep(self.chance.uniform(0.5, 3))
            connection.rollback()

    def fault_data_folder_is_gone(self) -> None:
        self.state_damaged = True
        shutil.rmtree(self.data / self.chance.choice(("repos", "", "servers")), ignore_errors=True)

    def fault_disk_is_full(self) -> None:
        self.mutate()
        limit = self.chance.choice((2_000, 20_000, 60_000))
        process = self.start("index", str(self.root), bytes_a_file=limit)
        self.ended(process, "index with little room")

    def fault_files_change_while_read(self) -> None:
        process = self.index("--full")
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            self.mutate()
            time.sleep(0.05)
        self.ended(process, "index while files change")

    def fault_odd_files(self) -> None:
        odd = self.root / "odd"
        odd.mkdir(exist_ok=True)
        for name in ODD_NAMES:
            content = self.chance.choice(ODD_BYTES)
            with contextlib.suppress(OSError):
                Path(os.fsdecode(bytes(odd) + b"/" + name)).write_bytes(content)
        with contextlib.suppress(OSError):
            (odd / "loop").symlink_to(odd)
            os.mkfifo(odd / "pipe.py")

    def fault_odd_files_go(self) -> None:
        shutil.rmtree(self.root / "odd", ignore_errors=True)

    def fault_clock_jumps(self) -> None:
        for file in self.files():
            then = time.time() + self.chance.choice((-40, -1, 0, 1, 40)) * 86_400 * 365
            with contextlib.suppress(OSError, UnicodeError):
                if self.chance.random() < 0.5:
                    text = file.read_text()
                    file.write_text(text.replace("value + 1", "value + 2"))  # of the same size
                os.utime(file, (then, then))

    def fault_repository_is_gone_for_a_while(self) -> None:
        away = self.root.with_name("away")
        self.root.rename(away)
        try:
            time.sleep(self.chance.uniform(0, 3))
            self.look("hello")
        finally:
            away.rename(self.root)

    def fault_model_fails(self) -> None:
        for mode in ("slow", "garbage", "html", "limited", "breaks", "silent"):
            self.model.mode = mode
            self.look(QUESTION.format(name="step"))
        self.model.mode = "works"

    def fault_redis_fails(self) -> None:
        if self.redis is None:
            return
        how = self.chance.choice(("kill", "freeze"))
        (self.redis.kill if how == "kill" else self.redis.freeze)()
        self.look(QUESTION.format(name="step"))
        (self.redis.start if how == "kill" else self.redis.thaw)()

    def fault_server_is_stopped_for_a_while(self) -> None:
        assert self.server is not None
        self.server.signal(signal.SIGSTOP)
        self.mutate()
        time.sleep(1)
        self.server.signal(signal.SIGCONT)

    def fault_leftovers(self) -> None:
        folder = self.location.folder
        for name in ("holder", "progress.json", "repository.json", "progress.json.7.tmp"):
            if (folder / name).exists() or self.chance.random() < 0.3:
                with contextlib.suppress(OSError):
                    (folder / name).write_bytes(self.chance.randbytes(40))

    def fault_only_edits(self) -> None:
        self.mutate()

    # What must hold

    def look(self, question: str) -> str:
        """Ask the page whatever state it is in: an answer, or a sentence about what is wrong."""
        said = self.ask(question, f"c{self.chance.randrange(5)}")
        if "Traceback" in said or "nexpected" in said or "nternal" in said:
            raise Failed(f"the page says {said[-1500:]}")
        return said

    def check(self) -> None:
        self.serve()
        self.look(QUESTION.format(name="step"))
        self.run("index", str(self.root))
        if self.state_damaged:
            self.run("doctor", "--repair", "--repo", str(self.root))
            self.turns = 0
        whole = {f: WHOLE.findall(f.read_text(errors="replace")) for f in self.files()}
        file = self.chance.choice([f for f in whole if whole[f]])
        name = whole[file][0]
        expected, found = self.there(
            lambda: (clean_rows(self.root, self.folder), rows(self.location))
        )
        shutil.rmtree(next(self.folder.glob("clean-*")))
        for table, records in expected.items():
            if found[table] != records:
                there = {json.dumps(one, default=str, sort_keys=True) for one in found[table]}
                meant = {json.dumps(one, default=str, sort_keys=True) for one in records}
                raise Failed(
                    f"{table}: {len(found[table])} rows for {len(records)}\n"
                    f"  only there {sorted(there - meant)[:2]}\n"
                    f"  missing {sorted(meant - there)[:2]}"
                )
        path, end = file.relative_to(self.root).as_posix(), time.monotonic() + NEWS
        said = self.look(QUESTION.format(name=name))
        while path not in said and time.monotonic() < end:
            print("      asked again", flush=True)
            said = self.look(QUESTION.format(name=name))
        if '"finishReason":"stop"' not in said or path not in said:
            searched = self.run("search", "--repo", str(self.root), name)
            raise Failed(f"{name} of {path} is not found: {said[-1500:]}\n{searched}")
        kept = self.count_turns()
        if not self.state_damaged and kept < self.turns:
            raise Failed(f"{self.turns - kept} of {self.turns} turns are lost")
        self.turns, self.state_damaged = kept, False

    def count_turns(self) -> int:
        time.sleep(0.2)  # an answer is kept behind it
        latest = State(self.data).conversations.latest
        return sum(one.turns for one in latest(self.location.id))

    def there(self, function: Callable[[], Any]) -> Any:
        """What `function` gives in a process of its own."""
        path = self.folder / "result.pickle"

        def work() -> int:
            path.write_bytes(pickle.dumps(function()))
            return 0

        child = Child(work, {})
        if child.wait(PATIENCE) != 0:
            child.kill()
            raise Failed(f"reading the tables fails: {child.said()[-1500:]}")
        return pickle.loads(path.read_bytes())

    def close(self) -> None:
        if self.server is not None:
            self.server.kill()
        if self.redis is not None:
            self.redis.kill()


def damage(path: Path, chance: random.Random, only: Sequence[str] = ()) -> str:
    """Do one of five things to a file, or one of `only`; says which."""
    content = path.read_bytes()
    at = chance.randrange(max(1, len(content)))
    kinds: dict[str, Callable[[], object]] = {
        "flipped": lambda: path.write_bytes(
            content[:at] + bytes(byte ^ 0xFF for byte in content[at : at + 16]) + content[at + 16 :]
        ),
        "one bit": lambda: path.write_bytes(
            content[:at] + bytes(byte ^ 4 for byte in content[at : at + 1]) + content[at + 1 :]
        ),
        "cut": lambda: path.write_bytes(content[:at]),
        "emptied": lambda: path.write_bytes(b""),
        "deleted": path.unlink,
    }
    kind = chance.choice([*(only or kinds)])
    kinds[kind]()
    return kind


def faults(world: World) -> Iterator[Callable[[], None]]:
    """Every fault once in a random order, again and again."""
    every = sorted(name for name in dir(World) if name.startswith("fault_"))
    while True:
        world.chance.shuffle(every)
        for name in every:
            yield getattr(world, name)


def main() -> None:
    warnings.filterwarnings("ignore", message="lancedb fork", category=RuntimeWarning)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=5615)
    parser.add_argument("--only", default="", help="Faults whose name holds this.")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    world = World(folder, random.Random(given.seed), given.port)
    done: Counter[str] = Counter()
    failures: list[str] = []
    began = time.monotonic()
    world.serve()
    world.run("index", str(world.root))
    number = 0
    for fault in faults(world):
        if number >= given.rounds and world.kills >= given.kills:
            break
        name = fault.__name__.removeprefix("fault_").replace("_", " ")
        if given.only and given.only not in name:
            continue
        number += 1
        print(f"{number:4} {time.monotonic() - began:6.0f} s  {name}", flush=True)
        done[name] += 1
        try:
            world.serve()
            fault()
            world.check()
        except Exception as error:
            told = str(error) if isinstance(error, Failed) else traceback.format_exc()
            failures.append(f"{number} {name}: {told}")
            print(f"FAILED {failures[-1]}", flush=True)
            with contextlib.suppress(Exception):  # the next round begins from a clean state
                world.close()
                shutil.rmtree(world.data, ignore_errors=True)
                if world.redis:
                    world.redis.start()
                world.turns = 0
                world.serve()
                world.run("index", str(world.root))
    world.close()
    shutil.rmtree(folder)
    found = {"rounds": number, "kills": world.kills, "failures": len(failures), "faults": done}
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(
            json.dumps({**found, "conditions": conditions(sys.argv)}, indent=1) + "\n"
        )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
