"""The options of a question, declared once for HTTP, the terminal and docs/api.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from codeqa.types import Effort, HydeMode, Mode


def _option(default: Any, help: str, flag: str = "") -> Any:
    """Declare an option with its help; `flag` is its name in `codeqa ask`, '' for none."""
    return field(default=default, metadata={"help": help, "flag": flag})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """The options of a question; '' leaves one to settings and policy."""

    conversation: str = _option(
        "", "An id of your choice; questions with the same id continue each other."
    )
    after: str = _option(
        "", "Id of the turn that this one follows; else the last of the branch in use."
    )
    replaces: str = _option("", "Id of the turn that is asked again, as a branch beside it.")
    mode: Literal["", Mode] = _option(
        "", "What the answer is to be; else the words of the question decide.", "--mode"
    )
    effort: Literal["", Effort] = _option(
        "",
        "How an answer is made: fast (one call from 28,000 characters of code), normal (the model "
        "may look further, up to 3 times) or deep (up to 10 times, and drafts are searched by); "
        "default as CODEQA_EFFORT says.",
        "--effort",
    )
    retrieval: Literal["", "explicit", "auto"] = _option(
        "", "Search only for `@codebase` or an `@name` (explicit), or whenever needed (auto)."
    )
    tag_is_default: bool = _option(
        False, "The client added `@codebase` itself; small talk then goes without it."
    )
    hyde: Literal["", HydeMode] = _option(
        "",
        "Let a language model draft code and search by that, too: off, one or two; default off, "
        "for 'ask' as CODEQA_HYDE says.",
        "--hyde",
    )
    rerank: bool = _option(False, "Let the reranker order the best of what is found.", "--rerank")
    pin: tuple[str, ...] = _option(
        (),
        "Places such as `src/app.py:12-34` that the context must hold. With `replaces` the code "
        "of that turn is packed anew, without another search.",
    )
    exclude: tuple[str, ...] = _option((), "Places that the context must not hold.")
    strict: bool = _option(False, "Let the model say only what the code shows.", "--strict")
    earlier_answers: bool = _option(
        False,
        "Send answers of other conversations along that have no thumb up, too.",
        "--earlier-answers",
    )
    whole_code: bool = _option(
        False, "Without a model: all of the answer, and the code of it whole.", "--all"
    )
    with_model: str = _option(
        "",
        "A model that is set up, as `provider/name`, for this answer alone; only for the "
        "owner's token.",
    )
