"""The prompts that CodeQA sends, each a file `<name>.md` in this folder.

A prompt is a `string.Template`: `$name` is a variable, `$$` a dollar sign. A file
`prompts/<name>.md` in the user's configuration folder replaces it; none in a repository does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template

from codeqa.errors import SettingsError, UsageError

BUILT_IN = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's name and purpose."""

    name: str
    purpose: str
    strict: bool = True
    """An override must use all variables."""

    @property
    def text(self) -> str:
        return (BUILT_IN / f"{self.name}.md").read_text(encoding="utf-8")

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(Template(self.text).get_identifiers())


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt("chat_system", "system message of every answer"),
        Prompt("mode_explain", "what explaining asks for"),
        Prompt("mode_locate", "what locating asks for"),
        Prompt("mode_review", "what a review asks for"),
        Prompt("mode_plan", "what planning asks for"),
        Prompt("mode_change", "what changing asks for"),
        Prompt("no_context", "added while no code is at hand"),
        Prompt("nothing_found", "added when a search finds nothing"),
        Prompt("general", "a message that needs no code"),
        Prompt("strict", "added when only what the code shows may be said"),
        Prompt("look", "added to the system message when the model may call tools"),
        Prompt("look_lines", "the same for a model that writes its calls as lines"),
        Prompt("hyde_system", "first draft: predict code from the question"),
        Prompt("hyde_user", "first draft: the question"),
        Prompt("hyde_v2_system", "second draft: sharpen with context", strict=False),
        Prompt("hyde_v2_user", "second draft: context and first draft"),
        Prompt("review_system", "review of an issue: what to find out, and its shape"),
        Prompt("review_user", "review of an issue: the issue"),
        Prompt("llm_comment", "description of one method", strict=False),
        Prompt("title", "title of a conversation, once its first answer is complete"),
        Prompt("understand", "what a message is for, whether it leaves the topic, made complete"),
    )
}


def override_path(name: str, config_dir: Path) -> Path:
    """Return the file that replaces the prompt `name` where it exists."""
    return config_dir / "prompts" / f"{name}.md"


def prompt_text(name: str, config_dir: Path | None = None) -> tuple[str, Path | None]:
    """Return the text of `name` and the file that overrides it, None for the built-in text.

    Raises UsageError for an unknown name, SettingsError for an override that cannot be used.
    """
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise UsageError(f"There is no prompt {name!r}.", f"Known: {', '.join(PROMPTS)}.")
    path = override_path(name, config_dir) if config_dir else None
    if path is None or not path.exists():
        return prompt.text, None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The prompt override {path} cannot be read: {error}.", "Correct or remove it."
        ) from None
    problem = _problem(prompt, Template(text))
    if problem:
        variables = ", ".join(f"${name}" for name in prompt.variables) or "none"
        raise SettingsError(f"The prompt override {path} {problem}.", f"Variables: {variables}.")
    return text, path


def render_prompt(name: str, config_dir: Path | None = None, **variables: str) -> str:
    """Fill in the prompt `name`. Raises UsageError for a missing variable."""
    text, _ = prompt_text(name, config_dir)
    try:
        return Template(text).substitute(variables)
    except KeyError as error:
        raise UsageError(
            f"The prompt {name} needs the variable {error.args[0]!r}.", "Pass it to render_prompt."
        ) from None


def _problem(prompt: Prompt, template: Template) -> str:
    """Return why `template` cannot replace `prompt`, '' where it can."""
    if not template.is_valid():
        return "has a stray $ (write $$)"
    names = template.get_identifiers()
    for name in names:
        if name not in prompt.variables:
            return f"has unknown variable ${name}"
    for name in prompt.variables:
        if prompt.strict and name not in names:
            return f"leaves out ${name}"
    return ""
