"""Play the ten questions and write their traces: `python -m research.evals.agent --trees DIR`.

DIR holds `flask`, `celery` and `gin` with their history; indexes go to `--data`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from codeqa.chat.values import AskOptions
from codeqa.engine import Engine, open_engine
from codeqa.settings import load_settings
from research.evals.agent.player import Player
from tests.kit.openai_server import openai_server

QUESTIONS = (
    ("flask", "Who calls `ensure_sync`, and what does it do with a coroutine view?"),
    ("flask", "What happens in `full_dispatch_request` when a view raises an exception?"),
    ("flask", "Where is “Working outside of request context” said, and what leads there?"),
    ("celery", "When and why was `BaseKeyValueStoreBackend._get_key_for` changed last?"),
    ("celery", "What happens when `Scheduler.apply_entry` cannot send a task, and who calls it?"),
    ("celery", "How does a worker decide that a task is revoked, and which event tells of it?"),
    ("celery", "What reads “worker_proc_alive_timeout”, and what does it change?"),
    ("gin", "Who calls `handleHTTPRequest`, and what does it do with a trailing slash?"),
    ("gin", "How does the recovery middleware turn a panic into a response?"),
    ("gin", "What does `Contxt.Nextt` do?"),
)
TRACES = Path(__file__).with_name("traces.md")
SHOWN_LINES, SHOWN_WIDTH = 4, 110


def trace(engine: Engine, player: Player, question: str) -> Iterator[str]:
    """What was sent, called and answered, as Markdown."""
    player.question, player.requests = question, []
    yield f"### {question}\n"
    text, done = "", {}
    for event in engine.chat.ask(AskOptions(f"@codebase {question}", effort="deep", keep=False)):
        data = dict(event.data)
        if event.kind == "looked_up" and data["tool"]:
            yield f"- {data['tool']} `{data['arguments']}`: {data['summary']}"
            lines = str(data["text"]).split("\n")[1:]
            shown = [line[:SHOWN_WIDTH] for line in lines[:SHOWN_LINES]]
            if len(lines) > SHOWN_LINES:
                shown.append(f"… {len(lines) - SHOWN_LINES} more lines")
            yield "\n```text\n" + "\n".join(shown) + "\n```" if any(shown) else ""
        elif event.kind == "token":
            text += str(data["text"])
        elif event.kind in ("done", "error"):
            done = data
    sizes = ", ".join(f"{size:,}" for size in player.requests)
    yield f"\nRequests of {sizes} characters. Answer:\n\n{text.strip()}\n"
    for one in done.get("citations", ()):
        if not one["verified"]:
            yield f"Not verified: {one['path']}:{one['start']}-{one['end']}, {one['problem']}"
    yield str(done.get("message", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    player, told = Player(), ["# Ten questions, played by rule\n"]
    with openai_server(player) as server:
        for repository, question in QUESTIONS:
            settings = load_settings(
                data=given.data, model="openai/gpt-4o", model_url=server.base_url, model_key="none"
            )
            with closing(open_engine(settings, given.trees / repository)) as engine:
                engine.index.run()
                told += trace(engine, player, question)
    TRACES.write_text("\n".join(told).strip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
