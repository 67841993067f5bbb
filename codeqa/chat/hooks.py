"""Hooks: three moments of a turn at which a plugin may change it; and loading of plugins.

docs/hooks.md is the manual. pluggy keeps the hooks and their order, but they are called here one
after the other, because each gets the result of the one before. No file in an indexed repository
is ever executed, nor in the git work tree around it: anybody may have written it.
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
"""Name of these hooks in pluggy; a hook function has the attribute `codeqa_impl`."""

Value = TypeVar("Value")

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

log = logging.getLogger(__name__)


class HookError(Exception):
    """The reason why a hook or plugin cannot be used."""


class HookSpecs:
    """The hooks in the order of a turn, with their arguments.

    A plugin's hook declares only the arguments that it needs. The first one goes from hook to hook.
    """

    @hookspec
    def policy_override(
        self, decision: PolicyDecision, features: Features, intent: Intent, question: str
    ) -> PolicyDecision | None:
        """Change the decision of the policy, before anything is looked up."""

    @hookspec
    def before_generation(self, asked: Gathered) -> Gathered | None:
        """Change what the answer is made from, before it is written."""

    @hookspec
    def after_generation(self, text: str, asked: Gathered) -> str | None:
        """Change the text of a complete answer, before it is stored."""


ARGUMENTS = {
    name: tuple(inspect.signature(function).parameters)[1:]
    for name, function in vars(HookSpecs).items()
    if not name.startswith("_")
}
"""Hook → names of its arguments."""


class Hooks:
    """The hooks of one engine.

    The decorators (`@Hooks.before_generation`, with or without `tryfirst` and `trylast`) mark a
    function as a hook.
    """

    policy_override = staticmethod(partial(hookimpl, specname="policy_override"))
    before_generation = staticmethod(partial(hookimpl, specname="before_generation"))
    after_generation = staticmethod(partial(hookimpl, specname="after_generation"))

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(HookSpecs)
        self.skipped: tuple[str, ...] = ()
        """Sentences on plugins that could not be loaded."""

    def add(self, plugin: object, name: str) -> None:
        """Register the marked functions of `plugin`, such as a module, before the existing hooks.

        Raises HookError if there is none, or if one cannot be a hook.
        """
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
        """Return `file:function` of everything that implements `hook`, in the order of calling."""
        return tuple(label for label, _ in self._in_order(hook))

    def run(self, hook: str, value: Value, **others: Any) -> tuple[Value, tuple[str, ...]]:
        """Pass `value` from one hook to the next; return the last value and sentences on problems.

        `others` are the further arguments. A hook that changes a decision of the policy is named
        among its rules, as `hook <name>`. One that fails is skipped.
        """
        problems: list[str] = []
        for label, implementation in self._in_order(hook):
            arguments = {ARGUMENTS[hook][0]: value, **others}
            function = implementation.function
            try:
                result = function(*(arguments[name] for name in implementation.argnames))
                if result is not None and result != value:
                    value = changed_value(result, value, label)
            except (Exception, SystemExit) as error:
                problem = explain_error(error, inspect.getfile(function))
                log.warning("the hook %s (%s) was skipped: %s", label, hook, problem)
                problems.append(f"The hook {label} ({hook}) was skipped: {problem}.")
        return value, tuple(problems)

    def _in_order(self, hook: str) -> list[tuple[str, pluggy.HookImpl]]:
        """Return labels and hooks in the order of calling; two may have the same label."""
        latest_first = getattr(self._manager.hook, hook).get_hookimpls()[::-1]
        return [(f"{impl.plugin_name}:{impl.function.__name__}", impl) for impl in latest_first]


def changed_value(result: Any, value: Any, label: str) -> Any:
    """Return the `result` of the hook `label`, which replaces `value`. Raises HookError."""
    kind = type(value)
    if not isinstance(result, kind):
        raise HookError(f"it returned {type(result).__name__} instead of {kind.__name__} or None")
    if isinstance(result, PolicyDecision):
        return replace(result, rules=result.rules + (f"hook {label}",))
    return well_formed(result) if isinstance(result, str) else result


def explain_error(error: BaseException, file: str) -> str:
    """Return the kind of an error and the plugin's line that led to it: `KeyError at name.py:12`.

    The text of an error that is not ours is left out, as it may quote anything.
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
    """Return the hooks of the plugins in the folder that `CODEQA_PLUGINS` names.

    `repository` is about to be opened and counts as indexed. Raises SettingsError for a folder
    that cannot be used; files that cannot be used are listed in `Hooks.skipped`.
    """
    hooks = Hooks()
    if not settings.plugins:
        return hooks
    skipped: list[str] = []
    trees = _indexed_trees(settings, repository)
    files = _usable_folder(settings.plugins, trees).glob("*.py")
    for file in sorted(files, reverse=True):  # pluggy calls the plugin added last first
        if not file.is_file():
            continue
        try:
            if _around(file, trees):
                raise HookError("it is a link into an indexed repository")
            hooks.add(_execute(file), file.name)
        except (Exception, SystemExit) as error:
            problem = explain_error(error, str(file))
            log.warning("the plugin %s was skipped: %s", file.name, problem)
            skipped.append(f"The plugin {file.name} was skipped: {problem}.")
    hooks.skipped = tuple(skipped)
    return hooks


def _indexed_trees(settings: Settings, repository: Path | None) -> list[Path]:
    """Return the real path of each indexed repository, or of the work tree around it."""
    roots = [location.root.resolve() for location in list_locations(settings)]
    if repository:
        roots.append(with_home(repository).resolve())
    return [_work_tree(root) for root in roots]


def _work_tree(root: Path) -> Path:
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


def _usable_folder(path: str, trees: Sequence[Path]) -> Path:
    folder = with_home(Path(path)).resolve()
    if not folder.is_dir():
        raise SettingsError(
            f"CODEQA_PLUGINS names {path}, which is not a folder.",
            "Create the folder, or correct or unset the setting.",
        )
    if tree := _around(folder, trees):
        raise SettingsError(
            f"The plugin folder {folder} is inside the indexed repository {tree}.",
            "Move it elsewhere: CodeQA never executes files of an indexed repository.",
        )
    return folder


def _around(path: Path, trees: Sequence[Path]) -> Path | None:
    """Return the tree around the real path of `path`, if there is one."""
    real = path.resolve()
    return next((tree for tree in trees if real.is_relative_to(tree)), None)


def _execute(path: Path) -> ModuleType:
    """Execute a file as a module and return that; no byte code is written next to it."""
    module = ModuleType(f"codeqa_plugin_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look up annotations
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    return module
