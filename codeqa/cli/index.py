"""`codeqa index`, and with `--comments` the estimate, the consent and the descriptions."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from pathlib import Path

import click

from codeqa.cli.command import (
    command,
    folder_of,
    json_option,
    model_option,
    repo_argument,
    rev_option,
)
from codeqa.cli.console import ProgressDisplay, print_json, print_summary
from codeqa.cli.repos import chosen_repositories
from codeqa.errors import UsageError
from codeqa.extensions import load_extension
from codeqa.indexing import Indexer
from codeqa.indexing.method_descriptions import (
    MAX_TOKENS,
    TYPICAL_TOKENS,
    DescriptionPlan,
    add_descriptions,
    plan_descriptions,
)
from codeqa.llm.client import Model
from codeqa.llm.models import Models
from codeqa.repositories import clone_location, open_location, report_on, take_clone
from codeqa.repositories.snapshots import take_snapshot
from codeqa.repository.remotes import Remote, looks_remote, read_remote
from codeqa.settings import Settings, load_settings
from codeqa.store import Location


# Long by its options, each of which is a parameter.
@command(
    "index",
    [
        "codeqa index                    the repository of the current folder",
        "codeqa index ~/src/flask        another one; later runs read only changed files",
        "codeqa index ~/src/flask --full build everything anew",
        "codeqa index --rev v2.3         the code at that tag, as an index of its own",
        "codeqa index https://github.com/pallets/flask    a clone in the data folder",
        "codeqa index --comments         and let the chosen language model describe the methods",
    ],
)
@repo_argument
@rev_option
@click.option("--branch", metavar="NAME", help="With an address: the branch or tag to clone.")
@click.option("--full", is_flag=True, help="Read every file again and build a new index.")
@click.option(
    "--no-refine",
    is_flag=True,
    help="Do not compute vectors of the chosen embedding now.",
)
@click.option(
    "--comments",
    is_flag=True,
    help="Let a language model describe each method in two or three lines, which are searched with "
    "the code. Before anything is sent, it says what goes where and asks.",
)
@click.option(
    "--engine",
    metavar="ray[=HOST:PORT]",
    help="Build with Ray, here or on that cluster (extra `cluster`). REPO may be a file with one "
    "folder per line.",
)
@click.option("--no-wait", is_flag=True, help="Fail if another run is writing the index.")
@model_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --comments: describe at most N more methods.",
)
@click.option("--yes", is_flag=True, help="With --comments: send without asking.")
@json_option
def index_command(
    repo: str | None,
    rev: str,
    branch: str | None,
    full: bool,
    no_refine: bool,
    engine: str | None,
    no_wait: bool,
    comments: bool,
    model: str,
    limit: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Index a repository, or bring its index up to date.

    REPO may be an https or ssh address, which is cloned; `codeqa sync` fetches later commits.
    """
    if not comments and (model or limit or yes):
        raise UsageError("--model, --limit and --yes need --comments.", "Add --comments.")
    if comments and as_json:
        raise UsageError("--comments and --json cannot be combined.", "Leave one out.")
    builder = load_extension("ray_builder", "cluster")(engine) if engine else None
    if builder is not None and repo and Path(repo).is_file():
        if rev or branch or comments or as_json:
            raise UsageError(
                f"{repo} is a list, and --rev, --branch, --comments and --json are for one "
                "repository.",
                "Leave them out, or give the folder of one.",
            )
        how = {"refine": not no_refine, "full": full, "wait": not no_wait}
        load_extension("index_list", "cluster")(Path(repo), builder, how)
        return
    root = _root(repo, branch)
    settings = load_settings(root)
    location = open_location(settings, root, anew=True)
    if rev:
        location = take_snapshot(settings, location, rev)
    indexer = Indexer(settings, location)
    with contextlib.closing(Models(settings)) as models, ProgressDisplay() as show:
        describer = _model_for_descriptions(models, model, yes) if comments else None
        refine = not no_refine and not comments
        summary = indexer.run(show, refine=refine, full=full, wait=not no_wait, builder=builder)
        show.close()
        report_on(location)  # while the tables are open: a list of repositories opens none
        if as_json:
            print_json(asdict(summary))
        else:
            print_summary(summary)
        if describer is not None:
            _describe(settings, location, describer, limit, yes, show)
            if not no_refine and settings.embedding:  # described methods have lost their vectors
                indexer.run(show)


def _root(repo: str | None, branch: str | None) -> Path:
    """Return the folder of the repository, which is cloned first if `repo` is an address."""
    settings = load_settings()
    if repo and looks_remote(repo):
        return _cloned(settings, read_remote(repo, branch or ""))
    if branch:
        raise UsageError("--branch needs the address of a repository.", "Leave it out.")
    if repo:
        return folder_of(repo, settings.data_dir, anew=True)
    return chosen_repositories(settings)[0].root


def _cloned(settings: Settings, remote: Remote) -> Path:
    with ProgressDisplay() as show:
        before = clone_location(settings, remote)
        if before.root.is_dir():
            click.echo(f"It is cloned already; codeqa sync {before.id} updates it.", err=True)
        return take_clone(settings, remote, show).root


def _model_for_descriptions(models: Models, name: str, yes: bool) -> Model:
    """Return the model called `name`, or the chosen one.

    Raises UsageError for none, and without `yes` if there is no terminal to ask on.
    """
    if name:
        models.prefer(name)
    model = models.answer_model()
    if model is None:
        raise UsageError(
            "No language model is chosen.",
            "Add --model provider/name, as in ollama/qwen3, or set CODEQA_MODEL.",
        )
    if not yes and not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask on.", "Add --yes to send without asking.")
    return model


def _describe(
    settings: Settings,
    location: Location,
    model: Model,
    limit: int | None,
    yes: bool,
    show: ProgressDisplay,
) -> None:
    """Let the model describe the methods that have no description, if the user agrees."""
    plan = plan_descriptions(settings, location, model.name, limit)
    click.echo(_estimate(plan, model))
    if plan.requests and not yes and not click.confirm(f"Send them to {model.host}?"):
        click.echo("Nothing was sent.")
        return
    count = add_descriptions(
        settings, location, plan.units, model.complete, model.name, show, model.close
    )
    show.close()
    click.echo(f"{count:,} descriptions written.")


def _estimate(plan: DescriptionPlan, model: Model) -> str:
    """Return a line that says what will be sent where, and what comes back."""
    before = f"{plan.stored:,} described before. " if plan.stored else ""
    if not plan.requests:
        return f"{before}No other method needs a description."
    return (
        f"{before}{plan.requests:,} methods, ≈ {plan.tokens_sent:,} tokens to {model.name} at "
        f"{model.host}, ≈ {plan.requests * TYPICAL_TOKENS:,} back (never more than "
        f"{plan.requests * MAX_TOKENS:,})."
    )
