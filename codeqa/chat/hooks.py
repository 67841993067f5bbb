"""Hooks: three moments of a turn at which a plugin may change what is done, and where plugins lie.

docs/hooks.md is the manual. pluggy keeps the hooks and their order; they are called one after the
other here, because each is given what the one before it made. Nothing that lies in an indexed
repository is executed, nor anything in the git work tree around it: whoever wrote that may be
anybody.
"""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pluggy

from codeqa.chat.values import Gathered
from codeqa.environment import with_home
from codeqa.errors import SettingsError
from codeqa.routing.intents import Intent
from codeqa.routing.policy import Features, PolicyDecision
from codeqa.settings import Settings
from codeqa.store import list_locations
from codeqa.text.tokens import well_formed

PROJECT = "codeqa"
"""Name under which pluggy knows these hooks; a hook carries the attribute `codeqa_impl`."""

Value = TypeVar("Value")

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

log = logging.getLogger(__name__)


class HookError(Exception):
    """Why a hook or a plugin cannot be used, in words."""


class HookSpecs:
    """What each hook is given, in the order of a turn; it declares those of the arguments that it
    wants. The first one goes from hook to hook."""

    @hookspec
    def policy_override(
        self, decision: PolicyDecision, features: Features, intent: Intent, question: str
    ) -> PolicyDecision | None:
        """After the rules of the policy and before anything is looked up."""

    @hookspec
    def before_generation(self, asked: Gathered) -> Gathered | None:
        """Before the answer is written: `asked` is all that it may draw on."""

    @hookspec
    def after_generation(self, text: str, asked: Gathered) -> str | None:
        """After the answer was written: the text as it is kept."""


ARGUMENTS = {
    name: tuple(inspect.signature(function).parameters)[1:]
    for name, function in vars(HookSpecs).items()
    if not name.startswith("_")
}
"""Hook → the names of what it is given."""


class Hooks:
    """The hooks of one engine; nothing is shared with another.

    Its decorators (`@Hooks.before_generation`, with or without `tryfirst` and `trylast`) mark a
    function for whoever loads its module.
    """

    policy_override = staticmethod(partial(hookimpl, specname="policy_override"))
    before_generation = staticmethod(partial(hookimpl, specname="before_generation"))
    after_generation = staticmethod(partial(hookimpl, specname="after_generation"))

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(HookSpecs)
        self.skipped: tuple[str, ...] = ()
        """Plugins that were found and left out, a sentence each."""

    def add(self, plugin: object, name: str) -> None:
        """Register the marked functions of `plugin`, a module for example, to be called before
        those that are there. Raises HookError when there is none, or one that cannot be a hook."""
        try:
            self._manager.register(plugin, name)
            self._manager.check_pending()
            if not self._manager.get_hookcallers(plugin):
                raise HookError("it defines no hook")
        except (HookError, pluggy.PluginValidationError) as error:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise HookError(str(error).splitlines()[-1]) from None

    def names(self, hook: str) -> tuple[str, ...]:
        """`file:function` of everything that implements `hook`, in the order of calling."""
        return tuple(label for label, _ in self._in_order(hook))

    def run(self, hook: str, value: Value, **given: Any) -> tuple[Value, tuple[str, ...]]:
        """What became of `value`, which goes from one hook to the next, and a sentence for each
        that was left out. `given` is what the hook may ask for beside it.

        Whatever changes a decision of the policy is named among its rules, as `hook <name>`.
        """
        problems: list[str] = []
        for label, one in self._in_order(hook):
            everything = {ARGUMENTS[hook][0]: value, **given}
            try:
                made = one.function(*(everything[name] for name in one.argnames))
                if made is not None and made != value:
                    value = changed_value(made, value, label)
            except (Exception, SystemExit) as error:
                problem = explain_error(error, inspect.getfile(one.function))
                log.warning("the hook %s (%s) was left out: %s", label, hook, problem)
                problems.append(f"The hook {label} ({hook}) was left out: {problem}.")
        return value, tuple(problems)

    def _in_order(self, hook: str) -> list[tuple[str, pluggy.HookImpl]]:
        """Labels and functions, of which two may share a label; pluggy calls the last one first."""
        found = getattr(self._manager.hook, hook).get_hookimpls()[::-1]
        return [(f"{one.plugin_name}:{one.function.__name__}", one) for one in found]


def changed_value(made: Any, given: Any, label: str) -> Any:
    """What the hook `label` `made`, to take the place of `given`. Raises HookError."""
    kind = type(given)
    if not isinstance(made, kind):
        raise HookError(f"it returned {type(made).__name__} instead of {kind.__name__} or None")
    if isinstance(made, PolicyDecision):
        return replace(made, rules=(*made.rules, f"hook {label}"))
    return well_formed(made) if isinstance(made, str) else made


def explain_error(error: BaseException, file: str) -> str:
    """What went wrong, and the last line of the plugin's `file` on the way there: `KeyError at
    name.py:12`.

    Nothing of the text of an error that is not ours: that may quote anything.
    """
    if isinstance(error, HookError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    lines: list[Any] = [frame.lineno for frame in frames if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    return f"{type(error).__name__} at {Path(file).name}:{lines[-1] if lines else '?'}"


# Plugins.


def load_hooks(settings: Settings, repository: Path | None = None) -> Hooks:
    """The hooks of the files in the folder that `CODEQA_PLUGINS` names.

    `repository` is about to be opened and counts as indexed. Raises SettingsError for a folder
    that cannot be used; a file that cannot is left out and told by `Hooks.skipped`.
    """
    hooks = Hooks()
    if not settings.plugins:
        return hooks
    skipped: list[str] = []
    trees = _indexed_trees(settings, repository)
    files = _usable_folder(settings.plugins, trees).glob("*.py")
    for file in sorted(files, reverse=True):  # what pluggy is given last it calls first
        if not file.is_file():
            continue
        try:
            if _around(file, trees):
                raise HookError("its link leads into an indexed repository")
            hooks.add(_execute(file), file.name)
        except (Exception, SystemExit) as error:
            why = explain_error(error, str(file))
            log.warning("the plugin %s was left out: %s", file.name, why)
            skipped.append(f"The plugin {file.name} was left out: {why}.")
    hooks.skipped = tuple(skipped)
    return hooks


def _indexed_trees(settings: Settings, repository: Path | None) -> list[Path]:
    """Every indexed repository with the work tree around it, as real paths."""
    roots = [location.root.resolve() for location in list_locations(settings)]
    roots += [with_home(repository).resolve()] if repository else []
    return [
        next((one for one in (root, *root.parents) if (one / ".git").exists()), root)
        for root in roots
    ]


def _usable_folder(given: str, trees: Sequence[Path]) -> Path:
    folder = with_home(Path(given)).resolve()
    if not folder.is_dir():
        raise SettingsError(
            f"CODEQA_PLUGINS names {given}, which is not a folder.",
            "Create the folder, or correct or unset the setting.",
        )
    if tree := _around(folder, trees):
        raise SettingsError(
            f"The plugin folder {folder} lies in the repository {tree}, which is indexed.",
            "Move it elsewhere: nothing of an indexed repository is ever executed.",
        )
    return folder


def _around(place: Path, trees: Sequence[Path]) -> Path | None:
    """The tree that `place` lies in, links followed."""
    real = place.resolve()
    return next((tree for tree in trees if real.is_relative_to(tree)), None)


def _execute(path: Path) -> ModuleType:
    """A file, executed as a module of its own; it writes no byte code beside it."""
    module = ModuleType(f"codeqa_plugin_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look up annotations
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    return module
