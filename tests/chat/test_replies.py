"""What the app answers by itself: short, true, and nothing deleted before it is confirmed."""

from __future__ import annotations

from dataclasses import replace

from codeqa.account import DeletionResult, Receiver, StoredData, deletion_report
from codeqa.chat.responders import general_reply, privacy_reply, profile_reply
from codeqa.routing.personal import CONFIRMATIONS, confirmed_scope, read_personal, wished_scope

STORED = StoredData(
    user="local",
    shared=False,
    conversations=3,
    repositories=1,
    turns=1_200,
    thumbs=2,
    vectors=12,
    profile={"name": "Ada", "format-1": "code first"},
    cached=1,
    folder="/home/ada/data",
    state="state.sqlite",
    state_bytes=123_456,
    redis="",
    facts=2,
    receivers=(),
    plugins=False,
    keys_file="",
)
MODEL = Receiver("model", "openai/gpt-4o", "api.openai.com", False)


def general(text: str, name: str = "") -> str:
    return general_reply(text, "shop", name=name)


def test_a_greeting_is_returned_with_the_repository_and_two_things_to_try() -> None:
    told = general("Good morning!", name="Ada")
    assert told.startswith("Hello, Ada. ") and "`shop`" in told
    assert told.count("- `@codebase ") == 2
    told = general("hi", "*<b>x</b>* [a](b)")  # a name cannot write markup
    assert "\\*\\<b>" in told and "\\[a\\]" in told


def test_small_talk_gets_a_brief_reply_and_knowledge_needs_a_model() -> None:
    for text, beginning in (
        ("thx, that helped a lot", "You are welcome."),
        ("what can you do?", "I answer questions about the code of `shop`"),
    ):
        told = general(text)
        assert told.startswith(beginning) and len(told) < 600
    told = general("who invented the linked list?")
    for piece in ("need a language model", "codeqa models use", "`@codebase`"):
        assert piece in told


def profile(text: str, **known: str) -> str:
    personal = read_personal(text)
    return profile_reply(text, personal, profile=known, new_facts=personal.facts).strip()


def test_a_fact_is_confirmed_with_the_way_to_remove_it() -> None:
    assert profile("My name is Ada.") == (
        "I will remember that your name is Ada. "
        "Send `delete my profile` to remove everything that you told me."
    )
    assert "That replaces what you said before." in profile("my name is Samira", name="Sam")
    assert "Only a language model" in profile("always answer in German please")


def test_what_is_known_is_told_when_it_is_asked_for_and_that_nothing_is() -> None:
    told = profile("What's my name?", **{"name": "Ada", "fact-1": "my editor is emacs"})
    assert told == "You told me: your name is Ada; “my editor is emacs”."
    assert profile("What's my name?") == "You told me: nothing about yourself."
    assert "what you ask me to remember" in profile("I am a backend developer at Acme")


# What is stored


def privacy(text: str, **changes: object) -> str:
    stored = replace(STORED, **changes)  # type: ignore[arg-type]
    return privacy_reply(read_personal(text), stored)


def test_the_account_holds_every_figure_place_and_way_out() -> None:
    told = privacy("what do you know about me?")
    for piece in (
        "3 conversations about 1 repository", "1,200 questions", "2 thumbs", "name: Ada",
        "format: code first", "24 hours", "`/home/ada/data`", "123 kB",
        "nothing leaves this machine", "telemetry", "delete my profile", "codeqa privacy",
        "no language model is chosen", "everybody who uses CodeQA", "there are no cookies",
    ):  # fmt: skip
        assert piece in told, piece

    told = privacy("do you track me", shared=True)
    assert "you and no other user" in told and "a cookie keeps you signed in" in told
    told = privacy("My name is Lee, but please do not save it.")
    assert told.startswith("I have not added anything")
    told = privacy("privacy?", keys_file="/home/ada/data/models.json")
    assert "Keys of models in `/home/ada/data/models.json` belong to the installation" in told


def test_every_receiver_is_named_with_what_it_gets() -> None:
    rerank = Receiver("reranker", "cohere/x", "api.cohere.ai", False)
    embedding = Receiver("embedding", "jina/x", "api.jina.ai", False)
    told = privacy("privacy?", receivers=(MODEL, embedding, rerank), redis="box:6379/0")
    for piece in ("api.openai.com", "api.jina.ai", "api.cohere.ai", "`box:6379/0`", "your profile"):
        assert piece in told
    assert "nothing leaves this machine" not in told


# Deleting


def test_a_wish_to_delete_is_understood() -> None:
    for text, scope in (
        ("wipe my profile", "profile"),
        ("forget everything i told you", "everything"),
        ("remove the last message, it had a password in it", "conversation"),
        ("can you delete my profile please", "profile"),
        ("please forget my name", "profile"),
        ("how do I delete my profile?", ""),
        ("how long do you keep my chats?", ""),
    ):
        assert wished_scope(text) == scope


def test_a_deletion_is_asked_back_with_what_would_go() -> None:
    pieces = {
        "conversation": "This conversation would be deleted",
        "profile": "2 profile lines",
        "everything": "1,200 questions",
    }
    counts = ("turns", "thumbs", "vectors", "facts", "conversations", "cached")
    empty: dict[str, object] = {**dict.fromkeys(counts, 0), "profile": {}}
    for scope, confirmation in CONFIRMATIONS.items():
        told = privacy(confirmation.removesuffix(" for good"))
        assert "Nothing has been deleted yet" in told and pieces[scope] in told
        assert told.rstrip().endswith(f"`{confirmation}`")
        assert "nothing to delete" in privacy(f"delete my {scope} everything", **empty)
    assert "keys of models stay" in privacy("delete everything")


def test_only_the_exact_sentence_confirms() -> None:
    for scope, sentence in CONFIRMATIONS.items():
        assert confirmed_scope(sentence) == scope
        assert confirmed_scope(f" `{sentence.capitalize()}`. \n") == scope
        for other in (
            sentence.removesuffix(" for good"), f"please {sentence}", f"{sentence} maybe",
            f"what happens after {sentence}?", f"do not {sentence}", f"{sentence}?", "",
        ):  # fmt: skip
            assert confirmed_scope(other) == ""


def test_the_result_tells_counts_and_what_could_not_be_done() -> None:
    counts = {"conversations": 1, "turns": 2, "thumbs": 0, "vectors": 2, "facts": 1, "cached": 1}
    done = deletion_report(DeletionResult("everything", counts, ("The disk is full.",)))
    assert "1 conversation, 2 questions, 2 vectors" in done and "- The disk is full." in done
    assert "thumb" not in done
