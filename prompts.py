"""List or print the prompts that CodeQA sends: `python prompts.py [name]`.

To a program they are texts for `str.format`, with the fields `{query}`, `{hyde_query}` and
`{temp_context}`, and `{question}` where one is put in the middle.
"""

from __future__ import annotations

import re
import sys

import click

from codeqa.cli.command import front_door
from codeqa.prompts import PROMPTS, override_path, prompt_text, render_prompt
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


_VARIABLE = re.compile(r"\$(?:\$|([_a-z][_a-z0-9]*))", re.IGNORECASE)


def format_string(template: str) -> str:
    """`template` for `str.format`: `{name}` for `$name`, and braces that mean themselves."""
    literal = template.replace("{", "{{").replace("}", "}}")
    return _VARIABLE.sub(lambda found: f"{{{found[1]}}}" if found[1] else "$", literal)


def _formatted(name: str) -> str:
    return format_string(PROMPTS[name].text)


CHAT_SYSTEM_PROMPT = _formatted("chat_system")
EXPLAIN_PROMPT = _formatted("mode_explain")
LOCATE_PROMPT = _formatted("mode_locate")
REVIEW_PROMPT = _formatted("mode_review")
PLAN_PROMPT = _formatted("mode_plan")
CHANGE_PROMPT = _formatted("mode_change")
NO_CONTEXT_PROMPT = _formatted("no_context")
NOTHING_FOUND_PROMPT = _formatted("nothing_found")
LLM_COMMENT_PROMPT = _formatted("llm_comment")
HYDE_SYSTEM_PROMPT = _formatted("hyde_system")
HYDE_USER_PROMPT = _formatted("hyde_user")
HYDE_V2_SYSTEM_PROMPT = _formatted("hyde_v2_system") + "\nFragments:\n{temp_context}\n"
"""With the fragments, as `.format(query=…, temp_context=…)` expects; CodeQA itself sends them in
the user message, where nothing in them is taken for an instruction."""
HYDE_V2_USER_PROMPT = "Predict the answer to the query: {hyde_query}"


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
