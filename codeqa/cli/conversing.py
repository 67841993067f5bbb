"""A conversation on the terminal, line by line: questions, and words that begin with `/`."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import click

from codeqa.chat import AskOptions
from codeqa.chat.options import about_code
from codeqa.cli.answer import print_answer, watched
from codeqa.cli.command import DONE, FAILED, print_error
from codeqa.cli.console import Waiting, format_pairs, visible
from codeqa.cli.prompt import Prompt
from codeqa.cli.repos import choose_repositories
from codeqa.cli.work import begun
from codeqa.engine import Engine, open_several
from codeqa.errors import CodeQAError, UsageError
from codeqa.intents import ISSUE
from codeqa.llm import PROVIDERS
from codeqa.settings import load_settings
from codeqa.several import asked_of
from codeqa.types import EFFORTS, MODES

COMMANDS = {
    "/deep": "the model reads on with tools; /deep QUESTION: once",
    "/effort": f"how much code is read: {', '.join(EFFORTS)}",
    "/rerank": "the reranker orders what is found; /rerank QUESTION: once",
    "/strict": "only what the code shows is said; /strict QUESTION: once",
    "/model": "which model answers; /model PROVIDER/NAME or none",
    "/context": "what the last answer is made from; /context 2: the second piece",
    "/files": "/files QUESTION: from whole files that the search finds",
    "/all": "/all src/*.py QUESTION: from every file that fits",
    "/new": "begin another conversation",
    "/help": "this list",
    "/quit": "end, as Ctrl-D does",
}
OF_QUESTIONS = ("/files", "/all", *(f"/{mode}" for mode in MODES), f"/{ISSUE}")
"""Words that the question keeps, as on the page."""

REMEMBERED = 200
"""Questions of earlier conversations that the arrow keys bring back."""

_COMMAND = re.compile(r"(/[a-z]+)(?!\S)\s*(.*)", re.DOTALL)


class Conversing:
    """A conversation about what `engine` asks, and what is chosen for its questions."""

    def __init__(self, engine: Engine, chosen: AskOptions) -> None:
        self.engine, self.chosen = engine, chosen
        self.conversation = uuid.uuid4().hex

    def go_on(self) -> None:
        """Take up the last conversation, and say which it is. Without one it is a new one."""
        for last in self.engine.conversations.all()[:1]:
            self.conversation = last.id
            click.echo(visible(f"Going on with: {last.title}"), err=True)

    def take(self, line: str) -> int:
        """Do what `line` says; gives an exit status. Raises CodeQAError, and EOFError to end."""
        match = _COMMAND.match(line)
        if not match or match[1] in OF_QUESTIONS:
            return self.ask(line, self.chosen)
        name, rest = match[1], match[2].strip()
        if name in ("/deep", "/rerank", "/strict"):
            return self._switch(name[1:], rest)
        do: Callable[[str], object] | None = getattr(self, f"_do_{name[1:]}", None)
        if do is None:
            raise UsageError(f"There is no {name} here.", "/help lists what there is.")
        do(rest)
        return DONE

    def ask(self, question: str, chosen: AskOptions) -> int:
        """Print the answer; Ctrl-C ends it and what came is kept. Raises CodeQAError."""
        engine, waiting = self.engine, Waiting()
        named, question = asked_of(engine.settings, engine.repositories, question)
        if len(named) > len(engine.repositories):
            raise UsageError(
                f"{named[-1].name} is not what this conversation is about.",
                "Begin one with --repo for each repository.",
            )
        asked = replace(chosen, question=question, conversation=self.conversation)
        options = about_code(asked, first=not engine.conversations.turns(self.conversation))
        with closing(waiting), closing(engine.chat.ask(options)) as events:  # type: ignore[type-var]
            try:
                return print_answer(
                    watched(chain([begun(engine, options.use_model)], events), waiting)
                )
            except KeyboardInterrupt:
                waiting.close()
                click.echo("\nStopped; what came is kept.", err=True)
                return FAILED

    def _switch(self, name: str, question: str) -> int:
        """Choose it for `question`, or without one for all from now on, or no longer."""
        field, yes, no = ("effort", "deep", "") if name == "deep" else (name, True, False)
        on = getattr(self.chosen, field) != yes
        other = replace(self.chosen, **{field: yes if on or question else no})  # type: ignore[arg-type]
        if question:
            return self.ask(question, other)
        self.chosen = other
        click.echo(f"{name} is {'on' if on else 'off'}.")
        return DONE

    def _do_effort(self, name: str) -> None:
        if name and name not in EFFORTS:
            raise UsageError(f"There is no effort {name}.", f"Known: {', '.join(EFFORTS)}.")
        if name:
            self.chosen = replace(self.chosen, effort=name)
        click.echo(f"The effort is {self.chosen.effort or self.engine.settings.effort}.")

    def _do_model(self, name: str) -> None:
        models = self.engine.models
        if name and name != "none":
            models.prefer_named(name)
        if name:
            self.chosen = replace(self.chosen, use_model=name != "none")
        current = models.current() if self.chosen.use_model else None
        if current:
            click.echo(visible(f"{current} at {models.endpoint(current).host} answers."))
        else:
            click.echo("No model is used: answers are put together from the code.")

    def _do_context(self, number: str) -> None:
        turns = self.engine.conversations.turns(self.conversation)
        chunks = turns[-1].chunks if turns else ()
        if not chunks:
            click.echo("The last answer was made without code." if turns else "Nothing was asked.")
        elif not number:
            width = len(str(len(chunks)))
            for place, one in enumerate(chunks, start=1):
                line = f"{place:>{width}}  {one.path}:{one.start_line}-{one.end_line}  {one.name}"
                click.echo(visible(line.rstrip()))
        elif number.isascii() and number.isdigit() and 0 < int(number) <= len(chunks):
            click.echo(visible(chunks[int(number) - 1].content))
        else:
            raise UsageError(f"There is no piece {number}.", f"There are 1 to {len(chunks)}.")

    def _do_new(self, _: str) -> None:
        self.conversation = uuid.uuid4().hex
        click.echo("A new conversation.")

    def _do_help(self, _: str) -> None:
        click.echo(format_pairs(list(COMMANDS.items())))
        click.echo(f"\n  Also in front of a question: {', '.join(OF_QUESTIONS[2:])}.")
        click.echo("  @file, @folder/ and @Class.method point at code; Tab completes them.")

    def _do_quit(self, _: str) -> None:
        raise EOFError

    def earlier(self) -> Iterator[str]:
        """Questions about this repository, the latest first."""
        for conversation in self.engine.conversations.all():
            for turn in reversed(self.engine.conversations.turns(conversation.id)):
                yield turn.question

    def completions(self, line: str, word: str) -> list[str]:
        """What `word`, the last one of `line`, may become."""
        if word.startswith("@"):
            # Readline prints them as they are; names of files may hold anything.
            every = self.engine.completion.complete(word[1:]).items
            found = [one for one in every if one.text.isprintable()]
            places = [f"@{one.text}{'' if one.kind == 'folder' else ' '}" for one in found]
            # The terminal shortens the word to what all have in common, so that they must go on
            # from what was typed; of those that only hold it the best takes its place.
            fitting = [one for one in ("@codebase ", *places) if one.startswith(word)]
            return fitting or places[:1]
        command, inside, _ = line.lstrip().partition(" ")
        known: dict[str, list[str]] = {
            "/effort": list(EFFORTS),
            "/model": ["none", *(f"{one.name}/{one.chat_model}" for one in PROVIDERS)],
        }
        offered = known.get(command, []) if inside else [*COMMANDS, *OF_QUESTIONS[2:]]
        return [f"{one} " for one in offered if word and one.startswith(word)]


def converse(repos: tuple[str, ...], go_on: bool, model: str, **options: Any) -> int:
    """Until the user ends; gives an exit status. Raises CodeQAError when it cannot begin."""
    about, _, notice = choose_repositories(load_settings(), repos, {}, Path.cwd())
    if notice:
        click.echo(notice, err=True)
    status = DONE
    with closing(open_several(load_settings(about[0].root), about)) as engine:
        engine.tables()  # says now when there is no index
        talk, name = Conversing(engine, AskOptions("", **options)), visible(engine.location.name)
        if model:
            engine.models.prefer_named(model)
        if go_on:
            talk.go_on()
        with Prompt(f"{name}> ", talk.completions, islice(talk.earlier(), REMEMBERED)) as prompt:
            if prompt.watched:
                click.echo(f"About {name}. /help lists what can be said, Ctrl-D ends.", err=True)
            for line in prompt.lines():
                if not prompt.watched:  # so that answers can be told apart
                    click.echo(visible(f"> {line}\n"))
                try:
                    status = max(status, talk.take(line))
                except EOFError:
                    break
                except CodeQAError as error:
                    print_error(str(error))
                    status = error.exit_status
    # At a prompt the user has seen what failed; a script has only the status.
    return DONE if prompt.watched else status
