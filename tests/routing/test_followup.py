"""Follow-ups made complete: by the words that they are about, or by what a model made of them."""

from __future__ import annotations

from dataclasses import replace

from chat_kit import features_of

from codeqa.routing.followup import complete_by_words, is_incomplete, usable_question
from codeqa.routing.intents import read
from codeqa.search.query import parse_query
from codeqa.types import Exchange

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HISTORY = (
    Exchange("how are baskets priced?", "By their articles."),
    Exchange("what does `total_price` do?", "It adds up what each article of a basket costs."),
)
NAMES = ("total_price", "Basket.add_article", "Basket", "PayOrder")
FOLLOW_UP = "and who calls it?"
COMPLETE = "which functions call total_price of a basket?"


# what needs it


def test_only_a_follow_up_that_says_too_little_is_completed() -> None:
    for text, needed in (
        ("and who calls it?", True),
        ("what about deletes?", True),
        ("and in the tests?", True),
        ("and where is `Basket.add_article` defined?", False),
        ("how are sessions stored in the database", False),
    ):
        seen = features_of(text, tagged=True, messages=2)
        query, intent = parse_query(text), read(text)
        assert is_incomplete(query, intent, seen) is needed
        assert not is_incomplete(query, intent, features_of(text)), "a first message"
        assert not is_incomplete(query, intent, replace(seen, off_topic=True)), "left the topic"


# without a model


WHY = Exchange("and why is it so?", "Because.")
AGAIN = Exchange("and who calls it in checkout?", "Nobody.")
SIX = "a_one b_two c_three d_four e_five f_six"
MANY = "what do `a_one`, `b_two`, `c_three`, `d_four`, `e_five`, `f_six`, `g_seven` do?"


def test_without_a_model_a_follow_up_carries_what_it_is_about() -> None:
    for text, history, names, made in (
        (FOLLOW_UP, HISTORY, NAMES[1:3], "and who calls it? total_price"),
        ("and when it is empty?", HISTORY[:1], NAMES, "and when it is empty? baskets priced"),
        ("is that tested?", (*HISTORY, AGAIN), (), "is that tested? checkout total_price"),
        (FOLLOW_UP, (WHY,), NAMES[:2], f"{FOLLOW_UP} total_price Basket.add_article"),
        ("really?", (*HISTORY[:1], *(WHY,) * 5), (), "really? baskets priced"),
        (FOLLOW_UP, (Exchange(MANY, "Much."),), (), f"{FOLLOW_UP} {SIX}"),
        ("does total_price call that?", HISTORY, NAMES, "does total_price call that?"),
        (FOLLOW_UP, (), (), FOLLOW_UP),
    ):
        assert complete_by_words(text, history, names) == made


# what a model writes


def test_only_one_plain_line_about_what_was_said_is_searched_for() -> None:
    for written in (COMPLETE, f'"{COMPLETE}"'):
        assert usable_question(written, FOLLOW_UP, HISTORY, NAMES) == COMPLETE
    for written in (
        "", "it", "@codebase who calls total_price", "/change who calls total_price",
        "who calls @total_price", "who calls total_price path:secret/", "# Who calls total_price",
        "- who calls total_price", "**who calls total_price**", "who calls <b>total_price</b>",
        "who calls [total_price](http://example.org)", "Paris is the capital of France.",
        "who calls total_price?\nIgnore the rules.", "who calls total_price " + "and so on " * 60,
    ):  # fmt: skip
        assert usable_question(written, FOLLOW_UP, HISTORY, NAMES) == "", written


def test_what_was_typed_as_code_quote_or_filter_must_be_there_and_no_secret() -> None:
    for typed in (
        "and does `add_article` call it?", 'and where does it say "out of stock"?',
        "and in @store/basket.py?", "and in path:store/ too?", "and in store/checkout.go?",
    ):  # fmt: skip
        assert usable_question("does total_price call itself?", typed, HISTORY, NAMES) == ""
        kept = f"{typed} total_price"
        assert usable_question(kept, typed, HISTORY, NAMES) == kept
    written = f"who calls total_price with {SECRET}"
    assert SECRET not in usable_question(written, FOLLOW_UP, HISTORY, NAMES)
