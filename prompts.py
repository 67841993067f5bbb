"""List or print the prompts that CodeQA sends: `python prompts.py [name]`.

Programs import the prompts below as texts for `str.format`, with the fields `{query}`,
`{hyde_query}` and `{temp_context}`.
"""

from __future__ import annotations

import sys
from string import Template

try:
    import click

    from codeqa.cli.command import front_door
    from codeqa.prompts import PROMPTS, override_path, prompt_text, render_prompt
    from codeqa.settings import load_settings
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: run `make setup`, then .venv/bin/python prompts.py")

__all__ = [
    "CHAT_SYSTEM_PROMPT", "HYDE_SYSTEM_PROMPT", "HYDE_USER_PROMPT", "HYDE_V2_SYSTEM_PROMPT",
    "HYDE_V2_USER_PROMPT", "main", "render_prompt",
]  # fmt: skip


def format_string(name: str) -> str:
    """Return the prompt `name` for `str.format`: `{query}` for `$query`, `{{` for a brace."""
    text = PROMPTS[name].text.replace("{", "{{").replace("}", "}}")
    fields = {variable: f"{{{variable}}}" for variable in PROMPTS[name].variables}
    return Template(text).substitute(fields)


CHAT_SYSTEM_PROMPT = format_string("chat_system")
HYDE_SYSTEM_PROMPT = format_string("hyde_system")
HYDE_USER_PROMPT = format_string("hyde_user")
HYDE_V2_SYSTEM_PROMPT = format_string("hyde_v2_system") + "\nFragments:\n{temp_context}\n"
"""With the fragments for `.format(query=…, temp_context=…)`; CodeQA itself sends them in the user
message, where nothing in them is taken for an instruction."""
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
    """List every prompt and where overrides are looked for, or print the prompt NAME.

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
    print(f"\nYour own prompts belong in {override_path('NAME', config_dir)}")


if __name__ == "__main__":
    sys.exit(main())
