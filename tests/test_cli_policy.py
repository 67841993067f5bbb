"""`codeqa policy`: the table, the explanation of a message, and what hooks there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codeqa.chat.policy import RULES

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)


def test_without_a_message_the_rules_are_printed_in_order_and_the_hooks_below(
    codeqa: Command,
) -> None:
    result = codeqa("policy")
    assert result.status == 0 and result.err == ""
    lines = result.out.splitlines()
    assert [line.split()[1] for line in lines[1:] if line.startswith(tuple("icaefpr"))] == [
        rule.name for rule in RULES
    ]
    assert all(rule.when in result.out and rule.then in result.out for rule in RULES)
    assert "Hooks, in the order in which they are called:" in result.out


def test_the_table_is_also_json(codeqa: Command) -> None:
    document = json.loads(codeqa("policy", "--json").out)
    assert [rule["name"] for rule in document["rules"]] == [rule.name for rule in RULES]
    assert set(document["rules"][0]) == {"group", "name", "when", "then"}
    assert list(document["hooks"]) == [
        "policy_override", "after_retrieval", "before_generation", "after_generation",
    ]  # fmt: skip
    assert document["skipped"] == []


def test_a_message_is_shown_with_intent_features_and_the_rules_that_decide(
    codeqa: Command,
) -> None:
    result = codeqa("policy", "and who calls it?", "--history", "--context")
    assert result.status == 0
    assert "Intent    continuation" in result.out and "by heuristics" in result.out
    assert "is_followup" in result.out and "conversation_length=2" in result.out
    assert "use_cached_context" in result.out
    assert "the-code-at-hand" in result.out
    assert "no-code-at-hand" not in result.out


def test_the_retrieval_mode_is_the_settings_unless_it_is_given(
    codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = ("policy", "where is `Basket` defined?", "--json")
    monkeypatch.setenv("CODEQA_RETRIEVAL", "auto")
    assert json.loads(codeqa(*message).out)["decision"]["searched_automatically"] is True
    explicit = json.loads(codeqa(*message, "--retrieval", "explicit").out)
    assert explicit["decision"]["searched_automatically"] is False
    assert explicit["decision"]["suggest_codebase"] and explicit["features"]["code_signal"]
    assert [rule["name"] for rule in explicit["rules"]] == explicit["decision"]["rules"]


def test_an_off_topic_follow_up_gets_no_earlier_code(codeqa: Command) -> None:
    options = ("--history", "--context", "--off-topic", "--json")
    document = json.loads(codeqa("policy", "and how is that one parsed?", *options).out)
    assert document["intent"]["name"] == "continuation"
    assert document["decision"]["intent"] == "knowledge_base"
    assert document["decision"]["use_cached_context"] is False


def test_an_empty_message_and_an_unknown_mode_are_bad_usage(codeqa: Command) -> None:
    result = codeqa("policy", " ")
    assert (result.status, result.error.split(".")[0]) == (2, "The message is empty")
    assert codeqa("policy", "hi", "--retrieval", "always").status == 2


def test_control_characters_of_a_message_do_not_reach_the_terminal(codeqa: Command) -> None:
    assert "\x1b" not in codeqa("policy", "\x1b[31mwhere is `a\x1b` defined").out


def test_plugins_are_listed_in_order_and_those_left_out_are_named(
    codeqa: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = "from codeqa.chat.hooks import Hooks\n@Hooks.after_generation\ndef say(text): ...\n"
    (tmp_path / "mine.py").write_text(mine)
    (tmp_path / "bad.py").write_text("import no_such_package\n")
    monkeypatch.setenv("CODEQA_PLUGINS", str(tmp_path))
    result = codeqa("policy")
    assert "after_generation   mine.py:say" in result.out
    assert "The plugin bad.py was left out: ModuleNotFoundError at bad.py:1." in result.err
