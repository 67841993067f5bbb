"""Step 7: how good a table is.

`held-out` asks the doc comments of the repositories that were held out from training, each of
its own repository, and gives the mean reciprocal rank of the definition with and without its
name; with --versus also the paired difference and its interval, drawn by repository.

`questions` asks written questions about repositories at hand, by the vectors alone and through
the whole search, and judges the ranked lists. It takes the table that CodeQA ships (`fast`), the
folder of an export, `none` (full text and symbols alone), or any embedding of LanceDB's registry
as `provider/name`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.errors import CodeQAError
from codeqa.settings import load_settings
from research.training.console import parser, say, write_json
from research.training.features import Features
from research.training.questions import ask, open_embedding, score, show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.training.held_out import Ranks
    from research.training.model import TableModel

EXAMPLES = """\
  python -m research.training.evaluate held-out --out ~/training --table ~/training/exports/table
  python -m research.training.evaluate held-out --out ~/training --table ~/training/runs/wide \\
      --versus ~/training/runs/table
  python -m research.training.evaluate questions --out ~/training --questions questions.jsonl \\
      --trees trees --embedding ~/training/exports/table
  python -m research.training.evaluate questions … --embedding jina/jina-embeddings-v3 \\
      --versus table
"""


def open_table(folder: Path) -> TableModel:
    """The table of a run or of an export. Raises FileNotFoundError."""
    from research.training.export import load_export
    from research.training.train import load_model

    if (folder / "checkpoint.pt").exists():
        return load_model(folder)
    return load_export(folder)


def held_out(out: Path, table: Path, versus: Path | None = None) -> dict[str, Any]:
    """Figures of `table` on the held-out repositories, by language too; paired with `versus`."""
    import numpy as np

    from research.training.held_out import TableSides, held_out_ranks, interval

    features = Features(out / "features")
    ranks = held_out_ranks(TableSides(open_table(table), features), features)
    report: dict[str, Any] = {"table": str(table), **ranks.figures}
    kinds = {
        "sources": (ranks.source, features.manifest["sources"]),
        "languages": (ranks.language, features.languages),
    }
    for kind, (column, names) in kinds.items():
        report[kind] = {names[one]: _means(ranks, column == one) for one in np.unique(column)}
    if versus is not None:
        other = held_out_ranks(TableSides(open_table(versus), features), features)
        paired = report["versus"] = {"table": str(versus)}
        chosen = {"": ranks.source >= 0}
        chosen |= {
            f" {features.manifest['sources'][one]}": ranks.source == one
            for one in np.unique(ranks.source)
        }
        for name, rows in chosen.items():
            for figure, ours, theirs in (
                ("with the name", ranks.with_name, other.with_name),
                ("without the name", ranks.without_name, other.without_name),
            ):
                difference = (ours - theirs)[rows]
                paired[figure + name] = interval(difference, ranks.repository[rows])
    return report


def _means(ranks: Ranks, chosen: NDArray[np.bool_]) -> dict[str, float]:
    return {
        "mrr": round(float(ranks.with_name[chosen].mean()), 4),
        "mrr_without_name": round(float(ranks.without_name[chosen].mean()), 4),
        "questions": int(chosen.sum()),
    }


def tell_held_out(report: dict[str, Any]) -> None:
    """Say what `held_out` found."""
    say(
        f"held out: MRR {report['mrr']:.3f} with and {report['mrr_without_name']:.3f} without the "
        f"name, {report['questions']:,} questions"
    )
    for name, figures in (*report["sources"].items(), *report["languages"].items()):
        say(
            f"  {name:12s} {figures['mrr']:.3f}  {figures['mrr_without_name']:.3f}  "
            f"({figures['questions']:,})"
        )
    versus = dict(report.get("versus", {}))
    if versus:
        say(f"difference to {versus.pop('table')}")
    for name, (difference, low, high) in versus.items():
        say(f"  {name:24s} {difference:+.4f} [{low:+.4f}, {high:+.4f}]")


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    options = parser("evaluate", __doc__, EXAMPLES)
    options.add_argument("what", nargs="?", choices=("held-out", "questions"), default="held-out")
    options.add_argument("--table", type=Path, help="run or export, for `held-out`")
    options.add_argument("--embedding", default="fast", help="for `questions`")
    options.add_argument("--questions", type=Path, help="questions.jsonl")
    options.add_argument("--trees", type=Path, help="folder with a folder for each `repo`")
    options.add_argument("--name", default="answers", help="of the lists and figures written")
    options.add_argument("--versus", help="another table, or the name of earlier answers")
    given = options.parse_args(arguments)
    folder = given.out / "evaluation"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if given.what == "held-out":
            table = given.table or given.out / "exports" / "table"
            report = held_out(given.out, table, Path(given.versus) if given.versus else None)
            tell_held_out(report)
            write_json(folder / f"{given.name}.held-out.json", report)
            return 0
        if not (given.questions and given.trees):
            say("evaluate: `questions` needs --questions and --trees")
            return 2
        embedding = open_embedding(given.embedding, load_settings())
        lists = ask(given.questions, given.trees, folder / given.name, embedding)
        before = {kind: folder / f"{given.versus}.{kind}.jsonl" for kind in lists}
        paired = {kind: path for kind, path in before.items() if path.exists()}
        figures = score(given.questions, lists, paired if given.versus else None)
        show(figures)
        write_json(folder / f"{given.name}.questions.json", figures)
    except (FileNotFoundError, ValueError, CodeQAError) as error:
        say(f"evaluate: {error}")
        return 1
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
