"""What is asked, and how it is to be answered; built once, by the surface that is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from codeqa.chat.generation import Exchange
from codeqa.errors import UsageError
from codeqa.llm import Cancelled, never
from codeqa.repository.secrets import mask_secrets
from codeqa.selection import parse_effort
from codeqa.state.records import LOCAL_USER
from codeqa.text.tag import has_tag
from codeqa.text.tokens import well_formed

PLACES = 200
"""Places that may be pinned, or excluded, at once: more than any context holds."""

_PLACE = re.compile(r"(.+):(\d{1,9})-(\d{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AskOptions:
    """A question and what is wanted of its answer; '' leaves a choice to settings and policy."""

    question: str
    """As typed. With `@codebase` or an `@name` it is searched for; what is done for one without
    is for the policy to say."""
    user: str = LOCAL_USER
    conversation: str = ""
    """Id of the conversation that it belongs to; '' for none."""
    mode: str = ""
    """One of `intents.mode.MODES`; '' leaves it to the words of the question."""
    rerank: bool = False
    effort: str = ""
    """One of `types.EFFORTS`: how much code the answer is given, and whether the model orders what
    was found."""
    hyde: str = ""
    """How many hypothetical answers are searched by (`types.HYDE_MODES`); none without a model."""
    retrieval: str = ""
    """`explicit` or `auto`: whether a question about the code is searched for without a tag."""
    tag_is_default: bool = False
    """The surface put `@codebase` there, not the user: small talk and the like go without it."""
    use_model: bool = True
    strict: bool = False
    """Say nothing that the code does not show."""
    replaces: str = ""
    """Id of the turn that is asked anew, as a branch beside it."""
    after: str = ""
    """Id of the turn that this one follows; '' for the latest."""
    pin: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Places (`path:12-34`) that the context must and must not hold. With `replaces` what was
    found for that turn is packed anew, without another search."""
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


def about_code(options: AskOptions, first: bool) -> AskOptions:
    """The same as the terminal and programs ask: the first question of a conversation is searched
    for unless it is small talk, those that follow where they need code."""
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
