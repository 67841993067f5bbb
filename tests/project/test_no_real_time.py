"""No test depends on how fast the machine is: read from the tests' syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from conftest import ROOT

TESTS = ROOT / "tests"
CLOCK = re.compile(r"\.(monotonic|perf_counter|process_time|thread_time|time)\(\)")
LEAST = 30
"""Seconds: whatever is given less may be reached by a busy machine."""
LIMIT = re.compile(
    r"(?i)seconds|timeout|silence|delay|patience|deadline|takes_long|interval|pauses?\b|^within$"
)
"""Names of what limits or spaces out time."""
WAITS = {
    "acquire", "communicate", "join", "result", "settimeout", "shutdown", "wait", "wait_for",
    "wait_for_timeout",
}  # fmt: skip
"""Methods whose numbers are seconds."""
FILES = sorted(
    path.relative_to(TESTS).as_posix()
    for path in TESTS.rglob("*.py")
    if not {"fixtures", "golden"}.intersection(path.parts) and path.name != "waiting.py"
)


def number(node: ast.AST | None) -> float | None:
    """Return the number that `node` is, also as a text or within a list; the least of several."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Constant(value=str() as text) if re.fullmatch(r"\d*\.?\d+", text):
            return float(text)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return min(filter(None, map(number, parts)), default=None)
        case ast.UnaryOp(operand=inner):
            return number(inner)
    return None


def short(node: ast.AST | None) -> bool:
    value = number(node)
    return value is not None and value < LEAST


def hurries(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each limit below LEAST, of each sleep, and of each assertion that
    compares a span of time, as `time.monotonic() - began < 5` does."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=function, args=args, keywords=keywords):
                name = getattr(function, "attr", getattr(function, "id", ""))
                texts = [one.value for one in args if isinstance(one, ast.Constant)]
                named = any(isinstance(one, str) and LIMIT.search(one) for one in texts[:2])
                limits = [one.value for one in keywords if one.arg and LIMIT.search(one.arg)]
                limits += args if isinstance(function, ast.Attribute) and name in WAITS else []
                limits += args[-1:] if name in ("setattr", "setenv", "setitem") and named else []
                if name == "sleep" or any(map(short, limits)):
                    yield node.lineno, ast.unparse(node)
            case ast.Assert():
                for span in ast.walk(node):
                    subtracts = isinstance(span, ast.BinOp) and isinstance(span.op, ast.Sub)
                    if subtracts and CLOCK.search(ast.unparse(span)):
                        yield node.lineno, ast.unparse(node)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ) if LIMIT.search(name) and short(value):
                yield node.lineno, ast.unparse(node)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    text = key.value if isinstance(key, ast.Constant) else ""
                    if isinstance(text, str) and LIMIT.search(text) and short(value):
                        yield node.lineno, f"{text}: {ast.unparse(value)}"
            case ast.FunctionDef(args=args):
                names = [*args.posonlyargs, *args.args, *args.kwonlyargs]
                defaults = [None] * (len(args.args) - len(args.defaults)) + args.defaults
                for one, default in zip(names, [*defaults, *args.kw_defaults], strict=False):
                    if LIMIT.search(one.arg) and short(default):
                        yield node.lineno, f"{one.arg}={ast.unparse(default)}"  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FILES)
def test_no_test_sleeps_or_sets_a_limit_that_a_busy_machine_may_reach(name: str) -> None:
    tree = ast.parse((TESTS / name).read_text(encoding="utf-8"))
    assert [f"{name}:{line} {text}" for line, text in hurries(tree)] == []


@pytest.mark.parametrize(
    "text",
    [
        "time.sleep(60)", "thread.join(5)", "process.wait(timeout=0.2)", "TAKES_LONG = 10",
        "monkeypatch.setattr(git, 'GIT_SECONDS', 0.1)", "load(model_timeout=1)",
        "monkeypatch.setenv('CODEQA_MODEL_TIMEOUT', '5')", "def f(seconds=2.0): pass",
        "monkeypatch.setattr(client, 'PAUSES', (0.01, 0.01))", "{'hyde_seconds': 0.5}",
        "assert time.monotonic() - began < 60",
    ],
)  # fmt: skip
def test_each_way_to_hurry_is_seen(text: str) -> None:
    assert len(list(hurries(ast.parse(text)))) == 1
