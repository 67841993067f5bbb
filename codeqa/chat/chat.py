"""A question to an answer, as a stream of events (S3.27 to S3.32)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from codeqa.chat.context_selection import build_context
from codeqa.chat.conversations import USER, Conversations
from codeqa.chat.hooks import Hooks
from codeqa.chat.pins import check_places
from codeqa.chat.pipeline import Parts, Pipeline, Wishes
from codeqa.chat.policy import RETRIEVAL_MODES
from codeqa.chat.prior import Prior
from codeqa.chat.replying import Replying
from codeqa.chat.retrieving import Retrieving
from codeqa.chat.turns import Draft
from codeqa.chat.vectors import Encoder, QuestionVectors
from codeqa.errors import CodeQAError, UsageError
from codeqa.extractive.generator import Exchange, Generator
from codeqa.files import Files
from codeqa.intents import Classifier, by_heuristics, read_mode
from codeqa.llm import Cancelled, Model, never
from codeqa.repository.secrets import mask_secrets
from codeqa.search import Search, parse_hyde
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import Cache
from codeqa.store import Tables
from codeqa.text.tag import strip_tag
from codeqa.text.tokens import well_formed
from codeqa.types import ContextBlock, Event


class Chat(Conversations):
    """Answers questions about one repository, and keeps the conversations about it.

    `connect` gives the model of the moment, None for none, `connect_small` the one for what comes
    before an answer; a `generator` that is given takes the place of all models. `encoder` makes
    the vectors of questions by which topics and earlier questions are told, None without; `hooks`
    may change what is done. `repository` is the id under which conversations are kept.
    """

    def __init__(
        self,
        search: Search,
        open_tables: Callable[[], Tables],
        state: State,
        cache: Cache,
        settings: Settings,
        *,
        repository: str,
        files: Files,
        connect: Callable[[], Model | None],
        connect_small: Callable[[], Model | None],
        encoder: Callable[[], Encoder | None],
        hooks: Hooks,
        replying: Replying,
        generator: Generator | None = None,
    ) -> None:
        vectors = QuestionVectors(encoder)
        super().__init__(state, cache, settings, repository, vectors)
        self._search = search
        self._open_tables = open_tables
        self._generator = generator
        parts = Parts(
            settings=settings,
            files=files,
            classifier=Classifier(cache, connect_small, settings.config_dir),
            hooks=hooks,
            prior=Prior(state),
            retrieving=Retrieving(search, open_tables, files, settings, hooks, self, connect_small),
            replying=replying,
            vectors=vectors,
            connect=connect,
            generator=generator,
        )
        self._pipeline = Pipeline(parts, self)

    def warm_up(self) -> None:
        """Read what the first question would have to wait for: lexicon and embedding."""
        by_heuristics("", has_history=False)
        self._vectors("warm")

    def ask(
        self,
        question: str,
        *,
        rerank: bool = False,
        hyde: str = "",
        conversation: str = "",
        user: str = USER,
        mode: str = "",
        replaces: str = "",
        after: str = "",
        use_model: bool = True,
        retrieval: str = "",
        tag_is_default: bool = False,
        strict: bool = False,
        pin: Sequence[str] = (),
        exclude: Sequence[str] = (),
        history: Sequence[Exchange] | None = None,
        instructions: str = "",
        keep: bool = True,
        cancelled: Cancelled | None = None,
    ) -> Iterator[Event]:
        """Yield the events of an answer: `step` as each of the twelve ends, `classified`,
        `rewritten` when something else is searched for than what was typed, `drafting` and
        `drafted` for each draft that is searched by, `retrieved` when something was,
        `generating`, `token`…, `done`; or `error`, or `stopped` once `cancelled()` is true.

        A question with `@codebase`, or with an `@name`, is searched for. What is done for one
        without is for the policy to say; `retrieval` is `explicit` or `auto`, whether it may
        search of its own accord, '' for what the setting says. `tag_is_default` says that the
        surface put the tag there: what is clearly not about the code then goes without it. `mode`
        is one of `mode.MODES`, '' leaves it to the question; `hyde` is how many drafts there are
        to be, '' leaves it to the setting, and without a model there are none. With `strict`
        nothing is said that the code does not show.

        `replaces` is the turn that is asked anew, as a branch beside it; `after` the one that
        this follows, '' for the latest. `pin` and `exclude` are places (`path:12-34`) that the
        context must and must not hold; with `replaces` what was found for that turn is packed
        anew without another search. `history` is the conversation so far where the client keeps
        it, `instructions` what that client asks of its answers, which stands beside our rules
        and never in their place; without `keep` nothing of this turn is stored.

        What was answered so far is kept as a turn even when the model fails, or the caller stops
        or goes away.
        """
        asked = mask_secrets(well_formed(question))
        try:
            given = mode
            mode, text = read_mode(strip_tag(asked), given)
            if not text:
                raise UsageError("The question is empty.", "Type a question.")
            if retrieval and retrieval not in RETRIEVAL_MODES:
                raise UsageError(
                    f"There is no retrieval {retrieval[:40]!r}.",
                    f"Choose one: {', '.join(RETRIEVAL_MODES)}.",
                )
            conversation = well_formed(conversation)
            wishes = Wishes(
                rerank=rerank,
                hyde=self._drafts_wished(hyde, use_model),
                retrieval=retrieval,
                tag_is_default=tag_is_default,
                mode=mode if given or text != strip_tag(asked) else "",
                use_model=use_model,
                strict=strict,
                pin=check_places(pin),
                exclude=check_places(exclude),
                history=None if history is None else tuple(history),
                instructions=well_formed(instructions),
                stop=cancelled or never,
            )
            draft = Draft(
                question=asked,
                text=text,
                mode=mode,
                user=user,
                conversation=conversation,
                repository=self._repository,
                replaces=well_formed(replaces),
                parent=well_formed(after),
                continues=self._created(conversation, user),
                keep=keep,
                foreign=history is not None or not keep,
                branches=bool(replaces or after),
            )
            self._drafts[draft.id] = draft
            try:
                yield from self._pipeline.run(draft, wishes)
            finally:
                del self._drafts[draft.id]
        except CodeQAError as error:
            yield Event("error", error.as_data())

    def _drafts_wished(self, hyde: str, use_model: bool) -> str:
        """`hyde`, and `off` for a turn that is to ask no model. Raises UsageError."""
        parse_hyde(hyde, self._settings.hyde)
        return hyde if use_model and self._generator is None else "off"

    def build_context(self, question: str, rerank: bool = False) -> ContextBlock:
        """The context block of `question`, nothing cached and nothing answered.

        Drafts of the answer are searched by as the setting says, where there is a model.
        """
        result = self._search.search(question, rerank=rerank, hyde="")
        return build_context(self._open_tables(), result, self._settings)
