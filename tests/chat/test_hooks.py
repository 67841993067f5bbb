"""Hooks and plugins: what they change, what they cannot break, and what is never executed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chat_kit import features_of, gathered
from conftest import ROOT
from repositories import git, write

from codeqa.chat.hooks import ARGUMENTS, Hooks, load_hooks
from codeqa.chat.values import Gathered
from codeqa.context.block import ContextBlock
from codeqa.errors import SettingsError
from codeqa.routing.intents import Intent
from codeqa.routing.policy import Features, PolicyDecision, decide
from codeqa.settings import Settings, load_settings
from codeqa.store.location import locate, save_location
from codeqa.types import Chunk

DOCUMENT = ROOT / "docs" / "hooks.md"
ASKED = gathered("how is it paid?")
DECISION = PolicyDecision("knowledge_base", suggest_codebase=True)
INTENT = Intent("knowledge_base", 0.9, "heuristics")

Plugins = Callable[..., Settings]


@pytest.fixture
def plugins(tmp_path: Path, data_dir: Path) -> Plugins:
    """`plugins(name="text of the file", …)`: settings that name a folder with these files."""

    def named(**files: str) -> Settings:
        folder = write(tmp_path / "plugins", {f"{name}.py": files[name] for name in files})
        return load_settings(data=data_dir, plugins=str(folder))

    return named


def hook(name: str, body: str, argument: str = "asked", decorator: str = "") -> str:
    """A plugin file with one hook."""
    decorator = decorator or f"@Hooks.{name}"
    return (
        "from dataclasses import replace\nfrom codeqa.chat.hooks import Hooks\n\n"
        f"{decorator}\ndef change({argument}):\n    {body}\n"
    )


def added(hooks: Hooks) -> Callable[[Callable[..., Any]], None]:
    """Decorates a marked function that is the only one of its plugin."""

    def add(function: Callable[..., Any]) -> None:
        hooks.add(SimpleNamespace(**{function.__name__: function}), f"mine {function.__name__}")

    return add


def appends(text: str) -> str:
    return hook("after_generation", f"return text + {text!r}", "text")


def decide_by(
    hooks: Hooks, features: Features | None = None, question: str = "q"
) -> tuple[PolicyDecision, tuple[str, ...]]:
    return hooks.run(
        "policy_override",
        DECISION,
        features=features or Features(),
        intent=INTENT,
        question=question,
    )


def indexed_repository(folder: Path, settings: Settings) -> Path:
    """`folder` as a repository that the data folder knows of."""
    folder.mkdir(parents=True, exist_ok=True)
    save_location(locate(settings, folder))
    return folder


# decorators


def test_every_hook_has_a_decorator_and_is_given_what_it_asks_for() -> None:
    hooks, seen = Hooks(), {}

    @added(hooks)
    @Hooks.policy_override
    def decide(question: str, intent: Intent, features: Features) -> None:
        seen["policy_override"] = (question, intent, features)

    @added(hooks)
    @Hooks.before_generation
    def before(asked: Gathered) -> Gathered:
        return replace(asked, strict=True)

    @added(hooks)
    @Hooks.after_generation
    def after(asked: Gathered, text: str) -> str:
        return f"{text} ({asked.question})"

    features = Features(tagged=True)
    decision, problems = decide_by(hooks, features, "how?")
    assert (decision, problems) == (DECISION, ())
    assert seen["policy_override"] == ("how?", INTENT, features)
    assert hooks.run("before_generation", ASKED)[0].strict
    assert hooks.run("after_generation", "By card.", asked=ASKED)[0] == "By card. (how is it paid?)"
    assert all(len(hooks.names(name)) == 1 for name in ARGUMENTS)


def test_a_decision_names_the_hook_that_changed_it() -> None:
    hooks = Hooks()

    @added(hooks)
    @Hooks.policy_override
    def search(decision: PolicyDecision) -> PolicyDecision:
        return replace(decision, inject_rag=True)

    @added(hooks)
    @Hooks.policy_override
    def same(decision: PolicyDecision) -> PolicyDecision:
        return replace(decision)

    decision, _ = decide_by(hooks)
    assert decision.inject_rag
    assert len(decision.rules) == 1 and re.fullmatch(r"hook mine search:search", decision.rules[0])


# order


def test_hooks_are_called_in_the_order_that_is_promised(plugins: Plugins) -> None:
    settings = plugins(
        b_second=appends(" b"),
        a_first=appends(" a"),
        c_last=hook("", "return text + ' last'", "text", "@Hooks.after_generation(trylast=True)"),
        d_first=hook(
            "", "return text + ' first'", "text", "@Hooks.after_generation(tryfirst=True)"
        ),
        e_of_pluggy="import pluggy\n\n@pluggy.HookimplMarker('codeqa')\n"
        "def after_generation(text):\n    return text + ' e'\n",
    )
    hooks = load_hooks(settings)
    assert hooks.run("after_generation", "0", asked=ASKED)[0] == "0 first a b e last"
    assert hooks.names("after_generation") == (
        "d_first.py:change", "a_first.py:change", "b_second.py:change",
        "e_of_pluggy.py:after_generation", "c_last.py:change",
    )  # fmt: skip


# hooks that fail


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise SystemExit(text)", "SystemExit at broken.py:6"),
        ("return [text]", "it returned list instead of str or None"),
        ("return change(text)", "RecursionError at broken.py:6"),
    ],
)
def test_a_hook_that_fails_is_named_and_left_out(
    plugins: Plugins, body: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = plugins(broken=hook("after_generation", body, "text"), fine=appends(" Fine."))
    hooks = load_hooks(settings)
    text, problems = hooks.run("after_generation", "A confidential answer.", asked=ASKED)
    assert text == "A confidential answer. Fine."
    assert problems == (f"The hook broken.py:change (after_generation) was skipped: {why}.",)
    assert f"broken.py:change (after_generation) was skipped: {why}" in caplog.text
    assert "confidential" not in caplog.text and "confidential" not in problems[0]


# where plugins come from


MARKS = "from pathlib import Path\nPath({!r}).touch()\n"


def test_nothing_is_executed_unless_a_setting_names_it(
    plugins: Plugins, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins(mine=MARKS.format(str(tmp_path / "executed")) + appends("!"))
    monkeypatch.chdir(tmp_path)
    hooks = load_hooks(load_settings(data=data_dir))
    assert not (tmp_path / "executed").exists()
    assert hooks.names("after_generation") == () and hooks.skipped == ()


def test_a_file_named_env_cannot_name_a_folder_of_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("CODEQA_PLUGINS=/somewhere\nCODEQA_PORT=5009\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings().plugins == "" and load_settings().port == 5009
    monkeypatch.setenv("CODEQA_PLUGINS", "/elsewhere")
    assert load_settings().plugins == "/elsewhere"


def test_only_python_files_directly_in_the_folder_are_executed(
    plugins: Plugins, tmp_path: Path
) -> None:
    settings = plugins(mine=appends("!"))
    folder = tmp_path / "plugins"
    (folder / "below").mkdir()
    mark = MARKS.format(str(tmp_path / "executed"))
    (folder / "below" / "more.py").write_text(mark)
    (folder / "notes.txt").write_text(mark)
    (folder / "folder.py").mkdir()
    hooks = load_hooks(settings)
    assert hooks.names("after_generation") == ("mine.py:change",)
    assert not (tmp_path / "executed").exists() and hooks.skipped == ()
    assert not (folder / "__pycache__").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def broken(:\n", "SyntaxError at bad.py:1"),
        ("x = 1\nraise RuntimeError('secret words')\n", "RuntimeError at bad.py:2"),
        ("x = 1\n", "it defines no hook"),
        (hook("after_generation", "return text", "text, model"), "{'model'} are declared"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named_and_the_others_are_loaded(
    plugins: Plugins, text: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = load_hooks(plugins(bad=text, good=appends("!")))
    assert hooks.run("after_generation", "Yes", asked=ASKED) == ("Yes!", ())
    assert len(hooks.skipped) == 1
    assert hooks.skipped[0].startswith("The plugin bad.py was skipped: ")
    assert why in hooks.skipped[0] and why in caplog.text and "secret words" not in caplog.text


def test_a_folder_in_an_indexed_repository_is_refused(
    settings: Settings, data_dir: Path, tmp_path: Path
) -> None:
    repository = indexed_repository(tmp_path / "cloned", settings)
    folder = repository / "deep/er"
    folder.mkdir(parents=True)
    (folder / "evil.py").write_text(MARKS.format(str(tmp_path / "executed")))
    (tmp_path / "link").symlink_to(folder)
    for named in (repository, folder, tmp_path / "link", Path(f"{tmp_path}/x/../cloned/deep/er")):
        with pytest.raises(SettingsError, match="is inside the indexed repository") as refused:
            load_hooks(load_settings(data=data_dir, plugins=str(named)))
        assert "never executes" in refused.value.hint
    assert not (tmp_path / "executed").exists()
    with pytest.raises(SettingsError, match="is not a folder"):
        load_hooks(load_settings(data=data_dir, plugins="/no/such/folder"))
    beside = write(tmp_path / "tree" / "plugins", {})  # in the work tree of what is indexed
    git(tmp_path / "tree", "init", "-q")
    indexed_repository(tmp_path / "tree" / "src", settings)
    with pytest.raises(SettingsError, match="is inside the indexed repository"):
        load_hooks(load_settings(data=data_dir, plugins=str(beside)))


def test_a_link_into_an_indexed_repository_is_not_executed(
    plugins: Plugins, settings: Settings, tmp_path: Path
) -> None:
    repository = indexed_repository(tmp_path / "cloned", settings)
    (repository / "evil.py").write_text(MARKS.format(str(tmp_path / "executed")) + appends("!"))
    named = plugins(mine=appends("?"))
    (tmp_path / "plugins" / "also.py").symlink_to(repository / "evil.py")
    hooks = load_hooks(named)
    assert not (tmp_path / "executed").exists()
    assert hooks.names("after_generation") == ("mine.py:change",)
    assert "also.py" in hooks.skipped[0] and "indexed repository" in hooks.skipped[0]


# the document


def test_the_example_of_the_document_does_what_it_says(plugins: Plugins) -> None:
    document = DOCUMENT.read_text("utf-8")
    example = re.search(r"^```python\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    assert example
    hooks = load_hooks(plugins(house_rules=example[1]))
    assert hooks.skipped == ()
    assert all(f"| `{name}` |" in document for name in ARGUMENTS)
    question = "where is a payment stored?"
    features = features_of(question)
    decision, problems = hooks.run(
        "policy_override", decide(features, INTENT),
        features=features, intent=INTENT, question=question,
    )  # fmt: skip
    assert decision.inject_rag and not decision.suggest_codebase and not problems
    assert decision.rules[-1] == "hook house_rules.py:search_for_payments"
    legacy, pay = (
        Chunk("ctx_1", path, 1, 1, "python", "x = 1\n") for path in ("legacy/pay.py", "pay.py")
    )
    block = ContextBlock((legacy, pay))
    given = replace(ASKED, question="a Payment?", block=block)
    asked, problems = hooks.run("before_generation", given)
    assert asked.strict and [c.path for c in asked.block.chunks] == ["pay.py"] and not problems
    text, problems = hooks.run("after_generation", "Booked.", asked=asked)
    assert text.startswith("Booked.\n") and "two people" in text and not problems
    assert hooks.run("after_generation", "Paid.", asked=ASKED) == ("Paid.", ())
