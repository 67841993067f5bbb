"""The command `codeqa`: index, serve, search, ask, repos, doctor.

A thin surface: it reads the arguments, calls the engine and prints. Results go to stdout,
everything else to stderr. Exit statuses: 0 done, 1 failed, 2 bad usage.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeqa import __version__
from codeqa.console import (
    BAD_USAGE,
    DONE,
    FAILED,
    PlainText,
    ProgressDisplay,
    format_table,
    human_bytes,
    print_summary,
    run_main,
)
from codeqa.errors import CodeQAError, UsageError
from codeqa.settings import Settings, load_settings, with_home
from codeqa.types import CLASS_KINDS, METHOD_KINDS, TEXT_KINDS, Event, Hit

if TYPE_CHECKING:
    from codeqa.engine import Engine

KINDS = sorted(METHOD_KINDS | CLASS_KINDS | TEXT_KINDS)
WHY_SHOWN = 3
"""Reasons printed per hit; the rest is in `--json`."""

MOST_HITS = 300

Command = Callable[..., Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return run_main(lambda: _run(given), debug="--debug" in given)


def _run(arguments: list[str]) -> int:
    """Run click without its own handling of errors: ours are one line and three statuses."""
    try:
        with cli.make_context("codeqa", arguments) as context:
            status = cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "codeqa"
        raise UsageError(_sentence(error.format_message()), f"See '{command} --help'.") from error
    except click.ClickException as error:
        raise CodeQAError(_sentence(error.format_message())) from error
    except click.Abort:
        raise KeyboardInterrupt from None
    return status if isinstance(status, int) else DONE


def _sentence(text: str) -> str:
    text = re.sub(r"\((Did you mean .*)\)$", r"\1", " ".join(text.split()))
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _command(group: click.Group, name: str, examples: Sequence[str]) -> Callable[[Command], Any]:
    """A command of `group` that takes `--debug` and shows `examples` in its help."""
    shown = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)

    def decorate(function: Command) -> Any:
        option = click.option(
            "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
        )
        return group.command(name, epilog=shown)(option(function))

    return decorate


_REPO_HELP = "Folder of the repository, or the name it has in 'codeqa repos list'."


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="codeqa", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def cli() -> None:
    """Answers questions about a code base, with citations, on this machine.

    \b
    Examples:
      codeqa index ~/src/flask
      codeqa ask "where are sessions opened?" --repo ~/src/flask
      codeqa serve ~/src/flask
    """


@_command(
    cli,
    "index",
    [
        "codeqa index                    the repository of the current folder",
        "codeqa index ~/src/flask        another one; later runs read only what changed",
        "codeqa index ~/src/flask --full build everything anew",
    ],
)
@click.argument("repo", required=False)
@click.option("--full", is_flag=True, help="Read every file again and rebuild the tables.")
@click.option("--no-refine", is_flag=True, help="Leave the chosen embedding's vectors for later.")
def index_command(repo: str | None, full: bool, no_refine: bool) -> None:
    """Index a repository, or bring its index up to date."""
    with _open(repo) as engine, ProgressDisplay() as show:
        summary = engine.index.run(progress=show, refine=not no_refine, full=full)
        show.close()
        print_summary(summary)


@_command(
    cli,
    "serve",
    [
        "codeqa serve                    the repository of the current folder or the last one",
        "codeqa serve ~/src/flask        index it first if needed, then serve the page",
        "codeqa serve --port 8080",
    ],
)
@click.argument("repo", required=False)
@click.option("--host", help="Address to serve on; any but this machine's own needs a token.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port to serve on.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
def serve_command(repo: str | None, host: str | None, port: int | None, open_browser: bool) -> None:
    """Serve the page in which questions are asked.

    Without any repository the page lets you choose one.
    """
    from codeqa.web.server import run_page

    repository = _find_repository(load_settings(), repo, required=False)
    settings = load_settings(repository, host=host, port=port)
    run_page(settings, repository, open_browser=open_browser)


@_command(
    cli,
    "search",
    [
        'codeqa search "parse the request body"',
        'codeqa search "Router.add" --kind method --lang go --top 5',
        'codeqa search "session cookie" --path src/flask --json',
    ],
)
@click.argument("question")
@click.option("--repo", help=_REPO_HELP)
@click.option(
    "--kind", type=click.Choice(KINDS), metavar="KIND", help=f"Only this kind: {', '.join(KINDS)}."
)
@click.option("--lang", default="", help="Only files in this language, as 'python'.")
@click.option("--path", default="", help="Only paths that begin so, or match this pattern.")
@click.option(
    "--top", type=click.IntRange(1, MOST_HITS), default=10, metavar="N", help="Hits; default 10."
)
@click.option("--rerank", is_flag=True, help="Let the reranker order the best hits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def search_command(
    question: str,
    repo: str | None,
    kind: str | None,
    lang: str,
    path: str,
    top: int,
    rerank: bool,
    as_json: bool,
) -> None:
    """Find the code that QUESTION is about."""
    if not question.strip():
        raise UsageError("The question is empty.", "Write what to look for, in quotes.")
    with _open(repo) as engine:
        if lang:
            _require_language(engine, lang)
        result = engine.search.search(
            question, top=top, kind=kind or "", language=lang, path=path, rerank=rerank
        )
    if as_json:
        document = {
            "question": result.question,
            "milliseconds": result.milliseconds,
            "channels": list(result.channels),
            "coverage": result.coverage,
            "hits": [_hit_values(hit) for hit in result.units],
            "files": [{"path": file.path, "score": file.score} for file in result.files],
        }
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    if not result.units:
        click.echo("Nothing was found. Use other words or fewer filters.", err=True)
    for number, hit in enumerate(result.units, start=1):
        click.echo(_hit_text(number, hit))
    if result.coverage:
        click.echo(f"\nSearched: {result.coverage}", err=True)


@_command(
    cli,
    "ask",
    [
        'codeqa ask "how are blueprints registered?"',
        'codeqa ask "what does the scrape loop do?" --repo ~/src/prometheus',
    ],
)
@click.argument("question")
@click.option("--repo", help=_REPO_HELP)
@click.option("--rerank", is_flag=True, help="Let the reranker order what is found.")
def ask_command(question: str, repo: str | None, rerank: bool) -> int:
    """Answer QUESTION from the code, with citations of files and lines."""
    if not question.strip():
        raise UsageError("The question is empty.", "Write what you want to know, in quotes.")
    # One call is one question: there is no earlier context that it could go on from.
    tagged = question if "@codebase" in question else f"@codebase {question}"
    with _open(repo) as engine:
        # Says that nothing is indexed before anything is printed.
        return _print_answer(engine.chat.ask(tagged, rerank=rerank))


@cli.group()
def repos() -> None:
    """List or remove the indexed repositories."""


@_command(repos, "list", ["codeqa repos list", "codeqa repos list --json"])
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def repos_list_command(as_json: bool) -> None:
    """List the indexed repositories, their size and where the data lies."""
    from codeqa.doctor import report_repositories

    settings = load_settings()
    reports = report_repositories(settings)
    if as_json:
        rows = [asdict(report) for report in reports]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    click.echo(f"Data: {settings.data_dir}", err=True)
    if not reports:
        click.echo("No repository is indexed. Index one: codeqa index /path/to/it", err=True)
        return
    header = ("name", "files", "units", "on disk", "updated", "state", "path")
    table = [
        (
            report.name,
            f"{report.files:,}",
            f"{report.units:,}",
            human_bytes(report.bytes_on_disk),
            _when(report.updated_at),
            report.state,
            report.path,
        )
        for report in reports
    ]
    click.echo(format_table(header, table))


@_command(repos, "remove", ["codeqa repos remove flask", "codeqa repos remove ~/src/flask --yes"])
@click.argument("repo")
@click.option("--yes", is_flag=True, help="Do not ask.")
def repos_remove_command(repo: str, yes: bool) -> None:
    """Delete the index of a repository.

    The repository itself is not touched.
    """
    from codeqa.engine import remove_repository

    settings = load_settings()
    root = _indexed_root(settings, repo)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Nobody can be asked here.", "Add --yes to remove the index.")
        click.confirm(f"Remove the index of {root}?", abort=True)
    remove_repository(settings, str(root))
    click.echo(f"Removed the index of {root}")


@_command(cli, "doctor", ["codeqa doctor", "codeqa doctor --repo flask"])
@click.option("--repo", help="Look at this repository's index only.")
def doctor_command(repo: str | None) -> int:
    """Check the installation, the settings, the data and every index."""
    from codeqa.doctor import examine

    settings = load_settings()
    only = _indexed_root(settings, repo) if repo else None
    failed = 0
    for check in examine(settings, only):
        failed += not check.ok
        click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}")
        if not check.ok and check.hint:
            click.echo(f"      {check.hint}")
    if failed:
        click.echo(f"{failed} {'check' if failed == 1 else 'checks'} failed", err=True)
    return FAILED if failed else DONE


@contextmanager
def _open(repo: str | None) -> Iterator[Engine]:
    from codeqa.engine import open_engine

    repository = _find_repository(load_settings(), repo)
    assert repository is not None  # required
    engine = open_engine(load_settings(repository), repository)
    try:
        yield engine
    finally:
        engine.close()


def _find_repository(settings: Settings, repo: str | None, required: bool = True) -> Path | None:
    """The repository that is meant: as named, else the current folder's, else the last used.

    Raises UsageError when what was named is no folder and no indexed repository, and when
    nothing is named and there is nothing to fall back on and `required`.
    """
    if repo is not None:
        return _named_repository(settings, repo)
    from codeqa.engine import list_repositories, recent_repositories

    here = Path.cwd()
    indexed = {location.root for location in list_repositories(settings)}
    for folder in (here, *here.parents):
        if folder in indexed or (folder / ".git").exists():
            return folder
    if recent := recent_repositories(settings):
        return recent[0]
    if not required:
        return None
    raise UsageError(
        "No repository is named, and the current folder is in none.",
        "Give the path of one, as in: codeqa index /path/to/repository.",
    )


def _named_repository(settings: Settings, repo: str) -> Path:
    from codeqa.engine import find_repositories

    folder = with_home(Path(repo))
    if folder.is_dir():
        return folder.resolve()
    if folder.exists():
        raise UsageError(f"{repo} is not a folder.", "Give the folder that holds the source code.")
    named = find_repositories(settings, repo)
    if len(named) == 1:
        return named[0].root
    if named:
        raise UsageError(f"{len(named)} repositories are named {repo}.", "Give the path of one.")
    raise UsageError(
        f"There is no folder {repo} and no indexed repository of that name.",
        "See 'codeqa repos list' for those that are indexed.",
    )


def _require_language(engine: Engine, lang: str) -> None:
    """Raises UsageError when no indexed file is in that language."""
    known = sorted({file.language for file in engine.tables().files() if file.units})
    if known and lang.lower() not in known:
        raise UsageError(f"No indexed file is in {lang}.", f"There is: {', '.join(known)}.")


def _indexed_root(settings: Settings, repo: str) -> Path:
    """Root of an indexed repository; its folder may be gone by now. Raises NotFoundError."""
    from codeqa.engine import find_repository

    return find_repository(settings, repo).root


def _print_answer(events: Iterator[Event]) -> int:
    """Print the answer as it comes; notes go to stderr, so that a pipe gets the answer only."""
    text = ""
    plain = PlainText() if sys.stdout.isatty() else None
    for event in events:
        if event.kind == "token":
            # Blank lines wait for what follows them: the last ones separate nothing.
            shown = len(text.rstrip("\n"))
            text += event.data["text"]
            new = text[shown : len(text.rstrip("\n"))]
            click.echo(plain.feed(new) if plain else new, nl=False)
            sys.stdout.flush()
        elif event.kind == "error":
            click.echo()
            raise CodeQAError(str(event.data["message"]), str(event.data.get("hint", "")))
        elif event.kind == "stopped":
            click.echo()
            return FAILED
        elif event.kind == "done":
            click.echo()
            coverage = event.data.get("coverage", "")
            if coverage and coverage not in text:
                click.echo(f"\nSearched: {coverage}", err=True)
    return DONE


def _hit_text(number: int, hit: Hit) -> str:
    unit = hit.unit
    name = unit.qualified_name or unit.name
    lines = [f"{number:>2}  {unit.location}  {unit.kind} {name}  {hit.score:.3f}"]
    signature = " ".join(unit.signature.split())
    if signature:
        lines.append(f"    {signature}")
    if hit.why:
        lines.append(f"    why: {'; '.join(hit.why[:WHY_SHOWN])}")
    return "\n".join(lines)


def _hit_values(hit: Hit) -> dict[str, Any]:
    unit = hit.unit
    return {
        "path": unit.path,
        "start_line": unit.start_line,
        "end_line": unit.end_line,
        "language": unit.language,
        "kind": unit.kind,
        "name": unit.name,
        "qualified_name": unit.qualified_name,
        "signature": unit.signature,
        "score": hit.score,
        "why": list(hit.why),
        "channels": dict(hit.channels),
    }


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "-"
