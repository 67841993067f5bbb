"""How quick the page is: `python -m research.benchmarks.page REPO [--json FILE]`.

Headless Chromium and a server of its own, over loopback. Measured, in milliseconds:

- *load*: from the navigation until the field takes a question and the list of conversations is
  painted; with the browser's cache empty (a new profile each time) and warm, in turns.
- *first words*: from the key that sends a question, answered without a model, until words of the
  answer are painted. The browser's share is what is left when the server's is taken away, which is
  the time from the request until the first piece of the answer has arrived.
- *stream*: frames of each second, and how much the layout shifts (CLS), while a scripted model
  writes an answer of `--lines` lines.

Also the bytes of scripts and styles as they are sent, compressed. The index, a first load and a
first question come before.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from research.benchmarks.machine import ROOT, conditions, free_port, wait_for_page

sys.path.insert(0, str(ROOT / "tests" / "kit"))

QUESTIONS = (
    "how are old entries removed?",
    "where is the configuration read?",
    "how does a request time out?",
    "what happens when a connection is lost?",
    "how are errors reported to the caller?",
    "where are files written to disk?",
    "how is a password checked?",
    "what does a retry wait for?",
    "how are events sent to a client?",
    "where is the version of the program defined?",
    "how is a path made absolute?",
    "how are tests run in parallel?",
    "what limits the size of a body?",
    "how is a cache kept up to date?",
    "where are command line options parsed?",
)
WATCH = """(() => {
  const painted = (name) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { times[name] ??= performance.now(); };
    port2.postMessage(0);
  });
  const times = window.times = {};
  window.until = async (name) => {
    while (!times[name]) await new Promise((resolve) => setTimeout(resolve, 10));
    return times;
  };
  window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts += one.value;
  }).observe({ type: "layout-shift", buffered: true });
  const look = () => {
    const shown = ["#thread > *", "#conversations li", "#question:focus"];
    if (!times.loaded && shown.every((one) => document.querySelector(one))) painted("loaded");
    const turn = [...document.querySelectorAll(".turn")].at(-1);
    if (times.sent && !times.words && turn?.querySelector(".answer")?.textContent.trim())
      painted("words");
  };
  const everything = { childList: true, subtree: true, characterData: true };
  new MutationObserver(look).observe(document, everything);
  addEventListener("focusin", look);
  addEventListener("keydown", (event) => {
    if (event.key === "Enter") times.sent = event.timeStamp;
  }, true);
  const { fetch } = window;
  window.fetch = async (address, options) => {
    if (!String(address).startsWith("/chat/stream")) return fetch(address, options);
    times.requested = performance.now();
    const response = await fetch(address, options);
    const [ours, theirs] = response.body.tee();
    const reader = ours.pipeThrough(new TextDecoderStream()).getReader();
    (async () => {
      for (let text = ""; !/^0:/m.test(text); ) {
        const { done, value } = await reader.read();
        if (done) return;
        text += value;
      }
      times.arrived = performance.now();
      reader.cancel();
    })();
    return new Response(theirs, response);
  };
})()"""
"""Before all scripts of the page. A frame is painted when the message that is sent in it comes."""
FRAMES = """() => {
  window.frames_at = [];
  window.shifts = 0;
  const note = (now) => { window.frames_at.push(now); requestAnimationFrame(note); };
  requestAnimationFrame(note);
}"""


@contextmanager
def server(repository: Path, data: Path, **variables: str) -> Iterator[int]:
    """The port of a server over `repository`."""
    port = free_port()
    environment = {**os.environ, "CODEQA_DATA": str(data), "CODEQA_LOG_LEVEL": "error", **variables}
    started = subprocess.Popen(
        [sys.executable, "-m", "codeqa", "serve", repository, "--port", str(port)],
        cwd=ROOT, env=environment,
    )  # fmt: skip
    try:
        wait_for_page(port)
        yield port
    finally:
        started.terminate()
        started.wait(30)


def opened(browser: Browser) -> Page:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(WATCH)
    return context.new_page()


def load(page: Page, port: int) -> dict[str, float]:
    """Milliseconds after the navigation: until the document and the scripts were there, and until
    the page could be used."""
    page.goto(f"http://127.0.0.1:{port}/")
    page.evaluate("window.until('loaded')")
    return page.evaluate("""() => {
      const end = (part) =>
        performance.getEntriesByType("resource").find((one) => one.name.includes(part));
      const [document] = performance.getEntriesByType("navigation");
      return { document: document.responseEnd, scripts: end("chat_page.js").responseEnd,
        usable: window.times.loaded };
    }""")  # type: ignore[no-any-return]


def ask(page: Page, question: str) -> None:
    page.locator("#new-conversation").click()
    page.evaluate("for (const name in window.times) delete window.times[name]")
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")
    page.evaluate("window.until('words')")


def first_words(page: Page, question: str) -> dict[str, float]:
    ask(page, question)
    page.locator(".turn .actions").last.wait_for(timeout=60_000)
    times = page.evaluate("window.times")
    whole = times["words"] - times["sent"]
    of_server = times["arrived"] - times["requested"]
    return {"whole": whole, "server": of_server, "browser": whole - of_server}


def stream(page: Page, lines: int) -> dict[str, Any]:
    """Frames of each whole second, and the shifts, from the first words to the end."""
    ask(page, "@codebase tell me everything")
    page.evaluate(FRAMES)
    page.locator(".turn .actions").last.wait_for(timeout=600_000)
    at, shifts = page.evaluate("[window.frames_at, window.shifts]")
    seconds = [sum(at[0] + 1000 * n <= one < at[0] + 1000 * (n + 1) for one in at)
               for n in range(int((at[-1] - at[0]) / 1000))]  # fmt: skip
    return {
        "lines": lines,
        "seconds": round((at[-1] - at[0]) / 1000, 1),
        "frames_median": statistics.median(seconds),
        "frames_least": min(seconds),
        "longest_frame_ms": round(max(b - a for a, b in itertools.pairwise(at)), 1),
        "cls": round(shifts, 4),
    }


def long_answer(lines: int) -> Iterator[str]:
    """Prose, lists and code, a line a piece."""
    for number in range(lines // 20):
        yield f"## Part {number}\n"
        yield "\n"
        yield "The value is taken from the one before it; what does not belong to it is left out.\n"
        yield "\n"
        yield from (f"- what is said of `item_{one}` in **a few** words\n" for one in range(5))
        yield "\n"
        yield "```python\n"
        yield from (
            f"    total_{one} = self.sum_of(total_{one}, limit={one})\n" for one in range(7)
        )
        yield "```\n"
        yield "\n"


def sizes(port: int) -> dict[str, int]:
    """Bytes of what the page links to, as they are sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def get(address: str) -> bytes:
        connection.request("GET", address, headers={"Accept-Encoding": "gzip"})
        return connection.getresponse().read()

    page = get("/")
    text = (gzip.decompress(page) if page[:2] == b"\x1f\x8b" else page).decode()
    found = {"page": len(page)}
    for address in re.findall(r'"(/static/[^"]+\.(?:js|css)[^"]*)"', text):
        found[address.partition("?")[0].rpartition("/")[2]] = len(get(address))
    return found


def of(rows: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Median and most of each figure."""
    return {
        name: {"median": round(statistics.median(one[name] for one in rows), 1),
               "most": round(max(one[name] for one in rows), 1)}
        for name in rows[0]
    }  # fmt: skip


def measure(
    browser: Browser, repository: Path, data: Path, times: int, lines: int
) -> dict[str, Any]:
    from openai_server import Streamed, delta, openai_server

    found: dict[str, Any] = {}
    with server(repository, data) as port:
        found["bytes"] = sizes(port)
        page = opened(browser)
        page.goto(f"http://127.0.0.1:{port}/")
        ask(page, "how does it begin?")
        found["first_words"] = of([first_words(page, one) for one in QUESTIONS])
        load(page, port)
        empty, warm = [], []
        for _ in range(times):
            new = opened(browser)
            empty.append(load(new, port))
            new.context.close()
            warm.append(load(page, port))
        found["load"] = {"empty_cache": of(empty), "warm_cache": of(warm)}
        page.context.close()
    answer = [delta(line) for line in long_answer(lines)] + [delta(reason="stop")]
    with (
        openai_server(lambda path, body: Streamed(answer, 0.004)) as model,
        server(repository, data, CODEQA_MODEL="custom/m", CODEQA_MODEL_URL=model.base_url,
               CODEQA_HYDE="off") as port,
    ):  # fmt: skip
        page = opened(browser)
        page.goto(f"http://127.0.0.1:{port}/")
        page.evaluate("window.until('loaded')")
        found["stream"] = stream(page, lines)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", type=Path)
    parser.add_argument("--times", type=int, default=10, help="how often the page is loaded")
    parser.add_argument("--lines", type=int, default=5_000, help="of the streamed answer")
    parser.add_argument("--data", type=Path, help="keep the index here (default: nowhere)")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(arguments)
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        data = options.data or Path(folder)
        subprocess.run(
            [sys.executable, "-m", "codeqa", "index", options.repository], cwd=ROOT,
            env={**os.environ, "CODEQA_DATA": str(data)}, check=True,
        )  # fmt: skip
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        found = measure(browser, options.repository.resolve(), data, options.times, options.lines)
        browser.close()
    print(json.dumps(found, indent=1))
    if options.json:
        command = ["python", "-m", "research.benchmarks.page", *(arguments or sys.argv[1:])]
        report = {**conditions(command), **found}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
