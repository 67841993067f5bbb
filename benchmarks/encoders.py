"""What comparing costs: vectors made apart, late interaction, and a cross-encoder.

    python -m benchmarks.encoders [--json FILE]

Five small functions are scored for one question by the shipped table's vectors and by the
built-in reranker's reading; then the time per question is taken for both over units of this
repository, and for a cross-encoder of the size of ms-marco-MiniLM-L-12 (12 layers, 384 wide) with
random weights: see `benchmarks.reranking`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import conditions
from benchmarks.reranking import candidates, model_like
from codeqa.embeddings.registry import question_matcher, shipped_table, table_encoder
from codeqa.text.unit_text import UnitText

QUESTION = "store a password so that nobody can read it"
FUNCTIONS = {
    "protect": """def protect(password):
    salt = os.urandom(16)
    return salt + hashlib.pbkdf2_hmac("sha256", password, salt, 100_000)""",
    "check": """def check(password, stored):
    digest = hashlib.pbkdf2_hmac("sha256", password, stored[:16], 100_000)
    return hmac.compare_digest(stored[16:], digest)""",
    "ask": """def ask(prompt="Password: "):
    return getpass.getpass(prompt)""",
    "save": """def save(document, folder):
    (folder / document.name).write_text(document.text)""",
    "total": """def total(order):
    return sum(line.price * line.count for line in order.lines)""",
}
CANDIDATES = 50
REPEATS = 7


def scores() -> list[dict[str, Any]]:
    """Each function with its cosine and its late interaction."""
    encoder = table_encoder(str(shipped_table()))
    near = question_matcher(str(shipped_table()), QUESTION)
    texts = [UnitText("passwords.py", "", name, "", "", code) for name, code in FUNCTIONS.items()]
    cosines = encoder.encode_units(texts) @ encoder.encode_query(QUESTION)
    return [
        {
            "function": text.name,
            "vectors": round(float(cosine), 2),
            "late interaction": round(near.nearness(text).late, 2),
            "nearest passage": round(near.nearness(text).passage, 2),
        }
        for text, cosine in zip(texts, cosines, strict=True)
    ]


def times() -> dict[str, float]:
    """Median milliseconds that a question takes over CANDIDATES units, by way."""
    encoder = table_encoder(str(shipped_table()))
    sources = sorted(Path("codeqa").rglob("*.py"))[: 4 * CANDIDATES]
    bodies = [path.read_text("utf-8")[:3_000] for path in sources][:CANDIDATES]
    units = [UnitText("a.py", "", "a", "", "", body) for body in bodies]
    vectors = encoder.encode_units(units)

    def apart() -> None:
        (vectors @ encoder.encode_query(QUESTION)).argsort()

    def late() -> None:
        near = question_matcher(str(shipped_table()), QUESTION)
        for unit in units:
            near.nearness(unit)

    found = {
        "vectors made before": _median(apart),
        "making those vectors": _median(lambda: encoder.encode_units(units)),
        "late interaction and passages": _median(late),
    }
    judge, texts = model_like("ms-marco-MiniLM-L-12-v2"), candidates(CANDIDATES)
    found["cross-encoder, 12 layers"] = _median(lambda: list(judge(QUESTION, texts)))
    return found


def _median(action: Callable[[], object]) -> float:
    action()
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        action()
        taken.append((time.perf_counter() - started) * 1000)
    return round(statistics.median(taken), 3)


def main() -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoders", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    found = {
        **conditions(["python", "-m", "benchmarks.encoders"]),
        "question": QUESTION,
        "scores": scores(),
        "milliseconds": times(),
    }
    text = json.dumps(found, indent=2) + "\n"
    if given.json:
        given.json.write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
