"""The hooks of one engine: decorators in front, pluggy behind, and nothing that an answer can lose.

A hook that raises, gives back what it should not, or takes too long is named, logged without a
word of what it said or was given, and left out; the answer goes on with what there was before it.

Order: the packages' entry points by name, then the files of the folder by name, within each from
top to bottom; `tryfirst=True` comes before all of these, `trylast=True` after them. CodeQA's own
come last of all. Each is given what the one before it made.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from codeqa.chat.hooks.plugins import Left, error_place, find_plugins
from codeqa.chat.hooks.specs import (
    HOOKS,
    PROJECT,
    Decorator,
    Retrieved,
    Specs,
    unfit,
    wrong,
)
from codeqa.text.tokens import well_formed

if TYPE_CHECKING:
    from codeqa.chat.features import Features
    from codeqa.chat.policy import PolicyDecision
    from codeqa.extractive.generator import Asked
    from codeqa.intents import Intent
    from codeqa.settings import Settings

__all__ = ["HOOK_NAMES", "HookError", "Hooks", "Retrieved", "load_hooks"]

HOOK_NAMES = tuple(HOOKS)
"""In the order of a turn."""
HOOK_SECONDS = 2.0
"""How long one hook may take: the reader waits for it, mostly before the first word."""
OWN = "codeqa"
"""Name of the plugin that holds CodeQA's own hooks."""

Problems = tuple[str, ...]

log = logging.getLogger(__name__)


class HookError(TypeError):
    """A function cannot be a hook: its name, its arguments or what kind of function it is."""


class Hooks:
    """The hooks of one engine; nothing is shared with another.

    Every `run_…` returns what became of its value, and a sentence for each hook that was left out.
    """

    policy_override = Decorator()
    after_retrieval = Decorator()
    before_generation = Decorator()
    after_generation = Decorator()

    def __init__(self, seconds: float = HOOK_SECONDS) -> None:
        self._seconds = seconds
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(Specs)
        self._order: dict[str, int] = {}
        """Name of each plugin → its number, in the order of registration."""
        self._late: dict[str, threading.Thread] = {}
        self.skipped: Problems = ()
        """Plugins that were found and left out, a sentence each."""

    def add(self, module: object, name: str) -> None:
        """Register the hooks of `module`. Raises HookError that says which of them cannot be."""
        marked = [
            value
            for value in vars(module).values()
            if isinstance(getattr(value, f"{PROJECT}_impl", None), dict)
        ]
        if not marked:
            raise HookError("it defines no hook")
        for function in marked:
            if problem := unfit(function):
                raise HookError(problem)
        try:
            self._manager.register(module, name)
        except (ValueError, pluggy.PluginValidationError) as error:
            raise HookError("pluggy does not accept it") from error
        self._order[name] = len(self._order)

    def add_function(self, function: Callable[..., Any]) -> None:
        """Register one marked function. Raises HookError."""
        name = f"{function.__module__}#{len(self._order)}"
        module = ModuleType(name)
        vars(module)[function.__name__] = function
        self.add(module, name)

    def names(self, hook: str) -> tuple[str, ...]:
        """`plugin:function` of everything that implements `hook`, in the order of calling."""
        return tuple(_label(one) for one in self._ordered(hook))

    def run_policy_override(
        self, decision: PolicyDecision, features: Features, intent: Intent, question: str
    ) -> tuple[PolicyDecision, Problems]:
        """S3.16. Whatever changes the decision is named among its rules, as `hook <name>`."""
        given = {"features": features, "intent": intent, "question": question}
        return self._run("policy_override", decision, given)

    def run_after_retrieval(self, retrieved: Retrieved) -> tuple[Retrieved, Problems]:
        """Between the search and the packing of what it found."""
        return self._run("after_retrieval", retrieved, {})

    def run_before_generation(self, asked: Asked) -> tuple[Asked, Problems]:
        """S3.22."""
        return self._run("before_generation", asked, {})

    def run_after_generation(self, text: str, asked: Asked) -> tuple[str, Problems]:
        """S3.24. The text as it is kept; equal to `text` when nothing was to be changed."""
        changed, problems = self._run("after_generation", text, {"asked": asked})
        return well_formed(changed), problems

    def _run(self, hook: str, value: Any, given: Mapping[str, Any]) -> tuple[Any, Problems]:
        """Give `value` from one hook to the next."""
        problems: list[str] = []
        for one in self._ordered(hook):
            label = _label(one)
            try:
                made = self._call(one, {HOOKS[hook][0]: value, **given})
                problem = "" if made is None else wrong(hook, made, value)
            except _Late:
                problem = f"it took longer than {self._seconds:g} s"
            except _Busy:
                problem = "it is still busy with an earlier answer"
            except BaseException as error:
                if one.plugin_name == OWN or isinstance(error, KeyboardInterrupt):
                    raise
                problem = f"{type(error).__name__} at {error_place(error, _file(one))}"
            if problem:
                log.warning("the hook %s (%s) was left out: %s", label, hook, problem)
                problems.append(f"The hook {label} ({hook}) was left out: {problem}.")
            elif made is not None and made != value:
                value = _noted(hook, made, label)
        return value, tuple(problems)

    def _call(self, one: pluggy.HookImpl, given: Mapping[str, Any]) -> Any:
        arguments = [given[name] for name in one.argnames]
        if one.plugin_name == OWN:
            return one.function(*arguments)
        label = _label(one)
        late = self._late.get(label)
        if late is not None and late.is_alive():
            raise _Busy
        return self._in_time(one.function, arguments, label)

    def _in_time(self, function: Callable[..., Any], arguments: list[Any], label: str) -> Any:
        """Call `function` in a thread, which is left to itself when it takes too long.

        Raises what it raises, and _Late.
        """
        made: list[Any] = []
        raised: list[BaseException] = []

        def work() -> None:
            try:
                made.append(function(*arguments))
            except BaseException as error:  # also SystemExit: it would end the thread silently
                raised.append(error)

        thread = threading.Thread(target=work, name=f"hook {label}", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if thread.is_alive():
            self._late[label] = thread
            raise _Late
        if raised:
            raise raised[0]
        return made[0]

    def _ordered(self, hook: str) -> list[pluggy.HookImpl]:
        return sorted(getattr(self._manager.hook, hook).get_hookimpls(), key=self._place)

    def _place(self, one: pluggy.HookImpl) -> tuple[int, int, int]:
        rank = 3 if one.plugin_name == OWN else 0 if one.tryfirst else 2 if one.trylast else 1
        code = getattr(one.function, "__code__", None)
        return rank, self._order[one.plugin_name], code.co_firstlineno if code else 0


class _Late(Exception):  # noqa: N818 (no error of anybody's)
    """A hook did not end in time."""


class _Busy(Exception):  # noqa: N818
    """A hook that did not end in time has still not ended."""


def load_hooks(settings: Settings, repository: Path | None = None) -> Hooks:
    """CodeQA's own hooks, and the plugins that `CODEQA_PLUGINS` names.

    `repository` is the one that is about to be opened, indexed or not. Raises SettingsError for
    a folder that cannot be used; a plugin that cannot is left out and told by `Hooks.skipped`.
    """
    from codeqa.chat.hooks import own

    hooks = Hooks()
    plugins, left = find_plugins(settings, repository)
    for plugin in plugins:
        try:
            hooks.add(plugin.module, plugin.name)
        except HookError as error:
            left.append(Left(plugin.name, str(error)))
    hooks.add(own, OWN)
    for one in left:
        log.warning("the plugin %s was left out: %s", one.name, one.why)
    hooks.skipped = tuple(f"The plugin {one.name} was left out: {one.why}." for one in left)
    return hooks


def _label(one: pluggy.HookImpl) -> str:
    return f"{one.plugin_name}:{getattr(one.function, '__name__', '?')}"


def _file(one: pluggy.HookImpl) -> str:
    code = getattr(one.function, "__code__", None)
    return code.co_filename if code else ""


def _noted(hook: str, made: Any, label: str) -> Any:
    """A decision names whatever changed it."""
    if hook != "policy_override":
        return made
    return replace(made, rules=(*made.rules, f"hook {label}"))
