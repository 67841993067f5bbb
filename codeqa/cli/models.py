"""`codeqa models`: show and choose the language model."""

from __future__ import annotations

import sys

import click

from codeqa.cli.command import command, debug_option, examples_text, json_option
from codeqa.cli.console import format_table, print_either, print_json
from codeqa.errors import CodeQAError, UsageError
from codeqa.llm.models import SOURCES, Models
from codeqa.llm.providers import NO_MODEL, PROVIDERS, ModelChoice, parse_choice
from codeqa.settings import load_settings


@click.group(
    "models",
    invoke_without_command=True,
    epilog=examples_text(
        [
            "codeqa models                                    providers, and the model in use",
            "codeqa models use ollama/qwen3",
            "codeqa models use openai/gpt-4o --key-stdin < key.txt",
            "codeqa models none",
        ]
    ),
)
@debug_option
@json_option
@click.pass_context
def models_command(context: click.Context, as_json: bool) -> None:
    """Show or choose the language model that answers.

    A key in the environment, such as OPENAI_API_KEY, is used once its provider is chosen.
    """
    if context.invoked_subcommand is None:
        _show(Models(load_settings()), as_json)


@command(
    "use",
    [
        "codeqa models use ollama/qwen3",
        "codeqa models use openai/gpt-4o --key-stdin < key.txt",
        "codeqa models use custom/my-model --url http://127.0.0.1:8000/v1",
    ],
    group=models_command,
)
@click.argument("model", metavar="PROVIDER/NAME")
@click.option("--url", default="", help="Address to use instead of the provider's own.")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input and save it.")
@json_option
def use_command(model: str, url: str, key_stdin: bool, as_json: bool) -> None:
    """Use this model from now on, on the page and in the terminal."""
    models = Models(load_settings())
    if model == NO_MODEL:
        models.choose(None)
        print_either(as_json, {"model": ""}, "No model is used; nothing is sent anywhere.")
        return
    choice = parse_choice(model, url)
    key = _read_key() if key_stdin else ""
    host = models.address(choice, key).host
    models.choose(choice, key)
    sentence = f"Questions, and the code they need, now go to {choice} at {host}."
    print_either(as_json, {"model": str(choice), "host": host}, sentence)


@command("none", ["codeqa models none"], group=models_command)
@json_option
@click.pass_context
def none_command(context: click.Context, as_json: bool) -> None:
    """Use no model: nothing is sent anywhere."""
    context.invoke(use_command, model=NO_MODEL, as_json=as_json)


def _show(models: Models, as_json: bool) -> None:
    providers = []
    for provider in PROVIDERS:
        choice, model = ModelChoice(provider.name, provider.chat_model), provider.chat_model or "-"
        key, address = models.key_state(choice), models.base_url(choice)
        providers.append({"provider": provider.name, "model": model, "key": key, "at": address})
    current = models.current()
    if as_json:
        in_use = {"model": str(current or ""), "source": models.source()}
        print_json({"providers": providers, "in_use": in_use})
        return
    rows = [list(provider.values()) for provider in providers]
    click.echo(format_table(("provider", "model by default", "key", "at"), rows))
    if current is None:
        click.echo(
            "\nNo model is used: answers are quotations of the code.\n"
            "Choose one: codeqa models use provider/name",
            err=True,
        )
    else:
        try:
            host = models.address(current).host
        except CodeQAError as error:  # its key is missing
            host = error.message
        click.echo(f"\nIn use: {current} at {host} ({SOURCES[models.source()]})", err=True)


def _read_key() -> str:
    """Read the key from stdin, or from the terminal without echo. Raises UsageError for none."""
    if sys.stdin.isatty():
        key = click.prompt("Key", hide_input=True, err=True)
    else:
        key = sys.stdin.readline()
    if not key.strip():
        raise UsageError("Standard input holds no key.", "Pass the key as one line.")
    return str(key)
