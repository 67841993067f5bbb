"""Have a model write the title of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from codeqa.chat.conversations import Conversations
from codeqa.chat.values import AskOptions
from codeqa.errors import CodeQAError
from codeqa.llm.client import DONE, Model, generate_bounded
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.followup import ANSWER_CHARACTERS, MOST_TOKENS, QUESTION_CHARACTERS
from codeqa.state.records import title_of

MOST_WORDS = 6
"""Most words of a title."""
TITLE_SECONDS = 8.0
"""Time for writing it: nobody waits for it."""


def write_title(
    conversations: Conversations,
    options: AskOptions,
    turn_id: str,
    answer_model: Callable[[str], Model | None],
    config_dir: Path | None,
) -> None:
    """Have the model of a conversation's first answer write a title for it.

    Do nothing if the user gave the conversation a title, or if the model fails.
    """
    with suppress(CodeQAError):
        turn = conversations.turn(turn_id, options.user)
        old_title = conversations.get(options.conversation, options.user).title
        if turn.parent or old_title != title_of(turn.typed):
            return
        model = answer_model(options.with_model)
        if model is None or (model.name, model.host) != (turn.model, turn.host):
            return
        parts = (turn.question[:QUESTION_CHARACTERS], turn.answer[:ANSWER_CHARACTERS])
        exchange = mask_secrets("\n\n".join(parts))
        system = render_prompt("title", config_dir)
        sent = [{"role": "system", "content": system}, {"role": "user", "content": exchange}]
        limits = (MOST_TOKENS, TITLE_SECONDS, options.cancelled)
        *_, stage = generate_bounded("title", model, lambda: sent, *limits)
        title = stage.text.replace("`", "").strip(" \"'“”*#.")
        if title and stage.outcome == DONE and len(title.split()) <= MOST_WORDS:
            conversations.rename(options.conversation, title, options.user, old_title)
