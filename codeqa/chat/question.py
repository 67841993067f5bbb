"""What was asked: the first of the five values of a turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codeqa.chat.generation import NO_CONTEXT
from codeqa.chat.options import AskOptions
from codeqa.chat.record import TurnRecord
from codeqa.errors import UsageError
from codeqa.routing.mode import read_mode, read_whole
from codeqa.routing.personal import PersonalReading, read_personal
from codeqa.routing.words import Reading, read
from codeqa.search import Query, parse_query
from codeqa.text.tag import has_tag, strip_tag
from codeqa.types import ContextBlock, Exchange


@dataclass(frozen=True, slots=True)
class Question:
    """A message, parsed and masked once."""

    options: AskOptions
    """As `AskOptions.checked` gives them."""
    typed: str
    """With its tag, as it is kept."""
    text: str
    """Without tag and mode."""
    mode: str
    mode_chosen: bool
    """The user chose it; else the words did."""
    whole_files: str
    """`files` or `all` where whole files are asked for, else ''."""
    mask: str
    """Which of all files: a pattern, '' for every one."""
    query: Query
    """`text`, taken apart into what it looks for."""
    words: Reading
    """The same, by what its words may mean."""
    personal: PersonalReading
    """What `text` says of its writer."""

    @property
    def tagged(self) -> bool:
        return has_tag(self.typed)


@dataclass(frozen=True, slots=True)
class ConversationSoFar:
    """What is known when a question arrives."""

    history: tuple[Exchange, ...] = ()
    """The latest answered questions of the conversation, oldest first."""
    profile: Mapping[str, str] = field(default_factory=dict)
    """What the user has told of themselves."""
    messages: int = 0
    """Length of the conversation, questions and answers."""
    context: ContextBlock = NO_CONTEXT
    """What was found for an earlier question."""
    names: tuple[str, ...] = ()
    """Definitions that the last search found, as `TurnRecord.found_names` orders them."""
    path: tuple[str, ...] = ()
    """Ids of the turns before this one, the latest last, as far as they were read."""
    parent: str = ""
    """Id of the turn that this one follows; '' for none."""
    replaced: TurnRecord | None = None
    """The turn that this one takes the place of."""

    @property
    def begun(self) -> bool:
        """There is something that a message may go on from: a client without conversations has
        only code."""
        return self.messages > 0 or bool(self.context.chunks)


def read_question(options: AskOptions) -> Question:
    """`options` as a question. Raises UsageError for what cannot be asked."""
    options = options.checked()
    untagged = strip_tag(options.question)
    mode, text = read_mode(untagged, options.mode)
    whole_files, mask, _ = read_whole(untagged)
    if not text:
        raise UsageError("The question is empty.", "Type a question.")
    return Question(
        options=options,
        typed=options.question,
        text=text,
        mode=mode,
        mode_chosen=bool(options.mode) or text != untagged,
        whole_files=whole_files,
        mask=mask,
        query=parse_query(text, path=mask),
        words=read(text),
        personal=read_personal(text),
    )
