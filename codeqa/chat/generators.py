"""What writes answers: a language model, the code itself, quoted, or the app.

The app answers small talk, facts and what is stored without any model, and does the deletions that
it is told to do. It guesses nothing: what would take a language model is said to take one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from codeqa.account.privacy import (
    Privacy,
    StoredData,
    deletion_question,
    deletion_report,
    privacy_report,
)
from codeqa.chat.citation_writer import CitationWriter
from codeqa.chat.citations import CitedCode
from codeqa.chat.conversations import Conversations
from codeqa.chat.generation import (
    EXTRACTIVE,
    Gathered,
    ModelRequest,
    Piece,
    as_sent,
    build_messages,
    characters_left,
)
from codeqa.chat.stream import Stream
from codeqa.context import pack
from codeqa.errors import ContextLengthError, ModelError, NotFoundError
from codeqa.llm import Model, Thought, TokenUsage
from codeqa.quoted.answer import quoted_answer
from codeqa.routing.features import GOODBYE, HELLO, THANKS
from codeqa.routing.personal import PersonalReading, kind_of, matching
from codeqa.text.markdown import code_span, escape, pieces
from codeqa.text.tokens import word_set, words
from codeqa.types import Chunk

SHORTENED = (
    "The whole context was too long for this model: part of the code was sent, and no earlier "
    "questions."
)

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

_SMALL_TALK = (
    (rf"(?<!\w)(?:{THANKS})(?!\w)", "You are welcome{you}."),
    (
        rf"^\W*(?:ok(?:ay)?\W+)?(?:{GOODBYE})(?!\w)",
        "Goodbye{you}. This conversation is kept: you can go on with it any time.",
    ),
    (rf"^\W*(?:{HELLO}|test)(?!\w)", "Hello{you}. {offer}"),
    (
        r"^\W*(?:ok(?:ay)?|cool|nice|great|good|perfect|awesome|got it|alright|super|wow|i see)"
        r"(?!\w)[^?]{0,20}$",
        "Good. Ask on whenever you like.",
    ),
)
"""How people talk, in small letters with single blanks, and what is replied."""
_COMMON = word_set(
    "what which where who how is am are was do did have has you know remember i me my the a an "
    "in on at of to for with and that favourite favorite preferred"
)


class QuotingGenerator:
    """Says only what the code itself says: quoted, cited, most relevant first."""

    name = EXTRACTIVE
    needs_evidence = True

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Yield the answer line by line; each section is made when it is reached."""
        looked_up = asked.searched or asked.block.chunks
        evidence = asked.evidence if looked_up else None
        yield from quoted_answer(evidence, about_code=asked.intent != "general")


@dataclass(frozen=True, slots=True)
class ModelGenerator:
    """Asks `model`."""

    model: Model
    cited: Callable[[Sequence[Chunk]], CitedCode]
    """What its citations are checked against, given what is sent."""
    config_dir: Path | None = None
    needs_evidence: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.model.name

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Ask, with less code where its window cannot hold all; once again with half of it when
        the model says that it was too long."""
        window, warning = asked.window, ""
        alone = build_messages(replace(asked, history=(), similar=()), self.config_dir)
        if asked.block.chunks and (left := characters_left(alone, window)) < 0:
            asked, warning = shrink(asked, len(asked.block.text) + left), SHORTENED
        try:
            yield from self._ask(asked, window, warning)
        except ContextLengthError:
            if (smaller := shrink(asked)) == asked:
                raise
            yield from self._ask(smaller, window, SHORTENED)

    def _ask(self, asked: Gathered, window: int, warning: str = "") -> Generator[Piece, None, None]:
        messages = build_messages(asked, self.config_dir, window)
        model = self.model
        yield ModelRequest(model.name, model.host, as_sent(messages), asked.block, warning)
        chunks = asked.block.chunks
        answered, citations = False, CitationWriter(chunks, self.cited(chunks))
        try:
            with closing(model.stream(messages, cancelled=asked.cancelled)) as stream:
                for piece in stream:
                    if isinstance(piece, TokenUsage | Thought):
                        yield piece
                    elif isinstance(piece, str):
                        answered = True
                        yield citations.feed(piece)
        except ModelError as error:
            yield citations.close()
            if answered and isinstance(error, ContextLengthError):
                # Too late to begin anew: the reader already has a part of the answer.
                raise ModelError(error.message, error.hint) from error
            raise
        yield citations.close()


def shrink(asked: Gathered, room: int = 0) -> Gathered:
    """`asked` without history and with the block packed anew into `room` characters (0: half of
    its length); a block that cannot be made so short stays as it is."""
    whole = asked.block
    # What it can hold is not known, and a second refusal costs more than a little code left out.
    room = room or len(whole.text) // 2
    half = pack(whole.chunks, room)
    if not half.chunks:  # all are long: the best alone may use all of the room
        half = pack(whole.chunks[:1], room)
    kept = {(c.path, c.start_line) for c in half.chunks}
    left_out = [c for c in whole.chunks if (c.path, c.start_line) not in kept]
    half = replace(half, dropped=(*left_out, *whole.dropped))
    return replace(asked, block=half if half.chunks else whole, history=(), similar=())


@dataclass(frozen=True, slots=True)
class AppGenerator:
    """Writes the reply that `stream.reply` names."""

    stream: Stream
    conversations: Conversations
    privacy: Privacy
    repository_name: str

    name = "app"
    needs_evidence = False

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Yield the reply piece by piece. Raises StorageError when what is stored can be neither
        read nor deleted."""
        yield from pieces(self._write())

    def _write(self) -> str:
        stream, question, routed = self.stream, self.stream.question, self.stream.routed
        assert routed is not None
        personal, options, reply = question.personal, question.options, stream.reply
        text, known = question.text[:READ_CHARACTERS], routed.so_far.profile
        program = options.from_program
        if reply == "privacy" and personal.confirmed:
            # What speaks for its user may repeat whatever it has read.
            return ELSEWHERE if program else self._delete(personal.confirmed)
        if reply in ("privacy", "profile") and personal.forget and not program:
            number = self.privacy.forget_fact(options.user, personal.forget)
            return forgotten_reply(personal.forget, number)
        if reply == "privacy":
            self.conversations.flush()
            place = (options.conversation, self.conversations.repository)
            stored = self.privacy.stored(options.user, *place)
            return privacy_reply(personal, stored)
        if reply == "profile":
            if personal.facts and not stream.keep:
                return NOT_REMEMBERED
            return profile_reply(text, personal, known=known, learnt=routed.facts)
        name = {**known, **routed.facts}.get("name", "")
        return general_reply(text, self.repository_name, name=name)

    def _delete(self, scope: str) -> str:
        """Delete, and say what came of it; the message that asks for it goes as well."""
        stream, options = self.stream, self.stream.question.options
        self.conversations.flush()
        stream.keep = stream.keep and scope == "profile"
        if scope == "conversation" and not options.conversation:
            return NOT_KEPT_HERE
        repository = self.conversations.repository
        try:
            done = self.privacy.delete(scope, options.user, options.conversation, repository)
        except NotFoundError:
            return NOT_KEPT_HERE
        return deletion_report(done)


def general_reply(text: str, repository: str, *, name: str = "") -> str:
    """The reply to small talk and general questions, as Markdown; `repository` and `name` are what
    the repository and the user are called."""
    said = " ".join(text.lower().split())
    code_of = f"the code of {code_span(repository)}"
    offer = f"Ask me about {code_of}, for example:\n\n{EXAMPLES}"
    for pattern, reply in _SMALL_TALK:
        if re.search(pattern, said):
            return reply.format(you=f", {escape(name)}" if name else "", offer=offer) + "\n"
    return (
        f"I answer questions about {code_of}, and cite the lines that an answer stands on: begin "
        "one with `@codebase`, or point at code with `@` and a name. All else takes a language "
        "model, and none is used. Choose one at the top of the page or with `codeqa models use`; a "
        "server on this machine will do, and nothing is sent before you choose.\n\n"
        f"Try:\n\n{EXAMPLES}\n"
    )


def profile_reply(
    text: str,
    personal: PersonalReading,
    *,
    known: Mapping[str, str],
    learnt: Mapping[str, str],
) -> str:
    """The reply to what users say of themselves, or ask of what they said.

    `known` are the facts from before, `learnt` those that this message adds and that are kept.
    """
    if learnt:
        return _remembered(known, learnt)
    kind = personal.asked
    if found := (matching(known, kind) if kind else {}) or _near(known, text):
        clauses = [_clause(key, value) for key, value in found.items()]
        return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses) + "\n"
    if kind:
        named = {"*": "anything about yourself", "fact": "that"}.get(kind, f"your {kind}")
        return f"You have not told me {named}.\n"
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


def forgotten_reply(what: str, number: int) -> str:
    """The reply after `number` facts of a kind, or told in these words, were removed."""
    named = f"your {what}" if " " not in what else "that"
    if not number:
        return f"There was nothing to forget: you had not told me {named}.\n"
    return (
        f"I have forgotten {named}. The messages in which you told me stay in their "
        "conversations until you delete those.\n"
    )


def _remembered(known: Mapping[str, str], learnt: Mapping[str, str]) -> str:
    shown = [_clause(key, value) for key, value in learnt.items()]
    lines = [f"I will remember that {' and '.join(shown)}."]
    if any(known.get(key) not in (None, value) for key, value in learnt.items()):
        lines.append("That replaces what you said before.")
    if matching(learnt, "preferences"):
        lines.append("It takes a language model to answer like that; what I quote stays as it is.")
    key, value = next(iter(learnt.items()))
    forgets = {"name": "forget my name", "fact": f"forget that {value}"}
    removes = code_span(forgets.get(kind_of(key), "forget my preferences"))
    lines.append(f"{removes} removes it, `delete my profile` all of it.")
    return " ".join(lines) + "\n"


def _near(profile: Mapping[str, str], text: str) -> dict[str, str]:
    """What was remembered and shares a word with a question."""
    asked = {word.lower() for word in words(text)} - _COMMON
    return {
        key: value
        for key, value in profile.items()
        if kind_of(key) != "name" and asked & {word.lower() for word in words(value)}
    }


def _clause(key: str, value: str) -> str:
    """A fact as a clause: `your name is Ada`."""
    return f"your name is {escape(value)}" if key == "name" else f"you said: “{escape(value)}”"
