"""`codeqa ask`: from the code alone, and through a model over HTTP."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from openai_server import ScriptedServer, dropped, failure, openai_server, stream

from codeqa.prompts import PROMPTS

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)

QUESTION = "how is an article put into the basket?"
ANSWER = ["It is appended ", "[store/basket.py:7-9].\n"]
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A server that is set as the address of models; none of its models is chosen yet."""
    with openai_server(lambda path, body: stream(ANSWER, usage=(1_234, 56))) as server:
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        yield server


def last_message(request: tuple[str, dict[str, Any]]) -> str:
    return json.dumps(request[1]["messages"][-1])


def test_the_answer_of_a_model_is_printed_and_what_made_it_is_said_beside_it(
    shop_codeqa: Command, shop: Path, server: ScriptedServer
) -> None:
    result = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m", "--rerank")
    assert (result.status, result.out) == (0, "".join(ANSWER))
    notes = result.err.splitlines()
    assert "Model: custom/m at 127.0.0.1, 1,234 tokens read and 56 written" in notes
    assert "Reranked: built-in" in notes
    assert any(note.startswith("Searched: 3 of 3 files") for note in notes)
    assert "add_article" in last_message(server.requests[0])
    # The address that is set goes with any model; what looks like the tag is not taken for it.
    question = f"{QUESTION} Tell me@codebase.example"
    options = ("--model", "openai/gpt-4o", "--mode", "review", "--strict")
    result = shop_codeqa("ask", question, "--repo", shop, *options)
    assert "Model: openai/gpt-4o at 127.0.0.1" in result.err
    assert "Searched: 3 of 3 files" in result.err
    sent = last_message(server.requests[1])
    assert question in sent and "add_article" in sent and "[MODE: review]" in sent
    strict = json.dumps(PROMPTS["strict"].text.strip()).strip('"')
    assert [strict in last_message(request) for request in server.requests] == [False, True]


def test_citations_that_are_not_true_are_named(
    shop_codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = stream(["See [store/basket.py:7-9], [store/basket.py:7-900] and [no/such.py:3]."])
    with openai_server(lambda path, body: said) as server:
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        result = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m")
    (note,) = [line for line in result.err.splitlines() if line.startswith("Not verified")]
    assert note == (
        "Not verified: store/basket.py:7-900, the file now has 14 lines; "
        "no/such.py:3, no indexed file has this path"
    )


def test_without_a_model_nothing_is_sent(
    shop_codeqa: Command, shop: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEQA_MODEL", "custom/m")
    result = shop_codeqa("ask", QUESTION, "--repo", shop, "--no-model")
    assert result.status == 0 and result.out.endswith("\n")
    assert "add_article" in result.out and "[store/basket.py:" in result.out
    assert "Model:" not in result.err
    review = shop_codeqa("ask", "/review add_article", "--repo", shop, "--no-model")
    assert review.status == 0 and "takes a language model" in review.err
    assert server.exchanges == []


def test_a_follow_up_goes_on_from_the_code_that_was_found(
    shop_codeqa: Command, shop: Path, server: ScriptedServer
) -> None:
    model = ("--repo", shop, "--model", "custom/m")
    shop_codeqa("ask", QUESTION, *model)
    result = shop_codeqa("ask", "-c", "why is that?", *model)
    assert (result.status, result.out) == (0, "".join(ANSWER))
    assert "Searched:" not in result.err, "it is about the answer"
    *_, second = server.requests  # a small call may come before it
    assert "add_article" in last_message(second)
    said = [message["content"] for message in second[1]["messages"][1:-1]]
    assert said == [QUESTION, "".join(ANSWER)]
    result = shop_codeqa("ask", "-c", "and who calls it?", "--repo", shop, "--no-model")
    assert "add_article is called in" in result.out, "it takes the index"
    # A question that is no follow-up owes nothing to what was said before.
    shop_codeqa("ask", "who pays?", *model)
    assert len(server.requests[-1][1]["messages"]) == 2


def test_small_talk_is_answered_as_on_the_page_also_as_a_follow_up(
    shop_codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--repo", shop, "--no-model")
    assert shop_codeqa("ask", "hi", *options).out.startswith("Hello. Ask me about the code of")
    assert "Hello" not in shop_codeqa("ask", "@codebase hi", *options).out
    shop_codeqa("ask", QUESTION, *options)
    assert shop_codeqa("ask", "-c", "thanks!", *options).out == "You are welcome.\n"
    assert "add_article" in shop_codeqa("ask", "-c", "and what of the article?", *options).out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{QUESTION}\n".encode())))
    assert "add_article" in shop_codeqa("ask", "-", *options).out


def test_a_follow_up_belongs_to_its_repository(
    shop_codeqa: Command, shop: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    other = tmp_path / "other shop"
    other.mkdir()
    (other / "a.py").write_text("def alone():\n    return 1\n")
    assert shop_codeqa("index", other).status == 0
    nothing = shop_codeqa("ask", "--continue", "and then?", "--repo", other)
    assert nothing.status == 0 and "**The evidence is weak.**" in nothing.out, (
        "it goes on from none"
    )
    shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m")
    shop_codeqa("ask", "what is alone?", "--repo", other, "--model", "custom/m")
    shop_codeqa("ask", "-c", "and then?", "--repo", shop, "--model", "custom/m")
    assert "add_article" in last_message(server.requests[-1])
    assert "alone" not in json.dumps(server.requests[-1][1]["messages"])
    assert shop_codeqa("repos", "remove", other, "--yes").status == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mode", "shout"], "'explain', 'locate', 'review', 'plan', 'change'"),
        (["--model", "no-such/model"], "no-such"),
        (["--model", "custom/m"], "needs an address"),
        (["--model", "openai/gpt-4o"], "OPENAI_API_KEY"),
    ],
)
def test_a_wrong_choice_is_bad_usage(
    options: list[str], said: str, shop_codeqa: Command, shop: Path
) -> None:
    result = shop_codeqa("ask", QUESTION, "--repo", shop, *options)
    assert (result.status, result.out) == (2, "")
    assert said in result.error


@pytest.mark.parametrize(
    ("reply", "printed", "said"),
    [
        (failure(401, f"Incorrect API key provided: {KEY}"), "", "127.0.0.1"),
        (failure(404, "The model `m` does not exist"), "", "m"),
        (dropped(["It is ", "appended"]), "It is appended\n", "broke off"),
    ],
    ids=["key", "model", "dropped"],
)
def test_a_model_that_fails_is_one_line_with_a_next_step(
    reply: Any,
    printed: str,
    said: str,
    shop_codeqa: Command,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with openai_server(lambda path, body: reply) as server:
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        monkeypatch.setenv("CODEQA_MODEL_KEY", KEY)
        result = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m")
        as_json = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m", "--json")
    assert (result.status, result.out) == (1, printed)
    assert said in result.error and KEY not in result.err
    assert result.error.endswith("Or ask with --no-model.")
    assert (as_json.status, as_json.out) == (1, "")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_one_object_holds_the_answer_and_how_it_came_about(
    shop_codeqa: Command, shop: Path, server: ScriptedServer
) -> None:
    result = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m", "--json")
    said = json.loads(result.out)
    assert (result.status, result.err) == (0, "")
    assert (said["question"], said["answer"]) == (QUESTION, "".join(ANSWER))
    assert said["model"] == "custom/m" and said["citations"][0]["verified"] is True
    assert said["tokens"] == {"prompt": 1_234, "completion": 56, "estimated": False}
