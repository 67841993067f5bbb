"""The fourth stage of a turn: one responder produces the text of the answer.

It is a language model, quoted code, a review of an issue, or the app itself. The app answers small
talk, personal facts and questions about stored data without a model, and deletes data on request.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from codeqa.account import Privacy, StoredData, deletion_question, deletion_report, privacy_report
from codeqa.asked import asks
from codeqa.chat.conversations import Conversations
from codeqa.chat.events import Event, Generating
from codeqa.chat.reader import RESULTS_CHARACTERS, ROUNDS, Reader
from codeqa.chat.stream import Stream
from codeqa.chat.values import AnswerGenerator, AnswerPiece, AskOptions, Gathered, Routed
from codeqa.code.tools import Toolbox
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.llm.client import Model
from codeqa.quoted import quoted_answer
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE
from codeqa.routing.personal import PersonalReading, preferences
from codeqa.routing.policy import is_greeting
from codeqa.text.markdown import code_span, escape, pieces
from codeqa.types import APP, EXTRACTIVE, Effort

EXAMPLES = (
    "- `@codebase what is this repository, and how is it organised?`\n"
    "- `@codebase where does the program start?`"
)
READ_CHARACTERS = 2_000
"""Characters of a message that are looked at: what the app answers itself is a sentence long."""
NOT_KEPT_HERE = (
    "This conversation is not stored here, so there is nothing to delete. The program that shows "
    "it may store it.\n"
)
NOT_REMEMBERED = (
    "I will not remember that, because this conversation is not stored here. Tell me on the page, "
    "and I will remember it everywhere.\n"
)
ELSEWHERE = (
    "Nothing was deleted: other programs cannot delete stored data. Open the page and send the "
    "same message there, or use `codeqa privacy delete` in a terminal.\n"
)


@dataclass(frozen=True, slots=True)
class Responders:
    """The responders of one repository."""

    repository_name: str
    toolbox: Toolbox
    config_dir: Path | None
    conversations: Conversations
    privacy: Privacy
    review: Callable[[Model | None], AnswerGenerator]
    """Returns the responder to an issue, given the model or None."""

    def choose(
        self, routed: Routed, gathered: Gathered, other: AnswerGenerator | None = None
    ) -> AnswerGenerator:
        """Return the responder for this answer; `other` takes the place of a model."""
        model, evidence, budget = gathered.model, gathered.evidence, gathered.budget
        if gathered.reply == ISSUE:
            return self.review(model)
        if gathered.reply:
            return PlainResponder(APP, lambda it: pieces(self._reply(it.reply, routed)))
        if other:
            return other
        if model is None or (evidence and evidence.is_whole_answer):  # counting needs no model
            return PlainResponder(EXTRACTIVE, lambda it: quoted_answer(it.evidence))
        effort: Effort = "fast"
        if budget and gathered.may_look and gathered.intent in NEED_CODE:
            effort = budget.effort
        return Reader(model, self.toolbox, self.config_dir, ROUNDS[effort], RESULTS_CHARACTERS)

    def _reply(self, reply: str, routed: Routed) -> str:
        """Return the app's own reply; `reply` is `privacy`, `profile` or `greeting`.

        Delete what the message asks to delete.
        """
        question, options = routed.question, routed.question.options
        personal, text = question.personal, question.text[:READ_CHARACTERS]
        profile = routed.so_far.profile
        if options.task:
            return options.task
        if reply == "privacy":
            self.conversations.flush()
        if routed.deletes:
            return self._delete(routed.deletes, options)
        if reply == "privacy" and personal.confirmed:
            return ELSEWHERE
        if reply == "privacy":
            return privacy_reply(personal, self.privacy.stored(options.user))
        if reply == "profile":
            if personal.facts and not options.keep:
                return NOT_REMEMBERED
            return profile_reply(text, personal, profile=profile, new_facts=routed.facts)
        name = routed.facts.get("name", "") or profile.get("name", "")
        return general_reply(text, self.repository_name, name=name)

    def _delete(self, scope: str, options: AskOptions) -> str:
        """Delete data of the user, including the message that asks for it, and return a report."""
        where = (options.conversation, self.conversations.repository)
        if scope == "conversation" and not options.conversation:
            return NOT_KEPT_HERE
        try:
            return deletion_report(self.privacy.delete(scope, options.user, *where))
        except NotFoundError:
            return NOT_KEPT_HERE


def respond(
    responder: AnswerGenerator, gathered: Gathered, stream: Stream, toolbox: Toolbox
) -> Generator[Event, None, None]:
    """Yield the answer piece by piece, as events."""
    if stream.stopped():
        return
    yield Generating(responder.name)
    try:
        with closing(responder.generate(gathered)) as answer:
            for piece in answer:
                if stream.stopped():
                    return
                yield from stream.take(piece, toolbox)
        stream.end()
    except CodeQAError as error:
        stream.end(error)


@dataclass(frozen=True, slots=True)
class PlainResponder:
    """A responder that needs no model: quoted code, or the app's own reply."""

    name: str
    lines_of: Callable[[Gathered], Iterator[str]]

    def generate(self, gathered: Gathered) -> Generator[AnswerPiece, None, None]:
        """Yield the answer line by line, each section when it is needed.

        Raises StorageError when stored data can be neither read nor deleted.
        """
        yield from self.lines_of(gathered)


def general_reply(text: str, repository: str, *, name: str = "") -> str:
    """Return the reply to small talk and general questions as Markdown.

    `repository` and `name` are the names of the repository and the user.
    """
    code_of, you = f"the code of {code_span(repository)}", f", {escape(name)}" if name else ""
    if is_greeting(text) and asks("goodbye", text):
        return f"You are welcome{you}. You can continue this conversation at any time.\n"
    if is_greeting(text):
        return f"Hello{you}. Ask me about {code_of}, for example:\n\n{EXAMPLES}\n"
    return (
        f"I answer questions about {code_of} and cite the lines behind each answer. Begin a "
        "question with `@codebase`, or mention code with `@` and its name. Other questions need a "
        "language model, and none is chosen. Choose one next to the question field or with `codeqa "
        "models use`; it may run on this machine, and nothing is sent before you choose.\n\n"
        f"Try:\n\n{EXAMPLES}\n"
    )


def profile_reply(
    text: str,
    personal: PersonalReading,
    *,
    profile: Mapping[str, str],
    new_facts: Mapping[str, str],
) -> str:
    """Return the reply to a message in which users tell or ask something about themselves.

    `profile` has the facts from before, `new_facts` those that this message adds.
    """
    if new_facts:
        return _remembered(profile, new_facts)
    if personal.asks or "?" in text:
        clauses = "; ".join(_clause(key, value) for key, value in profile.items())
        return f"You told me: {clauses or 'nothing about yourself'}.\n"
    return (
        "I found nothing to remember in this. I remember your name, how you want your answers, and "
        "what you ask me to remember. Examples: `My name is Ada.`, `I prefer short answers.`, "
        "`Remember that I work on the parser.`\n"
    )


def privacy_reply(personal: PersonalReading, stored: StoredData) -> str:
    """Return the reply to a question about stored data, or ask to confirm a wish to delete it."""
    if personal.wished:
        return f"{deletion_question(personal.wished, stored)}\n"
    added = (
        "I have not added anything to your profile. This message is stored with its conversation, "
        "like every other message. To delete it, send `delete this conversation`.\n\n"
    )
    return f"{added if personal.keep_nothing else ''}{privacy_report(stored)}\n"


def _remembered(profile: Mapping[str, str], new_facts: Mapping[str, str]) -> str:
    clauses = [_clause(key, value) for key, value in new_facts.items()]
    sentences = [f"I will remember that {' and '.join(clauses)}."]
    if any(profile.get(key) not in (None, value) for key, value in new_facts.items()):
        sentences.append("That replaces what you said before.")
    if preferences(new_facts):
        sentences.append("Only a language model can answer like that; quoted code stays as it is.")
    sentences.append("Send `delete my profile` to remove everything that you told me.")
    return " ".join(sentences) + "\n"


def _clause(key: str, value: str) -> str:
    """Return a fact as a clause: `your name is Ada`."""
    return f"your name is {escape(value)}" if key == "name" else f"“{escape(value)}”"
