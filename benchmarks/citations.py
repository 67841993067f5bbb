"""Which wrong citations are found, which right ones harmed: `python -m benchmarks.citations TREES`.

TREES is what `benchmarks.retrieval.trees` lays out. Of each true citation in
evals/grounding/cited.jsonl up to six altered ones are made, in the ways in which models err; none
overlaps the true lines. Where it can be, an altered place lies within what was sent, because any
other is told for that alone. Each goes through what writes and checks answers. Then each answer is
held against its own question and two others about the same repository.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codeqa.chat.check import is_about
from codeqa.chat.citations import CitationWriter, CitedCode, verify_all
from codeqa.chat.claims import last_sentence, names_in, numbers_in, stems_in, terms_in
from codeqa.chat.values import Citation
from codeqa.engine import Engine, open_engine
from codeqa.settings import load_settings
from codeqa.store import Tables
from codeqa.text.markdown import CITATION
from codeqa.types import TEXT_KINDS, Chunk

ANSWERS = Path(__file__).resolve().parent.parent / "evals" / "grounding" / "cited.jsonl"
Place = tuple[str, int, int]
LARGEST = 200
"""Lines of another function that is cited instead."""
MANY = 4
"""What fewer words say stands in many places, and shows nothing."""


def main() -> None:
    """Alter, exchange, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trees", type=Path)
    parser.add_argument("--data", type=Path, default=Path("build/citations"), help="indexes")
    parser.add_argument("--answers", type=Path, default=ANSWERS)
    parser.add_argument("--half", choices=("tuned", "unseen", "fresh"), help="only this one")
    parser.add_argument("--wrong", action="store_true", help="show what was judged wrongly")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.answers.read_text("utf-8").splitlines()]
    for half in dict.fromkeys(row["half"] for row in rows):
        if options.half in (None, half):
            counts: Counter[str] = Counter()
            chosen = [row for row in rows if row["half"] == half]
            for name in sorted({row["repository"] for row in chosen}):
                answers = [row for row in chosen if row["repository"] == name]
                values = {"data": options.data, "effort": "fast", "workers": 1}
                engine = open_engine(load_settings(**values), options.trees / name)
                engine.index.run()
                _measure(engine, answers, counts, options.wrong)
                engine.close()
            _print(half, counts)


def _measure(engine: Engine, rows: list[dict[str, Any]], counts: Counter[str], tell: bool) -> None:
    chance, tables = random.Random(7), engine.tables()
    sent = {row["id"]: _chunks(row, CitedCode(engine.files, tables)) for row in rows}
    for row in rows:
        chunks = sent[row["id"]]
        code = CitedCode(engine.files, tables, chunks)
        spans = [Citation(one.path, one.start_line, one.end_line) for one in chunks]
        for said, true in _true_citations(row, chunks):
            for kind, place in [("true", true), *_altered(true, chunks, code, tables, chance)]:
                before = time.process_time()
                writer = CitationWriter(chunks, code)
                text = writer.feed(f"{said}[{place[0]}:{place[1]}-{place[2]}]") + writer.close()
                shown = _place([*CITATION.finditer(text)][-1])
                judged = verify_all(text, spans, code)
                counts["milliseconds"] += round(1000 * (time.process_time() - before))
                verified = any(one.verified and _same(one, shown) for one in judged)
                moved, inside = shown != place, any(one.holds(*place) for one in chunks)
                right = verified and (kind == "true" or moved) and _meet(shown, true)
                as_much = "as much" if _shows_as_much(said, place, true, code) else "others"
                kinds = [kind, *["all", as_much, *["sent"] * inside] * (kind != "true")]
                counts.update(kinds)
                counts.update(
                    f"{one} right" for one in kinds if right or (kind != "true" and not verified)
                )
                counts.update(
                    ["moved", *["moved right"] * _meet(shown, true)] * (moved and kind != "true")
                )
                if tell and ((not right) if kind == "true" else verified and not right):
                    print(f"  {row['id']}, {kind}: {said[-120:]}{place} -> {shown}")
        others = [one for one in rows if one["question"] != row["question"]]
        for asked in [row, *chance.sample(others, min(2, len(others)))]:
            about = is_about(asked["question"], row["answer"], sent[asked["id"]])
            kind = "own" if asked is row else "other"
            counts.update([kind, *[f"{kind} right"] * (about == (asked is row))])
            if tell and about != (asked is row):
                print(f"  {row['id']} to {asked['id']}: taken for {'an' if about else 'no'} answer")


def _chunks(row: dict[str, Any], code: CitedCode) -> list[Chunk]:
    chunks = []
    for number, place in enumerate(row["sent"]):
        path, start, end = _place(CITATION.fullmatch(f"[{place}]"))
        text = "\n".join((code.lines(path) or [])[start - 1 : end])
        chunks.append(Chunk(f"ctx_{number:08x}", path, start, end, "", text))
    return chunks


def _true_citations(row: dict[str, Any], chunks: Sequence[Chunk]) -> Iterator[tuple[str, Place]]:
    """Citations of what was sent in sentences that are not labelled as false, and what stands
    before each in its line."""
    answer = row["answer"]
    starts = [(answer.find(text), len(text)) for text in row.get("false", ())]
    for found in CITATION.finditer(answer):
        place, at = _place(found), found.start()
        if any(0 <= start <= at <= start + size for start, size in starts):
            continue
        if any(one.holds(*place) for one in chunks):
            yield answer[answer.rfind("\n", 0, at) + 1 : at], place


def _altered(
    true: Place, chunks: Sequence[Chunk], code: CitedCode, tables: Tables, chance: random.Random
) -> Iterator[tuple[str, Place]]:
    """One of each way to err that there is."""
    path, start, end = true
    size, last = end - start, len(code.lines(path) or ())
    units = [one for one in tables.in_file(path) if one.kind not in {*TEXT_KINDS, "module"}]
    around = [one for one in units if one.start_line <= start and end <= one.end_line]
    inner = min(around, key=lambda one: one.end_line - one.start_line, default=None)
    called = re.compile(rf"(?<!\w){re.escape(inner.name)}(?!\w)") if inner else None
    files = [one for one in sorted(tables.catalogue().paths) if one != path]
    files = [one for one in files if len(code.lines(one) or ()) >= end]
    name, like = Path(path).name, (Path(path).parent, Path(path).suffix)
    beside = [one for one in files if (Path(one).parent, Path(one).suffix) == like]
    holding = [n for n, one in enumerate(chunks) if one.holds(*true)][:1]
    ways: dict[str, list[Place]] = {
        "shifted": [
            (path, at, at + size)
            for step in range(5, 41)
            for at in (start + step + (size >= step) * size, start - step - (size >= step) * size)
            if 1 <= at <= last - size
        ],
        "function": [
            (path, one.start_line, one.end_line)
            for one in units
            if one.end_line - one.start_line < LARGEST
        ],
        "neighbour": [
            (one, start, end) for one in [f for f in files if Path(f).name == name] or beside
        ],
        "range": [
            (path, at, at + size)
            for one in chunks
            if one.path == path
            for at in range(one.start_line, one.end_line - size + 1)
        ],
        "caller": [
            (one.path, max(one.start_line, line - 2), min(one.end_line, line + 2))
            for one in chunks
            for line, text in enumerate(one.content.split("\n"), one.start_line)
            if inner and len(inner.name) > 3 and called and called.search(text)
        ],
        "number": [
            (one.path, one.start_line, one.end_line)
            for n in holding
            for one in (*chunks[max(0, n - 1) : n], *chunks[n + 1 : n + 2])
        ],
    }
    for kind, places in ways.items():
        wrong = [one for one in places if not _meet(one, true)]
        inside = [one for one in wrong if any(chunk.holds(*one) for chunk in chunks)]
        if wrong:
            yield kind, chance.choice(inside or wrong)


def _shows_as_much(said: str, place: Place, true: Place, code: CitedCode) -> bool:
    """Whether the lines of `place` hold what the true ones do of the sentence before them."""
    sentence = last_sentence(said)
    terms = names_in(sentence)[0].union(numbers_in(sentence), stems_in(sentence))
    text, true_text = (
        "\n".join((code.lines(path) or [])[start - 1 : end]) for path, start, end in (place, true)
    )
    held = terms & terms_in(true_text)
    return len(held) >= MANY and held <= terms_in(text)


def _place(found: re.Match[str] | None) -> Place:
    assert found
    return found[1], int(found[2]), int(found[3] or found[2])


def _same(one: Citation, place: Place) -> bool:
    return (one.path, one.start, one.end) == place


def _meet(one: Place, other: Place) -> bool:
    return one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]


def _print(half: str, counts: Counter[str]) -> None:
    true, harmed = counts["true"], counts["true"] - counts["true right"]
    print(f"{half}: {harmed} of {true} true citations harmed ({harmed / true:.3f})")
    for kind in (
        "all",
        "others",
        "as much",
        "sent",
        "shifted",
        "function",
        "neighbour",
        "range",
        "caller",
        "number",
    ):
        found, every = counts[f"{kind} right"], counts[kind]
        print(f"  {kind:10} {found / max(1, every):.3f} found of {every}")
    print(f"  {counts['moved right']} of {counts['moved']} that were moved lie in the true lines")
    lost, other = counts["own"] - counts["own right"], counts["other"]
    print(f"  {lost} of {counts['own']} answers said not to answer their question")
    print(f"  {counts['other right'] / other:.3f} found of {other} exchanged answers")
    print(f"  {counts['milliseconds'] / (true + counts['all']):.1f} ms of processor time for each")


if __name__ == "__main__":
    main()
