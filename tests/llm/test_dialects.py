"""What servers and models send that no specification says, each as public reports show it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeqa.errors import ModelError
from codeqa.llm.answer import AnswerReader
from codeqa.llm.client import Model
from codeqa.llm.providers import ModelAddress
from codeqa.llm.values import Reasoning, answer_text
from tests.kit.openai_server import Plain, Reply, openai_server, stream
from tests.kit.waiting import PATIENCE

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
]
DONE = "data: [DONE]\n\n"


def chunk(text: str = "", reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A part of an answer."""
    delta = {**({"content": text} if text else {}), **fields}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def lines(*values: Any) -> str:
    """Values as events."""
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values)


def said(body: str | bytes, status: int = 200, kind: str = "text/event-stream") -> Reply:
    """What a server says, of a content type."""
    return status, {"Content-Type": kind}, body if isinstance(body, bytes) else body.encode()


def ask(reply: Reply) -> str:
    """The text of the answer. Raises ModelError."""
    with (
        openai_server(lambda path, body: reply) as server,
        Model(ModelAddress(server.base_url, "m"), PATIENCE) as model,
    ):
        return model.complete(MESSAGES, 9)


PARTS = (chunk("An "), chunk("answer 😀"), chunk(reason="stop"))
STREAM = lines(*PARTS) + DONE
WHOLE = {"choices": [{"message": {"content": "An answer 😀"}, "finish_reason": "stop"}]}
FORMS = {
    "CR LF": STREAM.replace("\n", "\r\n"),
    "CR": STREAM.replace("\n", "\r"),
    "a mark of the byte order": "\ufeff" + STREAM,
    "no empty lines": STREAM.replace("\n\n", "\n"),
    "no blanks": STREAM.replace("data: ", "data:"),
    "signs of life": f": ping\n\n:\n\ndata:\n\nevent: ping\ndata: ping\n\ndata: : OPEN\n\n{STREAM}",
    "ids": f"retry: 3000\n\nid: 1\nevent: message\n{STREAM}",
    "null": f"data: null\n\n{STREAM}",
    "an event without its end": STREAM.removesuffix("\n\n" + DONE),
    "an error that is none": lines({**chunk("An "), "error": None}, *PARTS[1:]),
    "a status": lines({"status": "queued", "message": "Wait."}, *PARTS),
    "an end without a delta": lines(*PARTS[:2], {"choices": [{"finish_reason": "stop"}]}),
    "halves of a character": r'data: {"choices":[{"delta":{"content":"An answer \ud83d"}}]}'
    '\n\ndata: {"choices":[{"delta":{"content":"\\ude00"},"finish_reason":"stop"}]}\n\n',
    "one text": json.dumps(WHOLE),
    "one text on lines": json.dumps(WHOLE, indent=2),
    "one text as an event": lines(WHOLE),
    "one text after blanks": f"\n   \n{json.dumps(WHOLE)}",
    "lines of JSON": "".join(f"{json.dumps(part)}\n" for part in PARTS),
    "data on lines": "data: " + json.dumps(WHOLE, indent=1).replace("\n", "\ndata: ") + "\n\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_is_read_in_any_form_of_body(form: str) -> None:
    for kind in ("text/event-stream", "application/json", "text/plain", ""):
        assert ask(said(FORMS[form], kind=kind)) == "An answer 😀"


WORDS = "the engine ran dry"
ERRORS = {
    "error": {"error": {"message": WORDS}},
    "text": {"error": WORDS},
    "vLLM": {"object": "error", "message": WORDS, "code": 500},
    "FastAPI": {"detail": [{"loc": ["body"], "msg": WORDS}]},
    "Anthropic": {"type": "error", "error": {"type": "x", "message": WORDS}},
    "Gemini": [{"error": {"code": 400, "message": WORDS}}],
    "Cloudflare": {"success": False, "errors": [{"code": 7, "message": WORDS}], "result": None},
    "MiniMax": {"base_resp": {"status_code": 1004, "status_msg": WORDS}},
    "OpenRouter": {"error": {"message": "Provider returned error", "code": 400,
                             "metadata": {"raw": json.dumps({"error": {"message": WORDS}})}}},
    "true": {"error": True, "message": WORDS},
}  # fmt: skip
PLACES = {
    "as an event": lines,
    "as an event error": lambda body: f"event: error\n{lines(body)}",
    "as a line error": lambda body: f"error: {json.dumps(body)}\n\n{DONE}",
    "as a text": json.dumps,
    "as a text on lines": lambda body: json.dumps(body, indent=2),
    "after thoughts": lambda body: lines(chunk(reasoning="hm")) + f"event: error\n{lines(body)}",
}


@pytest.mark.parametrize("place", PLACES)
def test_an_error_in_an_answer_is_told_in_the_words_of_the_server(place: str) -> None:
    for body in ERRORS.values():
        with pytest.raises(ModelError, match=WORDS) as caught:
            ask(said(PLACES[place](body)))
        assert "is not a chat API" not in caught.value.message


@pytest.mark.parametrize(
    ("reply", "told", "hint"),
    [
        (said(f"error: {WORDS}\n\n"), WORDS, "Ask"),
        (said(WORDS, kind="text/plain"), WORDS, "Ask"),
        (said("<!DOCTYPE html><title>Sign in</title>"), "not a chat API: “Sign in”", "/v1"),
        (said("<pre>Cannot POST /v1</pre>", 404), "not a chat API: “Cannot POST /v1”", "/v1"),
        (said("", 404), r"not a chat API\.", "/v1"),
        (said('{"detail": "Method Not Allowed"}', 405), "not a chat API", "/v1"),
        (said("No endpoints found that support tool use", 404), "that support tool use", "Ask"),
        (said('{"error": {"message": "models/m is not found for v1"}}', 404), "no model 'm'", "C"),
        (said("Internal Server Error", 500), "Internal Server Error", "log of that server"),
        (said("<title>502 Bad Gateway</title>", 502), "“502 Bad Gateway”", "log of that server"),
        (said("CUDA out of memory", 500), "out of memory", "smaller model"),
        (said('{"error": {"message": "insufficient credits", "code": 402}}'), "402", "account"),
        (said("Insufficient Balance", 402), "Insufficient Balance", "account"),
        (said(""), r"answered without content\.", "about less"),
        (said(lines(chunk(reason="stop"))), r"without content \(stop\)", "about less"),
        (said(lines(chunk(reasoning="hm")) + DONE), "it only reasoned", "about less"),
        (said(lines(chunk(reason="length"))), "too long", "about less"),
        (said(lines(chunk("a"), chunk(reason="insufficient_system_resource"))), "an error", "Ask"),
    ],
)  # fmt: skip
def test_a_failure_is_told_in_the_words_of_the_server_with_advice_that_fits(
    reply: Reply, told: str, hint: str
) -> None:
    with pytest.raises(ModelError, match=told) as caught:
        ask(reply)
    assert hint in caught.value.hint


def pieces_of(*contents: Any) -> list[Any]:
    """What is read from an answer whose deltas have these contents, or are these."""
    answer = AnswerReader()
    deltas = [one if isinstance(one, dict) else {"content": one} for one in contents]
    pieces = [one for delta in deltas for one in answer.take({"choices": [{"delta": delta}]})]
    return [*pieces, answer.rest()]


THOUGHTS = [
    "<thinking>secret</thinking>\n\nAnswer",
    "<THINK>secret</THINK>Answer",
    "<reasoning>secret</reasoning>Answer",
    "<thought>secret `</thought>` secret</thought>Answer",
    "<think>outer<thought>secret</thought></think>Answer",
    "<think>one</think><think>secret</think>Answer",
    "[THINK]secret[/THINK]Answer",
    "◁think▷secret◁/think▷Answer",
    "<seed:think>secret</seed:think>Answer",
    "<|START_THINKING|>secret<|END_THINKING|><|START_RESPONSE|>Answer<|END_RESPONSE|>",
    "<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>Answer",
    "<|channel|>analysis<|message|>secret<|channel|>final<|message|>Answer<|return|>",
    "<|channel>thought\nsecret<channel|>Answer",
    "secret\n</think>\n\nAnswer",
    "secret, with `</think>` and <b>.</think>Answer",
    "</think>\n\nAnswer",
    "Answer<|im_end|>",
]


@pytest.mark.parametrize("text", THOUGHTS)
def test_thoughts_are_told_from_the_answer_wherever_the_text_is_cut(text: str) -> None:
    for size in (len(text), 1, 2, 3, 7):
        cut = [text[at : at + size] for at in range(0, len(text), size)]
        assert answer_text(pieces_of(*cut)).strip() == "Answer", cut


@pytest.mark.parametrize(
    "text",
    [
        "The mark `</think>` ends it",
        'He writes "</think>" there',
        "```py\nCLOSED = x</think>\n```\nend",
        "a <think>b</think> c",
        "List<String> a[1] <div>",
        "end </s> in it",
        "[src/a.py:1-2] reads",
    ],
)
def test_marks_that_an_answer_is_about_stay_in_it(text: str) -> None:
    for size in (len(text), 1, 2, 3, 7):
        cut = [text[at : at + size] for at in range(0, len(text), size)]
        assert answer_text(pieces_of(*cut)) == text, cut


@pytest.mark.parametrize(
    ("contents", "thought", "text"),
    [
        ([[{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}], "b"], "a", "b"),
        ([[{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}]], "a", "b"),
        ([[{"type": "reasoning", "text": "a"}, {"type": "output_text", "text": "b"}]], "a", "b"),
        ([[{"type": "text", "text": {"value": "b"}}, {"type": "reference", "ids": [1]}]], "", "b"),
        ([[{"type": "refusal", "refusal": "b"}]], "", "b"),
        ([{"reasoning": "a", "reasoning_details": [{"text": "a"}]}, "b"], "a", "b"),
        ([{"thinking": "a"}, {"reasoning": {"content": "a"}}, "b"], "aa", "b"),
    ],
)
def test_a_content_in_parts_is_read_as_its_text(
    contents: list[Any], thought: str, text: str
) -> None:
    pieces = pieces_of(*contents)
    thoughts = [one.text for one in pieces if isinstance(one, Reasoning)]
    assert ("".join(thoughts), answer_text(pieces)) == (thought, text)


SYSTEM = [
    "System role not supported", "Jinja Exception: Only user and assistant roles are supported!",
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    "Developer instruction is not enabled for models/gemma-3-27b-it", "invalid role: system",
    "This model doesn't support system messages. Try again without a system message.",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "deepseek-reasoner does not support successive user or assistant messages",
    "Input should be 'user', 'assistant' or 'tool'", "System message must be at the beginning.",
]  # fmt: skip
CONTENT = [
    "content must be a string", "Input should be a valid string", "str type expected",
    "messages[1].content: invalid type: sequence, expected a string at line 1 column 7254",
    "json: cannot unmarshal array into Go value of type string", "content type array not supported",
    "Cannot deserialize value of type `java.lang.String` from Array value",
    "can only concatenate str (not \"list\") to str", "'list object' has no attribute 'strip'",
    "The JSON value could not be converted to System.String. Path: $.messages[1].content",
]  # fmt: skip
OPTIONS = [
    "Unknown parameter: 'stream_options'.", "body.stream_options: Extra inputs are not permitted",
    "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
]  # fmt: skip
STREAMED = [
    "This model does not support streaming", "stream must be false",
    "Unsupported value: 'stream' does not support true with this model.",
    "Your organization must be verified to stream this model.",
]  # fmt: skip


def is_sent(form: str, body: dict[str, Any]) -> bool:
    """Whether a request has that form."""
    messages = body["messages"]
    return {
        "system": messages[0]["role"] == "system",
        "parts": any(isinstance(message["content"], list) for message in messages),
        "options": "stream_options" in body,
        "stream": "stream" in body,
    }[form]


@pytest.mark.parametrize(
    ("form", "refusals"),
    [("system", SYSTEM), ("parts", CONTENT), ("options", OPTIONS), ("stream", STREAMED)],
)
def test_what_a_server_refuses_is_asked_once_more_without_and_never_again(
    form: str, refusals: list[str]
) -> None:
    for words in refusals:
        for status in (400, 500, 200):
            refused: Plain = (status, {}, {"detail": words})

            def script(path: str, body: dict[str, Any], refused: Plain = refused) -> Reply:
                return refused if is_sent(form, body) else stream(["fine"])

            with (
                openai_server(script) as server,
                Model(ModelAddress(server.base_url, "m")) as model,
            ):
                assert [model.complete(MESSAGES, 9) for _ in range(2)] == ["fine", "fine"], words
            assert [is_sent(form, body) for _, body in server.requests] == [True, False, False]
            last = server.requests[-1][1]["messages"][-1]
            assert "two" in str(last["content"]) and ("Be brief" in str(last) or form != "system")


@pytest.mark.parametrize(
    ("address", "variable", "value", "told"),
    [
        ("http", "ALL_PROXY", "socks://127.0.0.1:7890/", "proxy of ALL_PROXY cannot be used"),
        ("http", "ALL_PROXY", "socks5://u:secret@127.0.0.1:7890", "proxy of ALL_PROXY cannot"),
        ("http", "HTTP_PROXY", "http://127.0.0.1:1", "through the proxy of HTTP_PROXY"),
        ("https", "HTTPS_PROXY", "http://127.0.0.1:99999", "through the proxy of HTTPS_PROXY"),
        ("https", "SSL_CERT_FILE", "/no/such.pem", "that SSL_CERT_FILE or .* No such file"),
        ("https", "SSL_CERT_FILE", __file__, "that SSL_CERT_FILE or .* cannot be read"),
    ],
)  # fmt: skip
def test_a_variable_that_stands_in_the_way_is_named(
    address: str, variable: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv(variable, value)
    with Model(ModelAddress(f"{address}://192.0.2.1:9/v1", "m"), PATIENCE) as model:
        for call in (lambda: model.complete(MESSAGES, 9), model.list_models):
            with pytest.raises(ModelError, match=told.replace(" No", " .*No")) as caught:
                call()
    assert "secret" not in str(caught.value)
