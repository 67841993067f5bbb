"""`codeqa index`; with `--comments` a language model describes the methods: the
estimate, the consent, the run."""

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
from codeqa.indexing.comments import (
    MAX_TOKENS,
    TYPICAL_TOKENS,
    CommentPlan,
    add_comments,
    plan_comments,
)
from codeqa.llm.client import Model
from codeqa.llm.models import Models
from codeqa.repositories import clone_location, open_location, report_on, take_clone
from codeqa.repositories.snapshots import take_snapshot
from codeqa.repository.remotes import Remote, looks_remote, read_remote
from codeqa.settings import Settings, load_settings


# Long by its options, each of which is a parameter, and by which of them exclude each other.
@command(
    "index",
    [
        "codeqa index                    the repository of the current folder",
        "codeqa index ~/src/flask        another one; later runs read only what changed",
        "codeqa index ~/src/flask --full build everything anew",
        "codeqa index --rev v2.3         as it was at that tag, beside it",
        "codeqa index https://github.com/pallets/flask    a clone of it, kept in the data folder",
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
    help="Leave the search by meaning with the chosen embedding for later.",
)
@click.option(
    "--comments",
    is_flag=True,
    help="Let a language model describe the methods in two or three lines each, which are searched "
    "with the code. Says what is sent where, and asks, before anything is.",
)
@click.option(
    "--engine",
    metavar="ray[=HOST:PORT]",
    help="Build with Ray, here or on that cluster (extra `cluster`). REPO may be a file with a "
    "folder in each line.",
)
@click.option("--no-wait", is_flag=True, help="Fail where another run is going on.")
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

    By https or ssh address its newest commit is cloned first; `codeqa sync` fetches later ones.
    """
    if not comments and (model or limit or yes):
        raise UsageError("--model, --limit and --yes need --comments.", "Add --comments.")
    if comments and as_json:
        raise UsageError("--comments and --json cannot be combined.", "Leave one out.")
    builder = None
    if engine:
        builder = load_extension("ray_builder", "cluster")(engine)
        if repo and Path(repo).is_file():
            if rev or branch or comments or as_json:
                raise UsageError(
                    f"{repo} is a list, and --rev, --branch, --comments and --json are for one "
                    "repository.",
                    "Leave them out, or give the folder of one.",
                )
            how = {"refine": not no_refine, "full": full, "wait": not no_wait}
            load_extension("index_list", "cluster")(Path(repo), builder, how)
            return
    if repo and looks_remote(repo):
        root = _cloned(load_settings(), read_remote(repo, branch or ""))
    elif branch:
        raise UsageError("--branch needs the address of a repository.", "Leave it out.")
    else:
        usual = load_settings()
        named = folder_of(repo, usual.data_dir, anew=True) if repo else None
        root = named or chosen_repositories(usual)[0].root
    settings = load_settings(root)
    location = open_location(settings, root, anew=True)
    if rev:
        location = take_snapshot(settings, location, rev)
    indexer = Indexer(settings, location)
    with contextlib.closing(Models(settings)) as models, ProgressDisplay() as show:
        describing = _model_for_comments(models, model, yes) if comments else None
        refine = not no_refine and not comments
        summary = indexer.run(show, refine=refine, full=full, wait=not no_wait, builder=builder)
        show.close()
        report_on(location)  # noted while the tables are open: a list of repositories opens none
        if as_json:
            print_json(asdict(summary))
        else:
            print_summary(summary)
        if describing is None:
            return
        plan = plan_comments(settings, location, describing.name, limit)
        click.echo(_estimate(plan, describing))
        if not plan.requests or yes or click.confirm(f"Send them to {describing.host}?"):
            ask, name = describing.complete, describing.name
            units, stop = plan.units, describing.close
            written = add_comments(settings, location, units, ask, name, show, stop)
            show.close()
            click.echo(f"{written:,} descriptions written.")
        else:
            click.echo("Nothing was sent.")
        if not no_refine and settings.embedding:  # described methods have lost their vectors
            indexer.run(show)


def _cloned(settings: Settings, remote: Remote) -> Path:
    with ProgressDisplay() as show:
        before = clone_location(settings, remote)
        if before.root.is_dir():
            click.echo(f"Cloned before; codeqa sync {before.id} fetches what is new.", err=True)
        return take_clone(settings, remote, show).root


def _model_for_comments(models: Models, name: str, yes: bool) -> Model:
    """Return the model called `name`, else the one that is chosen.

    Raises UsageError for none, and when without `yes` nobody is there to agree; so before
    anything is done.
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


def _estimate(plan: CommentPlan, model: Model) -> str:
    """Say in one line what will be sent where and what comes back."""
    known = f"{plan.known:,} described before. " if plan.known else ""
    if not plan.requests:
        return f"{known}No other method needs a description."
    return (
        f"{known}{plan.requests:,} methods, ≈ {plan.tokens_sent:,} tokens to {model.name} at "
        f"{model.host}, ≈ {plan.requests * TYPICAL_TOKENS:,} back (never more than "
        f"{plan.requests * MAX_TOKENS:,})."
    )
