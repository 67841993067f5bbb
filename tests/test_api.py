"""`from codeqa import open_engine`: its names and signatures, and the examples of its page."""

from __future__ import annotations

import inspect
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from conftest import ROOT, Run

import codeqa
from codeqa.code.tools import TOOLS
from codeqa.errors import IndexMissingError, UsageError

pytest_plugins = ("cli_shop",)

SIGNATURES = {
    "open_engine": "(repository: 'str | Path', *, model: 'str | None' = None, "
    "data: 'str | Path | None' = None) -> 'CodeEngine'",
    "CodeEngine.index": "(self, *, full: 'bool' = False, "
    "progress: 'Callable[[Progress], None] | None' = None) -> 'IndexSummary'",
    "CodeEngine.search": "(self, question: 'str', **options: 'Unpack[SearchOptions]') "
    "-> 'SearchResult'",
    "CodeEngine.call": "(self, tool: 'str', **arguments: 'Any') -> 'ToolResult'",
    "CodeEngine.ask": "(self, question: 'str', *, conversation: 'str' = '', effort: 'str' = '', "
    "rerank: 'bool' = False, strict: 'bool' = False) -> 'StreamedAnswer'",
    "CodeEngine.close": "(self) -> 'None'",
    "StreamedAnswer.events": "(self) -> 'Iterator[Event]'",
    "StreamedAnswer.__iter__": "(self) -> 'Iterator[str]'",
    "WholeAnswer": "(text: 'str', citations: 'tuple[Citation, ...]', model: 'str', "
    "details: 'Mapping[str, Any]') -> None",
}
"""What programs rely on: a change here is a change for all of them."""


def test_the_public_names_and_signatures_are_what_programs_rely_on() -> None:
    for name, signature in SIGNATURES.items():
        found = codeqa
        for part in name.split("."):
            found = getattr(found, part)
        assert str(inspect.signature(found)) == signature, name  # type: ignore[arg-type]
    public = {name.partition(".")[0] for name in SIGNATURES} | {"__version__"}
    assert set(codeqa.__all__) == public
    with pytest.raises(AttributeError, match="no attribute 'open_motor'"):
        _ = codeqa.open_motor
    assert (ROOT / "codeqa" / "py.typed").exists()


def test_importing_the_package_loads_nothing_else(run_python: Run) -> None:
    code = "import sys; before = set(sys.modules); import codeqa; print(set(sys.modules) - before)"
    done = run_python("-S", "-c", code)
    assert "codeqa" in done.stdout
    assert not re.findall(r"'(codeqa\.\w+|pydantic|click|numpy)'", done.stdout), done.stdout


def test_the_examples_of_the_page_run_as_they_stand(shop: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert examples
    shown = io.StringIO()
    for example in examples:
        with redirect_stdout(shown):
            exec(example.replace("/path/to/repository", str(shop)), {})
    told = shown.getvalue()
    assert "3 files" in told and "Basket.add_article" in told
    assert "*Without a language model" in told and "store/basket.py:" in told
    assert "total_price called by" in told or "No function calls" in told or "total_price" in told


def test_a_program_is_told_what_is_wrong_and_its_conversation_goes_on(
    shop: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        codeqa.open_engine(tmp_path / "nowhere")
    with pytest.raises(UsageError):
        codeqa.open_engine(shop, model="no-such-provider/x")
    with codeqa.open_engine(shop, model="none", data=tmp_path / "other") as engine:
        with pytest.raises(IndexMissingError):
            engine.search("basket")
        with pytest.raises(IndexMissingError):
            engine.ask("basket").whole  # noqa: B018
        with pytest.raises(UsageError, match="There is no tool grap"):
            engine.call("grap", pattern="x")
    with codeqa.open_engine(shop, model="none", data=shop.parent / "data") as engine:
        assert engine.tools == tuple(TOOLS) and engine.root == shop
        first = engine.ask("how is an article put into the basket?", conversation="c")
        kinds = [event.kind for event in first.events()]
        assert kinds[-1] == "done" and "token" in kinds
        assert first.whole.text and first.whole.model == ""
        assert all(one.verified for one in first.whole.citations) and first.whole.citations
        again = "".join(engine.ask("what does add_article do?", conversation="c"))
        assert "add_article" in again
        assert engine.call("grep", pattern="articles").total > 0
        with pytest.raises(UsageError, match="pattern"):
            engine.call("grep", patern="articles")
