"""Which sentences of an answer have their evidence in the code that was sent, and what follows."""

from __future__ import annotations

import time

import pytest
from chat_kit import ASK, Script, ask, told
from openai_server import stream

from codeqa.chat.check import Grounding, is_about, sentences_of
from codeqa.engine import Engine
from codeqa.types import Chunk

pytest_plugins = ("chat_fixtures",)

EXPIRE = '''def expire_session(cookie, grace=30):
    """Forget the visitor when the cookie is older than a month."""
    if cookie.age > grace * 86400:
        cookie.clear()
        log.warning("session expired")
    return cookie.age
'''
COUNT = "def count_teapots(shelf):\n    return len(shelf.teapots)\n"
SESSION = Chunk("ctx_1", "shop/session.py", 6, 11, "python", EXPIRE.rstrip("\n"))
STOCK = Chunk("ctx_2", "shop/stock.py", 1, 2, "python", COUNT.rstrip("\n"))


@pytest.mark.parametrize(
    ("sentence", "verdict", "path"),
    [
        ("`expire_session` clears the cookie when it is too old.", "supported", SESSION.path),
        ("It warns that the session expired [shop/session.py:6-10].", "supported", SESSION.path),
        ("`count_teapots` returns how long `shelf.teapots` is.", "supported", STOCK.path),
        ("It warns when `cookie.age` is over `grace` 86,400.", "supported", SESSION.path),
        ("```python\nreturn len(shelf.teapots)\n```", "supported", STOCK.path),
        ("`renew_session` gives the visitor another month.", "unsupported", ""),
        ("The cookie is older than a month after 365 days.", "unsupported", ""),
        ("The session expired warning is in `shop/visitors.py`.", "unsupported", ""),
        ("It warns that the session expired [shop/visit.py:1-9].", "unsupported", ""),
        ("The payload is compressed and encrypted by a hardware key.", "unsupported", ""),
        ("```python\nif cookie.age > grace * 86400:\n    cookie.renew()\n```", "unsupported", ""),
        ("Browsers delete old data from time to time anyway.", "general", ""),
        ("```sh\npip install shop\n```", "general", ""),
        ("## How sessions end\n", None, ""),
        ("There are two ways:", None, ""),
        ("The chunks do not show who calls `renew_session`.", None, ""),
        ("How `renew_session` works is not shown here.", None, ""),
        ("- ", None, ""),
    ],
)  # fmt: skip
def test_a_sentence_is_judged_by_what_was_sent(
    sentence: str, verdict: str | None, path: str
) -> None:
    judged = Grounding([SESSION, STOCK]).judge(sentence)
    assert (judged and judged.verdict) == verdict
    assert judged is None or judged.path == path


TEXT = """# Sessions

They end. `a.b. C` is one, e.g. `x`. See it [a.py:1-2]. "Quoted." [b.py:3] More
goes on here! Next:

- One. Two
- Three

1. Four

| a | b |
|---|---|
| c | d |

```python
x = 1. Y

z = 2
```
The end"""
SENTENCES = [
    "# Sessions", "They end.", "`a.b. C` is one, e.g. `x`.", "See it [a.py:1-2].",
    '"Quoted." [b.py:3]', "More\ngoes on here!", "Next:", "-", "One.", "Two", "-", "Three", "1.",
    "Four", "| a | b |", "|---|---|", "| c | d |", "```python\nx = 1. Y\n\nz = 2\n```", "The end",
]  # fmt: skip


def test_markdown_is_cut_into_sentences_that_join_to_it_again() -> None:
    whole = sentences_of(TEXT)
    assert [one.strip() for one in whole] == SENTENCES
    assert "".join(whole) == TEXT


def test_places_behind_a_sentence_are_read_at_once_whatever_follows_them() -> None:
    told = "It is done. [src/shop/basket.py:120-140] [src/shop/basket.py:12-14]and so"
    assert sentences_of(told) == [told]
    assert "".join(sentences_of("a.[a.py:1-2]" * 99 + "b")) == "a.[a.py:1-2]" * 99 + "b"


@pytest.mark.parametrize("text", ["/a.b/", "\n", "`a ", "not ", "a.b. ", "[a:", "- \n"])
def test_what_a_hostile_model_writes_is_judged_in_linear_time(text: str) -> None:
    grounding, _began = Grounding([STOCK]), time.process_time()
    for sentence in sentences_of(text * 4_000):
        grounding.judge(sentence)


ANSWER = "The cookie is cleared when it is older than a month [shop/session.py:6-10]."


@pytest.mark.parametrize(
    ("question", "answer", "about"),
    [
        ("when is the cookie of a session cleared?", ANSWER, True),
        ("how are the teapots of a shelf counted?", ANSWER, False),
        ("how are the teapots of a shelf counted?", "`count_teapots` [shop/stock.py:1-2].", True),
        ("wie viele Kannen stehen dort?", ANSWER, True),
        ("how are the teapots of a shelf counted?", "I do not know.", True),
    ],
    ids=["its own", "another's", "by its names", "in other words than the code", "cites nothing"],
)
def test_an_answer_to_another_question_is_found_out(
    question: str, answer: str, about: bool
) -> None:
    assert is_about(question, answer, [SESSION, STOCK]) is about


def test_an_answer_to_another_question_is_told_to_be_none(engine: Engine, script: Script) -> None:
    script.replies = [stream(["`count_teapots` tells the length of a shelf [shop/stock.py:1-3]."])]
    assert told(ask(engine, ASK), "done")["grounding"]["about"] is False
    script.replies = [stream([TRUE])]
    assert told(ask(engine, ASK), "done")["grounding"]["about"] is True


def test_a_citation_that_was_moved_says_what_the_model_wrote(
    engine: Engine, script: Script
) -> None:
    script.replies = [stream(["`expire_session` ends it ", "[shop/stock.py:1-3].\n"])]
    events = ask(engine, ASK)
    (cited,) = told(events, "cited")["citations"]
    (kept,) = told(events, "done")["citations"]
    assert cited == kept and cited["verified"] and cited["path"] == "shop/session.py"
    assert cited["moved"] == "shop/stock.py:1-3"


TRUE = "`expire_session` forgets the visitor when the cookie is too old [shop/session.py:6-10]. "
FALSE = "It then calls `notify_owner` by post. "
GENERAL = "Most people like tea in the afternoon. "


def test_the_evidence_is_told_and_kept_with_the_answer(engine: Engine, script: Script) -> None:
    script.replies = [stream([TRUE, FALSE, GENERAL])]
    done = told(ask(engine, ASK), "done")
    assert (done["grounding"]["supported"], done["grounding"]["claims"]) == (1, 2)
    verdicts = [one["verdict"] for one in done["grounding"]["sentences"]]
    assert verdicts == ["supported", "unsupported", "general"]
    assert done["grounding"]["sentences"][0]["path"] == "shop/session.py"
    assert engine.conversations.turn(done["turn"]).grounding == done["grounding"]
    assert done["notice"] == ""
    quoted = told(ask(engine, ASK, use_model=False), "done")
    assert quoted["grounding"]["claims"] == 0, "what only quotes claims nothing"


@pytest.mark.parametrize(
    ("sentences", "told_first"),
    [
        ([FALSE, FALSE.replace("owner", "police"), "`Visitor.ban` is last."], "Most of what"),
        ([FALSE, FALSE.replace("owner", "police")], "Most of what"),
        (["`notify_owner` posts it [shop/session.py:6-10]. ", FALSE], "This answer cites lines"),
    ],
    ids=["names of nothing", "two sentences", "wrong lines are cited"],
)
def test_an_answer_without_evidence_says_so_what_was_searched_and_what_was_found(
    engine: Engine, script: Script, sentences: list[str], told_first: str
) -> None:
    script.replies = [stream(sentences)]
    notice = told(ask(engine, ASK), "done")["notice"]
    assert notice.startswith(told_first) and "12 of 12 files" in notice
    assert "“expire_session”" in notice and "expire_session [shop/session.py:6-10]" in notice
