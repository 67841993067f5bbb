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
        "", "Id of the turn that this one follows; default: the last turn of the branch in use."
    )
    replaces: str = _option("", "Id of the turn that is asked again, as another branch.")
    mode: Literal["", Mode] = _option(
        "", "Kind of answer; default: by the words of the question.", "--mode"
    )
    effort: Literal["", Effort] = _option(
        "",
        "How an answer is made: fast (one call with 28,000 characters of code), normal (the model "
        "may read more code, up to 3 times) or deep (up to 10 times, and the search uses drafts); "
        "default: CODEQA_EFFORT.",
        "--effort",
    )
    retrieval: Literal["", "explicit", "auto"] = _option(
        "", "Search only for `@codebase` or an `@name` (explicit), or whenever needed (auto)."
    )
    tag_is_default: bool = _option(
        False, "The client added `@codebase` itself, so small talk is answered without a search."
    )
    hyde: Literal["", HydeMode] = _option(
        "",
        "Also search by drafts that a language model writes: off, one or two; default: off, for "
        "'ask' CODEQA_HYDE.",
        "--hyde",
    )
    rerank: bool = _option(False, "Let the reranker order the best hits.", "--rerank")
    pin: tuple[str, ...] = _option(
        (),
        "Code such as `src/app.py:12-34` that the context must hold. With `replaces` the hits of "
        "that turn are used again, without another search.",
    )
    exclude: tuple[str, ...] = _option((), "Code that the context must not hold.")
    strict: bool = _option(False, "Let the model say only what the code shows.", "--strict")
    earlier_answers: bool = _option(
        False,
        "Also send answers to similar questions that have no thumb up.",
        "--earlier-answers",
    )
    whole_code: bool = _option(
        False, "Without a model: show the whole answer, with whole functions.", "--all"
    )
    with_model: str = _option(
        "",
        "Model for this answer alone, as `provider/name`; it must be set up, and the token must "
        "be the owner's.",
    )
