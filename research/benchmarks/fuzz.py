"""Hostile input by chance: `python -m research.benchmarks.fuzz [--seconds S] [--target NAME] [--seed N]`.

A corpus (the fixtures of every language, the project's own texts, and forms that are known to be
awkward) is mutated and given to what reads foreign text: the parsers, the walk, Markdown and the
colouring of code, citations and the judging of sentences, calls of tools, questions, and every
address of the HTTP API. A case is its target and a number, so that each can be had again:
`--target parse --seed 17 --cases 1`. Found are exceptions, answers of 500, tracebacks or paths of
this machine in what is told, live markup, a process that ends, and more than five seconds of
processor time. A finding leaves the process; the next case begins in a new one.
"""

# Names of files are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH103, PTH118, PTH120, PTH211, E501

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

from research.benchmarks.machine import ROOT, conditions

CASE_SECONDS = 5
"""Of the process's own time, so that a busy machine finds nothing that an idle one would not."""
LARGEST = (6_000,) * 30 + (60_000,) * 4 + (400_000,)
"""Bytes of a case; most are small, as most mistakes need little."""
FOUND = "found"
FIXTURES = ROOT / "tests" / "fixtures" / "languages"
OWN_TEXTS = ("README.md", "ARCHITECTURE.md", "Makefile", "pyproject.toml", "Dockerfile",
             "codeqa/languages/languages.toml", "static/js/chat_page.js", "templates/chat.html",
             "codeqa/languages/queries/python.scm", "tests/fixtures/table/manifest.json")  # fmt: skip
AWKWARD = (
    b"\0", b"\r", b"\r\n", b"\n" * 400, b" " * 400, b"\t", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc0\x80",
    b"\xed\xa0\x80", "\u202e\u2028\u2029\x85".encode(), "İıſß\u0130".encode(), "\U0001f9d1\u200d".encode(),
    b"(" * 300, b"[" * 300, b"{" * 300, b"<" * 300, b"`" * 300, b"*_" * 200, b"![](" * 100, b"> " * 200,
    b"- " * 200, b"/*" * 100, b"\"\"\"", b"'", b"\\" * 101, b"#" * 90, b"=" * 90, b"|-" * 99, b"&#0;",
    b"<script>alert(1)</script>", b"[x](javascript:alert(1))", b"[a.py:1-2]", b"[a.py:9999999-1]",
    b"CALL grep {\"pattern\": \"(a+)+$\"}", b"@codebase ", b"@../../etc/passwd", b"path:../.. lang:x",
    b"</think>", b"<think>", b"=== CHUNK 1 ===\nId: ctx_00000000\n", b"```python\n", b"~~~",
    b"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n", b"data: {}\n\n",
    b"AKIAIOSFODNN7EXAMPLE", b"-----BEGIN RSA PRIVATE KEY-----\n", b"{\"cells\": [", b"1e999", b"-0",
    b"9" * 400, b"NaN", b"\\ud800", b"%s%n{0}${x}", b"' OR 1=1 --", b"..\\..\\", b"%2e%2e%2f",
)  # fmt: skip

Target = Callable[[random.Random], None]


class FoundError(Exception):
    """Something that must not be, where nothing was raised."""


def corpus() -> list[tuple[str, bytes]]:
    """Name and content of each seed."""
    files = [*sorted(FIXTURES.iterdir()), *(ROOT / name for name in OWN_TEXTS)]
    return [(one.name, one.read_bytes()) for one in files if one.is_file()]


def mutated(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """`data` after a few cuts, repetitions, flips and insertions."""
    largest = chance.choice(LARGEST)
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3, 5, 9))):
        at = chance.randrange(len(made) + 1)
        end = min(len(made), at + chance.choice((1, 4, 30, 400, 5_000)))
        kind = chance.randrange(7)
        if kind == 0:
            del made[at:end]
        elif kind == 1:
            times = chance.choice((2, 9, 100, 3_000))
            made[at:end] = (bytes(made[at:end]) * times)[:largest]
        elif kind == 2 and at < len(made):
            made[at] ^= 1 << chance.randrange(8)
        elif kind == 3:
            other = chance.choice(others)
            begin = chance.randrange(len(other) + 1)
            made[at:at] = other[begin : begin + chance.choice((20, 400, 5_000))]
        elif kind == 4:
            made[at:at] = chance.randbytes(chance.choice((1, 4, 40)))
        else:
            times = chance.choice((1, 1, 2, 20, 2_000))
            made[at:at] = (chance.choice(AWKWARD) * times)[:largest]
    return bytes(made[:largest])


def texts(chance: random.Random) -> str:
    """A hostile text, sometimes with lone surrogates as JSON can hold them."""
    seeds = [data for _, data in CORPUS]
    start = chance.choice((b"", chance.choice(AWKWARD), chance.choice(seeds)[:4_000]))
    how = chance.choice(("replace", "surrogateescape"))
    return mutated(chance, start, seeds).decode("utf-8", how)


def parse(chance: random.Random) -> None:
    """A file of any language: judged, parsed, and made into rows as the index has them."""
    from codeqa.parsing import parse_file
    from codeqa.repository.classify import classify
    from codeqa.text.unit_text import decode, encode, fields_of

    name, data = chance.choice(CORPUS)
    if chance.random() < 0.15:  # under another language's name
        name = chance.choice(CORPUS)[0]
    if chance.random() < 0.1:
        name = f"notes{chance.choice(('.md', '.rst', '.ipynb', '.json', '.yaml', '.xml', '.txt'))}"
    data = mutated(chance, data, [one for _, one in CORPUS])
    classify(name, data)
    parsed = parse_file(name, data)
    lines = data.count(b"\n") + data.count(b"\r") + 1
    for unit in parsed.units:
        if not 1 <= unit.start_line <= unit.end_line <= lines:
            raise FoundError(f"lines {unit.start_line}-{unit.end_line} of {lines}")
        fields = fields_of(unit)
        if decode(encode(fields)) != fields:
            raise FoundError(f"the text of {unit.qualified_name!r} is not read again as it was")


def create(path: Path, data: bytes) -> None:
    """A new file: what is there, a pipe or a link, is left alone. Raises OSError."""
    with path.open("xb") as file:
        file.write(data)


def walk(chance: random.Random) -> None:
    """A folder of odd names, links, pipes and rules."""
    from codeqa.repository.walk import walk as walk_folder

    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "tree")
        root.mkdir()
        Path(scratch, "outside.py").write_text("SECRET = 1\n")
        for _ in range(chance.randrange(1, 12)):
            word = chance.choice(AWKWARD)[: chance.randrange(1, 80)] or b"x"
            parts = [
                one for one in word.replace(b"\0", b"").split(b"/") if one not in (b"", b".", b"..")
            ]
            name = b"/".join(parts or [b"a"]) + chance.choice((b"", b".py", b".md"))
            path = os.path.join(os.fsencode(root), name)
            target = chance.choice(
                ("../outside.py", "..", "/proc/self", "/proc/self/environ", ".", "a.py")
            )
            rules = mutated(chance, b"*.log\n!x\n/build/\n**/y\n", AWKWARD)[:2_000]
            try:
                folder = os.path.dirname(path)
                os.makedirs(folder, exist_ok=True)
                if not os.path.realpath(folder).startswith(os.path.realpath(os.fsencode(root))):
                    continue  # through a link: nothing is written outside
                match chance.randrange(6):
                    case 0:
                        os.symlink(target, path)
                    case 1:
                        os.mkfifo(path)
                    case 2:
                        rule = chance.choice((".gitignore", ".codeqaignore", ".git", ".gitmodules"))
                        create(root / rule, rules)
                    case 3:
                        Path(root, ".git").mkdir()
                        create(root / ".git/HEAD", b"ref: refs/heads/main\n")
                        create(root / ".git/config", b"[core]\n" + rules)
                    case _:
                        create(Path(os.fsdecode(path)), b"x = 1\n")
            except (OSError, ValueError):
                continue
        found = codeqa_errors_are_fine(lambda: walk_folder(root, max_file_bytes=1_000_000))
        for one in found.files if found else ():
            real = Path(os.path.realpath(root / one.path))
            if not real.is_relative_to(os.path.realpath(root)) or not real.is_file():
                raise FoundError(f"{one.path!r} is no file of the folder")


def markdown(chance: random.Random) -> None:
    """Rendered, cut into blocks, made inert, coloured."""
    from codeqa.render import (
        highlight_lines,
        inert_markdown,
        render_markdown,
        sanitise,
        split_blocks,
    )

    text = texts(chance)
    text = text.encode("utf-8", "replace").decode()  # surrogates end at every surface
    Alive().check(render_markdown(text, lambda path, first, last: f"/?file={quote(path)}"))
    blocks, rest = split_blocks(text)
    if len("".join(blocks) + rest) != len(text.replace("\r\n", "\n")):
        Alive().check(render_markdown("".join(blocks) + rest))
    inert = inert_markdown(text)
    Alive().check(render_markdown(inert))
    language = chance.choice(("python", "javascript", "html", "cpp", "ruby", "bash", "sql", "yaml"))
    Alive().check(sanitise("\n".join(highlight_lines(text, language))))


def answers(chance: random.Random) -> None:
    """What a model wrote: citations made and checked, thoughts."""
    from codeqa.chat.citations import CitationWriter, CitedCode, verify_all
    from codeqa.llm.answer import AnswerReader
    from codeqa.text import json_object
    from codeqa.types import Chunk

    text = texts(chance).encode("utf-8", "replace").decode()
    chunk = Chunk("ctx_00000000", "python.py", 1, 9, "python", "def f():\n    return 1\n")
    code = CitedCode(shop().files, shop().tables(), [chunk])
    whole = CitationWriter([chunk], code)
    once = whole.feed(text) + whole.close()
    pieces, writer, at = [], CitationWriter([chunk], code), 0
    while at < len(text):
        size = chance.choice((1, 3, 50, 4_000)) if len(text) < 20_000 else 4_000
        pieces.append(writer.feed(text[at : at + size]))
        at += size
    if "".join(pieces) + writer.close() != once:
        raise FoundError("how an answer is cut changes its citations")
    verify_all(once, code)
    read = AnswerReader()
    list(read.take({"choices": [{"delta": {"content": text}}]}))
    json_object(text)


def questions(chance: random.Random) -> None:
    """Questions, names and expressions, over a real index."""
    from codeqa.code.tools import TOOLS

    engine = shop()
    text = texts(chance)[:20_000].encode("utf-8", "replace").decode()
    kind = chance.choice(("search", "search", "tool", "complete", "policy"))
    if kind == "search":
        codeqa_errors_are_fine(lambda: engine.search.search(text))
    elif kind == "tool":
        tool = chance.choice(list(TOOLS.values()))
        values = {name: chance.choice((text, text[:60], text[:2000], 3, -1, 10**30, True, None, []))
                  for name in tool.schema().get("properties", {}) if chance.random() < 0.8}  # fmt: skip
        if result := codeqa_errors_are_fine(lambda: tool.call(engine.toolbox, values)):
            leaks_nothing(result.text)
    elif kind == "complete":
        codeqa_errors_are_fine(lambda: engine.completion.complete(text[:200]))
    else:
        from codeqa.chat.values import AskOptions

        options = AskOptions(text, conversation="fuzz", effort="fast", keep=False)
        for event in engine.chat.ask(options):
            leaks_nothing(json.dumps(event.data, default=str))


def http(chance: random.Random) -> None:
    """Every address, with bodies near to what it takes and far from it."""
    client, document = server()
    paths = [(path, method, about) for path, methods in document["paths"].items()
             for method, about in methods.items() if not path.startswith(NOT_ASKED)]  # fmt: skip
    path, method, about = chance.choice(paths)
    address = re.sub(
        r"\{\w+\}", lambda _: quote(texts(chance)[:60].encode("utf-8", "replace"), safe=""), path
    )
    given = {one["name"]: texts(chance)[:300].encode("utf-8", "replace")
             for one in about.get("parameters", ()) if one["in"] == "query" and chance.random() < 0.7}  # fmt: skip
    headers = {"Content-Type": chance.choice(("application/json",) * 9 + ("text/plain",))}
    if chance.random() < 0.1:
        word = chance.choice(AWKWARD)[:200].decode("latin-1").translate(dict.fromkeys((0, 10, 13)))
        headers[chance.choice(("Origin", "Host", "Authorization", "Cookie", "Accept", "Range"))] = (
            word
        )
    body: bytes | None = None
    if "requestBody" in about:
        schema = about["requestBody"]["content"]["application/json"]["schema"]
        sent = made_of(chance, schema, document, 0)
        body = json.dumps(sent, default=str).encode()
        if chance.random() < 0.3:
            body = mutated(chance, body, AWKWARD)
    response = client.open(
        address, method=method.upper(), query_string=given, data=body, headers=headers
    )
    text = response.get_data(as_text=True)
    if response.status_code == 500:
        raise FoundError(f"500 for {method} {address[:200]} {given} {body[:300] if body else ''!r}")
    if response.status_code >= 400:
        leaks_nothing(text)
    if response.mimetype == "text/html" and "Content-Security-Policy" not in response.headers:
        raise FoundError("a page without its policy")


NOT_ASKED = (
    "/api/repos",
    "/api/folders",
    "/api/revisions",
    "/api/models",
    "/api/review",
    "/static",
)
"""What opens other folders and commits, clones, chooses providers and asks hosts: not for chance."""


def made_of(
    chance: random.Random, schema: dict[str, Any], document: dict[str, Any], depth: int
) -> Any:
    """A value of a JSON schema, or something else."""
    if chance.random() < 0.15 or depth > 5:
        return chance.choice(
            (None, True, 0, -1, 1e308, 10**40, "", [], {}, [[]] * 9, texts(chance))
        )
    if name := schema.get("$ref"):
        schema = document["components"]["schemas"][name.rpartition("/")[2]]
    for kind in ("anyOf", "oneOf"):
        if options := [one for one in schema.get(kind, ()) if "type" in one or "$ref" in one]:
            return made_of(chance, chance.choice(options), document, depth + 1)
    if values := schema.get("enum"):
        return chance.choice(values)
    match schema.get("type"):
        case "object":
            return {name: made_of(chance, one, document, depth + 1)
                    for name, one in schema.get("properties", {}).items() if chance.random() < 0.6}  # fmt: skip
        case "array":
            return [
                made_of(chance, schema.get("items", {}), document, depth + 1)
                for _ in range(chance.randrange(4))
            ]
        case "boolean":
            return chance.random() < 0.5
        case "integer" | "number":
            return chance.choice((0, 1, -1, 7, 10**9, 0.5))
    return chance.choice(
        ("c", "@codebase where are baskets?", "local", "user", texts(chance)[:3_000])
    )


def codeqa_errors_are_fine(work: Callable[[], Any]) -> Any:
    """What `work` gives; None after an error that is told in our words."""
    from codeqa.errors import CodeQAError

    try:
        return work()
    except CodeQAError as error:
        leaks_nothing(str(error))


def leaks_nothing(text: str) -> None:
    if 'File "' + str(ROOT) in text or "/site-packages/" in text:
        raise FoundError(f"a traceback is told: {text[:500]}")


class Alive(HTMLParser):
    """Finds markup that runs or loads something."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loads = tag in (
            "script",
            "style",
            "img",
            "iframe",
            "object",
            "embed",
            "svg",
            "form",
            "link",
        )
        runs = [name for name, value in attrs if name.startswith("on") or name in ("style", "src")
                or (re.match(r"\s*(?:javascript|data|vbscript|file):", value or "", re.I)
                and name == "href")]  # fmt: skip
        if loads or runs:
            raise FoundError(f"live markup: <{tag} {attrs}>")

    def check(self, html: str) -> None:
        self.feed(html)
        self.close()


_kept: dict[str, Any] = {}


def shop() -> Any:
    """The engine of a small index of the corpus."""
    if "engine" not in _kept:
        from codeqa.engine import open_engine
        from codeqa.settings import load_settings

        folder = Path(_kept.setdefault("scratch", tempfile.TemporaryDirectory()).name)
        root = folder / "corpus"
        root.mkdir()
        for name, data in CORPUS:
            (root / name).write_bytes(data)
        settings = load_settings(data=folder / "data", workers=1, hyde="off", effort="fast")
        _kept["engine"] = open_engine(settings, root)
        _kept["engine"].index.run()
    return _kept["engine"]


def server() -> tuple[Any, dict[str, Any]]:
    """A client of the page over that index, and the description of its addresses."""
    if "client" not in _kept:
        from codeqa.web.app import create_app

        _kept["client"] = create_app(shop().settings, engine=shop()).test_client()
        _kept["document"] = _kept["client"].get("/openapi.json").json
    return _kept["client"], _kept["document"]


TARGETS: dict[str, Target] = {
    one.__name__: one for one in (parse, walk, markdown, answers, questions, http)
}
CORPUS = corpus()


def work(name: str, first: int, seconds: float, cases: int) -> None:
    """In a process of its own: cases from `first` on; each number is written before it is tried."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if name in ("answers", "questions", "http"):
        server()
    faulthandler.enable()
    # SIGPROF: who runs too long says where it is and ends.
    faulthandler.register(signal.SIGPROF, all_threads=True, chain=True)
    until = time.monotonic() + seconds
    for number in range(first, first + cases):
        if time.monotonic() > until:
            break
        print(number, flush=True)
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
        try:
            TARGETS[name](random.Random(f"{name} {number}"))
        except Exception:
            print(FOUND, flush=True)
            print(f"--- {name} {number}\n{traceback.format_exc(limit=-8)}", file=sys.stderr)
        signal.setitimer(signal.ITIMER_PROF, 0)
    os._exit(0)


def attack(name: str, first: int, seconds: float, cases: int) -> dict[str, Any]:
    """How many cases there were, in how many minutes, and what was found; accounts go to stderr."""
    started, number, findings = time.monotonic(), first, 0
    while (left := seconds + started - time.monotonic()) > 0 and number < first + cases:
        options = ["--seed", str(number), "--cases", str(first + cases - number)]
        command = [
            sys.executable,
            "-m",
            "research.benchmarks.fuzz",
            "--work",
            "--target",
            name,
            *options,
        ]
        command += ["--seconds", str(left)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.split()
        findings += lines.count(FOUND)
        number = max((int(line) for line in lines if line.isdigit()), default=number) + 1
        if done.returncode:
            findings += 1
            print(f"--- {name} {number - 1}: ended by {done.returncode}", file=sys.stderr)
    minutes = round((time.monotonic() - started) / 60, 1)
    return {"cases": number - first, "minutes": minutes, "findings": findings}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=1_200, help="for all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.target, given.seed, given.seconds, given.cases)
    names = [given.target] if given.target else list(TARGETS)
    report: dict[str, Any] = {"corpus": f"{len(CORPUS)} files, {len(AWKWARD)} awkward forms"}
    for name in names:
        report[name] = attack(name, given.seed, given.seconds / len(names), given.cases)
        print(f"{name}: {report[name]}", file=sys.stderr, flush=True)
    print(json.dumps({**report, **conditions(sys.argv)}, indent=2))


if __name__ == "__main__":
    main()
