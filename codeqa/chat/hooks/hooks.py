"""The hooks of one engine: decorators in front, pluggy behind, and nothing that an answer can lose.

A hook gives back a changed value, made with `dataclasses.replace`, or None to leave it as it is.
One that raises, gives back what it should not, or takes too long is named, logged without a word
of what it said or was given, and left out; the answer goes on with what there was before it.

pluggy keeps the hooks and their order. They are called one after the other, because each is given
what the one before it made.
"""

from __future__ import annotations

import inspect
import logging
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from codeqa.chat.generation import Exchange, GenerationInput
from codeqa.chat.policy_rules import REPLIES, PolicyDecision
from codeqa.intents import INTENTS, Intent
from codeqa.text.tokens import well_formed
from codeqa.types import Chunk

if TYPE_CHECKING:
    from codeqa.chat.features import Features

PROJECT = "codeqa"
"""Name under which pluggy knows these hooks; a hook carries the attribute `codeqa_impl`."""
HOOK_SECONDS = 2.0
"""How long one hook may take: the reader waits for it, mostly before the first word."""
OWN = "codeqa"
"""Name of the plugin that holds CodeQA's own hooks."""

Value = TypeVar("Value")
Problems = tuple[str, ...]

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

log = logging.getLogger(__name__)


class HookError(Exception):
    """Why a hook or a plugin cannot be used, in words."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found for a question, before it is packed: chunks by rank, and past answers."""

    question: str
    """As it was searched for: without tag and mode, a follow-up made complete."""
    chunks: tuple[Chunk, ...] = ()
    similar: tuple[Exchange, ...] = ()
    """Earlier questions like this one, with their answers, the most similar first."""


class HookSpecs:
    """What each hook is given, in the order of a turn; it declares those of the arguments that it
    wants. The first one goes from hook to hook."""

    @hookspec
    def policy_override(
        self, decision: PolicyDecision, features: Features, intent: Intent, question: str
    ) -> PolicyDecision | None:
        """After the rules of the policy and before anything is looked up."""

    @hookspec
    def after_retrieval(self, retrieved: Retrieved) -> Retrieved | None:
        """After a search, before what it found is packed."""

    @hookspec
    def before_generation(self, asked: GenerationInput) -> GenerationInput | None:
        """Before the answer is written: `asked` is all that it may draw on."""

    @hookspec
    def after_generation(self, text: str, asked: GenerationInput) -> str | None:
        """After the answer was written: the text as it is kept."""


ARGUMENTS = {
    name: tuple(inspect.signature(function).parameters)[1:]
    for name, function in vars(HookSpecs).items()
    if not name.startswith("_")
}
"""Hook → the names of what it is given."""

ELEMENTS = {"rules": str, "chunks": Chunk, "similar": Exchange, "history": Exchange}
"""Fields that are tuples, and what they hold."""


class Decorator:
    """`@Hooks.before_generation` marks a function for whoever loads its module;
    `@hooks.before_generation`, of an instance, registers it there at once. Both with or without
    `tryfirst` and `trylast`."""

    def __init__(self, hook: str, hooks: Hooks | None = None) -> None:
        self._hook = hook
        self._hooks = hooks

    def __get__(self, hooks: Hooks | None, owner: type) -> Decorator:
        return Decorator(self._hook, hooks)

    def __call__(
        self, function: Any = None, *, tryfirst: bool = False, trylast: bool = False
    ) -> Any:
        marker = hookimpl(specname=self._hook, tryfirst=tryfirst, trylast=trylast)

        def mark(function: Callable[..., Any]) -> Any:
            marked = marker(function)
            if self._hooks is not None:
                self._hooks.add(marked, f"{function.__module__}:{function.__name__}")
            return marked

        return mark if function is None else mark(function)


class Hooks:
    """The hooks of one engine; nothing is shared with another."""

    policy_override = Decorator("policy_override")
    after_retrieval = Decorator("after_retrieval")
    before_generation = Decorator("before_generation")
    after_generation = Decorator("after_generation")

    def __init__(self, seconds: float = HOOK_SECONDS) -> None:
        self._seconds = seconds
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(HookSpecs)
        self._late: dict[str, Future[Any]] = {}
        """Label of each hook that took too long → its last call, which may still go on."""
        self.skipped: Problems = ()
        """Plugins that were found and left out, a sentence each."""

    def add(self, function: Callable[..., Any], label: str) -> None:
        """Register one marked function, called before those that are there; answers call it
        `label`. Raises HookError."""
        check_hook(function)
        self._manager.register(SimpleNamespace(**{function.__name__: function}), label)

    def names(self, hook: str) -> tuple[str, ...]:
        """Labels of everything that implements `hook`, in the order of calling."""
        return tuple(one.plugin_name for one in self._in_order(hook))

    def run(self, hook: str, value: Value, **given: Any) -> tuple[Value, Problems]:
        """What became of `value`, which goes from one hook to the next, and a sentence for each
        that was left out. `given` is what the hook may ask for beside it.

        Whatever changes a decision of the policy is named among its rules, as `hook <name>`.
        """
        problems: list[str] = []
        for one in self._in_order(hook):
            label, own = one.plugin_name, one.plugin_name.startswith(f"{OWN}:")
            everything = {ARGUMENTS[hook][0]: value, **given}
            arguments = [everything[name] for name in one.argnames]
            try:
                made = one.function(*arguments) if own else self._in_time(one, arguments)
                if made is not None and made != value:
                    value = changed_value(made, value, label)
            except BaseException as error:
                if own or isinstance(error, KeyboardInterrupt):
                    raise
                problem = explain_error(error)
                log.warning("the hook %s (%s) was left out: %s", label, hook, problem)
                problems.append(f"The hook {label} ({hook}) was left out: {problem}.")
        return value, tuple(problems)

    def _in_time(self, one: pluggy.HookImpl, arguments: list[Any]) -> Any:
        """What the hook gives back, in a thread that is left to itself when it takes too long.

        Raises what it raises, and HookError.
        """
        label, call = one.plugin_name, Future[Any]()
        if label in self._late and not self._late[label].done():
            raise HookError("it is still busy with an earlier answer")

        def work() -> None:
            try:
                call.set_result(one.function(*arguments))
            except BaseException as error:  # also SystemExit: it would end the thread silently
                call.set_exception(error)

        threading.Thread(target=work, name=f"hook {label}", daemon=True).start()
        try:
            return call.result(self._seconds)
        except TimeoutError:
            if call.done():  # it is the hook's own
                raise
            self._late[label] = call
            raise HookError(f"it took longer than {self._seconds:g} s") from None

    def _in_order(self, hook: str) -> list[pluggy.HookImpl]:
        """pluggy calls the last one first."""
        caller: pluggy.HookCaller = getattr(self._manager.hook, hook)
        return caller.get_hookimpls()[::-1]


def check_hook(function: Callable[..., Any]) -> None:
    """Raise HookError unless `function`, which is marked, can be a hook."""
    name = function.__name__
    hook = getattr(function, f"{PROJECT}_impl").get("specname") or name
    if hook not in ARGUMENTS:
        raise HookError(f"{name} names no hook; there are {', '.join(ARGUMENTS)}")
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_kind(function) for is_kind in kinds):
        raise HookError(f"{name} must be a plain function: no `async`, no `yield`")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in ARGUMENTS[hook] and parameter.default is parameter.empty:
            asks = f"{name} asks for {parameter.name!r}"
            raise HookError(f"{asks}; {hook} gives {', '.join(ARGUMENTS[hook])}")


def changed_value(made: Any, given: Any, label: str) -> Any:
    """What the hook `label` `made`, to take the place of `given`. Raises HookError."""
    kind = type(given)
    if not isinstance(made, kind):
        raise HookError(f"it gave back {type(made).__name__} instead of {kind.__name__} or None")
    if isinstance(made, str):
        return well_formed(made)
    for field in fields(made) if is_dataclass(made) else ():
        value, before = getattr(made, field.name), getattr(given, field.name)
        if element := ELEMENTS.get(field.name):
            fits = isinstance(value, tuple) and all(isinstance(one, element) for one in value)
        elif value is None or before is None:
            fits = field.default is None or value is not None
        else:
            fits = callable(value) if callable(before) else isinstance(value, type(before))
        if not fits:
            raise HookError(f"{kind.__name__}.{field.name} cannot be {type(value).__name__}")
    if not isinstance(made, PolicyDecision):
        return made
    for what, name, names in (("reply", made.reply, REPLIES), ("intent", made.intent, INTENTS)):
        if name not in names:
            raise HookError(f"there is no such {what}; there are {', '.join(filter(None, names))}")
    return replace(made, rules=(*made.rules, f"hook {label}"))


def explain_error(error: BaseException) -> str:
    """What went wrong, and the last line of the plugin on the way there: `KeyError at name.py:12`.

    Nothing of the text of an error that is not ours: that may quote anything.
    """
    if isinstance(error, HookError):
        return str(error)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__} at {Path(error.filename).name}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _ours(frame)]
    last = [frame for frame in frames if frame.filename == frames[0].filename][-1:]
    place = "".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in last) or "?"
    return f"{type(error).__name__} at {place}"


def _ours(frame: traceback.FrameSummary) -> bool:
    """Whether it is on the way to the plugin: this package's, an import, the thread's."""
    path = Path(frame.filename)
    on_the_way = {"importlib", "metadata", "concurrent"} & set(path.parts)
    return path.parent == Path(__file__).parent or path.name[:1] == "<" or bool(on_the_way)
