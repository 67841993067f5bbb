"""The fourth stage of a turn: one writer, chosen once, writes the answer while it is read.

That is a language model, the code itself, quoted, a review of an issue, or the app, which
answers small talk, facts and what is stored without any model, and does the deletions that it is
told to do: what would take a language model it says to take one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from codeqa.account import Privacy, StoredData, deletion_question, deletion_report, privacy_report
from codeqa.chat.conversations import Conversations
from codeqa.chat.events import Event, Generating
from codeqa.chat.reader import RESULTS_CHARACTERS, ROUNDS, Reader
from codeqa.chat.stream import Stream
from codeqa.chat.values import AnswerGenerator, Gathered, Piece, Routed
from codeqa.code.tools import Toolbox
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.llm.client import Model
from codeqa.quoted import quoted_answer
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE
from codeqa.routing.personal import PersonalReading, preferences
from codeqa.routing.policy import GOODBYE, THANKS, is_greeting
from codeqa.text.markdown import code_span, escape, pieces
from codeqa.types import APP, EXTRACTIVE, Effort

EXAMPLES = (
    "- `@codebase what is this repository, and how is it organised?`\n"
    "- `@codebase where does the program start?`"
)
READ_CHARACTERS = 2_000
"""Only so much of a message is looked at: what is answered here is said in a sentence."""
NOT_KEPT_HERE = (
    "This conversation is not kept here, so there is nothing of it to delete; the program that "
    "shows it may keep it itself.\n"
)
NOT_REMEMBERED = (
    "I will not remember that: nothing of this conversation is kept here. Say it on the page, and "
    "it holds everywhere.\n"
)
ELSEWHERE = (
    "Nothing was deleted: other programs cannot delete what is stored. Open the page and send the "
    "same there, or use `codeqa privacy delete` in a terminal.\n"
)

_LEAVES = re.compile(rf"(?<!\w)(?:{THANKS}|{GOODBYE})(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Writers:
    """Who may write an answer."""

    repository_name: str
    toolbox: Toolbox
    config_dir: Path | None
    conversations: Conversations
    privacy: Privacy
    review: Callable[[Model | None], AnswerGenerator]
    """What answers an issue, given the model, if any."""

    def choose(
        self, routed: Routed, gathered: Gathered, given: AnswerGenerator | None = None
    ) -> AnswerGenerator:
        """The one that writes this answer; `given` takes the place of a model."""
        model, evidence, budget = gathered.model, gathered.evidence, gathered.budget
        if gathered.reply == ISSUE:
            return self.review(model)
        if gathered.reply:
            return Teller(APP, lambda asked: pieces(self._reply(asked.reply, routed)))
        if given:
            return given
        if model is None or (evidence and evidence.whole):  # what was counted needs no model
            return Teller(EXTRACTIVE, lambda asked: quoted_answer(asked.evidence))
        looks = gathered.may_look and budget and gathered.intent in NEED_CODE
        effort: Effort = budget.effort if looks and budget else "fast"
        return Reader(model, self.toolbox, self.config_dir, ROUNDS[effort], RESULTS_CHARACTERS)

    def _reply(self, reply: str, routed: Routed) -> str:
        """What the app says, and does: `reply` is `privacy`, `profile` or `greeting`."""
        question, options = routed.question, routed.question.options
        personal, text = question.personal, question.text[:READ_CHARACTERS]
        known, place = routed.so_far.profile, (options.conversation, self.conversations.repository)
        if reply == "privacy":
            self.conversations.flush()
        if routed.deletes:  # the message that asks for it goes as well
            if routed.deletes == "conversation" and not options.conversation:
                return NOT_KEPT_HERE
            try:
                return deletion_report(self.privacy.delete(routed.deletes, options.user, *place))
            except NotFoundError:
                return NOT_KEPT_HERE
        if reply == "privacy" and personal.confirmed:
            return ELSEWHERE
        if reply == "privacy":
            return privacy_reply(personal, self.privacy.stored(options.user))
        if reply == "profile":
            if personal.facts and not options.keep:
                return NOT_REMEMBERED
            return profile_reply(text, personal, known=known, learnt=routed.facts)
        name = {**known, **routed.facts}.get("name", "")
        return general_reply(text, self.repository_name, name=name)


def write(
    writer: AnswerGenerator, gathered: Gathered, stream: Stream, toolbox: Toolbox
) -> Generator[Event, None, None]:
    """The answer, piece by piece."""
    if stream.stopped():
        return
    yield Generating(writer.name)
    try:
        with closing(writer.generate(gathered)) as written:
            for piece in written:
                if stream.stopped():
                    return
                yield from stream.take(piece, toolbox)
        stream.end()
    except CodeQAError as error:
        stream.end(error)


@dataclass(frozen=True, slots=True)
class Teller:
    """Writes what takes no model: what the code itself says, or what the app has to say."""

    name: str
    tell: Callable[[Gathered], Iterator[str]]

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Yield the answer line by line; each section is made when it is reached. Raises
        StorageError when what is stored can be neither read nor deleted."""
        yield from self.tell(asked)


def general_reply(text: str, repository: str, *, name: str = "") -> str:
    """The reply to small talk and general questions, as Markdown; `repository` and `name` are what
    the repository and the user are called."""
    code_of, you = f"the code of {code_span(repository)}", f", {escape(name)}" if name else ""
    if is_greeting(text) and _LEAVES.search(text):
        return f"You are welcome{you}. This conversation is kept: go on with it any time.\n"
    if is_greeting(text):
        return f"Hello{you}. Ask me about {code_of}, for example:\n\n{EXAMPLES}\n"
    return (
        f"I answer questions about {code_of}, and cite the lines that an answer stands on: begin "
        "one with `@codebase`, or point at code with `@` and a name. All else takes a language "
        "model, and none is used. Choose one beside the question or with `codeqa models use`; a "
        "server on this machine will do, and nothing is sent before you choose.\n\n"
        f"Try:\n\n{EXAMPLES}\n"
    )


def profile_reply(
    text: str, personal: PersonalReading, *, known: Mapping[str, str], learnt: Mapping[str, str]
) -> str:
    """The reply to what users say of themselves, or ask of what they said.

    `known` are the facts from before, `learnt` those that this message adds and that are kept.
    """
    if learnt:
        return _remembered(known, learnt)
    if personal.asks or "?" in text:
        told = [_clause(key, value) for key, value in known.items()]
        return f"You told me: {'; '.join(told) or 'nothing about yourself'}.\n"
    return (
        "I did not find anything in this to remember: I keep your name, how you want to be "
        "answered, and what you ask me to remember, as in `My name is Ada.`, `I prefer short "
        "answers.` or `Remember that I work on the parser.`\n"
    )


def privacy_reply(personal: PersonalReading, stored: StoredData) -> str:
    """The reply to a question about what is stored, and to a wish to delete: a deletion is never
    done here, only asked back."""
    if personal.wished:
        return f"{deletion_question(personal.wished, stored)}\n"
    added = (
        "I have not added anything to your profile. This message is kept with its conversation, "
        "like every other, until you delete that: send `delete this conversation`.\n\n"
    )
    return f"{added if personal.keep_nothing else ''}{privacy_report(stored)}\n"


def _remembered(known: Mapping[str, str], learnt: Mapping[str, str]) -> str:
    shown = [_clause(key, value) for key, value in learnt.items()]
    lines = [f"I will remember that {' and '.join(shown)}."]
    if any(known.get(key) not in (None, value) for key, value in learnt.items()):
        lines.append("That replaces what you said before.")
    if preferences(learnt):
        lines.append("It takes a language model to answer like that; what I quote stays as it is.")
    lines.append("`delete my profile` removes all that you told me.")
    return " ".join(lines) + "\n"


def _clause(key: str, value: str) -> str:
    """A fact as a clause: `your name is Ada`."""
    return f"your name is {escape(value)}" if key == "name" else f"“{escape(value)}”"
