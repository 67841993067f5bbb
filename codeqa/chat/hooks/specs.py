"""The four hooks of a turn: what each is given, what it may give back, and how that is checked.

A hook gives back a changed value, made with `dataclasses.replace`, or None to leave it as it is
(S3.16, S3.22, S3.24).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import pluggy

from codeqa.chat.policy import REPLIES, PolicyDecision
from codeqa.extractive.generator import Asked, Exchange
from codeqa.intents import INTENTS, Intent
from codeqa.types import Chunk

if TYPE_CHECKING:
    from codeqa.chat.features import Features

PROJECT = "codeqa"
"""Name under which pluggy knows these hooks; a hook carries the attribute `codeqa_impl`."""

Function = TypeVar("Function", bound=Callable[..., Any])

spec = pluggy.HookspecMarker(PROJECT)
mark = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found for a question, before it is packed: chunks by rank, and past answers."""

    question: str
    """As it was searched for: without tag and mode, a follow-up made complete."""
    chunks: tuple[Chunk, ...] = ()
    similar: tuple[Exchange, ...] = ()
    """Earlier questions like this one, with their answers, the most similar first."""


class Specs:
    """Names and arguments; a hook declares those of its arguments that it wants."""

    @spec
    def policy_override(
        self, decision: PolicyDecision, features: Features, intent: Intent, question: str
    ) -> PolicyDecision | None:
        """After the rules of the policy and before anything is looked up."""

    @spec
    def after_retrieval(self, retrieved: Retrieved) -> Retrieved | None:
        """After a search, before what it found is packed."""

    @spec
    def before_generation(self, asked: Asked) -> Asked | None:
        """Before the answer is written: `asked` is all that it may draw on."""

    @spec
    def after_generation(self, text: str, asked: Asked) -> str | None:
        """After the answer was written: the text as it is kept."""


class Registry(Protocol):
    """What registers a marked function."""

    def add_function(self, function: Callable[..., Any]) -> None: ...


class Decorator:
    """`@Hooks.before_generation` marks a function for the manager that loads its module;
    `@hooks.before_generation`, of an instance, registers it there at once."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, hooks: Registry | None, owner: type) -> _Marking:
        return _Marking(self._name, hooks)


class _Marking:
    """A decorator, with or without arguments."""

    def __init__(self, name: str, hooks: Registry | None) -> None:
        self._name = name
        self._hooks = hooks

    @overload
    def __call__(self, function: Function) -> Function: ...
    @overload
    def __call__(
        self, *, tryfirst: bool = False, trylast: bool = False
    ) -> Callable[[Function], Function]: ...
    def __call__(
        self, function: Any = None, *, tryfirst: bool = False, trylast: bool = False
    ) -> Any:
        def decorate(function: Function) -> Function:
            marker = mark(specname=self._name, tryfirst=tryfirst, trylast=trylast)
            marked = marker(function)
            if self._hooks is not None:
                self._hooks.add_function(marked)
            return marked

        return decorate if function is None else decorate(function)


HOOKS: dict[str, tuple[str, type]] = {
    "policy_override": ("decision", PolicyDecision),
    "after_retrieval": ("retrieved", Retrieved),
    "before_generation": ("asked", Asked),
    "after_generation": ("text", str),
}
"""Name of each hook, in the order of a turn; the argument that goes from one hook to the next,
and its type."""

ELEMENTS = {"rules": str, "chunks": Chunk, "similar": Exchange, "history": Exchange}
"""Fields that are tuples, and what they hold."""


def unfit(function: Callable[..., Any]) -> str:
    """Why `function`, which is marked, cannot be a hook; '' when it can."""
    marked = getattr(function, f"{PROJECT}_impl")
    name = function.__name__
    hook = marked.get("specname") or name
    if hook not in HOOKS:
        return f"{name} names no hook; there are {', '.join(HOOKS)}"
    if marked.get("wrapper") or marked.get("hookwrapper"):
        return f"{name} is a wrapper, which these hooks cannot be"
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_kind(function) for is_kind in kinds):
        return f"{name} must be a plain function: no `async`, no `yield`"
    known = list(inspect.signature(getattr(Specs, hook)).parameters)[1:]
    for parameter in inspect.signature(function).parameters.values():
        needed = parameter.default is parameter.empty
        if parameter.name not in known and needed:
            return f"{name} asks for {parameter.name!r}; {hook} gives {', '.join(known)}"
    return ""


def wrong(hook: str, made: Any, given: Any) -> str:
    """Why `made`, which a hook gave back for `given`, cannot be used; '' when it can."""
    kind = HOOKS[hook][1]
    if not isinstance(made, kind):
        return f"it gave back {type(made).__name__} instead of {kind.__name__} or None"
    if not is_dataclass(made):
        return ""
    for field in fields(made):
        value, before = getattr(made, field.name), getattr(given, field.name)
        if not _fits(field, value, before):
            return f"{kind.__name__}.{field.name} cannot be {type(value).__name__}"
    if isinstance(made, PolicyDecision):
        if made.reply not in REPLIES:
            return f"there is no such reply; there are {', '.join(filter(None, REPLIES))}"
        if made.intent not in INTENTS:
            return f"there is no such intent; there are {', '.join(INTENTS)}"
    return ""


def _fits(field: Field[Any], value: Any, before: Any) -> bool:
    """Whether `value` may stand in `field`, where `before` stood."""
    if field.name in ELEMENTS:
        kind = ELEMENTS[field.name]
        return isinstance(value, tuple) and all(isinstance(one, kind) for one in value)
    if value is None:
        return field.default is None
    if before is None:
        return True
    return callable(value) if callable(before) else isinstance(value, type(before))
