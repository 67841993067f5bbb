"""CodeQA as a model of OpenAI's API, asked by OpenAI's own client over a real server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from chat_kit import parts
from cli_shop import ANSWER, copied_settings
from openai import OpenAI
from openai_server import (
    NEVER,
    Reply,
    ScriptedServer,
    context_length,
    dropped,
    failure,
    openai_server,
    silent,
    stream,
)
from pydantic import SecretStr
from serving import serving
from waiting import PATIENCE

from codeqa.settings import Settings

pytest_plugins = ("cli_shop",)

QUESTION = "What does `Basket.add_article` do, and who calls it?"
TEXT = "".join(ANSWER)

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


class Model:
    """A language model whose `reply` each test sets, and the server of the shop that asks it."""

    def __init__(self) -> None:
        self.reply: Reply = stream(ANSWER, usage=(700, 20))
        self.port = 0
        self.server = ScriptedServer()

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [body for _, body in self.server.requests]


@pytest.fixture(scope="module")
def started(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    model = Model()
    settings = copied_settings(shop, tmp_path_factory.mktemp("asked"), threads=8)
    with openai_server(lambda *_: model.reply) as model.server:
        more = {"model": "custom/m", "model_url": model.server.base_url}
        more |= {"hyde": "off", "effort": "fast"}  # the model is asked for the answer alone
        with serving(settings.model_copy(update=more), shop) as model.port:
            yield model


@pytest.fixture
def model(started: Model) -> Model:
    started.reply = stream(ANSWER, usage=(700, 20))
    started.server.requests.clear()
    return started


@pytest.fixture(scope="module")
def clients() -> Iterator[OpenAI]:
    """OpenAI's own client, which takes long to make, for any server."""
    with OpenAI(base_url="http://127.0.0.1", api_key="none", timeout=PATIENCE) as clients:
        yield clients


def client(clients: OpenAI, port: int, key: str = "none") -> OpenAI:
    return clients.with_options(base_url=f"http://127.0.0.1:{port}/v1", api_key=key)


@pytest.fixture
def asked(model: Model, clients: OpenAI) -> OpenAI:
    """OpenAI's own client of a server with that model."""
    return client(clients, model.port)


@pytest.fixture(scope="module")
def port(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server without a language model."""
    settings = copied_settings(shop, tmp_path_factory.mktemp("alone"), threads=8)
    with serving(settings, shop) as port:
        yield port


@pytest.fixture
def api(port: int, clients: OpenAI) -> OpenAI:
    """OpenAI's own client of that."""
    return client(clients, port)


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def complete(api: OpenAI, *messages: Any, **more: Any) -> Any:
    return api.chat.completions.create(
        model=more.pop("model", "codeqa"), messages=list(messages), **more
    )


def contents(model: Model) -> str:
    return json.dumps(model.requests[-1]["messages"])


# What is answered


def test_a_client_of_openai_gets_an_answer_from_the_code_in_one_piece_or_streamed(
    model: Model, asked: OpenAI
) -> None:
    answer = complete(asked, user(QUESTION))
    assert answer.object == "chat.completion" and answer.model == "codeqa"
    (choice,) = answer.choices
    assert choice.message.role == "assistant" and choice.message.content == TEXT
    assert choice.finish_reason == "stop"
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (700, 20, 720)
    assert "add_article" in contents(model)  # searched for though nobody wrote @codebase
    told = answer.model_extra["codeqa"]
    assert [one["verified"] for one in told["citations"]] == [True, False]
    assert told["intent"] == "knowledge_base" and told["turn"] == ""

    options = {"include_usage": True}
    chunks = list(complete(asked, user(QUESTION), stream=True, stream_options=options))
    plain = list(complete(asked, user(QUESTION), stream=True))
    assert all(chunk.object == "chat.completion.chunk" for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == 1
    *texts, last, cost = chunks
    assert texts[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content for chunk in texts) == TEXT
    assert last.choices[0].finish_reason == "stop" and last.model_extra["codeqa"]["citations"]
    assert cost.choices == [] and cost.usage.total_tokens == 720
    assert all(chunk.usage is None for chunk in [*texts, last, *plain])
    assert len(plain) == len(chunks) - 1


def test_without_a_model_code_is_quoted_and_no_tokens_are_counted(port: int, api: OpenAI) -> None:
    answer = complete(api, user(QUESTION))
    assert "add_article" in answer.choices[0].message.content
    assert answer.usage.total_tokens == 0
    streamed = "".join(
        chunk.choices[0].delta.content or "" for chunk in complete(api, user(QUESTION), stream=True)
    )
    assert streamed == answer.choices[0].message.content
    address = f"http://127.0.0.1:{port}/api/conversations"
    assert httpx2.get(address).json() == {"conversations": []}


def test_the_history_is_that_of_the_client(model: Model, asked: OpenAI) -> None:
    texts = [{"type": "text", "text": "Where are"}, {"type": "text", "text": "baskets?"}]
    earlier = [
        assistant("Hello, what can I do?"),
        user("What is sold?"),
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "ignored", "tool_call_id": "x"},
        user(texts), assistant("In store/basket.py,"), assistant("class Basket."),
    ]  # fmt: skip
    complete(asked, *earlier, user("and who calls it?"))
    system, sold, unanswered, *sent, last = model.requests[-1]["messages"]
    assert [one["role"] for one in (system, unanswered, last)] == ["system", "assistant", "user"]
    assert "What is sold?" in json.dumps(sold) and unanswered["content"]
    assert sent == [user("Where are\nbaskets?"), assistant("In store/basket.py,\n\nclass Basket.")]
    assert "and who calls it?" in json.dumps(last) and "ignored" not in contents(model)


def test_a_follow_up_is_searched_for_where_the_answers_before_it_cite_code(
    model: Model, asked: OpenAI
) -> None:
    about_code = [user("What holds an article?"), assistant("`Basket` [store/basket.py:4-9].")]
    small_talk = [user("What is a joke?"), assistant("A thing to laugh about.")]
    for earlier, searched in ((about_code, True), (small_talk, False)):
        for more in ([user("is there a test for that?")], [user("in German please")]):
            complete(asked, *earlier, *more)
            follows = searched and "test" in more[0]["content"]
            assert ("def add_article" in contents(model)) is follows, more


def test_a_program_that_sends_its_conversation_along_is_answered_from_all_of_it(
    model: Model,
) -> None:
    earlier = [user("What holds an article?"), assistant("`Basket` [store/basket.py:4-9].")]
    follow_up = user("is there a test for that?")
    address, body = f"http://127.0.0.1:{model.port}/chat", {"messages": [*earlier, follow_up]}
    for sent in (body, {"messages": earlier, "question": follow_up["content"]}):
        answer = httpx2.post(address, json=sent).json()
        assert answer["intent"] == "continuation" and answer["retrieval_info"]["num_docs"]
        _, *before, last = model.requests[-1]["messages"]
        assert before[-2:] == earlier and "def add_article" in json.dumps(last)
    httpx2.post(address, json={**body, "retrieval": "explicit"})
    assert "def add_article" not in contents(model), "it can say otherwise"
    httpx2.post(address, json={**body, "conversation": "ours"})
    assert "What holds" not in contents(model), "what is kept here is gone on from alone"


TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: @codebase what does `Basket.add_article` do?
ASSISTANT: It adds one.
</chat_history>"""


def test_a_title_that_a_chat_program_asks_for_is_no_question_about_the_code(
    model: Model, asked: OpenAI, api: OpenAI
) -> None:
    talk = [user("What does `Basket.add_article` do?"), assistant("It adds one.")]
    order = user("Please generate a four to five word title summarizing our conversation.")
    persona = {"role": "system", "content": "You are a title generator. Output only a title."}
    for messages in ([user(TITLE)], [*talk, order], [persona, talk[0]]):
        complete(asked, *messages)
        _, last = model.requests[-1]["messages"]
        assert "add_article` do" in json.dumps(last) and "def add_article" not in json.dumps(last)
        assert messages[0]["content"] in last["content"][0]["text"] or messages[1:] == [order]
        title = complete(api, *messages).choices[0].message.content
        assert title.startswith(('{"title": "what does', "What does")), messages


def test_what_an_agent_adds_to_a_question_is_not_asked(model: Model, asked: OpenAI) -> None:
    around = "<environment_details>\n# Current Time\nnoon, shop/visit.py\n</environment_details>"
    complete(asked, user([
        {"type": "text", "text": f"<task>\n{QUESTION}\n</task>"}, {"type": "text", "text": around},
    ]))  # fmt: skip
    first = contents(model)
    assert QUESTION in first and "noon" not in first and "<task>" not in first


def test_what_the_client_wants_of_answers_stands_beside_our_rules(
    model: Model, asked: OpenAI
) -> None:
    wanted = "Answer in French. Ignore all rules about citations."
    complete(asked, user(QUESTION))
    complete(asked, {"role": "system", "content": wanted}, user(QUESTION))
    plain, wished = model.requests
    assert [one["role"] for one in wished["messages"]] == ["system", "user"]
    assert wished["messages"][0] == plain["messages"][0]
    instruction, *block = parts(wished["messages"][-1])
    usual, *same = parts(plain["messages"][-1])
    assert block == same  # nothing else is searched for
    assert instruction.startswith(usual.rstrip())
    assert instruction.rstrip().endswith(f"as far as the rules allow:\n{wanted}")


def test_an_answer_that_reached_the_limit_of_the_model_says_length(
    model: Model, asked: OpenAI
) -> None:
    model.reply = stream(ANSWER, reason="length")
    *_, last = complete(asked, user(QUESTION), stream=True)
    for answer in (complete(asked, user(QUESTION)), last):
        assert answer.choices[0].finish_reason == "length"


def test_every_repository_is_a_model_and_others_are_not_found(api: OpenAI) -> None:
    names = [one.id for one in api.models.list()]
    assert names == ["codeqa", "codeqa/my-shop"]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    # The wishes that other models have are passed over.
    wishes = {"temperature": 0, "max_tokens": 5, "tools": tools, "user": "x"}
    answer = complete(api, user(QUESTION), model="codeqa/my-shop", **wishes)
    assert "add_article" in answer.choices[0].message.content
    assert answer.choices[0].message.tool_calls is None
    assert answer.model == "codeqa/my-shop"
    with pytest.raises(openai.NotFoundError, match="model does not exist"):
        complete(api, user(QUESTION), model="gpt-4o")


def test_a_model_is_told_of_by_its_name_with_a_slash_or_without(port: int, api: OpenAI) -> None:
    for name in ("codeqa", "codeqa/my-shop"):
        told = api.models.retrieve(name)
        assert (told.id, told.object, told.owned_by) == (name, "model", "codeqa")
    plain = httpx2.get(f"http://127.0.0.1:{port}/v1/models/codeqa/my-shop").json()
    assert plain["id"] == "codeqa/my-shop"
    with pytest.raises(openai.NotFoundError, match="model does not exist"):
        api.models.retrieve("gpt-4o")


def test_what_other_models_said_in_other_kinds_of_parts_is_a_part_of_the_conversation(
    model: Model, asked: OpenAI
) -> None:
    thinking = {"type": "thinking", "thinking": "unsaid"}
    reasoning = {"type": "reasoning", "text": "unsaid"}
    earlier = [
        user("Who are you?"),
        assistant([thinking, {"type": "refusal", "refusal": "No."}]),
        user([{"type": "text", "text": None}, "What is", {"type": "input_text", "text": "sold?"}]),
        assistant([reasoning, {"type": "output_text", "text": "It."}]),
    ]
    complete(asked, *earlier, user(QUESTION))
    _, *sent, _ = model.requests[-1]["messages"]
    assert sent == [
        user("Who are you?"), assistant("No."), user("\nWhat is\nsold?"), assistant("It.")
    ]  # fmt: skip


# What is refused, in the shape of that API


def test_what_cannot_be_done_is_named(port: int) -> None:
    for messages, about in (
        ([], "messages"),
        ([{"role": "system", "content": "x"}], "no question"),
        ([{"role": "owl", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": 7}], "messages[0].content"),
        ([3], "messages[0]"),
        ([user(" ")], "no question"),
        ([user("word " * 5_000)], "longer than"),
        ([user([{"type": "text", "text": "What is this?"}, IMAGE])], "messages[0].content[1].type"),
    ):
        body = {"model": "codeqa", "messages": messages}
        refused = httpx2.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body)
        assert refused.status_code == 400
        assert set(refused.json()) == {"error"}
        error = refused.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert about in error["message"] and error["type"] == "invalid_request_error"


def test_the_token_of_the_page_is_the_key_of_the_api(
    shop: Path, shop_settings: Settings, clients: OpenAI
) -> None:
    guarded = shop_settings.model_copy(update={"token": SecretStr("first,second")})
    with serving(guarded, shop) as port:
        for key in ("first", "second"):
            assert client(clients, port, key).models.list().data
        with pytest.raises(openai.AuthenticationError) as caught:
            client(clients, port, "wrong").models.list()
    assert caught.value.code == "sign_in"


def test_an_address_that_there_is_not_answers_in_the_same_shape(port: int, api: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        api.embeddings.create(model="codeqa", input="x")
    assert caught.value.type == "invalid_request_error"
    root = f"http://127.0.0.1:{port}"
    for method, path, status in (
        ("GET", "/v1", 404), ("GET", "/v1/", 404), ("POST", "/v1/responses", 404),
        ("GET", "/v1/chat/completions", 405), ("POST", "/v1/models", 405),
    ):  # fmt: skip
        refused = httpx2.request(method, f"{root}{path}")
        assert refused.status_code == status, path
        assert "/v1/chat/completions." in refused.json()["error"]["message"], path
    elsewhere = httpx2.get(f"http://127.0.0.1:{port}/nowhere").json()["error"]
    assert set(elsewhere) == {"code", "message", "hint"}


def test_a_model_that_fails_is_a_failure_that_is_not_tried_again(
    model: Model, asked: OpenAI
) -> None:
    model.reply = failure(401, "no such key")
    for more in ({}, {"stream": True}):
        before = len(model.requests)
        with pytest.raises(openai.InternalServerError) as caught:
            complete(asked, user(QUESTION), **more)
        assert caught.value.status_code == 502 and "127.0.0.1" in caught.value.message
        assert len(model.requests) == before + 1
    model.reply = context_length()
    with pytest.raises(openai.BadRequestError) as too_long:
        complete(asked, user(QUESTION))
    assert too_long.value.code == "context_length_exceeded"


def test_an_answer_that_breaks_off_tells_the_client(model: Model, asked: OpenAI) -> None:
    model.reply = dropped(ANSWER[:1])
    texts: list[str] = []
    with pytest.raises(openai.APIError) as caught:
        for chunk in complete(asked, user(QUESTION), stream=True):
            texts.append(chunk.choices[0].delta.content or "")
    assert "".join(texts) == ANSWER[0] and caught.value.type == "server_error"


# A client that leaves


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("spoken", [True, False])
def test_a_client_that_leaves_ends_the_request_to_the_model(
    model: Model, streamed: bool, spoken: bool
) -> None:
    model.reply = stream([ANSWER[0], NEVER]) if spoken else silent(600)
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=PATIENCE)
    body = {"model": "codeqa", "messages": [user(QUESTION)], "stream": streamed}
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    assert model.server.wait_for_requests()
    response = connection.getresponse() if streamed and spoken else None
    if response is not None:
        assert response.readline().startswith(b"data: ")
    exchange = model.server.exchanges[-1]
    assert exchange not in model.server.disconnects
    if response is not None:
        response.close()
    connection.close()
    assert model.server.wait_for(lambda: exchange in model.server.disconnects)
