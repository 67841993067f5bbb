"""What is asked, and how it is to be answered; built once, by the surface that is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from codeqa.errors import UsageError
from codeqa.llm import Cancelled, never
from codeqa.repository.secrets import mask_secrets
from codeqa.selection import parse_effort
from codeqa.state.records import LOCAL_USER
from codeqa.text.tag import has_tag
from codeqa.text.tokens import well_formed
from codeqa.types import Effort, Exchange, HydeMode, Mode

PLACES = 200
"""Places that may be pinned, or excluded, at once: more than any context holds."""

_PLACE = re.compile(r"(.+):(\d{1,9})-(\d{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What anybody who asks may choose; '' leaves a choice to settings and policy.

    The fields of a question over HTTP are made of these.
    """

    conversation: str = ""
    """Id, chosen by the client, of the conversation that this belongs to; empty for none."""
    mode: Literal["", Mode] = ""
    """How to answer; empty leaves it to the words of the question."""
    rerank: bool = False
    """Let the reranker order the best of what is found."""
    effort: Literal["", Effort] = ""
    """How much code the answer is given, and whether the model orders what was found; empty: as
    the setting says."""
    hyde: Literal["", HydeMode] = ""
    """How many drafts of the answer are searched by, none without a model; empty: as the setting
    says."""
    retrieval: Literal["", "explicit", "auto"] = ""
    """Whether questions without `@codebase` may be searched for; empty: as the setting says."""
    tag_is_default: bool = False
    """The client put `@codebase` there by itself: small talk and the like go without it."""
    strict: bool = False
    """Say only what the code shows."""
    replaces: str = ""
    """Id of the turn that is asked anew, as a branch beside it."""
    after: str = ""
    """Id of the turn that this one follows; empty: the last one of the branch in use."""
    pin: tuple[str, ...] = ()
    """Chunks that the context must hold, each as `path:12-34`. With `replaces` what was found for
    that turn is packed anew, without another search."""
    exclude: tuple[str, ...] = ()
    """Chunks that it must not hold."""


@dataclass(frozen=True, slots=True)
class AskOptions(QuestionOptions):
    """A question and what is wanted of its answer."""

    question: str
    """As typed. With `@codebase` or an `@name` it is searched for; what is done for one without
    is for the policy to say."""
    user: str = LOCAL_USER
    use_model: bool = True
    history: tuple[Exchange, ...] | None = None
    """The conversation so far where the client keeps it, oldest first; None where we do."""
    instructions: str = ""
    """What that client asks of its answers; stands beside our rules, never in their place."""
    keep: bool = True
    """Whether the turn is stored, and its context becomes the conversation's."""
    cancelled: Cancelled = never

    @property
    def chooses_chunks(self) -> bool:
        return bool(self.pin or self.exclude)

    @property
    def from_program(self) -> bool:
        """A program that keeps the conversation itself asks, and speaks for its user."""
        return self.history is not None or not self.keep

    @property
    def branches_off(self) -> bool:
        """The conversation is taken up at another point than its latest turn."""
        return bool(self.replaces or self.after)

    def checked(self) -> AskOptions:
        """The same with well-formed text, secret-looking strings in what was typed masked.

        Raises UsageError for a place that is none, or too many.
        """
        return replace(
            self,
            question=mask_secrets(well_formed(self.question)),
            conversation=well_formed(self.conversation),
            replaces=well_formed(self.replaces),
            after=well_formed(self.after),
            pin=check_places(self.pin),
            effort=parse_effort(self.effort) if self.effort else "",
            exclude=check_places(self.exclude),
            instructions=well_formed(self.instructions),
        )


def as_program_asks(options: AskOptions, first: bool) -> AskOptions:
    """The same as programs ask, and the terminal (`cli/ask.py`): the first question of a
    conversation is searched for unless it is small talk, those that follow where they need code."""
    if not first:
        return replace(options, retrieval="auto")
    return replace(
        options,
        question=f"@codebase {options.question}",
        tag_is_default=not has_tag(options.question),
        retrieval="auto",
    )


def check_places(places: Iterable[str]) -> tuple[str, ...]:
    """`places` as they are, each once. Raises UsageError for one that is none, or too many."""
    checked = tuple(dict.fromkeys(places))
    if len(checked) > PLACES:
        raise UsageError(f"More than {PLACES} places were given.", "Give fewer.")
    for place in checked:
        parse_place(place)
    return checked


def parse_place(place: str) -> tuple[str, int, int]:
    """Path, first and last line. Raises UsageError."""
    match = _PLACE.fullmatch(place)
    if match is None:
        raise UsageError(f"{place[:80]!r} is no place.", "Write it as path:first-last.")
    return match[1], int(match[2]), int(match[3])
