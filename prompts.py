"""List or print the prompts that CodeQA sends: `python prompts.py [name]`."""

from __future__ import annotations

import sys

import click

from codeqa.cli.command import front_door
from codeqa.prompts import (
    CHANGE_PROMPT,
    CHAT_SYSTEM_PROMPT,
    EXPLAIN_PROMPT,
    HYDE_SYSTEM_PROMPT,
    HYDE_USER_PROMPT,
    HYDE_V2_SYSTEM_PROMPT,
    HYDE_V2_USER_PROMPT,
    LLM_COMMENT_PROMPT,
    LOCATE_PROMPT,
    NO_CONTEXT_PROMPT,
    NOTHING_FOUND_PROMPT,
    PLAN_PROMPT,
    PROMPTS,
    REVIEW_PROMPT,
    override_path,
    prompt_text,
    render_prompt,
)
from codeqa.settings import load_settings

__all__ = [
    "CHANGE_PROMPT",
    "CHAT_SYSTEM_PROMPT",
    "EXPLAIN_PROMPT",
    "HYDE_SYSTEM_PROMPT",
    "HYDE_USER_PROMPT",
    "HYDE_V2_SYSTEM_PROMPT",
    "HYDE_V2_USER_PROMPT",
    "LLM_COMMENT_PROMPT",
    "LOCATE_PROMPT",
    "NOTHING_FOUND_PROMPT",
    "NO_CONTEXT_PROMPT",
    "PLAN_PROMPT",
    "REVIEW_PROMPT",
    "main",
    "render_prompt",
]


@front_door(
    "prompts.py",
    [
        "python prompts.py                list all prompts",
        "python prompts.py chat_system    print one",
    ],
)
@click.argument("name", required=False)
def main(name: str | None) -> None:
    """List every prompt and where an override was looked for, or print the prompt NAME.

    A file prompts/NAME.md in your configuration folder replaces the prompt NAME.
    """
    config_dir = load_settings().config_dir
    if name:
        print(prompt_text(name, config_dir)[0], end="")
        return
    width = max(map(len, PROMPTS))
    for prompt in PROMPTS.values():
        _, path = prompt_text(prompt.name, config_dir)
        variables = " ".join(f"${variable}" for variable in prompt.variables)
        note = f"  [{variables}]" if variables else ""
        print(f"{prompt.name:<{width}}  {prompt.purpose}{note}")
        print(f"{'':<{width}}  {f'replaced by {path}' if path else 'built in'}")
    print(f"\nOverrides are looked for in {override_path('NAME', config_dir)}")


if __name__ == "__main__":
    sys.exit(main())
